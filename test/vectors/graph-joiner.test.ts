import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../ops/random.js';
import { linkIslands } from '../../vectors/graph-bridges.js';
import { GraphJoiner, JOIN_BY_ANGLE_ROWS_MIN, type JoinablePart, type JoinPlace, joinEf } from '../../vectors/graph-joiner.js';
import { align16 } from '../../vectors/scratch.js';
import { testSeed } from '../seed.js';
import { makeSegment } from './segment.js';

/** Room for more: lengths have none among few. */
const CAPACITY = JOIN_BY_ANGLE_ROWS_MIN;
const ROWS = 420;
const LARGER = 300;
const DIM = 13;
const M0 = 12;
const NONE = 0xffff_ffff;

/** Two graphs of one level, in which each row has so many nearest rows of its graph as neighbours, and the next one, so that each leads to all. */
class Scene {
  readonly codes: Uint8Array;
  readonly place: JoinPlace;
  readonly words: Uint32Array;
  readonly larger = partOf(0, LARGER);
  readonly smaller = partOf(LARGER, ROWS);

  constructor(
    readonly byAngle: boolean,
    readonly zero: number,
    neighbours: number,
  ) {
    const random = seededRandom(testSeed());
    const stride = align16(DIM);
    const segment = makeSegment(CAPACITY, DIM, CAPACITY * (stride + (1 + M0) * 4 + 4) + 1024);
    const [offset, level0, upperIndex] = [CAPACITY * stride, CAPACITY * (1 + M0) * 4, CAPACITY * 4].map((bytes) => segment.take(bytes)) as [
      number,
      number,
      number,
    ];
    const { memory, scratch, slot } = segment;
    this.codes = Uint8Array.from({ length: ROWS * DIM }, () => random.integer(256));
    for (let row = 0; row < ROWS; row++)
      new Uint8Array(memory.buffer).set(this.codes.subarray(row * DIM, (row + 1) * DIM), offset + row * stride);
    new Uint32Array(memory.buffer, upperIndex, CAPACITY).fill(NONE);
    this.words = new Uint32Array(memory.buffer, level0, ROWS * (1 + M0));
    const lists = { level0, m0: M0, upperIndex, upper: 0, m: M0 / 2 };
    this.place = { memory, rows: CAPACITY, lists, codes: { offset, stride, dim: DIM, zero }, byAngle, slot, scratch };
    for (const { rows } of [this.larger, this.smaller])
      for (const [at, row] of rows.entries()) {
        const next = rows[(at + 1) % rows.length] as number;
        const others = Array.from(rows).filter((other) => other !== row && other !== next);
        this.put(row, [next, ...this.nearest(row, others).slice(0, neighbours - 1)]);
      }
  }

  listOf(row: number): number[] {
    const at = row * (1 + M0);
    return Array.from(this.words.subarray(at + 1, at + 1 + (this.words[at] as number)));
  }

  put(row: number, links: readonly number[]): void {
    this.words.set([links.length, ...links], row * (1 + M0));
  }

  /** The nearest first; of rows that are as near, the smaller. */
  nearest(row: number, others: readonly number[]): number[] {
    return [...others].sort((one, other) => this.distance(row, one) - this.distance(row, other) || one - other);
  }

  /** Squared, or the cosine below 0. */
  distance(one: number, other: number): number {
    let sum = 0;
    for (let i = 0; i < DIM; i++) sum += this.byAngle ? this.at(one, i) * this.at(other, i) : (this.at(one, i) - this.at(other, i)) ** 2;
    return this.byAngle ? -sum / (this.length(one) * this.length(other)) : sum;
  }

  /** Of squares, or of angles 1 minus the cosine. */
  isClearlyNearer(to: number, one: number, other: number): boolean {
    const lead = this.byAngle ? 1 : 0;
    return (lead + this.distance(one, to)) * 1.2 < lead + this.distance(other, to);
  }

  private at(row: number, i: number): number {
    return (this.codes[row * DIM + i] as number) - this.zero;
  }

  private length(row: number): number {
    return Math.hypot(...Array.from({ length: DIM }, (_, i) => this.at(row, i)));
  }

  /** Join-J2. */
  chosen(row: number, candidates: readonly number[], most = M0 - M0 / 4): number[] {
    const chosen: number[] = [];
    for (const candidate of this.nearest(row, candidates)) {
      if (chosen.length === most) break;
      if (chosen.every((other) => !this.isClearlyNearer(candidate, other, row))) chosen.push(candidate);
    }
    return chosen;
  }
}

function partOf(from: number, to: number): JoinablePart {
  const rows = Uint32Array.from({ length: to - from }, (_, at) => from + at);
  return { rows, levels: new Int16Array(rows.length), entryRow: from, maxLevel: 0 };
}

for (const { byAngle, zero } of [
  { byAngle: false, zero: 0 },
  { byAngle: true, zero: 100 },
])
  test(`joined rows have the links that HNSW chooses from all rows of both graphs, and get links back: ${byAngle ? 'angles' : 'distances'}`, async () => {
    const scene = new Scene(byAngle, zero, 5);
    const before = Array.from({ length: ROWS }, (_, row) => scene.listOf(row));
    const joiner = new GraphJoiner(scene.place);
    joiner.begin(scene.larger);
    // A search that keeps so many results goes through all that can be reached.
    await joiner.join(scene.smaller, LARGER, async () => {});
    const linked = new Map<number, number[]>();
    let full = 0;
    for (const row of scene.smaller.rows) {
      const [links, own] = [scene.listOf(row), before[row] as number[]];
      const chosen = scene.chosen(row, [...own, ...scene.larger.rows]);
      const kept = [...own, ...chosen.filter((link) => link < LARGER)];
      if (kept.length > M0) full++;
      assert.deepEqual(links, kept.length > M0 ? chosen : kept, `row ${row}`);
      for (const target of links.filter((link) => link < LARGER)) linked.set(target, [...(linked.get(target) ?? []), row]);
    }
    let crowded = 0;
    for (const row of scene.larger.rows) {
      const [had, incoming] = [before[row] as number[], linked.get(row) ?? []];
      const all = [...had, ...incoming];
      if (all.length > M0) crowded++;
      assert.deepEqual(scene.listOf(row), all.length > M0 ? scene.chosen(row, all) : all, `row ${row}`);
    }
    assert.ok(linked.size > LARGER / 10 && crowded > 0, `${linked.size} rows have links back, ${crowded} more than fit`);
    assert.ok(full > 0 && full < scene.smaller.rows.length, `${full} rows have no room for what is chosen`);
    assert.deepEqual([joiner.entryRow, joiner.maxLevel], [0, 0]);
  });

test('rows that are added to the links of a row are all taken where they fit, and chosen from where they do not', async () => {
  const scene = new Scene(false, 0, 4);
  const joiner = new GraphJoiner(scene.place);
  joiner.begin(scene.larger);
  const had = scene.listOf(7);
  const more = Array.from(scene.larger.rows).filter((row) => row !== 7 && !had.includes(row));
  joiner.addLinks(7, 0, Uint32Array.from(more.slice(0, 5)), M0);
  assert.deepEqual(scene.listOf(7), [...had, ...more.slice(0, 5)]);
  joiner.addLinks(7, 0, Uint32Array.from(more.slice(5, 60)), M0 - 2);
  assert.deepEqual(scene.listOf(7), scene.chosen(7, [...had, ...more.slice(0, 60)], M0 - 2));
});

test('a row that lost links keeps those it has, and gets as many that are chosen beside them', () => {
  const scene = new Scene(false, 0, 6);
  const joiner = new GraphJoiner(scene.place);
  const had = [201, 202, 203];
  scene.put(7, had);
  const more = Array.from(scene.larger.rows.subarray(0, 60)).filter((row) => row !== 7 && !had.includes(row));
  joiner.heal(7, 0, Uint32Array.from(more), 3);
  const fitting = (links: readonly number[]) =>
    scene.nearest(7, more).find((row) => !links.includes(row) && links.every((link) => !scene.isClearlyNearer(row, link, 7)));
  const expected = [...had];
  for (let next = fitting(expected); next !== undefined && expected.length < had.length + 3; next = fitting(expected)) expected.push(next);
  assert.ok(expected.length > had.length);
  assert.deepEqual(scene.listOf(7), expected);
  joiner.heal(7, 0, Uint32Array.from(more), 100);
  assert.ok(scene.listOf(7).length <= M0);
});

test('a part that is joined gives up nothing of the memory around its lists, and its highest row becomes the entry', async () => {
  const scene = new Scene(false, 0, M0);
  const { level0 } = scene.place.lists;
  const guard = new Uint32Array(scene.place.memory.buffer, level0 + ROWS * (1 + M0) * 4, (CAPACITY - ROWS) * (1 + M0));
  const marks = guard.map((_, at) => at + 1);
  guard.set(marks);
  const joiner = new GraphJoiner(scene.place);
  joiner.begin(scene.larger);
  // Its row 310 alone is on level 1, where the larger graph has nobody.
  const levels = scene.smaller.levels.map((_, at) => (at === 10 ? 1 : 0));
  await joiner.join({ ...scene.smaller, levels, entryRow: LARGER + 10, maxLevel: 1 }, joinEf(64), async () => {});
  assert.deepEqual([joiner.entryRow, joiner.maxLevel], [LARGER + 10, 1]);
  assert.deepEqual(guard, marks);
  for (let row = 0; row < ROWS; row++) {
    const links = scene.listOf(row);
    assert.ok(links.length <= M0 && !links.includes(row) && new Set(links).size === links.length, `row ${row}: ${links}`);
  }
});

test('rows that nobody leads to are found by a search, and one that can be reached is linked to them, though its list is full', async () => {
  const scene = new Scene(false, 0, M0);
  const joiner = new GraphJoiner(scene.place);
  // The rows of the smaller graph lead to nobody but themselves, and row 399 is led to by none of them.
  for (const row of scene.smaller.rows)
    scene.put(
      row,
      scene.listOf(row).filter((link) => link !== 399),
    );
  const reached = (): Set<number> => {
    const seen = new Set([0]);
    for (const row of seen) for (const link of scene.listOf(row)) seen.add(link);
    return seen;
  };
  assert.equal(reached().size, LARGER);
  const words = new Uint32Array(scene.place.memory.buffer);
  const rows = Uint32Array.from({ length: ROWS }, (_, row) => row);
  const graph = { words, lists: scene.place.lists, rows, above: new Uint32Array(0), entryRow: 0, maxLevel: 0 };
  await linkIslands(graph, joiner, async () => {});
  assert.equal(reached().size, ROWS);
  for (const row of rows) {
    const links = scene.listOf(row);
    assert.ok(links.length <= M0 && !links.includes(row) && new Set(links).size === links.length, `row ${row}: ${links}`);
  }
});

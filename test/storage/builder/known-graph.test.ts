import assert from 'node:assert/strict';
import test from 'node:test';
import { seededRandom } from '../../../ops/random.js';
import type { VectorParams } from '../../../protocols/model/collection.js';
import { presentRows } from '../../../storage/builder/matrix.js';
import { measureRecall } from '../../../storage/builder/recall.js';
import { initChecksum } from '../../../storage/disk/checksum.js';
import type { SegmentHandle } from '../../../storage/segment/handle.js';
import type { GraphLayout } from '../../../storage/segment/layout.js';
import type { BuildJob } from '../../../storage/threads/messages.js';
import { limitAddresses, noPrlimit } from '../../machine.js';
import { replicaFolder } from '../segment/fixture.js';
import { buildSegment, clusteredRows, freeControl, makeConfig, makeJob, makeSource, payloadsFrom } from './fixture.js';

const DIM = 16;
/** By angle, fewer than some thousand rows are linked anew. */
const ROWS = 6000;
const rows = clusteredRows(ROWS, DIM, { clusters: 40, range: 1, spread: 0.3, seed: 5 });
const folder = replicaFolder();
test.before(() => initChecksum());

interface Built {
  readonly handle: SegmentHandle;
  /** For each graph that was made of rows: how many. */
  readonly linked: readonly number[];
  /** Of each join: how many rows there were before it, and are after. */
  readonly joined: string;
}

async function build(job: BuildJob): Promise<Built> {
  const linked: number[] = [];
  const joins: [number, number][] = [];
  let stage = '';
  const progress = (next: string, done: number, total: number) => {
    if (next !== stage && next.startsWith('building')) linked.push(total);
    if (next !== stage && next.startsWith('joining')) joins.push([done, total]);
    stage = next;
  };
  const { handle } = await buildSegment(job, () => payloadsFrom(() => '{}'), { ...freeControl, progress });
  return { handle, linked, joined: joins.map(([from, to]) => `${from} to ${to}`).join() };
}

function recallOf({ layout, memory, rows: count }: SegmentHandle): number {
  const vector = layout.vectors[0];
  assert.ok(vector?.graph);
  return measureRecall({ layout, memory, vector, rows: count, present: presentRows(memory, vector, count) }, 64, 0.95);
}

/** Rows of a segment in none of its lists of level 0. */
function unlinked({ layout, memory, rows: count }: SegmentHandle): number {
  const vector = layout.vectors[0];
  assert.ok(vector?.graph);
  const { level0, m0 } = vector.graph;
  const lists = new Uint32Array(memory.buffer, level0, count * (1 + m0));
  const seen = new Set<number>();
  for (let row = 0; row < count; row++) {
    const at = row * (1 + m0);
    const links = lists.subarray(at + 1, at + 1 + (lists[at] as number));
    assert.ok(links.every((link) => link < count && link !== row) && new Set(links).size === links.length, `row ${row}: ${links}`);
    for (const link of links) seen.add(link);
  }
  return presentRows(memory, vector, count).filter((row) => !seen.has(row)).length;
}

function graphOf({ layout }: SegmentHandle): GraphLayout {
  return layout.vectors[0]?.graph as GraphLayout;
}

function withoutMark(handle: SegmentHandle): SegmentHandle {
  const vectors = handle.layout.vectors.map(({ graph, ...vector }) => {
    const { byCodes, ...others } = graph as GraphLayout;
    return { ...vector, graph: others };
  });
  return { ...handle, layout: { ...handle.layout, vectors } };
}

function deleteRows({ layout, memory, rows: count }: SegmentHandle, isDeleted: (row: number) => boolean): void {
  const deletedAt = new Uint32Array(memory.buffer, layout.deletedAt, count);
  for (let row = 0; row < count; row++) if (isDeleted(row)) deletedAt[row] = 1;
}

for (const distance of ['Euclid', 'Cosine', 'Dot', 'Manhattan'] as const) {
  const params: VectorParams = { size: DIM, distance };
  const config = makeConfig(params);
  /** Rows [from, to) as an appendable segment; every ninth has no vector. */
  const source = (id: number, from: number, to: number): SegmentHandle => {
    const of = (row: number) => {
      const vector = rows[from + row] as Float32Array;
      const length = Math.hypot(...vector);
      return (from + row) % 9 === 0 ? undefined : distance === 'Cosine' ? vector.map((value) => value / length) : vector;
    };
    return makeSource({ id, rows: to - from, vectors: { '': { params, of } }, idOf: (row) => from + row });
  };

  test(`a build joins the graphs of its sources, and one of rows that had none: ${distance}`, async () => {
    const large = await build(makeJob({ folder, config, sources: [source(1, 0, 3000)], rows: [3000], segmentId: 10 }));
    assert.deepEqual([large.linked, large.joined], [[2666], '']);
    const small = await build(makeJob({ folder, config, sources: [source(2, 3000, 4000)], rows: [1000], segmentId: 11 }));
    const sources = [small.handle, source(3, 4000, 4500), large.handle];
    const merged = await build(makeJob({ folder, config, sources, rows: [1000, 500, 3000], segmentId: 12 }));
    assert.deepEqual([merged.linked, merged.joined], [[445], '2666 to 4000']);
    assert.equal(unlinked(merged.handle), 0);
    assert.ok(recallOf(merged.handle) >= 0.95, `recall ${recallOf(merged.handle)}`);
    // Those of earlier releases do not say that codes were good enough for them.
    const earlier = sources.map((handle) => (handle.kind === 'sealed' ? withoutMark(handle) : handle));
    const found = await build(makeJob({ folder, config, sources: earlier, rows: [1000, 500, 3000], segmentId: 15 }));
    assert.deepEqual([found.linked, found.joined], [[445], '2666 to 4000']);
    for (const { handle } of [large, merged, found]) assert.equal(graphOf(handle).byCodes, true);
    // A graph that was joined is a graph to go on from.
    const alone = await build(makeJob({ folder, config, sources: [merged.handle], rows: [4500], segmentId: 13 }));
    assert.deepEqual([alone.linked, alone.joined], [[], '']);
    assert.ok(recallOf(alone.handle) >= 0.95);
    const denser = makeConfig(params, { m: 12 });
    const anew = await build(makeJob({ folder, config: denser, sources, rows: [1000, 500, 3000], segmentId: 14 }));
    assert.deepEqual([anew.linked, anew.joined], [[4000], '']);
  });

  test(`a graph is healed where rows were deleted, and linked anew where most were: ${distance}`, async () => {
    const sources = [source(4, 0, ROWS)];
    const whole = await build(makeJob({ folder, config, sources, rows: [ROWS], segmentId: 20 }));
    const { layout } = whole.handle;
    const entry = layout.vectors[0]?.graph?.entryRow as number;
    deleteRows(whole.handle, (row) => row % 5 === 0 || row === entry);
    const healed = await build(makeJob({ folder, config, sources: [whole.handle], rows: [ROWS], segmentId: 21 }));
    assert.deepEqual(healed.linked, []);
    assert.equal(unlinked(healed.handle), 0);
    assert.ok(recallOf(healed.handle) >= 0.95, `recall ${recallOf(healed.handle)}`);
    // What was lost before counts: the second fifth of the rows is too much.
    deleteRows(healed.handle, (row) => row % 5 === 0);
    const again = await build(makeJob({ folder, config, sources: [healed.handle], rows: [healed.handle.rows], segmentId: 23 }));
    assert.equal(again.linked.length, 1);
    deleteRows(whole.handle, (row) => row % 5 < 2);
    const anew = await build(makeJob({ folder, config, sources: [whole.handle], rows: [ROWS], segmentId: 22 }));
    assert.equal(anew.linked.length, 1);
  });
}

test('rows of which a graph of pairs finds too little are inserted one by one', async () => {
  const params: VectorParams = { size: 96, distance: 'Euclid' };
  const random = seededRandom(7);
  const hard = Array.from({ length: 4000 }, () => Float32Array.from({ length: 96 }, () => random.unit()));
  const rowsOf = (of: (row: number) => Float32Array) => [
    makeSource({ id: 9, rows: 4000, vectors: { '': { params, of } }, idOf: (row) => row }),
  ];
  // Nearest rows of a walk as short as this are few among rows that are all far apart; the graph of before was made of the same pairs.
  for (const { efConstruct, times } of [
    { efConstruct: 8, times: 2 },
    { efConstruct: 1000, times: 1 },
  ]) {
    const config = makeConfig(params, { ef_construct: efConstruct });
    const built = await build(
      makeJob({ folder, config, sources: rowsOf((row) => hard[row] as Float32Array), rows: [4000], segmentId: 30 + times }),
    );
    assert.deepEqual(built.linked, Array(times).fill(4000));
  }
});

test('without addresses for a graph of pairs, rows are inserted one by one', { skip: noPrlimit }, async () => {
  const params: VectorParams = { size: DIM, distance: 'Euclid' };
  const source = makeSource({ id: 8, rows: ROWS, vectors: { '': { params, of: (row) => rows[row] as Float32Array } }, idOf: (row) => row });
  const job = makeJob({ folder, config: makeConfig(params), sources: [source], rows: [ROWS], segmentId: 40 });
  const stages = new Set<string>();
  const control = { ...freeControl, progress: (stage: string) => void stages.add(stage) };
  // For the new segment, but for no memory beside it: V8 gives each some 10 GB of addresses.
  const unlimit = limitAddresses(13 * 2 ** 30);
  try {
    const { handle } = await buildSegment(job, () => payloadsFrom(() => '{}'), control);
    assert.ok(recallOf(handle) >= 0.95);
  } finally {
    unlimit();
  }
  assert.deepEqual(
    [...stages].filter((stage) => stage.startsWith('linking') || stage.startsWith('building')),
    ['building i8 graph'],
  );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../ops/random.js';
import { sharedMemory } from '../../storage/segment/shared-memory.js';
import type { BuiltGraph } from '../../vectors/built-graph.js';
import { GraphMaker, upperM, upperRows } from '../../vectors/graph-maker.js';
import { canMake } from '../../vectors/maker-places.js';
import { testSeed } from '../seed.js';

const DIM = 12;
const M = 8;

/** Rows in clusters that lie far apart. */
function clusteredCodes(rows: number, clusters: number): Uint8Array {
  const random = seededRandom(testSeed());
  const centres = Array.from({ length: clusters }, () => Array.from({ length: DIM }, () => 30 + random.integer(190)));
  return Uint8Array.from(
    { length: rows * DIM },
    (_, at) => (centres[Math.floor(at / DIM) % clusters]?.[at % DIM] as number) + random.integer(21) - 10,
  );
}

async function graphOf(codes: Uint8Array, upper: (rows: Uint32Array) => BuiltGraph | null): Promise<BuiltGraph> {
  const rows = codes.length / DIM;
  const options = { rows, dim: DIM, m: M, efConstruct: 100, threads: 1 };
  assert.ok(canMake(options));
  const maker = new GraphMaker(options, sharedMemory);
  for (let row = 0; row < rows; row++) maker.codes.set(codes.subarray(row * DIM, (row + 1) * DIM), row * maker.stride);
  const progress: number[] = [];
  const keys = Uint32Array.from({ length: rows }, (_, row) => row + 1000);
  const noted = async (done: number) => void progress.push(done);
  let spent = 0;
  const graph = await maker.make(keys, upper(upperRows(options)), noted, ({ buffer }, offset, bytes) => {
    // What nobody needs can be anything.
    new Uint8Array(buffer, offset, bytes).fill(0xff);
    spent += bytes;
  });
  assert.ok(spent > rows * DIM);
  assert.ok(progress.every((done, n) => done <= rows && done >= (progress[n - 1] ?? 0)));
  assert.deepEqual([graph.size, graph.m, graph.m0, graph.keys], [rows, M, 2 * M, keys]);
  return graph;
}

/** Each row linked to the next ones: what counts here is only that it is a graph. */
function ringOf(keys: Uint32Array): BuiltGraph {
  const m = upperM(M);
  return {
    ...{ size: keys.length, m, m0: 2 * m, maxLevel: 1, entry: 2, keys },
    levels: Int16Array.from(keys, (_, slot) => (slot % 3 === 2 ? 1 : 0)),
    neighbours: (slot, level) =>
      level === 1
        ? Uint32Array.of((slot + 3) % (keys.length - (keys.length % 3)))
        : Uint32Array.of((slot + 1) % keys.length, (slot + 2) % keys.length),
  };
}

test('few rows are linked as HNSW chooses from all of them, and back', async () => {
  const rows = M - 1;
  const codes = clusteredCodes(rows, rows);
  const graph = await graphOf(codes, (above) => {
    assert.equal(above.length, 0);
    return null;
  });
  const distance = (one: number, other: number): number => {
    let sum = 0;
    for (let i = 0; i < DIM; i++) sum += ((codes[one * DIM + i] as number) - (codes[other * DIM + i] as number)) ** 2;
    return sum;
  };
  const chosen = Array.from({ length: rows }, (_, row) => {
    const links: number[] = [];
    const others = Array.from({ length: rows }, (_, other) => other).filter((other) => other !== row);
    for (const other of others.sort((a, b) => distance(row, a) - distance(row, b) || a - b))
      if (links.every((link) => distance(link, other) * 1.2 >= distance(row, other))) links.push(other);
    return links;
  });
  for (let row = 0; row < rows; row++) {
    const back = chosen.flatMap((links, other) => (links.includes(row) && !chosen[row]?.includes(other) ? [other] : []));
    assert.deepEqual(Array.from(graph.neighbours(row, 0)), [...(chosen[row] as number[]), ...back]);
  }
  assert.deepEqual([graph.maxLevel, graph.entry, Array.from(graph.levels)], [0, 0, Array(rows).fill(0)]);
});

for (const clusters of [40, 1])
  test(`each of 4,000 rows can be reached from those of level 1, with ${clusters} clusters that lie apart`, async () => {
    const codes = clusteredCodes(4000, clusters);
    let above = new Uint32Array(0);
    const graph = await graphOf(codes, (rows) => {
      above = Uint32Array.from(rows);
      return ringOf(above);
    });
    assert.equal(above.length, 500);
    assert.deepEqual([graph.maxLevel, graph.entry], [2, above[2]]);
    const reached = new Set(above);
    for (const row of reached) for (const link of graph.neighbours(row, 0)) reached.add(link);
    assert.equal(reached.size, 4000);
    for (let row = 0; row < 4000; row++) {
      const links = graph.neighbours(row, 0);
      assert.ok(
        links.length > 0 && links.length <= 2 * M && !links.includes(row) && new Set(links).size === links.length,
        `row ${row}: ${links}`,
      );
    }
    for (const [n, row] of above.entries()) {
      assert.equal(graph.levels[row], n % 3 === 2 ? 2 : 1);
      const next = [above[(n + 1) % 500], above[(n + 2) % 500]];
      assert.deepEqual(Array.from(graph.neighbours(row, 1)), next);
      // Bridge-B1: those are linked on level 0, too.
      assert.ok(next.every((link) => graph.neighbours(row, 0).includes(link as number)));
    }
  });

test('rows that are all alike can be reached', async () => {
  const graph = await graphOf(new Uint8Array(5000 * DIM).fill(77), (rows) => ringOf(rows));
  const reached = new Set(upperRows({ rows: 5000, m: M }));
  for (const row of reached) for (const link of graph.neighbours(row, 0)) reached.add(link);
  assert.equal(reached.size, 5000);
});

test('what does not fit into a memory, or into 32 bits, is not made', () => {
  const usual = { rows: 1000, dim: 100, m: 16, efConstruct: 100, threads: 8 };
  assert.deepEqual(
    [usual, { ...usual, rows: 9_000_000 }, { ...usual, dim: 16_385 }, { ...usual, m: 7 }, { ...usual, m: 480 }].map(canMake),
    [true, false, false, false, false],
  );
});

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import usearch from 'usearch';
import { contextScores, discoverScores } from '../../query/discover.js';
import { bestScore } from '../../query/recommend.js';
import { type BuiltGraph, graphPlan, writeGraph } from '../../vectors/built-graph.js';
import {
  type Admission,
  type ExampleWalk,
  type Graph,
  KernelExpired,
  type Matrix,
  type Ranked,
  type WalkEnd,
} from '../../vectors/kernel-api.js';
import { chooseCodes, encodeCodes } from '../../vectors/quantize.js';
import { referenceScore, referenceTop } from '../../vectors/reference.js';
import { GraphFileError, readUsearchGraph } from '../../vectors/usearch-graph.js';
import { makeSegment, matrixBytes, randomOf, type Segment, storeRows } from './segment.js';

const DIM = 12;
const ROWS = 3000;

/** Clustered rows. */
function makeRows(rows: number, seed: number): Float32Array {
  const random = randomOf(seed);
  const centreRandom = randomOf(99);
  const centres = Float32Array.from({ length: 20 * DIM }, () => centreRandom());
  return Float32Array.from({ length: rows * DIM }, (_, index) => {
    const centre = Math.floor(index / DIM) % 20;
    return (centres[centre * DIM + (index % DIM)] as number) + random();
  });
}

/** A saved index of rows, under keys counted from `firstKey`. */
function savedIndex(values: Float32Array, firstKey = 0): Uint8Array {
  const index = new usearch.Index({
    dimensions: DIM,
    metric: usearch.MetricKind.L2sq,
    quantization: usearch.ScalarKind.F32,
    connectivity: 8,
    expansion_add: 64,
    expansion_search: 64,
    multi: false,
  });
  const rows = values.length / DIM;
  if (rows > 0)
    index.add(
      BigUint64Array.from({ length: rows }, (_, row) => BigInt(firstKey + row)),
      values,
      1,
    );
  const folder = mkdtempSync(join(tmpdir(), 'troupe-graph-'));
  try {
    index.save(join(folder, 'index'));
    return new Uint8Array(readFileSync(join(folder, 'index')));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

interface World {
  readonly segment: Segment;
  readonly graph: Graph;
  readonly floats: Matrix;
  readonly codes: Matrix;
  readonly meaning: Float64Array;
}

function makeWorld(values: Float32Array, graph: BuiltGraph, rowOfSlot?: Uint32Array, expired?: () => boolean): World {
  const rows = Math.max(1, values.length / DIM);
  const plan = graphPlan(graph, rowOfSlot);
  const room = matrixBytes('f32', rows, DIM) + matrixBytes('code', rows, DIM) + rows * (2 + plan.m0) * 4 + plan.upperWords * 4 + 1024;
  const segment = makeSegment(rows, DIM, room, expired);
  const layout = {
    ...plan,
    level0: segment.take(rows * (1 + plan.m0) * 4),
    upperIndex: segment.take(rows * 4),
    upper: segment.take(plan.upperWords * 4),
  };
  writeGraph(graph, rowOfSlot, segment.memory, layout, rows);
  const { matrix, meaning } = storeRows(segment, 'f32', 'l2', values, DIM);
  const chosen = chooseCodes(values);
  const offset = segment.take(matrixBytes('code', rows, DIM));
  encodeCodes(values, DIM, 16, chosen, new Uint8Array(segment.memory.buffer), offset);
  const codes: Matrix = { element: 'code', metric: 'l2', offset, stride: 16, dim: DIM, ...chosen };
  return { segment, graph: layout, floats: matrix, codes, meaning };
}

const values = makeRows(ROWS, 1);
const file = savedIndex(values);

test('a saved index is read whole: sizes, keys, levels and neighbours', () => {
  const graph = readUsearchGraph(file);
  assert.equal(graph.size, ROWS);
  assert.equal(graph.m, 8);
  assert.equal(graph.m0, 16);
  assert.deepEqual(
    [...graph.keys],
    Array.from({ length: ROWS }, (_, row) => row),
  );
  assert.equal(graph.maxLevel, Math.max(...graph.levels));
  assert.equal(graph.levels[graph.entry], graph.maxLevel);
  for (let slot = 0; slot < ROWS; slot++) {
    const neighbours = graph.neighbours(slot, 0);
    assert.ok(neighbours.length > 0 && neighbours.length <= 16);
    assert.ok(!neighbours.includes(slot));
    assert.equal(new Set(neighbours).size, neighbours.length);
  }
});

test('neighbours are near: the graph belongs to the vectors that it was built from', () => {
  const graph = readUsearchGraph(file);
  const row = (slot: number): Float32Array => values.subarray(slot * DIM, slot * DIM + DIM);
  let [near, far] = [0, 0];
  for (let slot = 0; slot < ROWS; slot++) {
    for (const other of graph.neighbours(slot, 0)) near -= referenceScore('l2', row(slot), row(other)) / graph.neighbours(slot, 0).length;
    far -= referenceScore('l2', row(slot), row((slot * 7 + 5) % ROWS));
  }
  assert.ok(near < far / 2);
});

interface Scene {
  readonly name: string;
  readonly passes: ((row: number) => boolean) | null;
  readonly deleted: (row: number) => boolean;
}

const SCENES: Scene[] = [
  { name: 'all rows', passes: null, deleted: () => false },
  { name: 'a fifth of the rows deleted', passes: null, deleted: (row) => row % 5 === 0 },
  { name: 'half of the rows pass', passes: (row) => row % 2 === 0, deleted: (row) => row % 7 === 0 },
  { name: 'a twentieth passes', passes: (row) => (row * 13) % 20 === 0, deleted: () => false },
  { name: 'rows of one cluster pass, far from most queries', passes: (row) => row % 20 === 3, deleted: (row) => row % 9 === 0 },
  { name: 'rows on one side of a plane pass', passes: (row) => (values[row * DIM] as number) > 1.2, deleted: () => false },
  { name: 'five rows pass', passes: (row) => row % 600 === 17, deleted: () => false },
  { name: 'no row passes', passes: () => false, deleted: () => false },
  { name: 'every row deleted', passes: null, deleted: () => true },
];

for (const scene of SCENES) {
  test(`a walk finds the rows that count, for any ef: ${scene.name}`, () => {
    const world = makeWorld(values, readUsearchGraph(file));
    const { kernels, deletedAt } = world.segment;
    deletedAt.forEach((_, row) => {
      if (scene.deleted(row)) deletedAt[row] = 1;
    });
    const admission = scene.passes ? world.segment.admit(scene.passes) : world.segment.everything;
    const counts = (row: number): boolean => !scene.deleted(row) && (scene.passes?.(row) ?? true);
    const countOfAll = kernels.countAdmitted(ROWS, admission);
    const queries = makeRows(40, 2);
    for (const narrow of [false, true]) {
      for (const ef of [1, 10, 64, ROWS]) {
        const recalls = Array.from({ length: 20 }, (_, index) => {
          const query = queries.subarray(index * DIM, index * DIM + DIM);
          const ranked = walkFloats(world, query, admission, ef, narrow);
          assert.equal(ranked.count, Math.min(10, countOfAll));
          assert.ok(ranked.rows.every(counts));
          return recall(ranked, exact(world, query, counts));
        });
        const mean = recalls.reduce((sum, one) => sum + one, 0) / recalls.length;
        if (ef === ROWS) assert.equal(mean, 1);
        if (ef === 64) assert.ok(mean >= 0.95, `recall ${mean} with ef ${ef}, narrow ${narrow}`);
      }
    }
  });
}

test('a walk that ends by distance finds as much as by ef alone, scores fewer rows, and never comes back with too few', () => {
  const world = makeWorld(values, readUsearchGraph(file));
  const { kernels, slot } = world.segment;
  const queries = makeRows(200, 2);
  for (const [narrow, passes] of [
    [false, () => true],
    [false, (row: number) => row % 2 === 0],
    [true, (row: number) => row % 7 === 0],
    [true, (row: number) => row % 600 === 17],
  ] as const) {
    const admission = world.segment.admit(passes);
    const wanted = Math.min(10, kernels.countAdmitted(ROWS, admission));
    const tally = (end: WalkEnd | undefined): { found: number; scored: number } => {
      kernels.takeScored();
      let found = 0;
      for (let index = 0; index < 200; index++) {
        const query = queries.subarray(index * DIM, index * DIM + DIM);
        kernels.setQuery(slot, world.floats, query);
        const ranked = kernels.walk(slot, world.floats, world.graph, admission, { ef: 60, k: 10, rows: ROWS, narrow, end });
        assert.equal(ranked.count, wanted);
        found += recall(ranked, exact(world, query, passes));
      }
      return { found, scored: kernels.takeScored() };
    };
    const byEf = tally(undefined);
    const byDistance = tally({ wanted: 10, spread: 1.4 });
    assert.ok(byDistance.found >= byEf.found - 0.5, `${narrow}: ${byDistance.found} of 200 instead of ${byEf.found}`);
    // All of five rows are scored, one by one at the end.
    if (wanted === 10) assert.ok(byDistance.scored < byEf.scored * 0.9, `${narrow}: ${byDistance.scored} rows instead of ${byEf.scored}`);
  }
});

function walkFloats(world: World, query: Float32Array, admission: Admission, ef: number, narrow: boolean): Ranked {
  const { kernels, slot } = world.segment;
  kernels.setQuery(slot, world.floats, query);
  return kernels.walk(slot, world.floats, world.graph, admission, { ef, k: 10, rows: ROWS, narrow });
}

function exact(world: World, query: Float32Array, counts: (row: number) => boolean): number[] {
  const scored = Array.from({ length: ROWS }, (_, row) => row)
    .filter(counts)
    .map((row) => ({ row, score: referenceScore('l2', world.meaning.subarray(row * DIM, row * DIM + DIM), query) }));
  return referenceTop(scored, 10).map(({ row }) => row);
}

function recall(ranked: Ranked, expected: readonly number[]): number {
  return expected.length === 0 ? 1 : expected.filter((row) => ranked.rows.includes(row)).length / expected.length;
}

test('a walk on codes with rescoring finds what a walk on the originals finds', () => {
  const world = makeWorld(values, readUsearchGraph(file));
  const { kernels, slot, everything } = world.segment;
  const queries = makeRows(40, 2);
  let found = 0;
  for (let index = 0; index < 20; index++) {
    const query = queries.subarray(index * DIM, index * DIM + DIM);
    kernels.setQuery(slot, world.codes, query);
    const walked = kernels.walk(slot, world.codes, world.graph, everything, { ef: 64, k: 30, rows: ROWS, narrow: false });
    kernels.setQuery(slot, world.floats, query);
    const ranked = kernels.rescore(slot, world.floats, walked.rows, 10);
    assert.deepEqual(
      [...ranked.scores],
      [...ranked.scores].sort((one, other) => other - one),
    );
    found += recall(
      ranked,
      exact(world, query, () => true),
    );
  }
  assert.ok(found / 20 >= 0.97, `recall ${found / 20}`);
});

const FORMS: readonly { readonly form: ExampleWalk['form']; readonly count: number; readonly positives: number }[] = [
  { form: 'bestScore', count: 1, positives: 1 },
  { form: 'bestScore', count: 5, positives: 2 },
  { form: 'discover', count: 1, positives: 0 },
  { form: 'discover', count: 5, positives: 0 },
  { form: 'context', count: 2, positives: 0 },
  { form: 'context', count: 6, positives: 0 },
];

/** A walk by the next few of some vectors, as a query would have it. */
function exampleWalkOf(at: number, { form, count, positives }: (typeof FORMS)[number]): ExampleWalk {
  const examples = Array.from({ length: count }, (_, index) => {
    const start = ((at * count + index) % 40) * DIM;
    return EXAMPLES.subarray(start, start + DIM);
  });
  const starts = examples.filter((_, index) =>
    form === 'bestScore' ? index < positives : form === 'discover' ? index % 2 === 1 : index % 2 === 0,
  );
  return { form, examples, positives, starts: form === 'discover' ? [examples[0] as Float32Array, ...starts] : starts };
}

const EXAMPLES = makeRows(40, 2);

/** The scores of all rows by the pure scorers. */
function scoresByExamples({ segment: { kernels, slot }, floats }: World, { examples, form, positives }: ExampleWalk): Float32Array {
  const rows = Uint32Array.from({ length: ROWS }, (_, row) => row);
  const similarities = examples.map((example) => {
    kernels.setQuery(slot, floats, example);
    return kernels.scoreEach(slot, floats, rows).slice();
  });
  const scorer = form === 'bestScore' ? bestScore(positives) : form === 'discover' ? discoverScores : contextScores;
  return scorer(similarities, ROWS);
}

for (const form of FORMS) {
  test(`a walk by ${form.count} examples ranks rows as the scores of ${form.form} do, and finds the best with a small ef`, () => {
    const world = makeWorld(values, readUsearchGraph(file));
    const { kernels, slot, everything, admit } = world.segment;
    let found = 0;
    for (let at = 0; at < 20; at++) {
      const walk = exampleWalkOf(at, form);
      const scores = scoresByExamples(world, walk);
      const all = kernels.walkByExamples(slot, world.floats, world.graph, everything, walk, { ef: ROWS, rows: ROWS, narrow: false });
      assert.equal(new Set(all.rows).size, ROWS);
      const inOrder = Array.from(all.rows, (row) => scores[row] as number);
      // Ranks hold similarities to 17 bits.
      inOrder.forEach((score, index) => {
        assert.ok(index === 0 || score <= (inOrder[index - 1] as number) + 2e-5, `${index}: ${score} after ${inOrder[index - 1]}`);
      });
      const tenth = [...scores].sort((one, other) => other - one)[9] as number;
      for (const matrix of [world.floats, world.codes]) {
        const some = kernels.walkByExamples(slot, matrix, world.graph, everything, walk, { ef: 100, rows: ROWS, narrow: false });
        assert.equal(some.count, 100);
        found += Math.min(10, some.rows.filter((row) => (scores[row] as number) >= tenth).length);
      }
      for (const narrow of [false, true]) {
        const passing = kernels.walkByExamples(
          slot,
          world.floats,
          world.graph,
          admit((row) => row % 7 === 2),
          walk,
          { ef: 50, rows: ROWS, narrow },
        );
        assert.equal(passing.count, 50);
        assert.ok(passing.rows.every((row) => row % 7 === 2));
      }
    }
    assert.ok(found >= 0.95 * 400, `${found} of 400`);
  });
}

test('a walk by examples scores few rows, once for each example, and leaves later walks as they were', () => {
  const world = makeWorld(values, readUsearchGraph(file));
  const { kernels, slot, everything } = world.segment;
  const query = EXAMPLES.subarray(0, DIM);
  const before = [...walkFloats(world, query, everything, 64, false).rows];
  const options = { ef: 64, rows: ROWS, narrow: false };
  const alone: ExampleWalk = { form: 'bestScore', examples: [query], positives: 1, starts: [query] };
  const scored = (walk: ExampleWalk): number => {
    kernels.takeScored();
    kernels.walkByExamples(slot, world.floats, world.graph, everything, walk, options);
    return kernels.takeScored();
  };
  const one = scored(alone);
  const starts = scored({ ...alone, examples: [] });
  assert.ok(one > 64 && one < ROWS / 2, `${one} rows`);
  assert.equal(scored({ ...alone, examples: [query, query, query], positives: 3 }) - starts, 3 * (one - starts));
  assert.deepEqual([...walkFloats(world, query, everything, 64, false).rows], before);
});

test('more examples than there is room for are refused, and a walk by examples stops when the time limit has passed', () => {
  const late = makeWorld(values, readUsearchGraph(file), undefined, () => true);
  const { kernels, slot, everything } = late.segment;
  const example = EXAMPLES.subarray(0, DIM);
  const walk = (count: number): ExampleWalk => ({
    form: 'bestScore',
    examples: Array(count).fill(example),
    positives: count,
    starts: [example],
  });
  const options = { ef: 500, rows: ROWS, narrow: false };
  const most = kernels.examplesMax(late.floats);
  assert.ok(most > 50 && kernels.examplesMax(late.codes) > most);
  assert.throws(() => kernels.walkByExamples(slot, late.floats, late.graph, everything, walk(most), options), KernelExpired);
  assert.throws(() => kernels.walkByExamples(slot, late.floats, late.graph, everything, walk(most + 1), options), RangeError);
});

test('a walk of more hops than one look at the clock stops when the time limit has passed', () => {
  const world = makeWorld(values, readUsearchGraph(file), undefined, () => true);
  const query = values.subarray(0, DIM);
  assert.throws(() => walkFloats(world, query, world.segment.everything, 500, false), KernelExpired);
  assert.throws(
    () =>
      walkFloats(
        world,
        query,
        world.segment.admit((row) => row % 10 === 0),
        500,
        true,
      ),
    KernelExpired,
  );
});

test('rows may lie in another order than slots, and rows without a vector have no neighbours', () => {
  const kept = values.subarray(0, 100 * DIM);
  const graph = readUsearchGraph(savedIndex(kept, 5000));
  assert.equal(graph.keys[3], 5003);
  // Slot s is row 199 - 2s: odd rows have a vector.
  const rowOfSlot = Uint32Array.from({ length: 100 }, (_, slot) => 199 - 2 * slot);
  const all = new Float32Array(200 * DIM);
  for (let slot = 0; slot < 100; slot++) all.set(kept.subarray(slot * DIM, slot * DIM + DIM), (199 - 2 * slot) * DIM);
  const world = makeWorld(all, graph, rowOfSlot);
  const { kernels, slot } = world.segment;
  const admission = world.segment.admit((row) => row % 2 === 1);
  kernels.setQuery(slot, world.floats, kept.subarray(42 * DIM, 43 * DIM));
  const ranked = kernels.walk(slot, world.floats, world.graph, admission, { ef: 50, k: 200, rows: 200, narrow: false });
  assert.equal(ranked.count, 100);
  assert.equal(ranked.rows[0], 199 - 84);
  const level0 = new Uint32Array(world.segment.memory.buffer, world.graph.level0, 200 * 17);
  for (let row = 0; row < 200; row++) assert.equal((level0[row * 17] as number) > 0, row % 2 === 1);
  assert.throws(() => makeWorld(kept, graph), RangeError);
});

test('an empty index gives an empty graph, in which a walk finds nothing', () => {
  const graph = readUsearchGraph(savedIndex(new Float32Array(0)));
  assert.equal(graph.size, 0);
  const world = makeWorld(new Float32Array(DIM), graph);
  const ranked = world.segment.kernels;
  ranked.setQuery(world.segment.slot, world.floats, new Float32Array(DIM));
  const options = { ef: 10, k: 10, rows: 1, narrow: false };
  assert.equal(ranked.walk(world.segment.slot, world.floats, world.graph, world.segment.everything, options).count, 0);
});

test('an index of one vector is found', () => {
  const one = values.subarray(0, DIM);
  const world = makeWorld(one.slice(), readUsearchGraph(savedIndex(one.slice())));
  const { kernels, slot, everything } = world.segment;
  kernels.setQuery(slot, world.floats, one);
  assert.deepEqual([...kernels.walk(slot, world.floats, world.graph, everything, { ef: 1, k: 1, rows: 1, narrow: false }).rows], [0]);
});

test('a damaged file is refused with what is wrong', () => {
  const head = 8 + ROWS * DIM * 4;
  const damaged = (at: number, bytes: number[]): Uint8Array => {
    const copy = file.slice();
    copy.set(bytes, at);
    return copy;
  };
  const refused = (bytes: Uint8Array, message: RegExp): void => {
    assert.throws(
      () => readUsearchGraph(bytes),
      (error) => error instanceof GraphFileError && message.test(error.message),
    );
  };
  refused(new Uint8Array(3), /ends within the matrix header/);
  refused(file.subarray(0, 1000), /ends within the matrix of 3000 rows of 48 bytes/);
  refused(file.subarray(0, head + 20), /ends within the head/);
  refused(file.subarray(0, file.length - 1), /ends within the nodes/);
  refused(damaged(head, [0]), /magic word/);
  refused(damaged(head + 7, [3]), /version 3/);
  refused(damaged(head + 15, [1]), /keys of kind 1/);
  refused(damaged(head + 16, [1]), /slots of kind 1/);
  refused(damaged(head + 64 + 8, [0]), /m 0 with m0 16/);
  refused(damaged(head + 64 + 32, [255, 255, 0, 0]), /entry slot 65535 of 3000/);
  refused(damaged(head + 64 + 40, [99]), /slot 0 has level 99/);
  const nodes = head + 64 + 40 + ROWS * 2;
  refused(damaged(nodes + 10, [255]), /slot 0 has 255 neighbours on level 0/);
  refused(damaged(nodes + 14, [255, 255, 255, 0]), /slot 0 has neighbour 16777215/);
});

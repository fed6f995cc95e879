import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { paddedDim, writeCodeQuery } from '../../vectors/code-query.js';
import type { Matrix, Metric } from '../../vectors/kernel-api.js';
import { KernelExpired, NO_DELETIONS } from '../../vectors/kernel-api.js';
import { standForFloats } from '../../vectors/quantize.js';
import { referenceScore, referenceTop } from '../../vectors/reference.js';
import { LIVE, makeSegment, matrixBytes, type PlainElement, randomOf, SEED, storeRows } from './segment.js';

const DIMS = [1, 3, 17, 127, 128, 129, 784, 1536];
const METRICS: Metric[] = ['dot', 'l2', 'l1'];
const ELEMENTS: PlainElement[] = ['f32', 'f16', 'bf16', 'u8', 'i8', 'code', 'decoded'];
const FLAVOURS = ['zeros', 'plain', 'whole', 'huge', 'tiny', 'sparse', 'mixed'] as const;
type Flavour = (typeof FLAVOURS)[number];

const FLOAT32_EPSILON = 2 ** -23;
/** What underflow may take from a component's term. */
const UNDERFLOW = 1e-37;

/** A component that an element can hold. */
function component(flavour: Flavour, random: () => number): number {
  const sign = random() < 0.5 ? -1 : 1;
  switch (flavour) {
    case 'zeros':
      return 0;
    case 'plain':
      return sign * random();
    case 'whole':
      return Math.floor(random() * 256);
    case 'huge':
      return sign * random() * 1e30;
    case 'tiny':
      return sign * random() * (random() < 0.5 ? 1e-38 : 1e-5);
    case 'sparse':
      return random() < 0.9 ? 0 : sign * random() * 100;
    case 'mixed':
      return component(FLAVOURS[Math.floor(random() * 6)] as Flavour, random);
  }
}

function stored(element: PlainElement, value: number, random: () => number): number {
  if (element === 'u8' || element === 'code') return Math.floor(random() * 256);
  if (element === 'i8') return Math.floor(random() * 256) - 128;
  if (element === 'f16') return Math.max(-60_000, Math.min(60_000, value));
  return value;
}

/** Greatest error that rounding in f32, in whatever order, and the query's 16 bits can make. */
function tolerance(matrix: Matrix, meaning: Float64Array, query: Float32Array, codes: Uint8Array | null): number {
  let magnitude = 0;
  for (let index = 0; index < query.length; index++) {
    const [x, q] = [meaning[index] as number, query[index] as number];
    if (matrix.metric === 'dot') magnitude += Math.abs(x * q);
    else if (matrix.metric === 'l2') magnitude += (Math.abs(x) + Math.abs(q)) ** 2;
    else magnitude += Math.abs(x) + Math.abs(q);
  }
  const rounding = (query.length + 8) * FLOAT32_EPSILON * magnitude + UNDERFLOW * query.length;
  return codes ? rounding + codeError(matrix, query, codes) : rounding;
}

function codeError(matrix: Matrix, query: Float32Array, codes: Uint8Array): number {
  const { scale = 1, origin = 0 } = matrix;
  const out = new Int16Array(paddedDim(query.length));
  const made = writeCodeQuery(matrix.metric, { scale, origin }, query, out);
  const sum = codes.reduce((total, code) => total + code, 0);
  const moved = Math.abs(origin) * query.reduce((total, value) => total + Math.abs(value), 0) * query.length * FLOAT32_EPSILON;
  if (matrix.metric === 'dot') return made.factor * 0.5 * sum + moved;
  if (matrix.metric === 'l1') return scale * 0.5 * query.length + moved;
  if (made.far) return made.cross * 0.5 * sum + Math.abs(made.constant) * 4 * FLOAT32_EPSILON;
  let error = 0;
  codes.forEach((code, index) => {
    error += scale * scale * (Math.abs(code - (out[index] as number)) + 0.25);
  });
  return error;
}

interface Case {
  readonly seed: number;
  readonly dim: number;
  readonly rows: number;
  readonly flavour: Flavour;
  readonly queryFlavour: Flavour;
}

/** Scores of every row against the reference. */
function compareScores(element: PlainElement, metric: Metric, { seed, dim, rows, flavour, queryFlavour }: Case): void {
  const random = randomOf(seed);
  const codes = { scale: 0.001 + random(), origin: random() * 20 - 10 };
  const values = Float32Array.from({ length: rows * dim }, () => stored(element, component(flavour, random), random));
  const query = Float32Array.from({ length: dim }, () => component(queryFlavour, random));
  const segment = makeSegment(rows, dim, matrixBytes(element, rows, dim));
  const { matrix, meaning } = storeRows(segment, element, metric, values, dim, codes);
  segment.kernels.setQuery(segment.slot, matrix, query);
  const ranked = segment.kernels.scan(segment.slot, matrix, 0, rows, segment.everything, rows);
  assert.equal(ranked.count, rows);
  ranked.rows.forEach((row, index) => {
    const score = ranked.scores[index] as number;
    const rowMeaning = meaning.subarray(row * dim, row * dim + dim);
    const rowCodes = element === 'code' ? Uint8Array.from(values.subarray(row * dim, row * dim + dim)) : null;
    const expected = referenceScore(metric, rowMeaning, query);
    const slack = tolerance(matrix, rowMeaning, query, rowCodes);
    // Sums that may leave the range of f32 may end anywhere, but never as NaN.
    if (slack > 1e30) assert.ok(!Number.isNaN(score));
    else assert.ok(Math.abs(score - expected) <= slack, `row ${row}: ${score} instead of ${expected} ± ${slack}`);
  });
}

for (const element of ELEMENTS) {
  for (const metric of METRICS) {
    test(`${metric} of ${element} rows is the reference's for every dimension and kind of value (seed ${SEED})`, () => {
      for (const dim of DIMS) compareScores(element, metric, { seed: SEED + dim, dim, rows: 5, flavour: 'plain', queryFlavour: 'plain' });
      const flavour = fc.constantFrom(...FLAVOURS);
      const cases = fc.record({
        seed: fc.nat(),
        dim: fc.oneof(fc.constantFrom(...DIMS), fc.integer({ min: 1, max: 70 })),
        rows: fc.integer({ min: 1, max: 9 }),
        flavour,
        queryFlavour: flavour,
      });
      fc.assert(
        fc.property(cases, (one) => compareScores(element, metric, one)),
        { seed: SEED, numRuns: 40 },
      );
    });
  }
}

test('whole numbers stored as u8 or as codes of scale 1 are scored without any error', () => {
  const random = randomOf(SEED);
  const [rows, dim] = [50, 784];
  const values = Float32Array.from({ length: rows * dim }, () => Math.floor(random() * 256));
  const query = Float32Array.from({ length: dim }, () => Math.floor(random() * 256));
  for (const element of ['u8', 'code'] as const) {
    for (const metric of METRICS) {
      const segment = makeSegment(rows, dim, matrixBytes(element, rows, dim));
      const { matrix, meaning } = storeRows(segment, element, metric, values, dim);
      segment.kernels.setQuery(segment.slot, matrix, query);
      const ranked = segment.kernels.scan(segment.slot, matrix, 0, rows, segment.everything, rows);
      ranked.rows.forEach((row, index) => {
        const expected = referenceScore(metric, meaning.subarray(row * dim, row * dim + dim), query);
        assert.ok(Math.abs((ranked.scores[index] as number) - expected) <= Math.abs(expected) * 2 * FLOAT32_EPSILON);
      });
    }
  }
});

test('codes keep their query when another matrix of the slot is scored in between', () => {
  const segment = makeSegment(2, 4, 4096);
  const values = Float32Array.of(0, 10, 20, 30, 5, 5, 5, 5);
  const first = storeRows(segment, 'code', 'l2', values, 4).matrix;
  const second = storeRows(segment, 'code', 'l2', values, 4, { scale: 0.5, origin: 3 }).matrix;
  const query = Float32Array.of(5, 5, 5, 6);
  segment.kernels.setQuery(segment.slot, first, query);
  segment.kernels.setQuery(segment.slot, second, query);
  const ranked = segment.kernels.scan(segment.slot, first, 0, 2, segment.everything, 2);
  assert.deepEqual([...ranked.rows], [1, 0]);
  assert.deepEqual([...ranked.scores], [-1, -(25 + 25 + 225 + 576)]);
});

test('a shorter query after a longer one is padded with zeros', () => {
  const segment = makeSegment(1, 32, 8192);
  const long = storeRows(segment, 'f32', 'dot', new Float32Array(32).fill(1), 32).matrix;
  const short = storeRows(segment, 'f32', 'l2', new Float32Array(17), 17).matrix;
  segment.kernels.setQuery(segment.slot, long, new Float32Array(32).fill(3));
  segment.kernels.setQuery(segment.slot, short, new Float32Array(17).fill(3));
  assert.equal(segment.kernels.scan(segment.slot, short, 0, 1, segment.everything, 1).scores[0], -9 * 17);
  assert.throws(() => segment.kernels.setQuery(segment.slot, short, new Float32Array(16)), RangeError);
});

test(`scan, gather, rescore, list and count keep the best rows that count, ties by smaller row (seed ${SEED})`, () => {
  const cases = fc.record({
    seed: fc.nat(),
    rows: fc.integer({ min: 1, max: 1500 }),
    values: fc.constantFrom(2, 10, 1e6),
    filtered: fc.boolean(),
    share: fc.constantFrom(0, 0.01, 0.5, 1),
    k: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 2000 })),
  });
  const property = fc.property(cases, ({ seed, rows, values, filtered, share, k }) => {
    const random = randomOf(seed);
    const segment = makeSegment(rows, 1, matrixBytes('f32', rows, 1));
    const numbers = Float32Array.from({ length: rows }, () => Math.floor(random() * values) - values / 2);
    const { matrix } = storeRows(segment, 'f32', 'l1', numbers, 1);
    segment.deletedAt.forEach((_, row) => {
      segment.deletedAt[row] = [0, 1, 2, LIVE][Math.floor(random() * 4)] as number;
    });
    const passes = Array.from({ length: rows }, () => random() < share);
    const admission = filtered ? segment.admit((row) => passes[row] as boolean) : segment.everything;
    const counts = (row: number): boolean => (segment.deletedAt[row] as number) > 1 && (!filtered || (passes[row] as boolean));
    const all = Array.from(numbers, (value, row) => ({ row, score: 0 - Math.abs(value) }));
    const from = Math.floor(random() * rows);
    const to = from + Math.floor(random() * (rows - from + 1));
    const { kernels, slot } = segment;
    kernels.setQuery(slot, matrix, Float32Array.of(0));

    const expectedScan = referenceTop(
      all.filter(({ row }) => row >= from && row < to && counts(row)),
      k,
    );
    assert.deepEqual(pairs(kernels.scan(slot, matrix, from, to, admission, k)), expectedScan);

    const listed = kernels.listAdmitted(slot, rows, admission);
    assert.equal(listed, kernels.countAdmitted(rows, admission));
    assert.equal(kernels.countPassing(rows, admission), filtered ? passes.filter(Boolean).length : rows);
    const expectedRows = all.filter(({ row }) => counts(row));
    const list = new Uint32Array(segment.memory.buffer, slot + segment.scratch.rows, rows);
    assert.deepEqual(
      [...list.subarray(0, listed)],
      expectedRows.map(({ row }) => row),
    );
    assert.deepEqual(pairs(kernels.gather(slot, matrix, listed, admission, k)), referenceTop(expectedRows, k));

    const byRow = new Map(referenceTop(all, rows).map(({ row, score }) => [row, score]));
    const mixed = Uint32Array.from({ length: rows }, (_, at) => (at % 2 === 0 ? at : rows - 1 - (at - (rows % 2 === 0 ? 0 : 1))));
    const some = [...new Set(mixed)].filter((row) => row < rows);
    assert.deepEqual(
      [...kernels.scoreEach(slot, matrix, Uint32Array.from(some))],
      some.map((row) => byRow.get(row)),
    );

    for (let row = 0; row < rows; row++) list[row] = rows - 1 - row;
    const gathered = kernels.gather(slot, matrix, rows, admission, rows);
    assert.deepEqual(pairs(gathered), referenceTop(expectedRows, rows));
    assert.deepEqual(pairs(kernels.rescore(slot, matrix, gathered.rows, k)), referenceTop(expectedRows, k));
  });
  fc.assert(property, { seed: SEED, numRuns: 150 });
});

test('rows with infinite components or NaN come last and disturb no other', () => {
  const values = Float32Array.of(3, Number.NaN, 1, Number.POSITIVE_INFINITY, 2, Number.NEGATIVE_INFINITY, 0);
  const segment = makeSegment(7, 1, 4096);
  const { matrix } = storeRows(segment, 'f32', 'l2', values, 1);
  for (const [component, expected] of [
    [0, [6, 2, 4, 0, 1, 3, 5]],
    [Number.POSITIVE_INFINITY, [0, 1, 2, 3, 4, 5, 6]],
  ] as const) {
    segment.kernels.setQuery(segment.slot, matrix, Float32Array.of(component));
    assert.deepEqual([...segment.kernels.scan(segment.slot, matrix, 0, 7, segment.everything, 7).rows], expected);
  }
});

test('a kernel stops when the time limit has passed, and works again after', () => {
  let late = true;
  const rows = 10_000;
  const segment = makeSegment(rows, 1, matrixBytes('f32', rows, 1), () => late);
  const { matrix } = storeRows(
    segment,
    'f32',
    'l2',
    Float32Array.from({ length: rows }, (_, row) => row),
    1,
  );
  const { kernels, slot } = segment;
  kernels.setQuery(slot, matrix, Float32Array.of(7));
  const listed = kernels.listAdmitted(slot, rows, segment.everything);
  assert.throws(() => kernels.scan(slot, matrix, 0, rows, segment.everything, 1), KernelExpired);
  assert.throws(() => kernels.gather(slot, matrix, listed, segment.everything, 1), KernelExpired);
  late = false;
  kernels.takeScored();
  assert.equal(kernels.scan(slot, matrix, 0, rows, segment.everything, 1).rows[0], 7);
  assert.equal(kernels.takeScored(), rows);
  assert.equal(kernels.takeScored(), 0);
});

test('searches of long rows look at the time as often as those of short ones, by bytes', () => {
  const looks = (dim: number, rows: number): number[] => {
    let asked = 0;
    const segment = makeSegment(rows, dim, matrixBytes('f32', rows, dim) + rows * 8, () => {
      asked++;
      return false;
    });
    const { matrix } = storeRows(segment, 'f32', 'dot', new Float32Array(rows * dim), dim);
    const { kernels, slot, everything } = segment;
    kernels.setQuery(slot, matrix, new Float32Array(dim));
    const searches = [
      () => kernels.scan(slot, matrix, 0, rows, everything, 10),
      () => kernels.gather(slot, matrix, kernels.listAdmitted(slot, rows, everything), everything, 10),
    ];
    return searches.map((search) => {
      asked = 0;
      search();
      return asked;
    });
  };
  // 4 MB each: 32 times 128 KB.
  for (const [dim, rows] of [
    [16, 65_536],
    [1024, 1024],
  ] as const)
    for (const asked of looks(dim, rows)) assert.ok(asked >= 28 && asked <= 36, `${rows} × ${dim}: ${asked} looks`);
});

test('scored bytes are those of the matrix that rows were scored with, in whole lanes', () => {
  const rows = 100;
  const segment = makeSegment(rows, 5, matrixBytes('f32', rows, 5));
  const { matrix } = storeRows(segment, 'f32', 'dot', new Float32Array(rows * 5), 5);
  const { kernels, slot, everything } = segment;
  kernels.setQuery(slot, matrix, new Float32Array(5));
  assert.equal(kernels.takeScoredBytes(), 0);
  kernels.scan(slot, matrix, 0, rows, everything, 1);
  assert.equal(kernels.takeScoredBytes(), rows * 32);
  kernels.scoreEach(slot, matrix, Uint32Array.of(3, 1, 4));
  kernels.scan(slot, { ...matrix, dim: 4 }, 0, rows, everything, 1);
  assert.equal(kernels.takeScored(), 3 + 2 * rows);
  assert.equal(kernels.takeScoredBytes(), 3 * 32 + rows * 16);
  assert.equal(kernels.takeScoredBytes(), 0);
});

test('a memory beyond 2 GiB is addressed right', () => {
  const segment = makeSegment(40, 4, 2 ** 31 + 2 ** 20);
  segment.take(2 ** 31);
  const { matrix } = storeRows(
    segment,
    'f32',
    'dot',
    Float32Array.from({ length: 160 }, (_, index) => index),
    4,
  );
  assert.ok(matrix.offset > 2 ** 31);
  segment.kernels.setQuery(segment.slot, matrix, Float32Array.of(1, 0, 0, 0));
  assert.deepEqual(pairs(segment.kernels.scan(segment.slot, matrix, 0, 40, segment.everything, 1)), [{ row: 39, score: 156 }]);
});

function pairs(ranked: { count: number; rows: Uint32Array; scores: Float32Array }): { row: number; score: number }[] {
  assert.equal(ranked.rows.length, ranked.count);
  return Array.from(ranked.rows, (row, index) => ({ row, score: ranked.scores[index] as number }));
}

test('codes that stand for floats score as these do, to the bit, also where a row ends within 16 codes', () => {
  const random = randomOf(SEED);
  const choices = [
    { scale: 1, origin: -3 },
    { scale: 1 / 256, origin: 0 },
    { scale: 0.25, origin: 100 },
  ];
  for (const dim of [1, 3, 16, 17, 130]) {
    for (const codes of choices) {
      assert.ok(standForFloats(codes));
      for (const metric of METRICS) {
        const rows = 9;
        const segment = makeSegment(rows, dim, matrixBytes('f32', rows, dim) + matrixBytes('decoded', rows, dim));
        const stored = Float32Array.from({ length: rows * dim }, () => Math.floor(random() * 256));
        const { matrix: decoded, meaning } = storeRows(segment, 'decoded', metric, stored, dim, codes);
        const { matrix: floats } = storeRows(segment, 'f32', metric, Float32Array.from(meaning), dim);
        const query = Float32Array.from({ length: dim }, () => random() * 300 - 20);
        const list = Uint32Array.from({ length: rows }, (_, row) => row);
        const scores = [decoded, floats, decoded].map((matrix) => {
          segment.kernels.setQuery(segment.slot, matrix, query);
          return segment.kernels.scoreEach(segment.slot, matrix, list).slice();
        });
        assert.deepEqual(scores[0], scores[1], `${metric}, ${dim} components, ${JSON.stringify(codes)}`);
        assert.deepEqual(scores[2], scores[1]);
      }
    }
  }
});

test('where no row was deleted, no mark is looked at', () => {
  const [rows, k] = [300, 300];
  const segment = makeSegment(rows, 1, matrixBytes('f32', rows, 1));
  const { matrix } = storeRows(segment, 'f32', 'dot', new Float32Array(rows).fill(1), 1);
  const { kernels, slot } = segment;
  segment.deletedAt.fill(0);
  kernels.setQuery(slot, matrix, Float32Array.of(1));
  assert.equal(kernels.scan(slot, matrix, 0, rows, segment.everything, k).count, 0);
  const all = { ...segment.everything, deletedAt: NO_DELETIONS };
  assert.equal(kernels.scan(slot, matrix, 0, rows, all, k).count, rows);
  assert.equal(kernels.countAdmitted(rows, all), rows);
  const third = { ...segment.admit((row) => row % 3 === 0), deletedAt: NO_DELETIONS };
  assert.equal(kernels.listAdmitted(slot, rows, third), 100);
  assert.equal(kernels.gather(slot, matrix, 100, third, k).count, 100);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Admission, KernelExpired, type Matrix, type Metric } from '../../vectors/kernel-api.js';
import { align16 } from '../../vectors/scratch.js';
import { LIVE, makeSegment, randomOf, SEED, type Segment, storeRows } from './segment.js';

/** Two matrices of the same rows: one of them has room for codes. */
interface Rows {
  readonly segment: Segment;
  readonly plain: Matrix;
  readonly coded: Matrix;
  /** u32 [2], see `RowCodes`. */
  readonly counts: Uint32Array;
}

function rowsOf(metric: Metric, values: Float32Array, dim: number, expired?: () => boolean): Rows {
  const rows = values.length / dim;
  const stride = align16(dim);
  const segment = makeSegment(rows, dim, rows * (align16(dim * 4) + stride + 16) + 4096, expired);
  const { matrix: plain } = storeRows(segment, 'f32', metric, values, dim);
  const rowCodes = { codes: segment.take(rows * stride), stride, facts: segment.take(rows * 16), counts: segment.take(8) };
  return { segment, plain, coded: { ...plain, rowCodes }, counts: new Uint32Array(segment.memory.buffer, rowCodes.counts, 2) };
}

function scanned(
  { kernels, rows, slot }: Segment,
  matrix: Matrix,
  query: Float32Array,
  k: number,
  admission: Admission,
  to = rows,
): string {
  kernels.setQuery(slot, matrix, query);
  const found = kernels.scan(slot, matrix, 0, to, admission, k);
  return `${found.rows} ${found.scores}`;
}

function gathered({ kernels, rows, slot }: Segment, matrix: Matrix, query: Float32Array, k: number, admission: Admission): string {
  kernels.setQuery(slot, matrix, query);
  const found = kernels.gather(slot, matrix, kernels.listAdmitted(slot, rows, admission), admission, k);
  return `${found.rows} ${found.scores}`;
}

const KINDS = ['directions', 'bytes', 'long', 'tiny', 'equal', 'wild'] as const;

/** Components of a row. */
function row(kind: (typeof KINDS)[number], dim: number, random: () => number): number[] {
  const many = (component: () => number): number[] => Array.from({ length: dim }, component);
  switch (kind) {
    case 'directions': {
      const values = many(() => random() - 0.5);
      return values.map((value) => value / Math.hypot(...values));
    }
    case 'bytes':
      return many(() => (random() < 0.7 ? 0 : Math.floor(random() * 256)));
    // Far from the origin and near each other.
    case 'long':
      return many(() => 1000 + random());
    case 'tiny':
      return many(() => random() * 10 ** -Math.floor(random() * 40));
    case 'equal':
      return many(() => Math.floor(random() * 2));
    case 'wild':
      return many(() => {
        const chosen = random();
        return chosen < 0.001 ? Number.NaN : chosen < 0.002 ? Number.POSITIVE_INFINITY : (random() - 0.5) * 10 ** (random() * 40 - 10);
      });
  }
}

test(`a scan with codes of rows finds what one by originals finds, to the bit, whatever rows there are (seed ${SEED})`, () => {
  const cases = fc.record({
    seed: fc.nat(),
    metric: fc.constantFrom<Metric>('dot', 'l2', 'l1'),
    dim: fc.constantFrom(3, 16, 30, 64, 100, 129),
    rows: fc.integer({ min: 500, max: 3000 }),
    kind: fc.constantFrom(...KINDS),
    asked: fc.constantFrom(...KINDS),
    k: fc.constantFrom(1, 10, 100, 2900),
    lost: fc.constantFrom(0, 0.3),
  });
  const property = fc.property(cases, ({ seed, metric, dim, rows, kind, asked, k, lost }) => {
    const random = randomOf(seed);
    const values = Float32Array.from(Array.from({ length: rows }, () => row(random() < 0.9 ? kind : 'wild', dim, random)).flat());
    const { segment, plain, coded } = rowsOf(metric, values, dim);
    for (let at = 0; at < rows; at++) segment.deletedAt[at] = random() < lost ? 1 : LIVE;
    for (let pass = 0; pass < 4; pass++) {
      const query = Float32Array.from(pass === 3 ? values.subarray(0, dim) : row(asked, dim, random));
      // Rows that have come since have no codes yet.
      const to = pass < 2 ? Math.floor(rows * 0.8) : rows;
      assert.equal(scanned(segment, coded, query, k, segment.everything, to), scanned(segment, plain, query, k, segment.everything, to));
      const admission = segment.admit((at) => at % 3 !== 0);
      assert.equal(scanned(segment, coded, query, k, admission), scanned(segment, plain, query, k, admission));
      assert.equal(gathered(segment, coded, query, k, admission), gathered(segment, plain, query, k, admission));
    }
  });
  fc.assert(property, { seed: SEED, numRuns: 60 });
});

test('rows get codes with the second scan that meets them, and then few originals are read', () => {
  const [rows, dim] = [4000, 128];
  const random = randomOf(SEED);
  const values = Float32Array.from(Array.from({ length: rows }, () => row('directions', dim, random)).flat());
  const { segment, coded, counts } = rowsOf('dot', values, dim);
  const { kernels } = segment;
  const query = Float32Array.from(row('directions', dim, random));
  kernels.takeScoredBytes();
  const course: number[][] = [];
  for (const to of [3000, 4000, 4000, 4000]) {
    scanned(segment, coded, query, 10, segment.everything, to);
    course.push([...counts, kernels.takeScored(), Math.round(kernels.takeScoredBytes() / dim / to)]);
  }
  // Rows with codes, rows that were met, rows that count as scored, and bytes for each component of each: of originals alone four.
  assert.deepEqual(
    course.map((numbers) => numbers.slice(0, 3)),
    [
      [0, 3000, 3000],
      [3000, 4000, 4000],
      [4000, 4000, 4000],
      [4000, 4000, 4000],
    ],
  );
  const bytes = course.map((numbers) => numbers[3] as number);
  assert.equal(bytes[0], 4);
  assert.ok((bytes[3] as number) < 2, `${bytes}`);
});

test('codes are left where most rows have to be looked at all the same', () => {
  const [rows, dim] = [20_000, 64];
  const random = randomOf(SEED);
  const values = Float32Array.from(Array.from({ length: rows }, () => row('long', dim, random)).flat());
  const { segment, plain, coded } = rowsOf('l2', values, dim);
  const query = Float32Array.from(row('long', dim, random));
  for (let pass = 0; pass < 2; pass++) scanned(segment, coded, query, 10, segment.everything);
  segment.kernels.takeScoredBytes();
  const found = scanned(segment, coded, query, 10, segment.everything);
  const bytes = segment.kernels.takeScoredBytes();
  assert.equal(found, scanned(segment, plain, query, 10, segment.everything));
  const all = segment.kernels.takeScoredBytes();
  assert.ok(bytes > all && bytes < 1.1 * all, `${bytes} of ${all}`);
});

test('a scan whose time is up while rows get codes ends, and no row counts as coded that is not', () => {
  const [rows, dim] = [4000, 128];
  const random = randomOf(SEED);
  let looks = Number.POSITIVE_INFINITY;
  const values = Float32Array.from(Array.from({ length: rows }, () => row('directions', dim, random)).flat());
  const { segment, plain, coded, counts } = rowsOf('dot', values, dim, () => looks-- <= 0);
  const query = Float32Array.from(row('directions', dim, random));
  scanned(segment, coded, query, 10, segment.everything);
  looks = 3;
  assert.throws(() => scanned(segment, coded, query, 10, segment.everything), KernelExpired);
  assert.deepEqual([...counts], [0, rows]);
  looks = Number.POSITIVE_INFINITY;
  const found = scanned(segment, coded, query, 10, segment.everything);
  assert.deepEqual([...counts], [rows, rows]);
  assert.equal(found, scanned(segment, plain, query, 10, segment.everything));
});

test('with few admitted rows a filter has no row coded', () => {
  const [rows, dim] = [4000, 64];
  const random = randomOf(SEED);
  const values = Float32Array.from(Array.from({ length: rows }, () => row('directions', dim, random)).flat());
  const { segment, coded, counts } = rowsOf('dot', values, dim);
  const admission = segment.admit((at) => at % 100 === 0);
  for (let pass = 0; pass < 3; pass++) scanned(segment, coded, Float32Array.from(row('directions', dim, random)), 10, admission);
  assert.deepEqual([...counts], [0, 0]);
});

test('of rows without codes no bytes of codes count', () => {
  const [rows, dim, codedRows] = [4000, 128, 600];
  const random = randomOf(SEED);
  const values = Float32Array.from(Array.from({ length: rows }, () => row('directions', dim, random)).flat());
  const { segment, coded, counts } = rowsOf('dot', values, dim);
  const query = Float32Array.from(row('directions', dim, random));
  for (let pass = 0; pass < 2; pass++) scanned(segment, coded, query, 10, segment.everything, codedRows);
  segment.kernels.takeScoredBytes();
  scanned(segment, coded, query, 10, segment.everything);
  assert.equal(counts[0], codedRows);
  const bytes = segment.kernels.takeScoredBytes();
  assert.ok(bytes <= rows * dim * 4 + codedRows * (dim + 16), `${bytes}`);
});

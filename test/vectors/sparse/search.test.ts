import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { RowScorer, type SparseQuery, type SparseRows, sparseQuery } from '../../../vectors/sparse/dot.js';
import { buildSparseIndex, openSparseIndex } from '../../../vectors/sparse/index.js';
import { postingsOf, scanSparse, scanSparseRows, searchPostings } from '../../../vectors/sparse/search.js';
import { makeWindowSums } from '../segment.js';

const sums = makeWindowSums();

type Row = readonly (readonly [index: number, value: number])[];

const value = fc.oneof(fc.constantFrom(1, 2, 0.5, -1, -2, 0.25, 3), fc.float({ min: Math.fround(-4), max: Math.fround(4), noNaN: true }));
const row = fc
  .uniqueArray(fc.tuple(fc.oneof(fc.nat(12), fc.nat(0xffff_ffff)), value), { selector: ([index]) => index, maxLength: 10 })
  .map((pairs) => [...pairs].sort(([a], [b]) => a - b));

test('postings answer as scoring every row does, for any weights, filters and limits', () => {
  fc.assert(
    fc.property(
      fc.array(row, { maxLength: 60 }),
      row,
      fc.integer({ min: 1, max: 12 }),
      fc.func(fc.boolean()),
      fc.integer({ min: 1, max: 300 }),
      (rows, query, k, counts, copies) => {
        // Copied rows with a little noise: enough of them for several windows and blocks.
        const many = Array.from({ length: copies }, (_, copy) =>
          rows.map((pairs) => pairs.map(([i, v]) => [i, v * (1 + copy * 0.01)] as const)),
        );
        compare(many.flat(), query, k, (at) => at % 7 === 0 || counts(at % 50));
      },
    ),
    { numRuns: 150 },
  );
});

test('rows of skewed terms, as texts have them, are found exactly, in windows of every size', () => {
  const random = generator(7);
  const rows = Array.from({ length: 20_000 }, () => textRow(random, 500, 12));
  for (let i = 0; i < 12; i++) compare(rows, textRow(random, 500, 6), 10, (at) => i % 3 !== 0 || at % 11 === i % 11);
  for (let i = 0; i < 4; i++) {
    const mixed = textRow(random, 500, 6).map(([index, weight], at) => [index, at % 2 === 0 ? weight : -weight] as const);
    compare(rows, mixed, 10, () => true);
  }
});

test('a row without a common index, or whose products add up to 0, is no result', () => {
  const { found } = answers(
    [
      [[1, 1]],
      [[2, 1]],
      [
        [1, 1],
        [2, -1],
      ],
      [],
    ],
    [
      [1, 1],
      [2, 1],
    ],
    10,
    () => true,
  );
  assert.deepEqual(found, [
    [0, 1],
    [1, 1],
  ]);
});

test('an index of other rows or cut short is refused', () => {
  const buffer = buildSparseIndex(rowsOf([[[1, 1]], [[2, 1]]]), 2);
  assert.throws(() => openSparseIndex(buffer, 's', 3), /2 rows instead of 3/);
  assert.throws(() => openSparseIndex(buffer.slice(0, buffer.byteLength - 4) as SharedArrayBuffer, 's', 2), /bytes instead of/);
  assert.equal(openSparseIndex(buffer, 's', 2).filled, 2);
});

function compare(rows: readonly Row[], query: Row, k: number, counts: (row: number) => boolean): void {
  const { found, scanned, listed, naive } = answers(rows, query, k, counts);
  assert.deepEqual(found, naive);
  assert.deepEqual(scanned, naive);
  assert.deepEqual(listed, naive);
}

function answers(rows: readonly Row[], queryRow: Row, k: number, counts: (row: number) => boolean) {
  const source = rowsOf(rows);
  const query = queryOf(queryRow);
  const index = openSparseIndex(buildSparseIndex(source, rows.length), 's', rows.length);
  const scorer = new RowScorer(query, source);
  const run = { rows: rows.length, counts, check: () => {}, k };
  const list = Uint32Array.from(rows.keys()).filter(counts);
  assert.ok(postingsOf(index, query) <= index.rows.length);
  return {
    found: pairs(searchPostings([{ from: 0, index }], query, scorer, run, sums)),
    scanned: pairs(scanSparse(scorer, run)),
    listed: pairs(scanSparseRows(scorer, list, run)),
    naive: naive(rows, query, k, counts),
  };
}

function naive(rows: readonly Row[], { indices, weights }: SparseQuery, k: number, counts: (row: number) => boolean): number[][] {
  const wanted = new Map([...indices].map((index, at) => [index, weights[at] as number]));
  const scored = rows.map((pairs, row) => {
    const score = pairs.reduce((sum, [index, value]) => sum + (wanted.get(index) ?? 0) * Math.fround(value), 0);
    return { row, score };
  });
  return scored
    .filter(({ row, score }) => counts(row) && score !== 0)
    .map(({ row, score }) => [row, Math.fround(score)])
    .sort((a, b) => (b[1] as number) - (a[1] as number) || (a[0] as number) - (b[0] as number))
    .slice(0, k);
}

function pairs({ count, rows, scores }: { count: number; rows: Uint32Array; scores: Float32Array }): number[][] {
  return Array.from({ length: count }, (_, i) => [rows[i] as number, scores[i] as number]);
}

function queryOf(row: Row): SparseQuery {
  return sparseQuery({
    kind: 'sparse',
    indices: Uint32Array.from(row, ([index]) => index),
    values: Float32Array.from(row, ([, weight]) => weight),
  });
}

function rowsOf(rows: readonly Row[]): SparseRows {
  const offsets = new Uint32Array(rows.length + 1);
  rows.forEach((pairs, at) => {
    offsets[at + 1] = (offsets[at] as number) + pairs.length;
  });
  return {
    offsets,
    indices: Uint32Array.from(rows.flatMap((pairs) => pairs.map(([index]) => index))),
    values: Float32Array.from(rows.flatMap((pairs) => pairs.map(([, item]) => item))),
  };
}

/** `terms` draws from a vocabulary where the n-th word is 1 / n as frequent as the first. */
function textRow(random: () => number, vocabulary: number, terms: number): [number, number][] {
  const row = new Map<number, number>();
  for (let i = 0; i < terms; i++) row.set(Math.floor(vocabulary ** random()), Math.fround(0.1 + random() ** 3 * 3));
  return [...row].sort(([a], [b]) => a - b);
}

function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

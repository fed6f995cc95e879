import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { RowScorer, type SparseRows, sparseQuery } from '../../../vectors/sparse/dot.js';
import { GrowingIndex } from '../../../vectors/sparse/growing.js';
import { scanSparse, searchPostings } from '../../../vectors/sparse/search.js';
import { makeWindowSums } from '../segment.js';

const sums = makeWindowSums();

/** Rows of up to 6 of 40 indices, with negative values among them. */
function rowsOf(count: number, random: () => number): SparseRows {
  const offsets = new Uint32Array(count + 1);
  const indices: number[] = [];
  for (let row = 0; row < count; row++) {
    const own = new Set(Array.from({ length: Math.floor(random() * 7) }, () => Math.floor(40 ** random())));
    indices.push(...[...own].sort((a, b) => a - b));
    offsets[row + 1] = indices.length;
  }
  return { offsets, indices: Uint32Array.from(indices), values: Float32Array.from(indices, () => random() * 3 - 0.5) };
}

function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

test('rows that were added are found as scoring every row finds them, however they came', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.nat(300), fc.nat(5000)), { minLength: 1, maxLength: 12 }),
      fc.integer({ min: 1, max: 1 << 30 }),
      fc.integer({ min: 1, max: 20 }),
      (steps, seed, k) => {
        const random = generator(seed);
        const source = rowsOf(
          steps.reduce((sum, step) => sum + step, 0),
          random,
        );
        const index = new GrowingIndex(source);
        let rows = 0;
        for (const step of steps) {
          rows += step;
          const query = sparseQuery({
            kind: 'sparse',
            indices: Uint32Array.of(1, 2, 7, 30),
            values: Float32Array.from({ length: 4 }, () => random() * 2 - 0.3),
          });
          const scorer = new RowScorer(query, source);
          const run = { rows, counts: (row: number) => row % 5 !== 0, check: () => {}, k };
          assert.deepEqual(searchPostings(index.upTo(rows), query, scorer, run, sums), scanSparse(scorer, run));
          // A moment before the newest rows came, as another snapshot may show it.
          const before = { ...run, rows: rows >> 1 };
          assert.deepEqual(searchPostings(index.upTo(rows >> 1), query, scorer, before, sums), scanSparse(scorer, before));
        }
      },
    ),
    { numRuns: 60 },
  );
});

test('parts follow each other without a gap, stay few and leave fewer rows than make a part', () => {
  const source = rowsOf(40_000, generator(5));
  const index = new GrowingIndex(source);
  for (let rows = 0; rows <= 40_000; rows += 100) {
    const parts = index.upTo(rows);
    let next = 0;
    for (const part of parts) {
      assert.equal(part.from, next);
      next += part.index.rowCount;
    }
    assert.equal(next, index.rows);
    assert.ok(rows - next < 256 && next <= rows, `${next} of ${rows}`);
    assert.ok(parts.length <= 2 + rows / 2048 + 4, `${parts.length} parts of ${rows} rows`);
  }
});

test('one call indexes no more than one part holds', () => {
  const index = new GrowingIndex(rowsOf(20_000, generator(9)));
  index.upTo(20_000);
  assert.equal(index.rows, 4096);
  for (let call = 0; call < 10; call++) index.upTo(20_000);
  assert.ok(index.rows > 20_000 - 256);
});

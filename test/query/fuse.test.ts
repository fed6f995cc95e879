import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fuseDistributions, fuseRanks } from '../../query/fuse.js';

const rounded = (scores: Map<unknown, number>) => [...scores].map(([id, score]) => [id, Math.round(score * 1e6) / 1e6]);
const list = (...scores: [id: number, score: number][]) => scores.map(([id, score]) => ({ id, score }));

test('a rank gives 1 / (rank + 2), ranks from 0, and lists add up', () => {
  assert.deepEqual(
    rounded(
      fuseRanks(
        [
          [8, 6],
          [6, 3],
        ],
        null,
        null,
      ),
    ),
    [
      [8, 0.5],
      [6, 0.833333],
      [3, 0.333333],
    ],
  );
});

test('a larger k levels the ranks', () => {
  assert.deepEqual(rounded(fuseRanks([[1, 2]], 1, null)), [
    [1, 1],
    [2, 0.5],
  ]);
  assert.deepEqual(rounded(fuseRanks([[1, 2]], 60, null)), [
    [1, 0.016667],
    [2, 0.016393],
  ]);
});

test('a weight stretches the ranks of its list, and none below 0 counts', () => {
  assert.deepEqual(rounded(fuseRanks([[1, 2], [2]], null, [3, 1])), [
    [1, 0.75],
    [2, 1.1],
  ]);
  for (const weight of [0, -1]) {
    assert.deepEqual(rounded(fuseRanks([[1], [2]], null, [1, weight])), [
      [1, 0.5],
      [2, 0],
    ]);
  }
});

test('a point that a list repeats counts at its best rank', () => {
  assert.deepEqual(rounded(fuseRanks([[1, 1, 2]], null, null)), [
    [1, 0.5],
    [2, 0.333333],
  ]);
});

test('a distribution measures scores from three deviations below the mean to three above', () => {
  // Mean 4, deviation 3 (of a sample).
  const points = list([7, 7], [4, 4], [1, 1]);
  assert.deepEqual(rounded(fuseDistributions([{ points, better: 'larger' }])), [
    [7, 0.666667],
    [4, 0.5],
    [1, 0.333333],
  ]);
  assert.deepEqual(rounded(fuseDistributions([{ points, better: 'smaller' }])), [
    [7, 0.333333],
    [4, 0.5],
    [1, 0.666667],
  ]);
});

test('distributions add up, and one without deviation gives one half', () => {
  const fused = fuseDistributions([
    { points: list([7, 7], [4, 4], [1, 1]), better: 'larger' },
    { points: list([1, 100]), better: 'larger' },
    { points: list([4, 3], [9, 3]), better: 'larger' },
    { points: [], better: 'larger' },
  ]);
  assert.deepEqual(rounded(fused), [
    [7, 0.666667],
    [4, 1],
    [1, 0.833333],
    [9, 0.5],
  ]);
});

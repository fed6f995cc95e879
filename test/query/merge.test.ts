import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countsOfBest, mergeRanked, type Page, type RankedPoint } from '../../query/merge.js';

const PAGE: Page = { limit: 10, offset: 0, scoreThreshold: null, better: 'larger' };
const UUID = '550e8400-e29b-41d4-a716-446655440000';

function point(id: RankedPoint['id'], score: number, version = 1): RankedPoint {
  return { id, score, version };
}

function ids(points: readonly RankedPoint[]): unknown[] {
  return points.map((one) => one.id);
}

test('lists merge by score, best first, ties by id with UUIDs last', () => {
  const lists = [
    [point(UUID, 2), point(1, 1)],
    [point(7, 3), point(10n ** 19n, 2), point(5, 2)],
  ];
  assert.deepEqual(ids(mergeRanked(lists, PAGE)), [7, 5, 10n ** 19n, UUID, 1]);
});

test('distances are better the smaller they are', () => {
  assert.deepEqual(ids(mergeRanked([[point(1, 2)], [point(2, 0.5)]], { ...PAGE, better: 'smaller' })), [2, 1]);
});

test('a point in several lists counts once, in its newest version, also when the older one scored better', () => {
  assert.deepEqual(mergeRanked([[point(1, 9, 4)], [point(1, 1, 5), point(2, 2)]], PAGE), [point(2, 2), point(1, 1, 5)]);
});

test('limit and offset cut the merged list', () => {
  const lists = [
    [point(1, 5), point(2, 4)],
    [point(3, 3), point(4, 2)],
  ];
  assert.deepEqual(ids(mergeRanked(lists, { ...PAGE, limit: 2, offset: 1 })), [2, 3]);
  assert.deepEqual(ids(mergeRanked(lists, { ...PAGE, offset: 9 })), []);
});

test('a score equal to the threshold is left out', () => {
  const list = [point(1, 2), point(2, 1), point(3, 0.5)];
  assert.deepEqual(ids(mergeRanked([list], { ...PAGE, scoreThreshold: 1 })), [1]);
  assert.deepEqual(ids(mergeRanked([list], { ...PAGE, scoreThreshold: 1, better: 'smaller' })), [3]);
  assert.deepEqual(ids(mergeRanked([[point(1, Math.fround(0.6))]], { ...PAGE, scoreThreshold: 0.6 })), []);
});

test('the best of several lists are counted in each, and of equal scores an earlier list has the better', () => {
  const lists = [[5, 3, 1], [], [4, 3, 3], [Number.NEGATIVE_INFINITY]];
  assert.deepEqual(
    [0, 1, 3, 4, 7, 99].map((keep) => countsOfBest(lists, keep)),
    [
      [0, 0, 0, 0],
      [1, 0, 0, 0],
      [2, 0, 1, 0],
      [2, 0, 2, 0],
      [3, 0, 3, 1],
      [3, 0, 3, 1],
    ],
  );
});

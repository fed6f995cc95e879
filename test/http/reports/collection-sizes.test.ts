import assert from 'node:assert/strict';
import { test } from 'node:test';
import { largest, takenBy } from '../../../http/reports/collection-sizes.js';
import { sampleSegment, sampleStats } from '../../actors/samples.js';

test('a collection takes its log, its database and its segments', () => {
  const segments = [sampleSegment({ memoryBytes: 10, diskBytes: 100 }), sampleSegment({ memoryBytes: 1 })];
  const replica = { ...sampleStats(segments), walBytes: 1000, database: { bytes: 20_000, freeBytes: 5 } };
  const cache = { bytes: 1, hits: 2, misses: 3 };
  assert.deepEqual(takenBy([replica, { ...replica, database: null }], cache), { memoryBytes: 22, diskBytes: 22_200, cache });
});

test('beyond a bound collections are shown together, so that metrics do not grow with them', () => {
  const all = [5, 9, 1, 7].map((diskBytes, at) => ({
    id: at,
    diskBytes,
    memoryBytes: 10 * diskBytes,
    cache: { bytes: diskBytes, hits: 2, misses: 3 },
  }));
  const { others, shown } = largest(all, 2);
  assert.deepEqual(
    shown.map(({ id }) => id),
    [1, 3],
  );
  assert.deepEqual(others, { diskBytes: 6, memoryBytes: 60, cache: { bytes: 6, hits: 4, misses: 6 } });
  assert.equal(largest(all, 4).others, null);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RequestStats } from '../../../http/context/request-stats.js';
import { SharedCounts } from '../../../http/context/shared-counts.js';

test('counts of other threads are added to those of this one', () => {
  const stats = new RequestStats(['one', 'other']);
  stats.record(0, 200, 3, 1000);
  const shared = new SharedCounts(stats.share().buffer);
  shared.record(0, 200, 1, 3000);
  shared.record(0, 200, 4, 2000);
  shared.record(1, 404, 0.5, 4000);
  assert.deepEqual(
    stats.counts().map(({ durations, endpoint, status }) => {
      const { count, lastMs, maxMs, minMs, totalMs } = durations;
      return { endpoint, status, count, totalMs, minMs, maxMs, lastMs, buckets: [...durations.buckets].slice(0, 4) };
    }),
    [
      { endpoint: 'one', status: 200, count: 3, totalMs: 8, minMs: 1, maxMs: 4, lastMs: 2000, buckets: [1, 0, 2, 0] },
      { endpoint: 'other', status: 404, count: 1, totalMs: 0.5, minMs: 0.5, maxMs: 0.5, lastMs: 4000, buckets: [1, 0, 0, 0] },
    ],
  );
});

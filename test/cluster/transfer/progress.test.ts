import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nextBatch } from '../../../cluster/transfer/batches.js';
import { etaSeconds, noProgress, progressText, rateOf } from '../../../cluster/transfer/progress.js';

const BEGUN = noProgress('stream_records', 'filling', 1000);

test('rate and remaining time follow from what was sent since sending began', () => {
  const half = { ...BEGUN, total: 1000, sent: 500, sendingSinceMs: 2000, bytes: 4096 };
  assert.equal(rateOf(half, 7000), 100);
  assert.equal(etaSeconds(half, 7000), 5);
  assert.equal(progressText(half, 7000), 'filling, 500 of 1000 points (50 %), 100 points/s, ETA 5 s, 4096 bytes, running for 6 s');
});

test('nobody says how long it takes before anything was sent, and why it failed is told', () => {
  const failing = { ...BEGUN, total: 10, failures: 2, cause: 'the peer is away' };
  assert.equal(etaSeconds(failing, 9000), null);
  assert.equal(
    progressText(failing, 9000),
    'filling, 0 of 10 points (0 %), running for 8 s, 2 failed tries, the last one: the peer is away',
  );
});

test('buckets go in batches of a good size, one at least, and none is left out', () => {
  const differences = { buckets: [3, 5, 8, 9, 12], points: [200, 200, 200, 9000, 0] };
  const batches: number[][] = [];
  for (let at = 0; at < 5; ) {
    const { buckets } = nextBatch(differences, at, null);
    batches.push([...buckets]);
    at += buckets.length;
  }
  assert.deepEqual(batches, [[3, 5], [8], [9], [12]]);
  assert.deepEqual(nextBatch(differences, 0, 1), { buckets: [3, 5, 8, 9, 12], points: 9600 });
  assert.deepEqual(nextBatch(differences, 0, 2 ** 30).buckets, [3]);
});

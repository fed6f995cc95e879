/** Unmodified clients of three nodes, one of which at a time is killed, stopped, paused or cut off, while shards move. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testSeed } from '../../seed.js';
import { runPointChaos } from '../chaos/point-run.js';
import { temporaryFolder } from '../support.js';

const CHAOS_MS = 10_000;

test('whichever node is away, every request succeeds in the end, nothing acknowledged is lost, and all replicas and nodes say the same afterwards', async (t) => {
  const seed = testSeed();
  t.diagnostic(`TROUPE_SEED=${seed}`);
  const report = await runPointChaos({
    nodes: 3,
    shards: 6,
    milliseconds: CHAOS_MS,
    clients: 4,
    seed,
    folder: await temporaryFolder(t),
    faults: ['kill', 'pause', 'part', 'stop', 'cut'],
    overlapping: false,
  });
  t.diagnostic(JSON.stringify(report));
  assert.deepEqual(report.violations, []);
  assert.equal(report.totals.failed, 0);
  assert.ok(report.totals.writes > 10);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { closingShard, failedShard, openingShard, servingShard, stoppedShard } from '../../../actors/shard/state.js';
import { startShard, stepShard } from '../../../actors/shard/step.js';
import type { ErrorFacts } from '../../../protocols/errors.js';

const BROKEN: ErrorFacts = { code: 'storage', detail: 'damaged' };

test('a shard starts its replica', () => {
  assert.deepEqual(startShard(), { state: openingShard(), effects: [{ kind: 'startReplica' }] });
});

test('a shard is what its replica is', () => {
  assert.deepEqual(stepShard(openingShard(), { kind: 'replicaOpened' }), { state: servingShard(), effects: [{ kind: 'tellOpened' }] });
  assert.deepEqual(stepShard(servingShard(), { kind: 'replicaFailed', error: BROKEN }), {
    state: failedShard(BROKEN),
    effects: [{ kind: 'tellFailed', error: BROKEN }],
  });
  assert.deepEqual(stepShard(failedShard(BROKEN), { kind: 'replicaOpened' }), { state: servingShard(), effects: [{ kind: 'tellOpened' }] });
});

test('a shard whose replica crashed too often has its files closed and stays', () => {
  const { state, effects } = stepShard(servingShard(), { kind: 'replicaStopped', error: BROKEN });
  assert.deepEqual(state, stoppedShard(BROKEN));
  assert.deepEqual(effects, [
    { kind: 'closeFiles', error: BROKEN },
    { kind: 'tellFailed', error: BROKEN },
  ]);
  assert.deepEqual(stepShard(state, { kind: 'close' }).effects, [{ kind: 'tellClosedAndStop' }]);
});

test('a closing shard ends when its replica has closed, or can close no more', () => {
  assert.deepEqual(stepShard(servingShard(), { kind: 'close' }), { state: closingShard(), effects: [{ kind: 'closeReplica' }] });
  assert.deepEqual(stepShard(closingShard(), { kind: 'replicaClosed' }).effects, [{ kind: 'tellClosedAndStop' }]);
  assert.deepEqual(stepShard(closingShard(), { kind: 'replicaStopped', error: BROKEN }).effects, [{ kind: 'tellClosedAndStop' }]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { abandoned, active, closing, dead, opening } from '../../../actors/shard/state.js';
import { SHARD_MOVES, startShard, stepShard } from '../../../actors/shard/step.js';
import type { ErrorFacts } from '../../../protocols/errors.js';
import { incompleteRows, printMoves } from '../move-table.js';

const BROKEN: ErrorFacts = { code: 'storage', detail: 'damaged' };

test('every state has an answer to every message', () => {
  assert.deepEqual(incompleteRows(SHARD_MOVES), []);
  assert.equal(
    printMoves(SHARD_MOVES),
    [
      'Opening: replicaOpened becomeActive, replicaDied becomeDead, replicaGaveUp becomeAbandoned, configure configure, close close',
      'Active: replicaDied becomeDead, replicaGaveUp becomeAbandoned, configure configure, close close',
      'Dead: replicaOpened becomeActive, replicaDied becomeDead, replicaGaveUp becomeAbandoned, configure configure, close close',
      'Abandoned: configure answer, close finish',
      'Closing: replicaGaveUp finish, configure answer, replicaClosed finish',
    ].join('\n'),
  );
});

test('a shard starts its replica', () => {
  assert.deepEqual(startShard(), { state: opening(), effects: [{ kind: 'startReplica' }] });
});

test('a shard is what its replica is', () => {
  assert.deepEqual(stepShard(opening(), { kind: 'replicaOpened' }), { state: active(), effects: [{ kind: 'tellOpened' }] });
  assert.deepEqual(stepShard(active(), { kind: 'replicaDied', error: BROKEN }), {
    state: dead(BROKEN),
    effects: [{ kind: 'tellDied', error: BROKEN }],
  });
  assert.deepEqual(stepShard(dead(BROKEN), { kind: 'replicaOpened' }), { state: active(), effects: [{ kind: 'tellOpened' }] });
});

test('a shard whose replica gave up lets its files go and stays', () => {
  const { state, effects } = stepShard(active(), { kind: 'replicaGaveUp', error: BROKEN });
  assert.deepEqual(state, abandoned(BROKEN));
  assert.deepEqual(effects, [
    { kind: 'abandonReplica', error: BROKEN },
    { kind: 'tellDied', error: BROKEN },
  ]);
  assert.deepEqual(stepShard(state, { kind: 'close' }).effects, [{ kind: 'tellClosedAndStop' }]);
});

test('a closing shard ends when its replica has closed, or can close no more', () => {
  assert.deepEqual(stepShard(active(), { kind: 'close' }), { state: closing(), effects: [{ kind: 'closeReplica' }] });
  assert.deepEqual(stepShard(closing(), { kind: 'replicaClosed' }).effects, [{ kind: 'tellClosedAndStop' }]);
  assert.deepEqual(stepShard(closing(), { kind: 'replicaGaveUp', error: BROKEN }).effects, [{ kind: 'tellClosedAndStop' }]);
});

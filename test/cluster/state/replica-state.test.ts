import assert from 'node:assert/strict';
import { test } from 'node:test';
import { afterEvent, afterStart, eventTo, REPLICA_STATE_MOVES, type ReplicaEvent } from '../../../cluster/state/replica-state.js';
import { REPLICA_STATES, TRANSFER_METHODS } from '../../../protocols/model/cluster.js';

const EVENTS = Object.keys(REPLICA_STATE_MOVES.Active) as ReplicaEvent[];
const UNREACHED = ['Resharding', 'ReshardingScaleDown', 'ActiveRead', 'ManualRecovery'] as const;

test('a state that can be asked for is what its event leads to, wherever it is not refused', () => {
  for (const to of REPLICA_STATES) {
    const event = eventTo(to);
    if (event === null) continue;
    for (const from of REPLICA_STATES) {
      const next = afterEvent(from, event);
      assert.ok(next === null || next === to, `${from} ${event}: ${next}`);
    }
  }
});

test('no event leads to the states of the contract that no replica comes to, and none leads out of them', () => {
  const reached = REPLICA_STATES.flatMap((from) => EVENTS.map((event) => afterEvent(from, event)));
  for (const state of UNREACHED) {
    assert.equal(eventTo(state), null);
    assert.ok(!reached.includes(state), state);
    for (const event of EVENTS) assert.equal(afterEvent(state, event), null);
  }
  assert.deepEqual(
    REPLICA_STATES.filter((state) => !reached.includes(state)),
    [...UNREACHED],
  );
});

test('a target that a transfer makes waits for what its method brings, and a difference makes none', () => {
  assert.deepEqual(
    TRANSFER_METHODS.map((method) => [method, afterStart(method, null), afterStart(method, 'Dead'), afterStart(method, 'Active')]),
    [
      ['stream_records', 'Partial', 'Partial', null],
      ['snapshot', 'PartialSnapshot', 'PartialSnapshot', null],
      ['wal_delta', null, 'Recovery', null],
      ['resharding_stream_records', null, null, null],
    ],
  );
});

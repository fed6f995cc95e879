import assert from 'node:assert/strict';
import { test } from 'node:test';
import { afterEvent, EVENT_TO, REPLICA_MOVES } from '../../../cluster/state/replica-state.js';
import { REPLICA_STATES } from '../../../protocols/model/cluster.js';
import { incompleteRows } from '../../actors/move-table.js';

const MOVES = `
Active: markDead Dead, listen Listener, restore ManualRecovery, reshardDown ReshardingScaleDown
Dead: activateAlone Active, streamTo Partial, snapshotTo PartialSnapshot, deltaTo Recovery, restore ManualRecovery
Partial: activateAlone Active, markDead Dead, snapshotTo PartialSnapshot, deltaTo Recovery, finish Active, abort Dead
Initializing: activate Active, activateAlone Active, markDead Dead, listen Listener
Listener: activate Active, activateAlone Active, markDead Dead, restore ManualRecovery
PartialSnapshot: activateAlone Active, markDead Dead, streamTo Partial, deltaTo Recovery, catchUp Partial, finish Active, abort Dead
Recovery: activateAlone Active, markDead Dead, streamTo Partial, snapshotTo PartialSnapshot, catchUp Partial, finish Active, abort Dead
Resharding: activate Active, activateAlone Active, markDead Dead, openReads ActiveRead
ReshardingScaleDown: activate Active, activateAlone Active, markDead Dead
ActiveRead: activate Active, activateAlone Active, markDead Dead
ManualRecovery: activate Active, activateAlone Active, markDead Dead, streamTo Partial, snapshotTo PartialSnapshot, deltaTo Recovery`;

test('the table has every state and event, and these moves', () => {
  assert.deepEqual(Object.keys(REPLICA_MOVES).sort(), [...REPLICA_STATES].sort());
  assert.deepEqual(incompleteRows(REPLICA_MOVES), []);
  const lines = Object.entries(REPLICA_MOVES).map(([state, row]) => {
    const cells = Object.entries(row).filter(([, move]) => move !== 'ignore' && move !== 'refuse');
    return `${state}: ${cells.map(([event, move]) => `${event} ${move}`).join(', ')}`;
  });
  assert.equal(lines.join('\n'), MOVES.trim());
});

test('a state that can be asked for is what its event leads to, wherever it is not refused', () => {
  for (const to of REPLICA_STATES) {
    const event = EVENT_TO[to];
    if (event === null) continue;
    for (const from of REPLICA_STATES) {
      const next = afterEvent(from, event);
      assert.ok(next === null || next === to, `${from} ${event}: ${next}`);
    }
  }
});

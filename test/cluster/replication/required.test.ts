import assert from 'node:assert/strict';
import { test } from 'node:test';
import { copiesNeeded } from '../../../cluster/replication/required.js';
import type { PeerId, ReplicaState } from '../../../protocols/model/cluster.js';

test('write_consistency_factor counts against the replicas that a shard has: all of a smaller number have to be active', () => {
  assert.equal(needed(2, { 1: 'Active' }), 1);
  assert.equal(needed(3, { 1: 'Active', 2: 'Active' }), 2);
  assert.equal(needed(1, { 1: 'Active', 2: 'Active' }), 1);
  assert.equal(needed(2, { 1: 'Active', 2: 'Dead' }), 2);
  assert.equal(needed(2, { 1: 'Active', 2: 'Dead', 3: 'Active' }), 2);
});

test('a Listener and a replica that a transfer makes are not waited for, one that heals is', () => {
  assert.equal(needed(2, { 1: 'Active', 2: 'Listener' }), 1);
  assert.equal(needed(2, { 1: 'Active', 2: 'Partial' }, [2]), 1);
  assert.equal(needed(2, { 1: 'Active', 2: 'Partial' }), 2);
  assert.equal(needed(2, { 2: 'Listener' }), 1);
});

function needed(factor: number, states: Readonly<Record<PeerId, ReplicaState>>, added: readonly PeerId[] = []): number {
  return copiesNeeded(factor, new Map(Object.entries(states).map(([peer, state]) => [Number(peer), state])), added);
}

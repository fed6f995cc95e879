import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type FollowerStatus, heldOf, type ReplicationStatus } from '../../../actors/shard-log/view.js';

const follower = (peer: number, position: number | null, required: boolean): FollowerStatus => {
  return { peer, phase: position === null ? 'Probing' : 'Streaming', required, position, error: null };
};
const leading = (...followers: FollowerStatus[]): ReplicationStatus => {
  return { role: 'Leading', term: 1, position: 9, waiting: 0, followers };
};

test('a leader knows that all have what the last of those has that it waits for, be they Active yet or not', () => {
  assert.equal(heldOf(leading()), 9);
  assert.equal(heldOf(leading(follower(2, 8, true), follower(3, 4, false))), 8);
  assert.equal(heldOf(leading(follower(2, 8, true), follower(3, 4, true))), 4);
});

test('nobody knows it while one of them has not said how far it is, or where nobody leads', () => {
  assert.equal(heldOf(leading(follower(2, null, true), follower(3, 4, true))), null);
  assert.equal(heldOf({ role: 'Following', term: 1, position: null, waiting: 0, followers: [] }), null);
});

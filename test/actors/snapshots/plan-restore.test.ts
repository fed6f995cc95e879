import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planRestore, type RestoreFacts, type TargetShard } from '../../../actors/snapshots/plan-restore.js';
import type { ReplicaState } from '../../../protocols/model/cluster.js';
import { NO_TAG } from '../../../protocols/model/shard-log.js';

const archived = (id: number, key: string | null = null) => ({ id, key, points: 1, at: NO_TAG, files: [] });
const shard = (id: number, leader: number | null, replicas: Record<number, ReplicaState>, key: string | null = null): TargetShard => ({
  id,
  key,
  leader,
  replicas: new Map(Object.entries(replicas).map(([peer, state]) => [Number(peer), state])),
});

/** A plan of peer 1 in words: `shard → peer`, `(alone)` where the peer does not lead. */
function planned(facts: Partial<RestoreFacts>): string {
  const { installs, kept } = planRestore({
    kind: 'collection',
    archived: [archived(0)],
    keys: [],
    shards: [shard(0, 1, { 1: 'Active' })],
    only: null,
    priority: 'snapshot',
    self: 1,
    inCluster: true,
    isNew: false,
    ...facts,
  });
  const words = installs.map(({ from, leads, peer, to }) => `${from.id} as ${to} on ${peer}${leads ? '' : ' (alone)'}`);
  return [...words, ...kept.map((id) => `${id} kept`)].join(', ');
}

test('with priority snapshot each shard goes to its leader, wherever that is', () => {
  const shards = [shard(0, 1, { 1: 'Active', 2: 'Active' }), shard(1, 2, { 2: 'Active' })];
  assert.equal(planned({ archived: [archived(0), archived(1)], shards }), '0 as 0 on 1, 1 as 1 on 2');
});

test('with priority replica a shard with another Active replica keeps what that has', () => {
  const shards = [shard(0, 1, { 1: 'Active', 2: 'Active' }), shard(1, 1, { 1: 'Active', 2: 'Dead' }), shard(2, 3, { 3: 'Active' })];
  assert.equal(planned({ priority: 'replica', archived: [archived(0), archived(1), archived(2)], shards }), '1 as 1 on 1, 0 kept, 2 kept');
});

test('with priority replica a new collection of a cluster stays empty, and one of a node of its own does not', () => {
  assert.equal(planned({ priority: 'replica', isNew: true }), '0 kept');
  assert.equal(planned({ priority: 'replica', isNew: true, inCluster: false }), '0 as 0 on 1');
});

test('with no_sync the replica of this node changes, whoever leads', () => {
  assert.equal(planned({ priority: 'no_sync', shards: [shard(0, 2, { 1: 'Active', 2: 'Active' })] }), '0 as 0 on 1 (alone)');
});

test('with no_sync a shard that this node has not goes to its leader', () => {
  assert.equal(planned({ priority: 'no_sync', shards: [shard(0, 2, { 2: 'Active' })] }), '0 as 0 on 2');
});

test('a snapshot of one shard restores the shard that is named, whatever its number was', () => {
  const shards = [shard(0, 1, { 1: 'Active' }), shard(1, 1, { 1: 'Active' })];
  assert.equal(planned({ kind: 'shard', archived: [archived(0)], only: 1, shards }), '0 as 1 on 1');
});

test('of a snapshot of a collection only the shard that is named is restored, and it must be there', () => {
  const shards = [shard(0, 1, { 1: 'Active' }), shard(1, 1, { 1: 'Active' })];
  assert.equal(planned({ archived: [archived(0), archived(1)], only: 1, shards }), '1 as 1 on 1');
  assert.throws(() => planned({ archived: [archived(0)], only: 1, shards }), /the snapshot has no shard 1: it has 0/);
});

test('shards of a key are those of the same key, in their order, also where the archive has only some of them', () => {
  const keys = [
    { key: 'red', shards: [3, 5] },
    { key: 'blue', shards: [4] },
  ];
  const shards = [shard(1, 1, { 1: 'Active' }, 'blue'), shard(2, 1, { 1: 'Active' }, 'red'), shard(7, 1, { 1: 'Active' }, 'red')];
  assert.equal(planned({ archived: [archived(5, 'red'), archived(4, 'blue')], keys, shards }), '5 as 7 on 1, 4 as 1 on 1');
});

test('a key with another number of shards is refused', () => {
  const keys = [{ key: 'red', shards: [3, 5] }];
  const facts = { archived: [archived(3, 'red')], keys, shards: [shard(2, 1, { 1: 'Active' }, 'red')] };
  assert.throws(() => planned(facts), /the snapshot has 2 shards of key "red", the collection has 1/);
});

test('a shard that the collection has not is refused', () => {
  assert.throws(() => planned({ archived: [archived(4)] }), /the snapshot has shard 4, the collection has it has 0|shard 4/);
});

test('a shard without a leader is to be tried again', () => {
  assert.throws(() => planned({ shards: [shard(0, null, { 1: 'Dead' })] }), { code: 'unavailable' });
});

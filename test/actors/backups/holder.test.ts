import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backupHolder } from '../../../actors/backups/holder.js';
import type { ReplicaState } from '../../../protocols/model/cluster.js';

const replicas = (states: Record<number, ReplicaState>) => new Map(Object.entries(states).map(([peer, state]) => [Number(peer), state]));
const all = () => true;

test('shards of the same holders are spread over them, whoever leads', () => {
  const three = replicas({ 3: 'Active', 1: 'Active', 2: 'Active' });
  assert.deepEqual(
    [0, 1, 2, 3, 4].map((shardId) => backupHolder(shardId, three, all)),
    [1, 2, 3, 1, 2],
  );
});

test('a holder that is away, or has the shard in part, leaves it to the next one', () => {
  const states = replicas({ 1: 'Active', 2: 'Dead', 3: 'Active' });
  assert.equal(backupHolder(1, states, all), 3);
  assert.equal(
    backupHolder(1, states, (peer) => peer !== 3),
    1,
  );
  assert.equal(backupHolder(4, replicas({ 1: 'Partial', 2: 'Listener', 3: 'Active' }), all), 3);
});

test('a shard that nobody has whole is saved by nobody', () => {
  assert.equal(backupHolder(0, replicas({ 1: 'Dead' }), all), null);
  assert.equal(backupHolder(0, replicas({}), all), null);
});

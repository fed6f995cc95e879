import assert from 'node:assert/strict';
import { test } from 'node:test';
import { repairedInstead } from '../../../actors/requests/repairing.js';
import type { CollectionClusterUpdate } from '../../../protocols/model/cluster.js';
import { Peers, SELF } from './support.js';

const replicate = (from: number, to: number): CollectionClusterUpdate => ({
  kind: 'replicateShard',
  shardId: 0,
  from,
  to,
  toShardId: null,
  method: null,
});

test('a shard that is replicated to a peer that has it is compared by its leader, and all else is left to the cluster', async () => {
  const peers = new Peers();
  peers.agree({ 0: { leader: 2, term: 4, 2: 'Active', [SELF]: 'Active', 3: 'Dead', 4: 'Listener' } });
  const asked: unknown[] = [];
  peers.answers.set(2, (call) => {
    if (call.kind === 'compareReplica') asked.push([call.shard.shardId, call.term, call.peerId]);
    return { kind: 'done', changed: 0 };
  });
  const ask = (operation: CollectionClusterUpdate) => repairedInstead(peers.routes, 'c', operation, 1000);
  assert.equal(await ask(replicate(2, SELF)), true);
  assert.equal(await ask(replicate(SELF, 4)), true, 'whichever Active replica is named as the source');
  assert.deepEqual(asked, [
    [0, 4, SELF],
    [0, 4, 4],
  ]);
  assert.equal(await ask(replicate(2, 3)), false, 'a Dead one gets a transfer');
  assert.equal(await ask(replicate(2, 5)), false, 'a new one, too');
  assert.equal(await ask(replicate(3, SELF)), false, 'the cluster says what is wrong');
  assert.equal(await ask({ ...replicate(2, SELF), kind: 'moveShard' } as CollectionClusterUpdate), false);
  await assert.rejects(ask(replicate(SELF, 2)), /peer 2 leads the shard.*drop_replica/);
});

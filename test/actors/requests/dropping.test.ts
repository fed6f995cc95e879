import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClusterApi } from '../../../actors/consensus/cluster-api.js';
import { clusterUpdateInSteps } from '../../../actors/requests/update-collection-cluster.js';
import { NotReached } from '../../../cluster/data-messages.js';
import { TroupeError } from '../../../protocols/errors.js';
import type { CollectionClusterUpdate } from '../../../protocols/model/cluster.js';
import { Peers, SELF } from './support.js';

const drop = (peerId: number): CollectionClusterUpdate => ({ kind: 'dropReplica', shardId: 0, peerId });

/** What was asked of peers and of the cluster, in order. */
function cluster(): { readonly peers: Peers; readonly update: ClusterApi['updateCollectionCluster']; readonly set: string[] } {
  const peers = new Peers();
  const set: string[] = [];
  const setUp: ClusterApi['updateCollectionCluster'] = async (_collection, { kind }) => {
    set.push(`${kind} after ${peers.asked.length}`);
    return true;
  };
  const find = () => assert.fail('nothing is looked for');
  const points = { writeShards: async () => assert.fail('nothing is written') };
  return { peers, set, update: clusterUpdateInSteps(setUp, { find, points, routes: peers.routes }) };
}

test('the leader of a shard hands over before its replica is dropped, and any other one goes at once', async () => {
  const { update, peers, set } = cluster();
  peers.agree({ 0: { leader: 2, term: 4, 2: 'Active', [SELF]: 'Active', 3: 'Active' } });
  let to = 0;
  peers.answers.set(2, (call) => {
    if (call.kind === 'handOver') to = call.to;
    return { kind: 'done', changed: 1 };
  });
  assert.equal(await update('c', drop(3), 1000), true);
  assert.deepEqual([peers.asked.length, set], [0, ['dropReplica after 0']]);
  assert.equal(await update('c', drop(2), 1000), true);
  assert.deepEqual([to, set[1]], [SELF, 'dropReplica after 1'], 'the peer that it is connected with');
});

test('what a leader that cannot hand over leaves behind is no reason to keep its replica', async () => {
  const { update, peers, set } = cluster();
  peers.agree({ 0: { leader: 2, 2: 'Active', [SELF]: 'Active' } });
  peers.answers.set(2, () => {
    throw new NotReached('no connection');
  });
  assert.equal(await peers.outcome(update('c', drop(2), 1000)), true);
  assert.equal(await peers.outcome(update('nothing', drop(2), 1000)), true, 'the cluster says what is wrong');
  assert.deepEqual(set, ['dropReplica after 2', 'dropReplica after 2']);
});

test('a leader that cannot hand over yet is asked again until it can', async () => {
  const { update, peers, set } = cluster();
  peers.agree({ 0: { leader: 2, 2: 'Active', [SELF]: 'Active' } });
  let refusals = 0;
  peers.answers.set(2, () => {
    if (++refusals <= 4) throw new TroupeError('conflict', 'other replicas lack what is acknowledged');
    return { kind: 'done', changed: 1 };
  });
  assert.equal(await peers.outcome(update('c', drop(2), 1000)), true);
  assert.deepEqual(set, ['dropReplica after 5']);
});

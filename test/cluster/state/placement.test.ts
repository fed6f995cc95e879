import assert from 'node:assert/strict';
import { test } from 'node:test';
import { placeShards } from '../../../cluster/state/placement.js';
import type { PeerId } from '../../../protocols/model/cluster.js';
import { configOf, Log } from '../samples.js';

/** Places collections one after the other; a line per shard. */
function plan(peers: readonly PeerId[], ...requests: readonly (readonly [shards: number, replicationFactor: number])[]): string {
  const log = new Log(peers.length === 0 ? [11] : [11, ...peers.filter((peer) => peer !== 11)]);
  const lines = requests.flatMap(([shards, replicationFactor], at) => {
    const placement = placeShards(log.state, { shards, replicationFactor, peers });
    log.propose({ kind: 'createCollection', name: `c${at}`, config: configOf(), placement });
    return placement.map((chosen, shardId) => `c${at}/${shardId}: ${chosen.join(' ')}`);
  });
  return lines.join('\n');
}

test('shards go round the peers, and what is left over goes to those with the fewest', () => {
  const expected = ['c0/0: 11', 'c0/1: 12', 'c0/2: 13', 'c0/3: 11', 'c1/0: 12', 'c2/0: 13', 'c2/1: 11'];
  assert.equal(plan([13, 11, 12], [4, 1], [1, 1], [2, 1]), expected.join('\n'));
});

test('replicas of a shard are on peers of their own, as many as there are', () => {
  assert.equal(plan([11, 12, 13], [3, 2]), 'c0/0: 11 12\nc0/1: 13 11\nc0/2: 12 13');
  assert.equal(plan([11, 12], [2, 5]), 'c0/0: 11 12\nc0/1: 11 12');
});

test('peers that only listen have a replica of every shard besides, and a peer that leaves gets none', () => {
  const log = new Log([11, 12, 13, 14]);
  log.propose({ kind: 'markPeer', peerId: 12, listens: true, leaving: null });
  log.propose({ kind: 'markPeer', peerId: 13, listens: null, leaving: 'drain' });
  const chosen = (peers: readonly PeerId[] | null) =>
    placeShards(log.state, { shards: 2, replicationFactor: 2, peers }).map((each) => each.join(' '));
  assert.deepEqual(chosen(null), ['11 14 12', '11 14 12']);
  assert.deepEqual(chosen([11, 13]), ['11', '11']);
  const late = log.say({ kind: 'createCollection', name: 'a', config: configOf(), placement: [[13]] });
  assert.equal(late, 'unavailable: peer 13, chosen for a replica, is leaving the cluster; try again');
  log.propose({ kind: 'markPeer', peerId: 13, listens: null, leaving: 'stays' });
  log.propose({ kind: 'markPeer', peerId: 12, listens: false, leaving: null });
  assert.equal(log.state.marks.size, 0);
});

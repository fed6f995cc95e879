/** Hand-overs as text: which shard, from whom, to whom, and who leads how many in the end. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { heirOf, isAtRest, planFull, planLeadership } from '../../../cluster/plans/leadership.js';
import type { PeerId, ReplicaState } from '../../../protocols/model/cluster.js';
import { configOf, Log } from '../samples.js';

const everybody = () => true;

class Cluster extends Log {
  /** A collection whose replicas are Active where `placement` has them. */
  make(name: string, placement: readonly (readonly PeerId[])[]): this {
    this.propose({ kind: 'createCollection', name, config: configOf(), placement });
    for (const [shardId, held] of placement.entries()) for (const peerId of held) this.set(name, shardId, peerId, 'Active');
    return this;
  }

  set(collection: string, shardId: number, peerId: PeerId, to: ReplicaState): void {
    const uid = this.state.collections.get(collection)?.uid ?? 0;
    this.propose({ kind: 'setReplicaStates', changes: [{ collection, uid, shardId, peerId, from: null, to, term: null }] });
  }

  /** All replicas of a peer are Dead, and are well again. */
  wasAway(peerId: PeerId): this {
    for (const to of ['Dead', 'Active'] as const) {
      for (const [name, { shards }] of this.state.collections) {
        for (const [shardId, { replicas }] of shards) {
          if (!replicas.has(peerId)) continue;
          if (to === 'Dead') this.set(name, shardId, peerId, 'Dead');
          else this.heal(name, shardId, peerId);
        }
      }
    }
    return this;
  }

  heal(collection: string, shardId: number, to: PeerId): void {
    const from = this.state.collections.get(collection)?.shards.get(shardId)?.leader ?? 0;
    const transfer = { shardId, from, to, toShardId: null };
    this.propose({ kind: 'startTransfer', collection, transfer, method: 'wal_delta', sync: true });
    this.propose({ kind: 'finishTransfer', collection, transfer, term: null });
  }

  /** Peers by how many shards they lead: `11 2, 12 2`. */
  leads(collection?: string): string {
    const counts = new Map<PeerId, number>(this.state.membership.map(({ peerId }) => [peerId, 0]));
    for (const [name, { shards }] of this.state.collections) {
      if (collection !== undefined && collection !== name) continue;
      for (const { leader } of shards.values()) if (leader !== null) counts.set(leader, (counts.get(leader) ?? 0) + 1);
    }
    return [...counts].map(([peerId, count]) => `${peerId} ${count}`).join(', ');
  }

  spread(isReachable: (peerId: PeerId) => boolean = everybody): string[] {
    const lines: string[] = [];
    for (let steps = 0; steps < 200; steps++) {
      const plan = planLeadership(this.state, isReachable);
      if (plan === null) return lines;
      const { term, collection, from, shardId, to, uid } = plan;
      assert.equal(this.say({ kind: 'changeLeader', collection, uid, shardId, to, term }), 'done');
      lines.push(`${collection}/${shardId}: ${from} → ${to}`);
    }
    throw new Error(`no end: ${lines.join(', ')}`);
  }
}

const SIX = [
  [11, 12],
  [12, 13],
  [13, 11],
  [11, 12],
  [12, 13],
  [13, 11],
];

test('a node that was away leads its share again when it is back, by as few hand-overs as there can be', () => {
  const cluster = new Cluster().make('a', SIX);
  cluster.wasAway(13);
  assert.equal(cluster.leads(), '11 3, 12 3, 13 0');
  assert.deepEqual(cluster.spread(), ['a/1: 12 → 13', 'a/2: 11 → 13']);
  assert.equal(cluster.leads(), '11 2, 12 2, 13 2');
  assert.deepEqual(cluster.spread(), [], 'what is spread stays');
});

test('each collection is spread, and small ones among all peers together', () => {
  const cluster = new Cluster().make('a', SIX);
  for (const name of ['b', 'c', 'd', 'e']) cluster.make(name, [[11, 12, 13]]);
  cluster.wasAway(12);
  cluster.wasAway(13);
  cluster.spread();
  assert.equal(cluster.leads('a'), '11 2, 12 2, 13 2');
  assert.match(cluster.leads(), /^11 [34], 12 [34], 13 [34]$/);
});

test('only Active replicas of peers that answer, and do not leave, get a lead', () => {
  const cluster = new Cluster().make('a', SIX).wasAway(13);
  assert.deepEqual(
    cluster.spread((peerId) => peerId !== 13),
    [],
  );
  cluster.propose({ kind: 'markPeer', peerId: 13, listens: null, leaving: 'removal' });
  assert.deepEqual(cluster.spread(), []);
  cluster.propose({ kind: 'markPeer', peerId: 13, listens: null, leaving: 'stays' });
  for (const shardId of [1, 2, 4, 5]) cluster.set('a', shardId, 13, 'Dead');
  assert.deepEqual(cluster.spread(), []);
});

test('what a peer with a full disk leads goes to those that have room, evenly, and comes back with its room', () => {
  const cluster = new Cluster().make('a', SIX).make('b', [[11, 12, 13], [12]]);
  const handOver = (full: readonly PeerId[]) => {
    const plans = planFull(cluster.state, everybody, (peerId) => full.includes(peerId), 10);
    return plans.map(({ term, collection, from, shardId, to, uid }) => {
      assert.equal(cluster.say({ kind: 'changeLeader', collection, uid, shardId, to, term }), 'done');
      return `${collection}/${shardId}: ${from} → ${to}`;
    });
  };
  assert.deepEqual(handOver([11, 12, 13]), [], 'nobody has room');
  assert.deepEqual(handOver([12]), ['a/3: 12 → 11', 'a/4: 12 → 13']);
  assert.equal(cluster.leads(), '11 4, 12 1, 13 3', 'the shard that 12 alone holds stays there');
  assert.deepEqual(handOver([12]), []);
  assert.notEqual(planLeadership(cluster.state, everybody, (peerId) => peerId === 12)?.to, 12);
  cluster.spread();
  assert.equal(cluster.leads('a'), '11 2, 12 2, 13 2');
});

test('of many leads on full disks some go at a time, and those that rest make room for others', () => {
  const cluster = new Cluster().make('a', SIX);
  const isFull = (peerId: PeerId) => peerId === 12;
  const planned = (max: number, resting: readonly number[]) =>
    planFull(cluster.state, everybody, isFull, max, (handOver) => resting.includes(handOver.shardId)).map(({ shardId }) => shardId);
  assert.deepEqual([planned(1, []), planned(1, [3]), planned(1, [3, 4]), planned(10, [])], [[3], [4], [], [3, 4]]);
});

test('a peer with a full disk is the heir only where nobody else could be', () => {
  const cluster = new Cluster().make('a', [[11, 12, 13]]);
  const leader = cluster.state.collections.get('a')?.shards.get(0)?.leader as PeerId;
  const others = [11, 12, 13].filter((peerId) => peerId !== leader);
  const heir = (full: readonly PeerId[]) =>
    heirOf(cluster.state, { collection: 'a', shardId: 0 }, everybody, (peerId) => full.includes(peerId))?.to;
  assert.equal(heir(others.slice(0, 1)), others[1]);
  assert.equal(heir(others), others[0]);
});

test('nothing is at rest while points are on their way, or are about to be', () => {
  const cluster = new Cluster().make('a', SIX);
  assert.equal(isAtRest(cluster.state), true);
  const transfer = { shardId: 0, from: 11, to: 13, toShardId: null };
  cluster.propose({ kind: 'startTransfer', collection: 'a', transfer, method: 'stream_records', sync: true });
  assert.equal(isAtRest(cluster.state), false);
  cluster.propose({ kind: 'abortTransfer', collection: 'a', transfer, reason: 'test', term: null });
  assert.equal(isAtRest(cluster.state), true);
  cluster.propose({ kind: 'markPeer', peerId: 13, listens: null, leaving: 'drain' });
  assert.equal(isAtRest(cluster.state), false);
  cluster.propose({ kind: 'markPeer', peerId: 13, listens: null, leaving: 'stays' });
  const uid = cluster.state.collections.get('a')?.uid ?? 0;
  cluster.propose({ kind: 'planMoves', moves: [{ collection: 'a', uid, shardId: 0, from: 11, to: 13 }] });
  assert.equal(isAtRest(cluster.state), false);
  cluster.propose({ kind: 'planMoves', moves: [] });
  cluster.propose({ kind: 'startResharding', collection: 'a', direction: 'up', key: null, placement: [[11]] });
  assert.equal(isAtRest(cluster.state), false);
});

test('whoever leads least is the heir, and a shard with one Active replica has none', () => {
  const cluster = new Cluster()
    .make('a', [[11, 12, 13]])
    .make('b', [[12], [12]])
    .make('c', [[11, 13]]);
  const leader = cluster.state.collections.get('a')?.shards.get(0)?.leader;
  assert.equal(leader, 13);
  assert.equal(heirOf(cluster.state, { collection: 'a', shardId: 0 }, everybody)?.to, 11);
  assert.equal(heirOf(cluster.state, { collection: 'a', shardId: 0 }, (peerId) => peerId === 12)?.to, 12);
  assert.equal(heirOf(cluster.state, { collection: 'b', shardId: 0 }, everybody), null);
  assert.equal(heirOf(cluster.state, { collection: 'z', shardId: 0 }, everybody), null);
});

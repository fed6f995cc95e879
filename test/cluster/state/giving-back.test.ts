import assert from 'node:assert/strict';
import { test } from 'node:test';
import { givenBack, leadsOfOthers, leadsToGiveBack } from '../../../cluster/state/giving-back.js';
import type { PeerId, ReplicaState } from '../../../protocols/model/cluster.js';
import { configOf, Log, PEERS, printLeaders, printShards } from '../samples.js';

const [A, B, C] = PEERS as [PeerId, PeerId, PeerId];
const SHARD = { collection: 'a', uid: 2, shardId: 0 };

/** One shard on A, B and C, all Active, led by A or whoever has its turn. */
class Cluster extends Log {
  constructor() {
    super();
    this.propose({ kind: 'createCollection', name: 'a', config: configOf({ shard_number: 1 }), placement: [[A, B, C]] });
    for (const peer of [A, B, C]) this.become(peer, 'Active');
  }

  become(peerId: PeerId, to: ReplicaState): string {
    return this.say({ kind: 'setReplicaStates', changes: [{ ...SHARD, peerId, from: null, to, term: null }] });
  }

  get leader(): PeerId {
    return this.state.collections.get('a')?.shards.get(0)?.leader as PeerId;
  }

  /** The peers that do not lead. */
  get others(): [PeerId, PeerId] {
    return [A, B, C].filter((peer) => peer !== this.leader) as [PeerId, PeerId];
  }

  givesBack(self: PeerId, before = leadsOfOthers(this.state, self)) {
    return leadsToGiveBack(this.state, self, before, [SHARD]);
  }
}

test('a lead that came to a peer without its files goes back to the leader before, in one step', () => {
  const log = new Cluster();
  const former = log.leader;
  const [lost, third] = log.others;
  log.become(third, 'Dead');
  const before = leadsOfOthers(log.state, lost);
  assert.deepEqual(log.givesBack(lost, before), []);
  log.become(former, 'Dead');
  assert.equal(log.leader, lost);
  const [lead] = log.givesBack(lost, before);
  assert.ok(lead !== undefined);
  assert.deepEqual([lead.from, lead.to], [lost, former]);
  assert.equal(log.say(givenBack(lead)), 'done');
  assert.equal(printLeaders(log.state, 'a'), `0: ${former} ${lead.term + 1}`);
  assert.deepEqual(log.givesBack(lost, before), []);
});

test('a lead does not go back while another replica is Active: the lost one becomes Dead as any other', () => {
  const log = new Cluster();
  const former = log.leader;
  const [one, other] = log.others;
  const before = new Map([one, other].map((peer) => [peer, leadsOfOthers(log.state, peer)]));
  log.become(former, 'Dead');
  assert.deepEqual(log.givesBack(log.leader, before.get(log.leader)), []);
});

test('a lead does not go back to a peer after which another one has led: that one may have acknowledged more', () => {
  const log = new Cluster();
  const former = log.leader;
  const before = new Map(log.others.map((peer) => [peer, leadsOfOthers(log.state, peer)]));
  log.become(former, 'Dead');
  const second = log.leader;
  log.become(second, 'Dead');
  const lost = log.leader;
  assert.notEqual(lost, second);
  assert.deepEqual(log.givesBack(lost, before.get(lost)), []);
});

test('a lead that an earlier process of the peer may have had does not go back', () => {
  const log = new Cluster();
  const former = log.leader;
  const [lost, third] = log.others;
  for (const peer of [third, former]) log.become(peer, 'Dead');
  assert.equal(log.leader, lost);
  assert.deepEqual(log.givesBack(lost), []);
});

test('a lead does not go back to a replica that was dropped and made again, which begins empty', () => {
  const log = new Cluster();
  const former = log.leader;
  const [lost, third] = log.others;
  log.become(third, 'Dead');
  const before = leadsOfOthers(log.state, lost);
  log.become(former, 'Dead');
  log.propose({ kind: 'dropReplica', collection: 'a', shardId: 0, peerId: former });
  assert.deepEqual(log.givesBack(lost, before), []);
  const transfer = { shardId: 0, from: lost, to: former, toShardId: null };
  log.propose({ kind: 'startTransfer', collection: 'a', transfer, method: 'stream_records', sync: true });
  assert.match(printShards(log.state, 'a'), new RegExp(`${former} Partial`));
  assert.deepEqual(log.givesBack(lost, before), []);
});

test('a lead that is given back after the shard got another term changes nothing', () => {
  const log = new Cluster();
  const former = log.leader;
  const [lost, third] = log.others;
  log.become(third, 'Dead');
  const before = leadsOfOthers(log.state, lost);
  log.become(former, 'Dead');
  const [lead] = log.givesBack(lost, before);
  assert.ok(lead !== undefined);
  log.say(givenBack(lead));
  // It was agreed on twice: the former leader has died since, and the lost replica was filled.
  log.propose({
    kind: 'startTransfer',
    collection: 'a',
    transfer: { shardId: 0, from: former, to: lost, toShardId: null },
    method: 'stream_records',
    sync: true,
  });
  log.propose({ kind: 'finishTransfer', collection: 'a', transfer: { shardId: 0, from: former, to: lost, toShardId: null }, term: null });
  log.become(former, 'Dead');
  assert.equal(log.leader, lost);
  const shown = printShards(log.state, 'a');
  assert.match(log.say(givenBack(lead)), /^conflict: shard 0 has term/);
  assert.equal(printShards(log.state, 'a'), shown);
});

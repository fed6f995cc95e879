import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClusterCommand } from '../../../cluster/state/commands.js';
import type { PeerId, ReplicaState } from '../../../protocols/model/cluster.js';
import { configOf, Log, PEERS, printLeaders, printShards } from '../samples.js';

const [A, B, C] = PEERS as [PeerId, PeerId, PeerId];

/** Collection `a`, of entry 2. */
function cluster(placement: readonly (readonly PeerId[])[]): { log: Log; set: ReturnType<typeof setter>; leaders: () => string } {
  const log = new Log();
  log.propose({ kind: 'createCollection', name: 'a', config: configOf({ shard_number: placement.length }), placement });
  return { log, set: setter(log), leaders: () => printLeaders(log.state, 'a').replaceAll('\n', ', ') };
}

function setter(log: Log): (shardId: number, peerId: PeerId, to: ReplicaState, term?: number | null) => string {
  return (shardId, peerId, to, term = null) =>
    log.say({ kind: 'setReplicaStates', changes: [{ collection: 'a', uid: 2, shardId, peerId, from: null, to, term }] });
}

const transfer = (from: PeerId, to: PeerId) => ({ shardId: 0, from, to, toShardId: null });

test('shards take turns among their peers, and the one whose turn it is leads once it is Active, whoever was sooner', () => {
  const { leaders, set } = cluster([
    [A, B],
    [C, A],
    [B, C],
    [A, B],
  ]);
  assert.equal(leaders(), '0: none 0, 1: none 0, 2: none 0, 3: none 0');
  for (const shardId of [0, 3]) set(shardId, A, 'Active');
  set(1, A, 'Active');
  assert.equal(leaders(), '0: 11 1, 1: none 0, 2: none 0, 3: none 0');
  for (const shardId of [0, 3]) set(shardId, B, 'Active');
  set(2, B, 'Active');
  set(1, C, 'Active');
  assert.equal(leaders(), '0: 11 1, 1: 13 1, 2: 12 1, 3: 12 1');
});

test('a turn that falls on a replica which dies, or only listens, before it is Active passes on', () => {
  const { leaders, set } = cluster([
    [A, B],
    [A, C],
  ]);
  set(0, B, 'Active');
  set(1, A, 'Active');
  assert.equal(leaders(), '0: none 0, 1: none 0');
  set(0, A, 'Dead');
  set(1, C, 'Listener');
  assert.equal(leaders(), '0: 12 1, 1: 11 1');
});

test('a leader that is not Active any more is followed by an Active one with the next term, or by none until there is one', () => {
  const { leaders, set } = cluster([[A, B]]);
  set(0, A, 'Active');
  set(0, B, 'Active');
  assert.equal(leaders(), '0: 11 1');
  set(0, A, 'Dead');
  assert.equal(leaders(), '0: 12 2');
  assert.match(set(0, A, 'Active'), /^wrongInput/);
  set(0, B, 'Dead');
  assert.equal(leaders(), '0: none 2');
  set(0, B, 'Active');
  assert.equal(leaders(), '0: 12 3');
});

test('a leading replica that moves is followed by what it has become', () => {
  const { leaders, log, set } = cluster([[A, C]]);
  set(0, A, 'Active');
  set(0, C, 'Active');
  assert.equal(leaders(), '0: 11 1');
  log.propose({ kind: 'startTransfer', collection: 'a', transfer: transfer(A, B), method: 'stream_records', sync: false });
  assert.equal(leaders(), '0: 11 1');
  assert.equal(log.say({ kind: 'finishTransfer', collection: 'a', transfer: transfer(A, B), term: 1 }), 'done');
  assert.equal(leaders(), '0: 12 2');
});

test('what was decided about a shard under another leader is refused, and changes nothing', () => {
  const { leaders, log, set } = cluster([[A, C]]);
  set(0, A, 'Active');
  set(0, C, 'Active');
  log.propose({ kind: 'startTransfer', collection: 'a', transfer: transfer(C, B), method: 'stream_records', sync: true });
  set(0, A, 'Dead', 1);
  assert.equal(leaders(), '0: 13 2');
  const late: ClusterCommand[] = [
    { kind: 'finishTransfer', collection: 'a', transfer: transfer(C, B), term: 1 },
    { kind: 'abortTransfer', collection: 'a', transfer: transfer(C, B), reason: 'test', term: 1 },
    { kind: 'restartTransfer', collection: 'a', transfer: transfer(C, B), method: 'snapshot', term: 1 },
  ];
  for (const operation of late) assert.equal(log.say(operation), 'conflict: shard 0 has term 2 by now, not 1');
  assert.equal(set(0, C, 'Dead', 1), 'conflict: shard 0 has term 2 by now, not 1');
  assert.equal(printShards(log.state, 'a').split('\n')[0], '0: 11 Dead, 13 Active, 12 Partial');
});

test('a leader gives the lead to another Active replica, with the next term, and once only', () => {
  const { leaders, log, set } = cluster([[A, B]]);
  const give = (to: PeerId, term: number, uid = 2) => log.say({ kind: 'changeLeader', collection: 'a', uid, shardId: 0, to, term });
  set(0, B, 'Active');
  assert.equal(give(B, 0), 'conflict: shard 0 has no leader now: retry');
  set(0, A, 'Active');
  assert.equal(leaders(), '0: 11 1');
  log.propose({ kind: 'startTransfer', collection: 'a', transfer: transfer(A, C), method: 'stream_records', sync: true });
  assert.equal(give(C, 1), 'conflict: the replica of shard 0 on peer 13 is Partial, and only an Active one can lead');
  assert.equal(give(A, 1), 'unchanged');
  assert.equal(give(B, 1, 3), 'badRequest: Shard 0 of a does not exist', 'another collection of this name');
  assert.equal(give(B, 1), 'done');
  assert.equal(leaders(), '0: 12 2');
  assert.equal(give(A, 1), 'conflict: shard 0 has term 2 by now, not 1');
  set(0, A, 'Dead');
  assert.equal(give(A, 2), 'conflict: the replica of shard 0 on peer 11 is Dead, and only an Active one can lead');
  assert.equal(leaders(), '0: 12 2');
});

test('a peer that leaves the cluster hands on what it led', () => {
  const { leaders, log, set } = cluster([
    [A, B],
    [A, C],
  ]);
  set(0, A, 'Active');
  set(0, B, 'Active');
  log.membership([B, C]);
  assert.equal(leaders(), '0: 12 2, 1: none 0');
  assert.equal(log.state.collections.get('a')?.shards.get(0)?.since.has(A), false);
});

test('each replica knows the entry that made it, and one that comes again is another one', () => {
  const { log, set } = cluster([[A, C]]);
  const since = () => [...(log.state.collections.get('a')?.shards.get(0)?.since ?? [])].join(' ');
  set(0, A, 'Active');
  set(0, C, 'Active');
  assert.equal(since(), '11,2 13,2');
  log.propose({ kind: 'dropReplica', collection: 'a', shardId: 0, peerId: C });
  assert.equal(since(), '11,2');
  log.propose({ kind: 'startTransfer', collection: 'a', transfer: transfer(A, C), method: 'stream_records', sync: true });
  assert.equal(since(), '11,2 13,6');
  set(0, C, 'Dead');
  assert.equal(since(), '11,2');
});

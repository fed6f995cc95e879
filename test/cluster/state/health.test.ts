import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deathsOf } from '../../../cluster/state/health.js';
import type { PeerId } from '../../../protocols/model/cluster.js';
import { configOf, Log, PEERS, printLeaders, printShards } from '../samples.js';

const [A, B, C] = PEERS as [PeerId, PeerId, PeerId];

/** Shards on A and B, on B alone, and on B and C, all Active but the last one of C. */
function cluster(): Log {
  const log = new Log();
  const placement = [[A, B], [B], [B, C]];
  log.propose({ kind: 'createCollection', name: 'a', config: configOf({ shard_number: 3 }), placement });
  const active = (shardId: number, peerId: PeerId) => {
    return { collection: 'a', uid: 2, shardId, peerId, from: null, to: 'Active' as const, term: null };
  };
  log.propose({ kind: 'setReplicaStates', changes: [active(0, A), active(0, B), active(1, B), active(2, B)] });
  return log;
}

function bury(log: Log, ...silent: PeerId[]): string {
  const changes = deathsOf(log.state, (_collection, _record, _shardId, peerId) => silent.includes(peerId), 100);
  return changes.length === 0 ? 'nobody' : log.say({ kind: 'setReplicaStates', changes });
}

test('replicas of a silent peer die where another one is Active, and those that alone have everything do not', () => {
  const log = cluster();
  assert.equal(bury(log, B), 'done');
  assert.equal(printShards(log.state, 'a'), '0: 11 Active, 12 Dead\n1: 12 Active\n2: 12 Active, 13 Initializing');
  assert.equal(bury(log, B), 'nobody');
  assert.equal(bury(log, B, A, C), 'nobody');
});

test('no replica dies for the sake of one whose peer may be away as well: it may be the one that comes back', () => {
  const log = cluster();
  const isLost = (_collection: string, _record: unknown, _shardId: number, peerId: PeerId) => peerId === B;
  assert.deepEqual(
    deathsOf(log.state, isLost, 100, (peer) => peer !== A),
    [],
  );
  assert.deepEqual(
    deathsOf(log.state, isLost, 100, (peer) => peer === A).map(({ peerId, shardId }) => [shardId, peerId]),
    [[0, B]],
  );
});

test('a replica that was never made dies too, so that it holds up neither writes nor the choice of a leader', () => {
  const log = cluster();
  assert.equal(printLeaders(log.state, 'a').split('\n')[2], '2: 12 1');
  assert.equal(bury(log, C), 'done');
  assert.equal(printShards(log.state, 'a').split('\n')[2], '2: 12 Active, 13 Dead');
});

test('a death that was decided under another leader is refused', () => {
  const log = cluster();
  const changes = deathsOf(log.state, (_collection, _record, shardId, peerId) => shardId === 0 && peerId === B, 100);
  log.propose({ kind: 'setReplicaStates', changes: changes.map((change) => ({ ...change, peerId: A, from: null })) });
  const { leader, term } = log.state.collections.get('a')?.shards.get(0) ?? {};
  assert.deepEqual([leader, term], [B, 2]);
  assert.equal(log.say({ kind: 'setReplicaStates', changes }), 'conflict: shard 0 has term 2 by now, not 1');
});

test('of two replicas that are found dead at the same time, by each other, the last Active one stays', () => {
  const log = new Log();
  log.propose({ kind: 'createCollection', name: 'a', config: configOf(), placement: [[A, B]] });
  const set = (peerId: PeerId, to: 'Active' | 'Dead' | 'Listener', term: number | null) =>
    log.say({ kind: 'setReplicaStates', changes: [{ collection: 'a', uid: 2, shardId: 0, peerId, from: null, to, term }] });
  for (const peerId of [A, B]) set(peerId, 'Active', null);
  assert.equal(printLeaders(log.state, 'a'), '0: 11 1');
  assert.equal(set(B, 'Dead', 1), 'done');
  const last = 'conflict: the replica of shard 0 of `a` on peer 11 is the last Active one of its shard';
  assert.equal(set(A, 'Dead', 1), last);
  assert.equal(set(A, 'Listener', null), last);
  assert.equal(printShards(log.state, 'a'), '0: 11 Active, 12 Dead');
});

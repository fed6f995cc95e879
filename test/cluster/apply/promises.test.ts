import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkCollections } from '../../../cluster/apply/promises.js';
import type { ClusterState, CollectionRecord, ShardRecord } from '../../../cluster/state/state.js';
import type { PeerId } from '../../../protocols/model/cluster.js';
import { configOf, Log, PEERS } from '../samples.js';

const [A, B] = PEERS as [PeerId, PeerId];

/** Collection `a` with one shard on A and B, which A leads in term 1. */
function agreed(): { state: ClusterState; record: CollectionRecord } {
  const log = new Log();
  log.propose({ kind: 'createCollection', name: 'a', config: configOf(), placement: [[A, B]] });
  const changes = [A, B].map((peerId) => ({ collection: 'a', uid: 2, shardId: 0, peerId, from: null, to: 'Active', term: null }) as const);
  log.propose({ kind: 'setReplicaStates', changes });
  return { state: log.state, record: log.state.collections.get('a') as CollectionRecord };
}

/** Checks the state whose shard is changed like this. */
function check(change: (shard: ShardRecord) => Partial<ShardRecord>): void {
  const { record, state } = agreed();
  const shard = record.shards.get(0) as ShardRecord;
  assert.equal(shard.term, 1);
  const next = { ...record, shards: new Map([[0, { ...shard, ...change(shard) }]]) };
  checkCollections(new Map([['a', record]]), { ...state, collections: new Map([['a', next]]) });
}

const other = (peerId: PeerId | null) => (peerId === A ? B : A);

test('a shard may get another Active leader in a later term', () => {
  check(({ leader, term }) => ({ leader: other(leader), term: term + 1 }));
});

test('two leaders of one term break the agreed state', () => {
  assert.throws(() => check(({ leader }) => ({ leader: other(leader) })), {
    id: 'State-S7',
    message: /shard 0 of a is led by peers \d+ and \d+ in term 1/,
  });
});

test('a leader whose replica is not Active breaks the agreed state', () => {
  assert.throws(() => check(({ leader, replicas }) => ({ replicas: new Map(replicas).set(leader as PeerId, 'Dead') })), {
    id: 'State-S7',
    message: /whose replica is Dead/,
  });
});

test('a term that goes back breaks the agreed state', () => {
  assert.throws(() => check(() => ({ term: 0 })), { id: 'State-S7', message: /goes back from term 1 to 0/ });
});

test('a replica on a peer that is no member breaks the agreed state', () => {
  assert.throws(() => check(({ replicas }) => ({ replicas: new Map(replicas).set(99, 'Active') })), {
    id: 'State-S4',
    message: /has a replica on peer 99, no member/,
  });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { applyEntry } from '../../../cluster/apply/apply.js';
import { encodeCommand } from '../../../cluster/state/command-codec.js';
import type { ClusterCommand, ProposedCommand } from '../../../cluster/state/commands.js';
import type { PeerId } from '../../../protocols/model/cluster.js';
import { CUSTOM, configOf, Log, PEERS, printShards } from '../samples.js';

const [A, B, C] = PEERS as [PeerId, PeerId, PeerId];

function create(name: string, placement: readonly (readonly PeerId[])[] = [[A]]): ClusterCommand {
  return { kind: 'createCollection', name, config: configOf({ shard_number: placement.length }), placement };
}

function activate(log: Log, collection: string, ...peers: PeerId[]): string {
  const record = log.state.collections.get(collection);
  const changes = [...(record?.shards ?? [])].flatMap(([shardId, { replicas }]) =>
    peers
      .filter((peer) => replicas.has(peer))
      .map((peerId) => ({ collection, uid: record?.uid ?? 0, shardId, peerId, from: null, to: 'Active' as const, term: null })),
  );
  return log.say({ kind: 'setReplicaStates', changes });
}

const transfer = (to: PeerId, from = A) => ({ shardId: 0, from, to, toShardId: null });

test('a new collection has Initializing replicas where they were placed, and its entry names it', () => {
  const log = new Log();
  assert.equal(log.say(create('a', [[A, B], [C]])), 'done');
  assert.equal(printShards(log.state, 'a'), '0: 11 Initializing, 12 Initializing\n1: 13 Initializing');
  const record = log.state.collections.get('a');
  assert.deepEqual([record?.uid, record?.revision, record?.nextShardId], [2, 2, 2]);
});

test('names are refused as a single node refuses them', () => {
  const log = new Log();
  log.propose(create('a'));
  assert.equal(log.say(create('a')), 'conflict: Collection `a` already exists!');
  assert.equal(log.say({ kind: 'changeAliases', actions: [{ kind: 'create', alias: 'x', collection: 'a' }] }), 'done');
  assert.equal(log.say(create('x')), "wrongInput: Can't create collection with name x. Alias with the same name already exists");
  const point = (alias: string, collection: string) => log.say({ kind: 'changeAliases', actions: [{ kind: 'create', alias, collection }] });
  assert.equal(point('y', 'x'), "notFound: Collection `x` doesn't exist!");
  assert.equal(point('a', 'a'), 'conflict: Collection `a` already exists!');
  assert.equal(point('x', 'a'), 'unchanged');
  assert.equal(log.say({ kind: 'changeAliases', actions: [{ kind: 'rename', from: 'y', to: 'z' }] }), 'notFound: Alias y does not exists!');
});

test('a placement names each member at most once per shard', () => {
  const log = new Log();
  assert.match(log.say(create('a', [[A], [99]])), /^unavailable: peer 99, chosen for a replica, is not part of the cluster any more/);
  assert.equal(log.say(create('a', [[A, A]])), 'wrongInput: a shard can have one replica on each peer');
  assert.equal(log.say(create('a', [[]])), 'wrongInput: a shard needs at least one replica');
  assert.equal(log.say(create('a', [])), 'wrongInput: the collection would have no shard: set `shard_number` to 1 or more');
  const custom: ClusterCommand = { kind: 'createCollection', name: 'a', config: CUSTOM, placement: [[A]] };
  assert.equal(
    log.say(custom),
    'wrongInput: a collection with custom sharding is created without shards: create its shard keys afterwards',
  );
  assert.equal(log.state.collections.size, 0);
});

test('a deleted collection takes its aliases along, and one that is not there is none', () => {
  const log = new Log();
  log.propose(create('a'));
  log.propose(create('b'));
  log.propose({
    kind: 'changeAliases',
    actions: [
      { kind: 'create', alias: 'x', collection: 'a' },
      { kind: 'create', alias: 'y', collection: 'b' },
    ],
  });
  assert.equal(log.say({ kind: 'deleteCollection', name: 'x' }), 'unchanged');
  assert.equal(log.say({ kind: 'deleteCollection', name: 'a' }), 'done');
  assert.equal(log.say({ kind: 'deleteCollection', name: 'a' }), 'unchanged');
  assert.deepEqual([...log.state.aliases], [['y', 'b']]);
});

test('a configuration that was made from an older revision is refused', () => {
  const log = new Log();
  log.propose(create('a'));
  const update = (basedOn: number, factor: number): ClusterCommand => {
    return { kind: 'updateCollection', name: 'a', config: configOf({ replication_factor: factor }), basedOn };
  };
  assert.equal(log.say(update(2, 2)), 'done');
  assert.equal(log.say(update(2, 3)), 'conflict: Collection `a` was changed at the same time, try again');
  assert.equal(log.say(update(3, 2)), 'unchanged');
  assert.equal(log.state.collections.get('a')?.revision, 3);
  assert.equal(log.say({ kind: 'updateCollection', name: 'b', config: CUSTOM, basedOn: 1 }), "notFound: Collection `b` doesn't exist!");
});

test('shard keys make shards with ids of their own and take them along', () => {
  const log = new Log();
  log.propose({ kind: 'createCollection', name: 'a', config: CUSTOM, placement: [] });
  log.propose(create('b'));
  const key = (kind: 'createShardKey' | 'dropShardKey', collection: string, name: string | number): string => {
    if (kind === 'dropShardKey') return log.say({ kind, collection, key: name });
    return log.say({ kind, collection, key: name, placement: [[A], [B]], initialState: null, closed: false });
  };
  assert.equal(key('createShardKey', 'a', '7'), 'done');
  assert.equal(key('createShardKey', 'a', 7), 'done');
  assert.equal(key('createShardKey', 'a', 7), 'badRequest: Sharding key 7 already exists for collection a');
  assert.equal(key('dropShardKey', 'a', '7'), 'done');
  assert.equal(key('dropShardKey', 'a', '7'), 'badRequest: Sharding key "7" does not exist for collection a');
  assert.equal(key('createShardKey', 'a', '7'), 'done');
  assert.match(printShards(log.state, 'a'), /^2 7: 11 Init.*\n3 7: 12 Init.*\n4 7: 11 Init.*\n5 7: 12 Init.*$/);
  assert.match(key('createShardKey', 'b', 'x'), /^badRequest: Shard Key cannot be created with Auto sharding method/);
});

test('replicas of a new shard key start as asked, in states that need no transfer', () => {
  const log = new Log();
  log.propose({ kind: 'createCollection', name: 'a', config: CUSTOM, placement: [] });
  const start = (key: string, initialState: 'Active' | 'Recovery') =>
    log.say({ kind: 'createShardKey', collection: 'a', key, placement: [[A]], initialState, closed: false });
  assert.equal(start('x', 'Active'), 'done');
  assert.match(start('y', 'Recovery'), /^wrongInput: replicas of a new shard key cannot be Recovery/);
  assert.equal(printShards(log.state, 'a'), '0 x: 11 Active');
});

test('replica states change as the table has it, once per proposal, all of it or none', () => {
  const log = new Log();
  log.propose(create('a', [[A, B], [C]]));
  const set = (peerId: PeerId, from: 'Initializing' | 'Dead' | null, to: 'Active' | 'Dead' | 'Initializing') =>
    ({ collection: 'a', uid: 2, shardId: peerId === C ? 1 : 0, peerId, from, to, term: null }) as const;
  const all = (...changes: ReturnType<typeof set>[]) => log.say({ kind: 'setReplicaStates', changes });
  assert.equal(all(set(A, 'Initializing', 'Active'), set(C, 'Initializing', 'Active')), 'done');
  assert.equal(all(set(A, 'Initializing', 'Active')), 'unchanged');
  assert.equal(
    all(set(B, null, 'Dead'), set(A, 'Initializing', 'Dead')),
    'conflict: the replica of shard 0 of `a` on peer 11 is Active, not Initializing',
  );
  assert.equal(
    all(set(A, null, 'Initializing')),
    'wrongInput: the replica of shard 0 of `a` on peer 11 is Active and cannot become Initializing',
  );
  // Two moves in one would be one that the table does not have.
  assert.match(
    all(set(B, null, 'Active'), set(B, null, 'Dead')),
    /^wrongInput: the request changes the state of replica .* twice: name each replica once$/,
  );
  assert.equal(printShards(log.state, 'a'), '0: 11 Active, 12 Initializing\n1: 13 Active');
});

test('a Dead replica becomes Active without a transfer only where no other replica is Active', () => {
  const log = new Log();
  log.propose(create('a', [[A, B]]));
  activate(log, 'a', A, B);
  const set = (peerId: PeerId, to: 'Active' | 'Dead') =>
    log.say({ kind: 'setReplicaStates', changes: [{ collection: 'a', uid: 2, shardId: 0, peerId, from: null, to, term: null }] });
  assert.equal(set(B, 'Dead'), 'done');
  assert.match(set(B, 'Active'), /^wrongInput: .* is Dead and cannot become Active$/);
  assert.equal(set(A, 'Dead'), 'done');
  assert.equal(set(B, 'Active'), 'done');
});

test('changes for a collection that is another one by now are left out', () => {
  const log = new Log();
  log.propose(create('a'));
  log.propose({ kind: 'deleteCollection', name: 'a' });
  log.propose(create('a'));
  const changes = [{ collection: 'a', uid: 2, shardId: 0, peerId: A, from: null, to: 'Active' as const, term: null }];
  assert.equal(log.say({ kind: 'setReplicaStates', changes }), 'unchanged');
  assert.equal(printShards(log.state, 'a'), '0: 11 Initializing');
});

test('the last Active replica is not dropped', () => {
  const log = new Log();
  log.propose(create('a', [[A, B]]));
  const drop = (peerId: PeerId, shardId = 0) => log.say({ kind: 'dropReplica', collection: 'a', shardId, peerId });
  assert.match(drop(A), /^badRequest: Shard 0 must have at least one active replica after removing 11/);
  activate(log, 'a', A, B);
  assert.equal(drop(A), 'done');
  assert.match(drop(B), /^badRequest/);
  assert.equal(drop(99), 'badRequest: Peer 99 does not exist');
  assert.equal(drop(A), 'notFound: Shard 0 has no replica on peer 11');
  assert.equal(drop(B, 4), 'badRequest: Shard 4 of a does not exist');
});

test('a transfer makes its target, which becomes Active in the end, and a moved source goes', () => {
  const log = new Log();
  log.propose(create('a'));
  const begin = (sync: boolean): ClusterCommand => {
    return { kind: 'startTransfer', collection: 'a', transfer: transfer(B), method: 'stream_records', sync };
  };
  assert.match(log.say(begin(true)), /^wrongInput: .* is Initializing, only an Active one can be transferred$/);
  activate(log, 'a', A);
  assert.equal(log.say(begin(false)), 'done');
  assert.equal(printShards(log.state, 'a'), '0: 11 Active, 12 Partial\n0: 11 → 12 by stream_records');
  assert.equal(log.say(begin(true)), 'conflict: shard 0 is being transferred to peer 12 already');
  assert.equal(log.say({ kind: 'restartTransfer', collection: 'a', transfer: transfer(B), method: 'snapshot', term: null }), 'done');
  assert.equal(printShards(log.state, 'a'), '0: 11 Active, 12 PartialSnapshot\n0: 11 → 12 by snapshot');
  assert.equal(log.say({ kind: 'finishTransfer', collection: 'a', transfer: transfer(B), term: null }), 'done');
  assert.equal(printShards(log.state, 'a'), '0: 12 Active');
  const again: ClusterCommand = { kind: 'finishTransfer', collection: 'a', transfer: transfer(B), term: null };
  assert.equal(log.say(again), 'notFound: Shard transfer 11 -> 12 for collection a:0 does not exist');
});

test('an aborted transfer leaves no target that it made, and a Dead one that was there before', () => {
  const log = new Log();
  log.propose(create('a', [[A, B]]));
  activate(log, 'a', A, B);
  log.propose({
    kind: 'setReplicaStates',
    changes: [{ collection: 'a', uid: 2, shardId: 0, peerId: B, from: null, to: 'Dead', term: null }],
  });
  const begin = (to: PeerId, method: 'stream_records' | 'wal_delta') =>
    log.say({ kind: 'startTransfer', collection: 'a', transfer: transfer(to), method, sync: true });
  assert.equal(begin(C, 'wal_delta'), 'wrongInput: `wal_delta` needs a replica of shard 0 on peer 13, and there is none');
  assert.equal(begin(B, 'wal_delta'), 'done');
  assert.equal(begin(C, 'stream_records'), 'done');
  assert.equal(printShards(log.state, 'a').split('\n')[0], '0: 11 Active, 12 Recovery, 13 Partial');
  for (const to of [B, C]) log.propose({ kind: 'abortTransfer', collection: 'a', transfer: transfer(to), reason: 'test', term: null });
  assert.equal(printShards(log.state, 'a'), '0: 11 Active, 12 Dead');
});

test('transfers end with their source or their target', () => {
  const log = new Log();
  log.propose(create('a', [[A, C]]));
  activate(log, 'a', A, C);
  const begin = () => log.say({ kind: 'startTransfer', collection: 'a', transfer: transfer(B), method: 'stream_records', sync: true });
  const set = (peerId: PeerId, to: 'Dead') =>
    log.say({ kind: 'setReplicaStates', changes: [{ collection: 'a', uid: 2, shardId: 0, peerId, from: null, to, term: null }] });
  begin();
  set(A, 'Dead');
  assert.equal(printShards(log.state, 'a'), '0: 11 Dead, 13 Active');
  log.propose({ kind: 'startTransfer', collection: 'a', transfer: transfer(B, C), method: 'stream_records', sync: true });
  set(B, 'Dead');
  assert.equal(printShards(log.state, 'a'), '0: 11 Dead, 13 Active');
});

test('transfers between shards are refused in this release', () => {
  const log = new Log();
  log.propose(create('a'));
  activate(log, 'a', A);
  const moved = { ...transfer(B), toShardId: 1 };
  assert.match(
    log.say({ kind: 'startTransfer', collection: 'a', transfer: moved, method: 'stream_records', sync: true }),
    /^unsupported: /,
  );
});

test('a peer that leaves takes its replicas, transfers and session with it', () => {
  const log = new Log();
  log.propose(create('a', [[A, B], [B]]));
  activate(log, 'a', A, B);
  log.propose({ kind: 'startTransfer', collection: 'a', transfer: transfer(C, B), method: 'stream_records', sync: true });
  log.proposed({ origin: B, session: 1, sequence: 1, doneBelow: 1, command: { kind: 'noop' } });
  log.membership([A, C]);
  assert.equal(printShards(log.state, 'a'), '0: 11 Active\n1: ');
  assert.deepEqual([...log.state.sessions.keys()], [A]);
  const late = log.proposed({ origin: B, session: 1, sequence: 2, doneBelow: 1, command: create('b') });
  assert.deepEqual(late?.outcome, {
    kind: 'refused',
    error: { code: 'unavailable', detail: 'peer 12 is not part of the cluster', outcome: 'unknown' },
  });
});

test('a proposal that is in the log twice is carried out once (State-S2)', () => {
  const log = new Log();
  const proposal: ProposedCommand = { origin: A, session: 1, sequence: 1, doneBelow: 1, command: create('a') };
  const first = log.proposed(proposal);
  log.proposed({ ...proposal, sequence: 2, command: { kind: 'deleteCollection', name: 'a' } });
  assert.deepEqual(log.proposed(proposal), first);
  assert.equal(log.state.collections.size, 0);
});

test('outcomes are forgotten once their origin has them, and what came before a new start is not carried out', () => {
  const log = new Log();
  const propose = (session: number, sequence: number, doneBelow: number, name: string) =>
    log.proposed({ origin: A, session, sequence, doneBelow, command: create(name) })?.outcome.kind ?? null;
  assert.equal(propose(1, 1, 1, 'a'), 'done');
  assert.equal(propose(1, 2, 2, 'b'), 'done');
  assert.deepEqual([...(log.state.sessions.get(A)?.outcomes.keys() ?? [])], [2]);
  assert.equal(propose(1, 1, 1, 'c'), null);
  assert.equal(propose(2, 1, 1, 'd'), 'done');
  assert.equal(propose(1, 3, 2, 'e'), 'refused');
  assert.deepEqual([...log.state.collections.keys()], ['a', 'b', 'd']);
});

test('an entry is applied once, and none may be missing before it (State-S1)', () => {
  const log = new Log();
  const proposal: ProposedCommand = { origin: A, session: 1, sequence: 1, doneBelow: 1, command: create('a') };
  const entry = { index: 2, term: 1, payload: { kind: 'operation' as const, bytes: encodeCommand(proposal) } };
  const once = applyEntry(log.state, entry);
  const twice = applyEntry(once.state, entry);
  assert.equal(twice.state, once.state);
  assert.equal(twice.outcome, null);
  assert.throws(() => applyEntry(log.state, { ...entry, index: 3 }), /entry 3 cannot follow entry 1/);
});

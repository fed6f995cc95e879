import assert from 'node:assert/strict';
import { test } from 'node:test';
import { USAGE_UNKNOWN } from '../../../actors/context/node-usage.js';
import { type CollectionEntry, NodeView, showFailed } from '../../../actors/context/view.js';
import { Names } from '../../../actors/requests/collection-names.js';
import { CollectionLimits, IndexChanges } from '../../../actors/requests/limits/collection-limits.js';
import { OwnReadsChanges, type OwnReadsParts } from '../../../actors/requests/own-reads.js';
import { Assignments } from '../../../actors/shard-log/assignments.js';
import { startReplicationActor } from '../../../actors/shard-log/step.js';
import { ReplicationView } from '../../../actors/shard-log/view.js';
import type { CollectionRecord } from '../../../cluster/state/state.js';
import { REPLICA_STATES } from '../../../protocols/model/cluster.js';
import type { StrictModeConfig } from '../../../protocols/model/collection.js';
import { KnownReads } from '../../../storage/threads/known-reads.js';
import type { OwnReads, PeerCard, ReplicaStats } from '../../../storage/threads/messages.js';
import { sampleConfig, sampleStats } from '../samples.js';
import { Peers, SELF, UID } from './support.js';

function entryOf(name: string, states: readonly ('Serving' | 'Opening')[], change: Partial<CollectionEntry> = {}): CollectionEntry {
  const config = sampleConfig();
  const entry: CollectionEntry = {
    name,
    folder: name,
    actor: null as never,
    config: { ...config, params: { ...config.params, shard_number: states.length } },
    belonging: null,
    error: null,
    replicas: new Map(states.map((state, at) => [at, { key: `${name}/${at}`, actor: null as never, state, reason: null }])),
    replications: new Map(),
    optimizers: new Map(),
    ...change,
  };
  return entry;
}

/** Limits by replicas with these indexes; undefined: no replica is open. */
function limitsOf(fields?: ReplicaStats['fields']): CollectionLimits {
  const stats = () => (fields === undefined ? null : { ...sampleStats(), fields });
  const clock = { nowMs: () => 0, dateMs: () => 0 };
  return new CollectionLimits({ engine: { stats }, usage: USAGE_UNKNOWN, figures: null, clock });
}

/** All that readers may read. */
function ownReads(names: Names, parts: OwnReadsParts): OwnReads {
  const known = new KnownReads();
  known.apply(new OwnReadsChanges(names, parts).take());
  return known;
}

function readsOf(view: NodeView): Record<string, readonly string[]> {
  const { collections, peers } = ownReads(new Names(view, () => null), { assignments: new Assignments(true), cardOf, limits: limitsOf() });
  assert.equal(peers.size, 0);
  return Object.fromEntries(
    [...collections].map(([name, own]) => {
      assert.ok(own.kind === 'whole' && own.served === null);
      return [name, own.replicas];
    }),
  );
}

/** There is a connection with peer 2 only. */
function cardOf(peer: number): PeerCard | null {
  return peer === 2 ? { target: 'two:1', session: 5, greeting: Buffer.from('hello'), entrance: { tls: null, keys: [] } } : null;
}

/** This node's view of a cluster's collection, whose two shards are Active on this node and on another one, and a count of changes. */
function clusterNode() {
  const peers = new Peers();
  peers.agree({ 0: { leader: 1, 1: 'Active', 2: 'Active' }, 1: { leader: 2, 1: 'Active', 2: 'Active' } });
  const view = new NodeView();
  const resets = new Map([0, 1].map((shardId) => [shardId, new ReplicationView()]));
  const belonging = { clusterId: 'cluster', peerId: SELF, uid: UID, shards: [0, 1], since: [1, 1], revision: 1, index: 1 };
  const entry = entryOf('c', ['Serving', 'Serving'], { belonging: belonging as unknown as CollectionEntry['belonging'] });
  for (const [shardId, shown] of resets)
    entry.replications.set(
      shardId,
      shown.entry(
        null as never,
        () => false,
        () => entry.onChange?.(),
      ),
    );
  view.list(entry);
  const names = new Names(view, () => (peers.assignments.agreed === null ? null : { state: peers.assignments.agreed, peerId: SELF }));
  const told = { changes: 0 };
  const changed = () => {
    told.changes++;
  };
  view.watch(changed);
  peers.assignments.watchReads(changed);
  const record = peers.assignments.agreed?.collections.get('c') as CollectionRecord;
  const found = () => ownReads(names, { assignments: peers.assignments, cardOf, limits: limitsOf() });
  const reads = () => Object.fromEntries([...found().collections].filter(([, { kind }]) => kind === 'whole'));
  const ways = () => {
    const own = found().collections.get('c');
    return own?.kind === 'spread' ? own.ways.map((way) => way.map(({ isOwn, peer, shards }) => [peer, isOwn, ...shards])) : null;
  };
  return { entry, found, names, peers, reads, record, resets, told, ways };
}

const HERE = new Map([
  [0, 'c/0'],
  [1, 'c/1'],
]);
const SERVED = { name: 'c', uid: UID, shardMapVersion: UID, self: SELF, replicas: HERE };
const WHOLE = { c: { kind: 'whole', replicas: ['c/0', 'c/1'], served: SERVED } };

test('readers may read collections of which every shard serves, by name and alias', () => {
  const view = new NodeView();
  view.list(entryOf('whole', ['Serving']));
  view.list(entryOf('opening', ['Opening']));
  view.setAliases(
    new Map([
      ['alias', 'whole'],
      ['of-opening', 'opening'],
      ['opening', 'whole'],
    ]),
  );
  assert.deepEqual(readsOf(view), { whole: ['whole/0'], alias: ['whole/0'] });
});

test('readers may not read collections that have no configuration, or were made in a cluster', () => {
  const view = new NodeView();
  view.list(entryOf('damaged', ['Serving'], { config: null }));
  const belonging = { clusterId: 'c', peerId: 1, uid: 1, shards: [0], since: [1] } as unknown as CollectionEntry['belonging'];
  view.list(entryOf('clustered', ['Serving'], { belonging }));
  view.list(entryOf('plain', ['Serving']));
  assert.deepEqual(Object.keys(readsOf(view)), ['plain']);
});

test('readers get the limits of strict mode with a collection, its bucket, and its indexes where a limit asks for them', () => {
  const view = new NodeView();
  const fields = new Map([['a', { type: 'integer' } as const]]);
  const limitsWith = (known: CollectionLimits) => {
    const { collections } = ownReads(new Names(view, () => null), { assignments: new Assignments(true), cardOf, limits: known });
    return collections.get('c')?.limits ?? null;
  };
  const strictly = (strict_mode_config: StrictModeConfig) => {
    view.list(entryOf('c', ['Serving'], { config: { ...sampleConfig(), strict_mode_config } }));
    return limitsWith(limitsOf(fields));
  };
  assert.equal(strictly({ enabled: false, max_query_limit: 5, read_rate_limit: 5 }), null);
  const strict = { enabled: true, max_query_limit: 5 };
  assert.deepEqual(strictly(strict), { request: { strict, indexes: null }, tokens: { read: null, write: null } });
  const tokens = strictly({ enabled: true, read_rate_limit: 7, write_rate_limit: 8 })?.tokens;
  assert.deepEqual([tokens?.read?.perMinute, tokens?.write?.perMinute], [7, 8]);
  const limited = limitsOf(fields);
  assert.equal(limitsWith(limited)?.tokens.read, limitsWith(limited)?.tokens.read, 'the bucket stays the same');
  assert.deepEqual(strictly({ enabled: true, unindexed_filtering_retrieve: false })?.request.indexes, fields);
  const { collections } = ownReads(new Names(view, () => null), { assignments: new Assignments(true), cardOf, limits: limitsOf() });
  assert.equal(collections.size, 0, 'without a replica nobody knows the indexes');
});

test('a change of the indexes of a collection is told where its requests are judged by them', () => {
  const told: string[] = [];
  const indexes = new IndexChanges(
    (collection) => collection !== 'free',
    (collection) => told.push(collection),
  );
  const fields = new Map([['a', { type: 'integer' } as const]]);
  for (const key of ['free/0', 'c/d/0']) {
    indexes.look({ key, fields: new Map() });
    indexes.look({ key, fields });
    indexes.look({ key, fields: new Map(fields) });
    indexes.look({ key, fields: new Map([['a', { type: 'keyword' } as const]]) });
  }
  assert.deepEqual(told, ['c/d', 'c/d', 'c/d']);
});

test('in a cluster, readers may read a collection of which this node has an Active replica of each shard', () => {
  const { peers, reads } = clusterNode();
  assert.deepEqual(reads(), WHOLE);
  for (const state of REPLICA_STATES.filter((other) => other !== 'Active')) {
    peers.agree({ 0: { leader: 2, 1: 'Active', 2: 'Active' }, 1: { leader: 2, 1: state, 2: 'Active' } });
    assert.deepEqual(reads(), {}, state);
  }
  peers.agree({ 0: { leader: 2, 1: 'Active', 2: 'Active' }, 1: { leader: 2, 2: 'Active' } });
  assert.deepEqual(reads(), {}, 'on another node');
  peers.agree({ 0: { leader: 2, 1: 'Active', 2: 'Dead' }, 1: { leader: 1, 1: 'Active' } });
  assert.deepEqual(reads(), WHOLE);
});

test('in a cluster, readers may ask peers with a connection for Active replicas of the shards that are not here', () => {
  const { found, peers, record, ways } = clusterNode();
  peers.agree({ 0: { leader: 1, 1: 'Active', 2: 'Active' }, 1: { leader: 2, 2: 'Active', 3: 'Active' }, 2: { leader: 2, 2: 'Active' } });
  const own = found().collections.get('c');
  assert.ok(own?.kind === 'spread');
  assert.deepEqual([...own.replicas], [[0, 'c/0']]);
  assert.deepEqual([own.name, own.place.uid, own.place.shards.map(({ id }) => id), own.hasOthers], ['c', UID, [0, 1, 2], true]);
  for (const way of ways() ?? [])
    assert.deepEqual(way, [
      [SELF, true, 0],
      [2, false, 1, 2],
    ]);
  assert.deepEqual([...found().peers.keys()], [2]);

  for (const state of REPLICA_STATES.filter((other) => other !== 'Active')) {
    peers.agree({ 0: { leader: 1, 1: 'Active' }, 1: { leader: 2, 2: state } });
    assert.equal(ways(), null, state);
  }
  peers.agree({ 0: { leader: 1, 1: 'Active' }, 1: { leader: 3, 3: 'Active' } });
  assert.equal(ways(), null, 'no connection with the peer');
  peers.agree({ 0: { leader: 1, 1: 'Active' }, 1: { leader: 2, 2: 'Active' } });
  assert.equal(ways()?.length, 1);
  const wide = peers.assignments.agreed?.collections.get('c') as CollectionRecord;
  const params = { ...wide.config.params, read_fan_out_factor: 1 };
  peers.show({ c: { ...wide, config: { ...wide.config, params } } });
  assert.equal(ways(), null, 'several peers are asked at once');
  peers.show({ c: record });
});

test('in a cluster, several peers that have the same shards are asked in turn', () => {
  const { names, peers } = clusterNode();
  peers.agree({ 0: { leader: 2, 2: 'Active', 3: 'Active' }, 1: { leader: 2, 2: 'Active', 3: 'Active' } });
  const everywhere = (peer: number) => ({
    target: `${peer}:1`,
    session: peer,
    greeting: Buffer.from('hello'),
    entrance: { tls: null, keys: [] },
  });
  const { collections, peers: asked } = ownReads(names, { assignments: peers.assignments, cardOf: everywhere, limits: limitsOf() });
  const own = collections.get('c');
  assert.ok(own?.kind === 'spread');
  const first = own.ways.map(([share]) => share?.peer);
  assert.deepEqual([first.filter((peer) => peer === 2).length, first.filter((peer) => peer === 3).length], [6, 6]);
  assert.deepEqual([...asked.keys()].sort(), [2, 3]);
});

test('in a cluster, readers may read no collection while points move between shards, or this node may lack agreements', () => {
  const { peers, reads, record } = clusterNode();
  const resharding = { direction: 'down', shardId: 1, peerId: SELF, key: null, stage: 'cleaning', startedAt: 1, done: new Set() };
  peers.show({ c: { ...record, resharding: resharding as unknown as CollectionRecord['resharding'] } });
  assert.deepEqual(reads(), {});
  peers.show({ c: { ...record, uid: UID + 1 } });
  assert.deepEqual(reads(), {}, 'a later collection of the name');
  peers.serves = false;
  peers.show({ c: record });
  assert.deepEqual(reads(), {});
});

test('a collection that a node had before its cluster is not read before the node has heard of the cluster', () => {
  const view = new NodeView();
  view.list(entryOf('c', ['Serving']));
  assert.equal(ownReads(new Names(view, () => null), { assignments: new Assignments(), cardOf, limits: limitsOf() }).collections.size, 0);
});

test('each agreement about shards, a start to serve, and a reset of a log is told at once', () => {
  const { entry, peers, record, resets, told } = clusterNode();
  peers.agree({ 0: { leader: 1, 1: 'Active', 2: 'Active' }, 1: { leader: 2, 1: 'Dead', 2: 'Active' } });
  assert.equal(told.changes, 1);
  peers.serves = false;
  peers.show({ c: record });
  assert.equal(told.changes, 2);
  const before = startReplicationActor(0);
  const shown = resets.get(1) as ReplicationView;
  shown.shown(before);
  assert.equal(told.changes, 2);
  shown.shown({ ...before, state: { ...before.state, core: { ...before.state.core, resets: 1 } } });
  assert.equal(told.changes, 3);
  assert.equal(entry.replications.get(1)?.resets(), 1);
});

test('each change of a collection, a replica or an alias is told at once', () => {
  const view = new NodeView();
  let changes = 0;
  const told: (string | null)[] = [];
  view.watch((collection) => {
    changes++;
    told.push(collection);
  });
  const entry = entryOf('c', ['Serving']);
  view.list(entry);
  assert.equal(changes, 1);
  showFailed(entry, 0, { code: 'storage', detail: 'the disk is gone' });
  assert.equal(changes, 2);
  assert.deepEqual(readsOf(view), {});
  view.setAliases(new Map([['alias', 'c']]));
  view.unlist('c');
  assert.equal(changes, 4);
  assert.deepEqual(told, ['c', 'c', null, 'c']);
});

test('readers hear of what has changed only, and know then what is so', () => {
  const view = new NodeView();
  const names = new Names(view, () => null);
  const parts = { assignments: new Assignments(true), cardOf, limits: limitsOf() };
  const changes = new OwnReadsChanges(names, parts);
  view.watch((collection) => changes.note(collection));
  const known = new KnownReads();
  const take = () => {
    const change = changes.take();
    known.apply(change);
    assert.deepEqual(
      [...known.collections].sort(([one], [other]) => (one < other ? -1 : 1)),
      [...ownReads(names, parts).collections].sort(([one], [other]) => (one < other ? -1 : 1)),
    );
    return [change.isWhole, ...[...change.collections].map(([name, own]) => `${name} ${own === null ? 'no' : 'yes'}`)];
  };
  for (const name of ['a', 'b', 'c']) view.list(entryOf(name, ['Serving']));
  assert.deepEqual(take(), [true, 'a yes', 'b yes', 'c yes']);
  assert.deepEqual(take(), [false]);

  showFailed(view.find('b') as CollectionEntry, 0, { code: 'storage', detail: 'the disk is gone' });
  assert.deepEqual(take(), [false, 'b no']);
  view.setAliases(
    new Map([
      ['alias', 'a'],
      ['c', 'a'],
    ]),
  );
  assert.deepEqual(take(), [true, 'a yes', 'b no', 'c yes', 'alias yes']);
  // The name of a collection that is gone is an alias from now on.
  view.unlist('c');
  assert.deepEqual(take(), [false, 'c yes']);
  assert.deepEqual(known.collections.get('c'), { kind: 'whole', replicas: ['a/0'], served: null });
  view.unlist('a');
  view.list(entryOf('d', ['Serving']));
  assert.deepEqual(take(), [false, 'a no', 'd yes', 'alias no', 'c no']);
  assert.deepEqual([...known.collections.keys()], ['d']);
});

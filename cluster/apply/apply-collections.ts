/** Commands on collections, their aliases and their shard keys. */

import type { ErrorFacts } from '../../protocols/errors.js';
import { stringifyJson } from '../../protocols/json.js';
import type { PeerId, ReplicaState, ShardKey } from '../../protocols/model/cluster.js';
import type { CommandOf, Placement } from '../state/commands.js';
import { FIRST_STATES } from '../state/replica-state.js';
import type { ClusterState, CollectionRecord, ShardRecord } from '../state/state.js';
import { aliasExists, aliasesAfter, collectionExists, collectionMissing } from './aliases.js';
import { badRequest, type Change, done, onCollection, refused, unchanged, withCollection, withCollections, wrongInput } from './change.js';
import { shardsOfKey } from './migration.js';

export function createCollection(state: ClusterState, { config, name, placement }: CommandOf<'createCollection'>): Change {
  if (state.collections.has(name)) return refused(state, collectionExists(name));
  if (state.aliases.has(name)) return refused(state, aliasExists(name));
  const misplaced = refusedPlacement(state, placement);
  if (misplaced !== null) return refused(state, misplaced);
  const custom = config.params.sharding_method === 'custom';
  if (custom && placement.length > 0)
    return refused(state, wrongInput('a collection with custom sharding is created without shards: create its shard keys afterwards'));
  if (!custom && placement.length === 0)
    return refused(state, wrongInput('the collection would have no shard: set `shard_number` to 1 or more'));
  const record: CollectionRecord = {
    uid: state.appliedIndex,
    revision: state.appliedIndex,
    config,
    shards: new Map(),
    nextShardId: 0,
    transfers: [],
    autoReplication: false,
    shardMapVersion: state.appliedIndex,
    resharding: null,
    closedKeys: [],
    keyCopy: null,
    payloadIndexes: new Map(),
  };
  return done(withCollection(state, name, withShards(record, null, placement, { first: 'Initializing', since: state.appliedIndex })));
}

export function updateCollection(state: ClusterState, { basedOn, config, name }: CommandOf<'updateCollection'>): Change {
  return onCollection(state, name, (record) => {
    if (record.revision !== basedOn) {
      const detail = `Collection \`${name}\` was changed at the same time, try again`;
      return refused(state, { code: 'conflict', detail, reason: 'changedMeanwhile' });
    }
    if (stringifyJson(record.config) === stringifyJson(config)) return unchanged(state);
    return done(withCollection(state, name, { ...record, config, revision: state.appliedIndex }));
  });
}

export function setAutoReplication(state: ClusterState, { collection, enabled }: CommandOf<'setAutoReplication'>): Change {
  return onCollection(state, collection, (record) => {
    if (record.autoReplication === enabled) return unchanged(state);
    return done(withCollection(state, collection, { ...record, autoReplication: enabled }));
  });
}

/** Deletes a collection with its aliases and transfers. */
export function deleteCollection(state: ClusterState, { name }: CommandOf<'deleteCollection'>): Change {
  if (!state.collections.has(name)) return unchanged(state);
  const aliases = new Map([...state.aliases].filter(([, collection]) => collection !== name));
  return done(withCollections({ ...state, aliases }, (collections) => collections.delete(name)));
}

export function changeAliases(state: ClusterState, { actions }: CommandOf<'changeAliases'>): Change {
  const isThere = (name: string) => state.collections.has(name);
  const aliases = aliasesAfter(state.aliases, actions, { isThere, isTaken: isThere });
  if ('error' in aliases) return refused(state, aliases.error);
  return aliases === state.aliases ? unchanged(state) : done({ ...state, aliases });
}

export function createShardKey(state: ClusterState, command: CommandOf<'createShardKey'>): Change {
  const { closed, collection, initialState, key, placement } = command;
  return onCollection(state, collection, (record) => {
    if (record.config.params.sharding_method !== 'custom')
      return refused(state, badRequest('Shard Key cannot be created with Auto sharding method'));
    if (shardsOfKey(record, key).length > 0)
      return refused(state, badRequest(`Sharding key ${shownKey(key)} already exists for collection ${collection}`));
    const misplaced = refusedPlacement(state, placement);
    if (misplaced !== null) return refused(state, misplaced);
    if (placement.length === 0) return refused(state, wrongInput('the shard key would have no shard: set `shards_number` to 1 or more'));
    const first = initialState ?? 'Initializing';
    if (!FIRST_STATES.has(first)) {
      const detail = `replicas of a new shard key cannot be ${first}; possible are ${[...FIRST_STATES].join(', ')}`;
      return refused(state, wrongInput(detail));
    }
    const made = withShards(record, key, placement, { first, since: state.appliedIndex });
    const keyed = closed ? { ...made, closedKeys: [...made.closedKeys, key] } : made;
    return done(withCollection(state, collection, keyed));
  });
}

/** Drops a shard key with its shards, their transfers, and copies from and to it. */
export function dropShardKey(state: ClusterState, { collection, key }: CommandOf<'dropShardKey'>): Change {
  return onCollection(state, collection, (record) => {
    const notCustom = refusedKey(collection, record);
    if (notCustom !== null) return refused(state, notCustom);
    const gone = shardsOfKey(record, key);
    if (gone.length === 0) return refused(state, badRequest(`Sharding key ${shownKey(key)} does not exist for collection ${collection}`));
    const shards = new Map([...record.shards].filter(([shardId]) => !gone.includes(shardId)));
    const transfers = record.transfers.filter(({ shardId, toShardId }) => !gone.includes(shardId) && !gone.includes(toShardId ?? shardId));
    const resharding = record.resharding?.key === key ? null : record.resharding;
    const closedKeys = record.closedKeys.filter((closed) => closed !== key);
    const keyCopy = record.keyCopy?.source === key || record.keyCopy?.target === key ? null : record.keyCopy;
    return done(withCollection(state, collection, { ...record, shards, transfers, resharding, closedKeys, keyCopy }));
  });
}

/** Most bytes of the agreed indexes of a collection, as JSON: every node keeps them in memory. */
const INDEXES_BYTES_MAX = 1 << 20;

/** Notes an index for the shards of keys that come, or that they get none. Errors: `notFound` if the collection was replaced. */
export function setPayloadIndex(state: ClusterState, { collection, field, schema, uid }: CommandOf<'setPayloadIndex'>): Change {
  return onCollection(state, collection, (record) => {
    if (record.uid !== uid) return refused(state, collectionMissing(collection));
    const known = record.payloadIndexes.get(field) ?? null;
    if (stringifyJson(known) === stringifyJson(schema)) return unchanged(state);
    const payloadIndexes = new Map(record.payloadIndexes);
    if (schema === null) payloadIndexes.delete(field);
    else payloadIndexes.set(field, schema);
    const bytes = Buffer.byteLength(stringifyJson([...payloadIndexes]), 'utf8');
    if (schema !== null && bytes > INDEXES_BYTES_MAX)
      return refused(state, wrongInput(`the payload indexes of \`${collection}\` have ${bytes} bytes, and can have ${INDEXES_BYTES_MAX}`));
    return done(withCollection(state, collection, { ...record, payloadIndexes }));
  });
}

export function refusedKey(collection: string, { config }: CollectionRecord): ErrorFacts | null {
  if (config.params.sharding_method === 'custom') return null;
  return wrongInput(`Collection \`${collection}\` has no shard keys: it was not created with "sharding_method": "custom"`);
}

export function shownKey(key: ShardKey): string {
  return typeof key === 'string' ? `"${key}"` : String(key);
}

/**
 * The error if a peer of the placement is not a member any more or takes no replicas: it may have left since the placement was chosen
 * (State-S4).
 */
export function refusedPlacement({ marks, membership }: ClusterState, placement: Placement): ErrorFacts | null {
  for (const peers of placement) {
    if (peers.length === 0) return wrongInput('a shard needs at least one replica');
    if (new Set(peers).size < peers.length) return wrongInput('a shard can have one replica on each peer');
    const stranger = peers.find((peer) => !membership.some(({ peerId }) => peerId === peer));
    if (stranger !== undefined) {
      const detail = `peer ${stranger}, chosen for a replica, is not part of the cluster any more; try again`;
      return { code: 'unavailable', detail, retryAfterMs: 100, reason: 'placementChanged' };
    }
    const leaving = peers.find((peer) => (marks.get(peer)?.leaving ?? null) !== null);
    if (leaving !== undefined) {
      const detail = `peer ${leaving}, chosen for a replica, is leaving the cluster; try again`;
      return { code: 'unavailable', detail, retryAfterMs: 100, reason: 'placementChanged' };
    }
  }
  return null;
}

interface NewReplicas {
  readonly first: ReplicaState;
  readonly since: number;
}

export function withShards(record: CollectionRecord, key: ShardKey | null, placement: Placement, made: NewReplicas): CollectionRecord {
  const shards = new Map(record.shards);
  placement.forEach((peers, at) => {
    shards.set(record.nextShardId + at, newShard(key, peers, made));
  });
  return { ...record, shards, nextShardId: record.nextShardId + placement.length };
}

function newShard(key: ShardKey | null, peers: readonly PeerId[], { first, since }: NewReplicas): ShardRecord {
  const each = <Value>(value: Value) => new Map(peers.map((peer) => [peer, value]));
  return { key, replicas: each(first), since: each(since), leader: null, term: 0 };
}

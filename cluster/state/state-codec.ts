/**
 * Encodes the cluster's state for snapshots as JSON with a version, maps by ascending key and fields in a fixed order, so that equal states
 * have equal bytes. What a later release wrote stops this one.
 */

import { ERROR_KINDS, ERROR_REASONS, type ErrorCode, type ErrorFacts, type ErrorReason } from '../../protocols/errors.js';
import { stringifyJson } from '../../protocols/json.js';
import { type Member, RESHARDING_DIRECTIONS, TRANSFER_METHODS } from '../../protocols/model/cluster.js';
import { PLANNED_MOVES, TRANSFER_KEY } from './command-codec.js';
import { type Outcome, RESHARDING_STAGES } from './commands.js';
import {
  CONFIG,
  FIELD_SCHEMA,
  FLAG_FIELD,
  fieldAs,
  INTEGER,
  INTEGER_OR_NULL,
  listOfField,
  mapOf,
  mapOrAbsent,
  nested,
  nullable,
  nullableOrAbsent,
  REPLICA_STATE,
  SHARD_KEY,
  type StructCodec,
  sortedByKey,
  structListOf,
  structOf,
  TEXT_FIELD,
  TEXT_OR_NULL,
  wordOf,
  writtenAs,
} from './field-codecs.js';
import type { ClusterState, CollectionRecord, KeyCopy, PeerMark, Resharding, Session, ShardRecord, TransferRecord } from './state.js';
import { readObject } from './strict-fields.js';

/** Raised when a field changes its meaning. */
const VERSION = 4;

export function encodeState(state: ClusterState): Uint8Array {
  // The encoded records are put between the other fields, as they are cached.
  const [before, after] = [stringifyJson({ version: VERSION, ...HEAD.write(state) }), stringifyJson(TAIL.write(state))];
  const records = sortedByKey(state.collections).map(([name, record]) => `{"name":${JSON.stringify(name)},${textOf(record).slice(1)}`);
  return Buffer.from(`${before.slice(0, -1)},"collections":[${records.join(',')}],${after.slice(1)}`, 'utf8');
}

/** Cache of encoded records: consecutive states share most of their records, and each compaction of the log encodes a state. */
const texts = new WeakMap<CollectionRecord, string>();

function textOf(record: CollectionRecord): string {
  const known = texts.get(record);
  if (known !== undefined) return known;
  const text = stringifyJson(COLLECTION.write(record));
  texts.set(record, text);
  return text;
}

/** Decodes what `encodeState` wrote. Errors: `storage`, naming the field that cannot be read. */
export function decodeState(bytes: Uint8Array): ClusterState {
  return readObject(bytes, "the cluster's state", VERSION, (fields) => ({
    ...HEAD.read(fields),
    collections: COLLECTIONS.read(fields, 'collections'),
    ...TAIL.read(fields),
  }));
}

const DONE = listOfField('shardId', INTEGER);

const RESHARDING = structOf<Resharding>({
  direction: wordOf(RESHARDING_DIRECTIONS),
  shardId: INTEGER,
  peerId: INTEGER,
  key: nullable(SHARD_KEY),
  stage: wordOf(RESHARDING_STAGES),
  done: DONE,
  startedAt: INTEGER,
});

const KEY_COPY = structOf<KeyCopy>({
  source: SHARD_KEY,
  target: SHARD_KEY,
  filter: TEXT_OR_NULL,
  stage: wordOf(['copying', 'switching']),
  done: DONE,
  startedAt: INTEGER,
});

const TRANSFER = structOf<TransferRecord>({
  ...TRANSFER_KEY,
  method: wordOf(TRANSFER_METHODS),
  sync: FLAG_FIELD,
  targetIsNew: FLAG_FIELD,
  startedAt: INTEGER,
});

const REPLICAS = mapOf('peerId', INTEGER, structOf({ state: REPLICA_STATE, since: INTEGER }));
const STORED_SHARD = structOf({ key: nullable(SHARD_KEY), replicas: REPLICAS, leader: INTEGER_OR_NULL, term: INTEGER });

/** A shard's replicas are written with their `since`. */
const SHARD: StructCodec<ShardRecord> = {
  read: (fields) => {
    const { replicas, ...shard } = STORED_SHARD.read(fields);
    const states = [...replicas].map(([peerId, { state }]) => [peerId, state] as const);
    const since = [...replicas].map(([peerId, replica]) => [peerId, replica.since] as const);
    return { ...shard, replicas: new Map(states), since: new Map(since) };
  },
  write: (shard) => {
    const replicas = [...shard.replicas].map(([peerId, state]) => [peerId, { state, since: shard.since.get(peerId) ?? 0 }] as const);
    return STORED_SHARD.write({ ...shard, replicas: new Map(replicas) });
  },
};

const COLLECTION = structOf<CollectionRecord>({
  uid: INTEGER,
  revision: INTEGER,
  config: CONFIG,
  nextShardId: INTEGER,
  shards: mapOf('shardId', INTEGER, SHARD),
  transfers: structListOf(TRANSFER),
  autoReplication: FLAG_FIELD,
  shardMapVersion: writtenAs('layout', INTEGER),
  resharding: nullable(nested(RESHARDING)),
  closedKeys: listOfField('key', SHARD_KEY),
  keyCopy: nullable(nested(KEY_COPY)),
  payloadIndexes: mapOrAbsent('field', TEXT_FIELD, fieldAs('schema', FIELD_SCHEMA)),
});

const COLLECTIONS = mapOf('name', TEXT_FIELD, COLLECTION);

const KIND = wordOf(['done', 'refused']);

const REFUSAL = structOf({
  code: wordOf(Object.keys(ERROR_KINDS) as ErrorCode[]),
  detail: TEXT_FIELD,
  retryAfterMs: INTEGER_OR_NULL,
  reason: nullableOrAbsent(wordOf(Object.keys(ERROR_REASONS) as ErrorReason[])),
  outcome: nullableOrAbsent(wordOf(['none', 'unknown'])),
});

const OUTCOME: StructCodec<Outcome> = {
  read: (fields) => {
    const kind = KIND.read(fields, 'kind');
    if (kind === 'done') return { kind, changed: FLAG_FIELD.read(fields, 'changed') };
    const facts = Object.entries(REFUSAL.read(fields)).filter(([, value]) => value !== null);
    return { kind, error: Object.fromEntries(facts) as unknown as ErrorFacts };
  },
  write: (outcome) => {
    if (outcome.kind === 'done') return { kind: outcome.kind, changed: outcome.changed };
    const { code, detail, outcome: certainty = null, reason = null, retryAfterMs = null } = outcome.error;
    return { kind: outcome.kind, ...REFUSAL.write({ code, detail, retryAfterMs, reason, outcome: certainty }) };
  },
};

const HEAD = structOf<Pick<ClusterState, 'clusterId' | 'appliedIndex' | 'membership'>>({
  clusterId: TEXT_FIELD,
  appliedIndex: INTEGER,
  membership: structListOf(structOf<Member>({ peerId: INTEGER, uri: TEXT_FIELD, version: TEXT_FIELD, voter: FLAG_FIELD })),
});

const TAIL = structOf<Pick<ClusterState, 'aliases' | 'marks' | 'plannedMoves' | 'metadata' | 'sessions'>>({
  aliases: mapOf('alias', TEXT_FIELD, fieldAs('collection', TEXT_FIELD)),
  marks: mapOf('peerId', INTEGER, structOf<PeerMark>({ listens: FLAG_FIELD, leaving: nullable(wordOf(['removal', 'drain'])) })),
  plannedMoves: PLANNED_MOVES,
  metadata: mapOrAbsent('key', TEXT_FIELD, fieldAs('value', TEXT_FIELD)),
  sessions: mapOf(
    'peerId',
    INTEGER,
    structOf<Session>({ session: INTEGER, doneBelow: INTEGER, outcomes: mapOf('sequence', INTEGER, OUTCOME) }),
  ),
});

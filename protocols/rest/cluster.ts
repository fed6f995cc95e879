/** Bodies of `POST /collections/{name}/cluster` and of the routes of shard keys. Source: contract, `ClusterOperations`. */

import { TroupeError } from '../errors.js';
import { stringifyJson } from '../json.js';
import {
  type CollectionClusterUpdate,
  type PeerId,
  REPLICA_STATES,
  RESHARDING_DIRECTIONS,
  type ReplicaState,
  type ShardKey,
  TRANSFER_METHODS,
} from '../model/cluster.js';
import type { JsonValue } from '../model/payload.js';
import { SHARDS_MAX } from './collections.js';
import { Fields, type IntegerRange, wrongType } from './fields.js';
import { decodeFilter } from './filter.js';

const SHARD_ID: IntegerRange = { max: 0xffff_ffff };
const UINT64_MAX = 0xffff_ffff_ffff_ffffn;

/** How each operation is read. */
const OPERATIONS: ReadonlyMap<string, (fields: Fields) => CollectionClusterUpdate> = new Map([
  ['move_shard', (fields: Fields) => decodeMove('moveShard', fields)],
  ['replicate_shard', (fields: Fields) => decodeMove('replicateShard', fields)],
  ['abort_transfer', (fields: Fields): CollectionClusterUpdate => ({ kind: 'abortTransfer', ...decodeTransfer(fields) })],
  ['restart_transfer', decodeRestart],
  ['drop_replica', decodeDropReplica],
  ['create_sharding_key', decodeNewKey],
  ['drop_sharding_key', (fields: Fields): CollectionClusterUpdate => ({ kind: 'dropShardKey', key: decodeKey(fields) })],
  // Troupe's own.
  ['auto_replication', decodeAutoReplication],
  ['activate_replica', decodeActivate],
  ['start_resharding', decodeStartResharding],
  ['abort_resharding', (): CollectionClusterUpdate => ({ kind: 'abortResharding' })],
  ['replicate_points', decodeReplicatePoints],
]);

const NO_OPERATION = `the body names no operation: expected one of ${[...OPERATIONS.keys()].map((name) => `\`${name}\``).join(', ')}`;

/**
 * The one operation that the body asks for.
 * Errors: malformedBody, invalidValue.
 */
export function decodeCollectionClusterUpdate(body: JsonValue): CollectionClusterUpdate {
  const fields = Fields.of(body, '');
  const [name, ...more] = fields.names().filter((member) => OPERATIONS.has(member) && fields.value(member) !== undefined);
  if (name === undefined) throw new TroupeError('malformedBody', NO_OPERATION);
  if (more.length > 0)
    throw new TroupeError('malformedBody', `the body must have exactly one operation, it has ${[name, ...more].join(' and ')}`);
  const inner = fields.nested(name) as Fields;
  const decode = OPERATIONS.get(name) as (fields: Fields) => CollectionClusterUpdate;
  return decode(inner);
}

/** Errors: malformedBody, invalidValue. */
export function decodeCreateShardKey(body: JsonValue): CollectionClusterUpdate {
  return decodeNewKey(Fields.of(body, ''));
}

/** Errors: malformedBody. */
export function decodeDeleteShardKey(body: JsonValue): CollectionClusterUpdate {
  return { kind: 'dropShardKey', key: decodeKey(Fields.of(body, '')) };
}

/** The peer that a path names; undefined for what is no unsigned 64-bit integer. A number beyond 2^53 is no peer's. */
export function peerIdFromText(text: string): PeerId | undefined {
  return /^\d{1,20}$/.test(text) && BigInt(text) <= UINT64_MAX ? Number(text) : undefined;
}

function decodeMove(kind: 'moveShard' | 'replicateShard', fields: Fields): CollectionClusterUpdate {
  const transfer = decodeTransfer(fields);
  const { from, shardId, to, toShardId } = transfer;
  if (from === to && (toShardId ?? shardId) === shardId) {
    const detail = `[${fields.pathOf('to_peer_id')}: cannot transfer shard to itself, "to_peer_id" must be different than ${from} in "from_peer_id"]`;
    throw new TroupeError('invalidValue', detail);
  }
  return { kind, ...transfer, method: fields.word('method', TRANSFER_METHODS) ?? null };
}

function decodeRestart(fields: Fields): CollectionClusterUpdate {
  const method = given(fields, 'method', fields.word('method', TRANSFER_METHODS));
  return { kind: 'restartTransfer', ...decodeTransfer(fields), method };
}

function decodeTransfer(fields: Fields): { shardId: number; toShardId: number | null; from: PeerId; to: PeerId } {
  return {
    shardId: shardId(fields),
    toShardId: fields.integer('to_shard_id', SHARD_ID) ?? null,
    from: given(fields, 'from_peer_id', fields.integer('from_peer_id')),
    to: given(fields, 'to_peer_id', fields.integer('to_peer_id')),
  };
}

function decodeDropReplica(fields: Fields): CollectionClusterUpdate {
  return { kind: 'dropReplica', shardId: shardId(fields), peerId: given(fields, 'peer_id', fields.integer('peer_id')) };
}

/** Whoever asks has to say that he knows what it costs. */
function decodeActivate(fields: Fields): CollectionClusterUpdate {
  const replica = { shardId: shardId(fields), peerId: given(fields, 'peer_id', fields.integer('peer_id')) };
  if (fields.boolean('accept_data_loss') === true) return { kind: 'activateReplica', ...replica, lost: [] };
  const detail =
    `${fields.pathOf('accept_data_loss')}: the shard goes on with what this replica has, and what only others had is lost for good: ` +
    'send `true` to accept that';
  throw new TroupeError('invalidValue', detail);
}

function decodeNewKey(fields: Fields): CollectionClusterUpdate {
  return {
    kind: 'createShardKey',
    key: decodeKey(fields),
    shardsNumber: positive(fields, 'shards_number', { max: SHARDS_MAX }),
    replicationFactor: positive(fields, 'replication_factor', {}),
    placement: decodePeers(fields),
    initialState: decodeFirstState(fields),
  };
}

/** 0 is not of the type here. Source: contract, scenario `cluster-one-node`. */
function positive(fields: Fields, name: string, range: IntegerRange): number | null {
  const value = fields.integer(name, range) ?? null;
  if (value !== 0) return value;
  throw new TroupeError('malformedBody', `\`${fields.pathOf(name)}\`: invalid value: integer \`0\`, expected a nonzero u32`);
}

function decodeFirstState(fields: Fields): ReplicaState | null {
  const state = fields.word('initial_state', REPLICA_STATES) ?? null;
  if (state === null || state === 'Active' || state === 'Partial') return state;
  throw new TroupeError('badRequest', `Initial state cannot be ${state}, only Active or Partial are allowed`);
}

function decodeAutoReplication(fields: Fields): CollectionClusterUpdate {
  return { kind: 'autoReplication', enabled: given(fields, 'enabled', fields.boolean('enabled')) };
}

function decodeStartResharding(fields: Fields): CollectionClusterUpdate {
  return {
    kind: 'startResharding',
    direction: given(fields, 'direction', fields.word('direction', RESHARDING_DIRECTIONS)),
    peerId: fields.integer('peer_id') ?? null,
    key: fields.value('shard_key') === undefined ? null : decodeKey(fields),
  };
}

function decodeReplicatePoints(fields: Fields): CollectionClusterUpdate {
  const filter = fields.value('filter');
  decodeFilter(filter, fields.pathOf('filter'));
  return {
    kind: 'replicatePoints',
    source: decodeKey(fields, 'from_shard_key'),
    target: decodeKey(fields, 'to_shard_key'),
    filter: filter === undefined || filter === null ? null : stringifyJson(filter),
  };
}

/** An empty list is as good as none: gRPC has no other way to leave it out. */
function decodePeers(fields: Fields): PeerId[] | null {
  const value = fields.value('placement');
  if (value === undefined) return null;
  if (!Array.isArray(value)) throw wrongType(fields.pathOf('placement'), value, 'a list of peers');
  const peers = value.map((peer, at) => {
    const number = typeof peer === 'bigint' ? Number(peer) : peer;
    if (typeof number === 'number' && Number.isInteger(number) && number >= 0) return number;
    throw wrongType(`${fields.pathOf('placement')}[${at}]`, peer, 'an unsigned integer');
  });
  return peers.length === 0 ? null : [...new Set(peers)];
}

function decodeKey(fields: Fields, name = 'shard_key'): ShardKey {
  const value = fields.value(name);
  if (typeof value === 'string' || typeof value === 'bigint') return value;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  if (value === undefined) throw missing(fields, name);
  throw wrongType(fields.pathOf(name), value, 'a string or an unsigned integer');
}

function shardId(fields: Fields): number {
  return given(fields, 'shard_id', fields.integer('shard_id', SHARD_ID));
}

function given<Value>(fields: Fields, name: string, value: Value | undefined): Value {
  if (value === undefined) throw missing(fields, name);
  return value;
}

function missing(fields: Fields, name: string): TroupeError {
  return new TroupeError('malformedBody', `missing field \`${fields.pathOf(name)}\``);
}

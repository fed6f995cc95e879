/**
 * Encodes the cluster's state for snapshots as JSON with a version, maps by ascending key and fields in a fixed order, so that equal states
 * have equal bytes. A release reads what earlier ones wrote; what a later one wrote stops it.
 */

import { ERROR_KINDS, ERROR_REASONS, type ErrorCode, type ErrorOutcome, type ErrorReason } from '../../protocols/errors.js';
import { stringifyJson } from '../../protocols/json.js';
import {
  type Member,
  type PeerId,
  RESHARDING_DIRECTIONS,
  type ReplicaState,
  type ShardId,
  TRANSFER_METHODS,
} from '../../protocols/model/cluster.js';
import { PLANNED_MOVES } from './command-codec.js';
import { type Outcome, RESHARDING_STAGES } from './commands.js';
import type { ClusterState, CollectionRecord, KeyCopy, PeerMark, Resharding, Session, ShardRecord, TransferRecord } from './state.js';
import { parseObject, readAll, type StrictFields } from './strict-fields.js';

/**
 * Raised when a field changes its meaning. 2: shards have leaders, and replicas have the index of the entry that made them. 3: shards may
 * be added and removed. 4: keys may be closed and be copied.
 */
const VERSION = 4;

export function encodeState(state: ClusterState): Uint8Array {
  const { aliases, appliedIndex, clusterId, collections, marks, membership, plannedMoves, sessions } = state;
  const head = stringifyJson({ version: VERSION, clusterId, appliedIndex, membership: membership.map(memberInOrder) });
  const tail = stringifyJson({
    aliases: sortedByName(aliases).map(([alias, collection]) => ({ alias, collection })),
    marks: sortedById(marks).map(([peerId, { leaving, listens }]) => ({ peerId, listens, leaving })),
    plannedMoves: PLANNED_MOVES.inOrder(plannedMoves),
    sessions: sortedById(sessions).map(([peerId, session]) => ({ peerId, ...sessionForm(session) })),
  });
  const records = sortedByName(collections).map(([name, record]) => `{"name":${JSON.stringify(name)},${collectionText(record).slice(1)}`);
  return Buffer.from(`${head.slice(0, -1)},"collections":[${records.join(',')}],${tail.slice(1)}`, 'utf8');
}

/** Cache of encoded records: consecutive states share most of their records, and each compaction of the log encodes a state. */
const texts = new WeakMap<CollectionRecord, string>();

function collectionText(record: CollectionRecord): string {
  const known = texts.get(record);
  if (known !== undefined) return known;
  const text = stringifyJson(collectionForm(record));
  texts.set(record, text);
  return text;
}

/** Decodes what `encodeState` wrote. Errors: `storage`, naming the field that cannot be read. */
export function decodeState(bytes: Uint8Array): ClusterState {
  return readAll(parseObject(bytes, "the cluster's state"), (fields) => {
    const version = fields.version(VERSION);
    return {
      clusterId: fields.string('clusterId'),
      appliedIndex: fields.integer('appliedIndex'),
      membership: fields.list('membership', readMember),
      collections: new Map(fields.list('collections', (item) => [item.string('name'), readCollection(item, version)])),
      aliases: new Map(fields.list('aliases', (item) => [item.string('alias'), item.string('collection')])),
      marks: version >= 2 ? new Map(fields.list('marks', readMark)) : new Map(),
      plannedMoves: version >= 2 ? PLANNED_MOVES.read(fields, 'plannedMoves', version) : [],
      sessions: new Map(fields.list('sessions', (item) => [item.integer('peerId'), readSession(item)])),
    };
  });
}

function readMark(fields: StrictFields): [PeerId, PeerMark] {
  const leaving = fields.value('leaving') === null ? null : fields.word('leaving', ['removal', 'drain']);
  return [fields.integer('peerId'), { listens: fields.boolean('listens'), leaving }];
}

function memberInOrder({ peerId, uri, version, voter }: Member): Member {
  return { peerId, uri, version, voter };
}

function readMember(fields: StrictFields): Member {
  return {
    peerId: fields.integer('peerId'),
    uri: fields.string('uri'),
    version: fields.string('version'),
    voter: fields.boolean('voter'),
  };
}

function collectionForm(record: CollectionRecord): object {
  const { autoReplication, closedKeys, config, keyCopy, shardMapVersion, nextShardId, resharding, revision, shards, transfers, uid } =
    record;
  return {
    uid,
    revision,
    config,
    nextShardId,
    shards: sortedById(shards).map(([shardId, { key, leader, replicas, since, term }]) => ({
      shardId,
      key,
      replicas: sortedById(replicas).map(([peerId, state]) => ({ peerId, state, since: since.get(peerId) ?? uid })),
      leader,
      term,
    })),
    transfers: transfers.map(transferInOrder),
    autoReplication,
    shardMapVersion,
    resharding: resharding === null ? null : reshardingForm(resharding),
    closedKeys: closedKeys.map((key) => ({ key })),
    keyCopy: keyCopy === null ? null : keyCopyForm(keyCopy),
  };
}

function readCollection(fields: StrictFields, version: number): CollectionRecord {
  const uid = fields.integer('uid');
  return {
    uid,
    revision: fields.integer('revision'),
    config: fields.config('config'),
    nextShardId: fields.integer('nextShardId'),
    shards: new Map(fields.list('shards', (item): [ShardId, ShardRecord] => [item.integer('shardId'), readShard(item, version, uid)])),
    transfers: fields.list('transfers', readTransfer),
    autoReplication: version >= 2 ? fields.boolean('autoReplication') : false,
    shardMapVersion: version >= 3 ? fields.integer('shardMapVersion') : uid,
    resharding: version >= 3 && fields.value('resharding') !== null ? fields.nested('resharding', readResharding) : null,
    closedKeys: version >= 4 ? fields.list('closedKeys', (item) => item.shardKey('key')) : [],
    keyCopy: version >= 4 && fields.value('keyCopy') !== null ? fields.nested('keyCopy', readKeyCopy) : null,
  };
}

function readShard(fields: StrictFields, version: number, uid: number): ShardRecord {
  const replicas = fields.list('replicas', (item) => ({
    peerId: item.integer('peerId'),
    state: item.replicaState('state'),
    // In version 1 replicas were made with their collection.
    since: version >= 2 ? item.integer('since') : uid,
  }));
  return {
    key: fields.value('key') === null ? null : fields.shardKey('key'),
    replicas: new Map(replicas.map(({ peerId, state }): [PeerId, ReplicaState] => [peerId, state])),
    since: new Map(replicas.map(({ peerId, since }): [PeerId, number] => [peerId, since])),
    leader: version >= 2 ? fields.integerOrNull('leader') : null,
    term: version >= 2 ? fields.integer('term') : 0,
  };
}

function reshardingForm({ direction, done, key, peerId, shardId, stage, startedAt }: Resharding): object {
  return { direction, shardId, peerId, key, stage, done: done.map((id) => ({ shardId: id })), startedAt };
}

function readResharding(fields: StrictFields): Resharding {
  return {
    direction: fields.word('direction', RESHARDING_DIRECTIONS),
    shardId: fields.integer('shardId'),
    peerId: fields.integer('peerId'),
    key: fields.value('key') === null ? null : fields.shardKey('key'),
    stage: fields.word('stage', RESHARDING_STAGES),
    done: fields.list('done', (item) => item.integer('shardId')),
    startedAt: fields.integer('startedAt'),
  };
}

function keyCopyForm({ done, filter, source, stage, startedAt, target }: KeyCopy): object {
  return { source, target, filter, stage, done: done.map((id) => ({ shardId: id })), startedAt };
}

function readKeyCopy(fields: StrictFields): KeyCopy {
  return {
    source: fields.shardKey('source'),
    target: fields.shardKey('target'),
    filter: fields.stringOrNull('filter'),
    stage: fields.word('stage', ['copying', 'switching']),
    done: fields.list('done', (item) => item.integer('shardId')),
    startedAt: fields.integer('startedAt'),
  };
}

function transferInOrder({ from, method, shardId, startedAt, sync, targetIsNew, to, toShardId }: TransferRecord): TransferRecord {
  return { shardId, from, to, toShardId, method, sync, targetIsNew, startedAt };
}

function readTransfer(fields: StrictFields): TransferRecord {
  return {
    shardId: fields.integer('shardId'),
    from: fields.integer('from'),
    to: fields.integer('to'),
    toShardId: fields.integerOrNull('toShardId'),
    method: fields.word('method', TRANSFER_METHODS),
    sync: fields.boolean('sync'),
    targetIsNew: fields.boolean('targetIsNew'),
    startedAt: fields.integer('startedAt'),
  };
}

function sessionForm({ doneBelow, outcomes, session }: Session): object {
  return {
    session,
    doneBelow,
    outcomes: sortedById(outcomes).map(([sequence, outcome]) => ({ sequence, ...outcomeForm(outcome) })),
  };
}

function readSession(fields: StrictFields): Session {
  return {
    session: fields.integer('session'),
    doneBelow: fields.integer('doneBelow'),
    outcomes: new Map(fields.list('outcomes', (item): [number, Outcome] => [item.integer('sequence'), readOutcome(item)])),
  };
}

function outcomeForm(outcome: Outcome): object {
  if (outcome.kind === 'done') return { kind: outcome.kind, changed: outcome.changed };
  const { code, detail, reason, retryAfterMs } = outcome.error;
  return {
    kind: outcome.kind,
    code,
    detail,
    retryAfterMs: retryAfterMs ?? null,
    reason: reason ?? null,
    outcome: outcome.error.outcome ?? null,
  };
}

const CODES = Object.keys(ERROR_KINDS) as ErrorCode[];
const REASONS = Object.keys(ERROR_REASONS) as ErrorReason[];
const OUTCOMES: readonly ErrorOutcome[] = ['none', 'unknown'];

function readOutcome(fields: StrictFields): Outcome {
  const kind = fields.word('kind', ['done', 'refused']);
  if (kind === 'done') return { kind, changed: fields.boolean('changed') };
  const code = fields.word('code', CODES);
  const detail = fields.string('detail');
  const retryAfterMs = fields.integerOrNull('retryAfterMs');
  const reason = fields.value('reason') === null ? null : fields.word('reason', REASONS);
  const outcome = fields.value('outcome') === null ? null : fields.word('outcome', OUTCOMES);
  const error = {
    code,
    detail,
    ...(retryAfterMs === null ? {} : { retryAfterMs }),
    ...(reason === null ? {} : { reason }),
    ...(outcome === null ? {} : { outcome }),
  };
  return { kind, error };
}

function sortedByName<Value>(map: ReadonlyMap<string, Value>): [string, Value][] {
  return [...map].sort(([one], [other]) => (one < other ? -1 : 1));
}

function sortedById<Value>(map: ReadonlyMap<number, Value>): [number, Value][] {
  return [...map].sort(([one], [other]) => one - other);
}

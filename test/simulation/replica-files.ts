/** What a replica of the simulation has on its disk: a log that begins behind an operation, and the points that it has come to. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { FieldSchema } from '../../protocols/model/collection.js';
import type { Payload } from '../../protocols/model/payload.js';
import { compareIds, type PointId } from '../../protocols/model/point-id.js';
import { isSameTag, type LogTag, NO_TAG, type ShardEntry } from '../../protocols/model/shard-log.js';
import type { PointBatch, PointsSelector, UpdateOperation } from '../../protocols/model/update.js';
import { decodeUpdate } from '../../protocols/update-codec.js';
import type { KnownLog } from '../../storage/replica/follow.js';
import { equalBuckets } from '../../storage/replica/stale.js';
import { hashNumbers, hashPoint } from '../../storage/sharding/point-hash.js';
import { DIGEST_BUCKETS, type ReplicaDigest } from '../../storage/threads/shard-log.js';
import { ownerOf } from './engine-leaving.js';

export interface StoredPoint {
  readonly version: number;
  /** The only dense vector, which has no name; null: none. */
  readonly vector: readonly number[] | null;
  readonly payload: Payload;
}

export interface StoredReplica {
  /** Of the operation before the first of `entries`. */
  base: LogTag;
  entries: ShardEntry[];
  /** Points take everything in up to this one. */
  applied: LogTag;
  points: Map<PointId, StoredPoint>;
  /** Buckets whose points may be older than the log (`storage/replica/stale.ts`). */
  stale: ReadonlySet<number>;
  /** Against the rules: such points are changed all the same. */
  trustsStale?: boolean;
  fields: Map<string, FieldSchema>;
}

const NO_BUCKETS: ReadonlySet<number> = new Set();
export const ALL_BUCKETS: ReadonlySet<number> = new Set(Array.from({ length: DIGEST_BUCKETS }, (_, bucket) => bucket));

export function newReplica(): StoredReplica {
  return { base: NO_TAG, entries: [], applied: NO_TAG, points: new Map(), stale: NO_BUCKETS, fields: new Map() };
}

export function lastOf({ base, entries }: StoredReplica): LogTag {
  return entries.at(-1)?.tag ?? base;
}

/** Entries behind this operation; null when the log has not got it. */
export function entriesBehind({ base, entries }: StoredReplica, tag: LogTag): readonly ShardEntry[] | null {
  if (isSameTag(base, tag)) return entries;
  const at = entries.findIndex((entry) => isSameTag(entry.tag, tag));
  return at < 0 ? null : entries.slice(at + 1);
}

/** Of the newest operation before this index; null where the log does not go back so far. */
export function tagBefore({ base, entries }: StoredReplica, index: number): LogTag | null {
  return entries.findLast(({ tag }) => tag.index < index)?.tag ?? (base.index < index ? base : null);
}

/** Takes the newest entries out of the log; what they have changed is stale. */
export function rewind(replica: StoredReplica, taken: readonly ShardEntry[]): void {
  replica.entries = replica.entries.slice(0, replica.entries.length - taken.length);
  replica.applied = lastOf(replica);
  const stale = new Set(replica.stale);
  for (const { operation } of taken) for (const id of pointsOfOperation(decodeUpdate(operation).operation)) stale.add(bucketOf(id));
  replica.stale = stale;
}

function pointsOfOperation(operation: UpdateOperation): readonly PointId[] {
  if ('batch' in operation) return operation.batch.ids;
  if (!('selector' in operation)) return [];
  if (operation.selector.kind === 'ids') return operation.selector.ids;
  const [condition] = operation.selector.filter.must;
  return condition?.kind === 'hasId' ? condition.ids : [];
}

/** As far as it matters to what may be logged. end: of the last operation that is on its way to it. */
export function knownLog({ base, entries }: StoredReplica, end: LogTag): KnownLog {
  return { last: end, base, tagOf: (index) => entries.find(({ tag }) => tag.index === index)?.tag ?? (end.index === index ? end : null) };
}

/** Applies the next entry. */
export function applyNext(replica: StoredReplica, { operation, tag }: ShardEntry): void {
  const failure = applyOperation(replica, decodeUpdate(operation).operation, tag.index);
  if (failure !== null) throw new Error(`operation ${tag.index} is in the log and fails: ${failure.detail}`);
  replica.applied = tag;
}

/** The first of these operations that would fail as things are, and why; null: none. */
export function firstFailure(replica: StoredReplica, operations: readonly Uint8Array[]): { at: number; failure: ErrorFacts } | null {
  const trial: StoredReplica = { ...replica, points: new Map(replica.points), fields: new Map(replica.fields) };
  for (const [at, operation] of operations.entries()) {
    const failure = applyOperation(trial, decodeUpdate(operation).operation, 0);
    if (failure !== null) return { at, failure };
  }
  return null;
}

/** Entries that are applied go, but for the last `kept` ones. */
export function trim(replica: StoredReplica, kept: number): void {
  const applied = replica.entries.findIndex(({ tag }) => tag.index > replica.applied.index);
  const count = (applied < 0 ? replica.entries.length : applied) - kept;
  if (count <= 0) return;
  replica.base = (replica.entries[count - 1] as ShardEntry).tag;
  replica.entries = replica.entries.slice(count);
}

export function bucketOf(id: PointId): number {
  return hashPoint(id) % DIGEST_BUCKETS;
}

export function digestOf({ applied, points }: StoredReplica): ReplicaDigest {
  const buckets = new BigUint64Array(DIGEST_BUCKETS);
  const counts = new Uint32Array(DIGEST_BUCKETS);
  for (const [id, { version }] of points) {
    const bucket = bucketOf(id);
    buckets[bucket] = BigInt.asUintN(64, (buckets[bucket] as bigint) + hashOf(id, version));
    counts[bucket] = (counts[bucket] as number) + 1;
  }
  return { at: applied, buckets, points: counts };
}

function hashOf(id: PointId, version: number): bigint {
  const hash = hashPoint(id);
  const [high, low] = [Math.floor(version / 2 ** 32), version >>> 0];
  return (BigInt(hashNumbers(hash, high, low)) << 32n) | BigInt(hashNumbers(low, hash, high));
}

/** Of `bucketPoints`: what `replaced` takes. */
export function bucketBytes({ points }: StoredReplica, buckets: readonly number[]): { readonly bytes: Uint8Array; readonly count: number } {
  const wanted = new Set(buckets);
  const inside = [...points].filter(([id]) => wanted.has(bucketOf(id)));
  return { bytes: bytesOf({ buckets, points: inside }), count: inside.length };
}

/** Others are compared with it. */
export function lead(replica: StoredReplica): void {
  replica.stale = NO_BUCKETS;
}

/** The leader's digest after the same operation. */
export function compared(replica: StoredReplica, leaders: ReplicaDigest): void {
  const own = digestOf(replica);
  if (!isSameTag(own.at, leaders.at)) return;
  const stale = new Set(replica.stale);
  for (const bucket of equalBuckets(own, leaders)) stale.delete(bucket);
  replica.stale = stale;
}

/** Makes the points of those buckets the given ones. The answer: how many have changed. */
export function replaceBuckets(replica: StoredReplica, bytes: Uint8Array): number {
  const { points } = replica;
  const given = jsonValue(bytes) as { buckets: number[]; points: [PointId, StoredPoint][] };
  const wanted = new Set(given.buckets);
  replica.stale = new Set([...replica.stale].filter((bucket) => !wanted.has(bucket)));
  const next = new Map(given.points);
  let changed = 0;
  for (const id of [...points.keys()]) {
    if (!wanted.has(bucketOf(id)) || next.has(id)) continue;
    points.delete(id);
    changed += 1;
  }
  for (const [id, point] of next) {
    if (points.get(id)?.version === point.version) continue;
    points.set(id, point);
    changed += 1;
  }
  return changed;
}

/** The only file of a checkpoint. */
export const CHECKPOINT_FILE = 'points';

/** All of it, as that file. */
export function checkpointBytes({ applied, points, fields }: StoredReplica): Uint8Array {
  return bytesOf({ applied, points: [...points], fields: [...fields] });
}

/** The replica that such a file makes: its log begins behind what the file takes in. */
export function fromCheckpoint(bytes: Uint8Array): StoredReplica {
  const { applied, fields, points } = jsonValue(bytes) as {
    applied: LogTag;
    points: [PointId, StoredPoint][];
    fields: [string, FieldSchema][];
  };
  return { base: applied, entries: [], applied, points: new Map(points), stale: NO_BUCKETS, fields: new Map(fields) };
}

/** A point as answers have it. */
export interface ShownPoint extends StoredPoint {
  readonly id: PointId;
}

/** Points of some replicas, by id. */
export function pointsOf(replicas: readonly StoredReplica[]): ShownPoint[] {
  const all = replicas.flatMap(({ points }) => [...points].map(([id, point]) => ({ id, ...point })));
  return all.sort((one, other) => compareIds(one.id, other.id));
}

function applyOperation(
  { fields, points, stale, trustsStale }: StoredReplica,
  operation: UpdateOperation,
  version: number,
): ErrorFacts | null {
  switch (operation.kind) {
    case 'upsert':
      checkPlain((operation.mode ?? 'upsert') === 'upsert' && operation.filter == null, operation);
      upsert(points, operation.batch, version);
      return null;
    case 'deletePoints':
      for (const id of idsOf(operation, points)) points.delete(id);
      return null;
    case 'setPayload':
    case 'overwritePayload': {
      checkPlain(operation.key === null, operation);
      const ids = idsOf(operation, points);
      const missing = ids.find((id) => !points.has(id) && !stale.has(bucketOf(id)));
      if (missing !== undefined) return { code: 'notFound', detail: `No point with id ${missing} found` };
      for (const id of ids) {
        const point = points.get(id);
        if (stale.has(bucketOf(id)) && trustsStale !== true) points.delete(id);
        if (point === undefined || !points.has(id)) continue;
        const { payload, vector } = point;
        const next = operation.kind === 'setPayload' ? { ...payload, ...operation.payload } : operation.payload;
        points.set(id, { version, vector, payload: next });
      }
      return null;
    }
    case 'createFieldIndex':
      fields.set(operation.field, operation.schema);
      return null;
    case 'deleteFieldIndex':
      fields.delete(operation.field);
      return null;
    default:
      throw new Error(`the simulation's engine knows no ${operation.kind}`);
  }
}

function upsert(points: Map<PointId, StoredPoint>, { ids, payloads, vectors }: PointBatch, version: number): void {
  const [column] = vectors;
  ids.forEach((id, at) => {
    const entry = column?.points == null ? at : column.points.indexOf(at);
    const has = column?.kind === 'dense' && entry >= 0;
    const vector = has ? [...column.values.subarray(entry * column.dim, (entry + 1) * column.dim)] : null;
    points.set(id, { version, vector, payload: payloads[at] ?? NO_PAYLOAD });
  });
}

const NO_PAYLOAD: Payload = {};

/** By a filter: those that are there. */
function idsOf({ selector }: Extract<UpdateOperation, { selector: PointsSelector }>, points: StoredReplica['points']): readonly PointId[] {
  if (selector.kind === 'ids') return selector.ids;
  const [condition] = selector.filter.must;
  if (condition?.kind !== 'hasId') throw new Error("the simulation's engine selects points by id");
  const { of } = selector;
  return condition.ids.filter((id) => points.has(id) && (of === undefined || ownerOf(of.ring, id) === of.shardId));
}

function checkPlain(plain: boolean, { kind }: UpdateOperation): void {
  if (!plain) throw new Error(`the simulation's engine knows no such ${kind}`);
}

function bytesOf(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value), 'utf8');
}

function jsonValue(bytes: Uint8Array): unknown {
  return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8'));
}

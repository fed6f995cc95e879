/**
 * The engine of a node of the simulation: replicas on its virtual disk. What is logged is there after a crash once its write has
 * ended, and points are those of some prefix of the log, as with the database of the real engine.
 */

import type { EnginePort } from '../../actors/runtime/ports.js';
import { type ErrorCode, type ErrorFacts, TroupeError } from '../../protocols/errors.js';
import type { ShardId } from '../../protocols/model/cluster.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { LeaderTag, LogReach, LogTag, ShardEntry, TimedWrite } from '../../protocols/model/shard-log.js';
import { encodeUpdate, NOTHING } from '../../protocols/update-codec.js';
import type { GatherAccess, GatherAsk } from '../../storage/gather/access.js';
import type { GatherActs } from '../../storage/gather/context.js';
import { gatherRead } from '../../storage/gather/read.js';
import { NO_REPLICA_LIMIT } from '../../storage/pool/replica-limit.js';
import { newEntries, nextTags } from '../../storage/replica/follow.js';
import { decodeEncoded } from '../../storage/requests/decode-update.js';
import { splitRequest } from '../../storage/requests/split-request.js';
import { weightOf } from '../../storage/requests/weigh.js';
import { neededPoints } from '../../storage/sharding/split-operation.js';
import type {
  BuildReport,
  PortionOptions,
  PortionResult,
  RawRequest,
  ReadOperation,
  ReplicaKey,
  ReplicaStats,
  ShardKeyMap,
  SplitJob,
  SplitWrite,
  WeighJob,
} from '../../storage/threads/messages.js';
import { decodePortion, encodePortionAnswer } from '../../storage/threads/portion-codec.js';
import type {
  BucketPoints,
  LogPart,
  LogWritten,
  ReplicaCheckpoint,
  ReplicaDigest,
  ShardLogPort,
  ShardPosition,
} from '../../storage/threads/shard-log.js';
import { sampleSegment, sampleStats } from '../actors/samples.js';
import type { VirtualDisk } from './disk.js';
import { answerPortion } from './engine-portions.js';
import { OpenReplica } from './open-replica.js';
import {
  ALL_BUCKETS,
  bucketBytes,
  CHECKPOINT_FILE,
  checkpointBytes,
  compared,
  digestOf,
  entriesBehind,
  firstFailure,
  knownLog,
  lastOf,
  lead,
  newReplica,
  replaceBuckets,
  rewind,
  tagBefore,
} from './replica-files.js';

/** What an engine does against its contract, to see whether the simulation finds it. */
export interface EngineMistakes {
  /** Answers writes before their log is on disk. */
  readonly answersEarly?: boolean;
  /** Passes over one operation in so many that a leader sends. */
  readonly skipsOneIn?: number;
  /** Changes points that are older than the log as if they were not. */
  readonly trustsStale?: boolean;
  /** Takes all replicas for the same. */
  readonly sameDigests?: boolean;
  /** Passes over a logged operation that meets a lack of means (Op-O5). */
  readonly passesOver?: boolean;
  /** Shows points of whichever shard has them. */
  readonly hidesNothing?: boolean;
}

export interface EngineSettings {
  /** Applied operations that a log keeps. */
  readonly logKept: number;
  /** The node's wall clock. */
  readonly nowMs: () => number;
  readonly mistakes: EngineMistakes;
}

/** From one turn of a read over many nodes to the next. */
const GATHER_MS = 0.05;

export class VirtualEngine implements EnginePort, ShardLogPort {
  readonly open = new Map<ReplicaKey, OpenReplica>();
  readonly #stats = new Set<(stats: ReplicaStats) => void>();
  readonly #failed = new Set<(key: ReplicaKey, error: TroupeError) => void>();
  /** Shards with keys, by collection. */
  #keyed: ShardKeyMap = new Map();
  #appended = 0;

  constructor(
    private readonly disk: VirtualDisk,
    private readonly ways: EngineSettings,
  ) {}

  // ---------------------------------------------------------------- replicas

  async openReplica(spec: { key: ReplicaKey; folder: string; config: CollectionConfig }, damaged: string | null): Promise<ReplicaStats> {
    if (damaged !== null) throw new TroupeError('storage', damaged);
    if (this.open.has(spec.key)) throw new TroupeError('conflict', `replica ${spec.key} is open`);
    const { disk } = this;
    await disk.read(() => {});
    if (!disk.replicas.has(spec.folder)) await disk.write(`create ${spec.key}`, () => disk.replicas.set(spec.folder, newReplica()));
    const stored = disk.replicas.get(spec.folder);
    if (stored === undefined) throw new TroupeError('storage', `${spec.folder} is gone`);
    const { key, folder, config } = spec;
    const replica = new OpenReplica({
      key,
      folder,
      config,
      stored,
      disk,
      logKept: this.ways.logKept,
      passesOver: this.ways.mistakes.passesOver === true,
      tell: (changed) => this.#tell(changed),
      failed: (error) => this.fail(key, error),
    });
    let lack: TroupeError | null = null;
    const replay = () => {
      lack = replica.applyAll();
    };
    await disk.write(`open ${key}`, replay);
    if (lack !== null) throw lack;
    this.open.set(key, replica);
    return this.#statsOf(replica);
  }

  async closeReplica(key: ReplicaKey): Promise<void> {
    const replica = this.open.get(key);
    if (replica === undefined) return;
    this.open.delete(key);
    await replica.close();
  }

  async configure(key: ReplicaKey, config: CollectionConfig): Promise<void> {
    this.#replica(key).config = config;
  }

  /** The replica cannot go on. */
  fail(key: ReplicaKey, error: TroupeError): void {
    for (const listener of this.#failed) listener(key, error);
  }

  stats(key: ReplicaKey): ReplicaStats | null {
    const replica = this.open.get(key);
    return replica === undefined ? null : this.#statsOf(replica);
  }

  onStats(listener: (stats: ReplicaStats) => void): () => void {
    this.#stats.add(listener);
    return () => this.#stats.delete(listener);
  }

  onFailed(listener: (key: ReplicaKey, error: TroupeError) => void): () => void {
    this.#failed.add(listener);
    return () => this.#failed.delete(listener);
  }

  depths() {
    return { waitingReads: 0, waitingReadsMax: 0, workers: [], replicas: { open: 0, ...NO_REPLICA_LIMIT } };
  }

  async settled(): Promise<void> {}

  async openAsleep(): Promise<null> {
    return null;
  }

  setAliases(): void {}

  setShardKeys(shards: ShardKeyMap): void {
    this.#keyed = shards;
  }

  /** Replicas here are too small for one. */
  build(): Promise<BuildReport> {
    return Promise.reject(new TroupeError('unavailable', 'nothing is built here'));
  }

  // ---------------------------------------------------------------- requests

  /** By the same code as over many nodes, of replicas that are all here. */
  async read(operation: ReadOperation, keys: readonly ReplicaKey[], request: RawRequest): Promise<Uint8Array> {
    const { params } = this.#replica(keys[0] ?? '').config;
    const keyed = this.#keyed.get(collectionOf(keys[0] ?? ''));
    const shards = keyed ?? keys.map((key) => ({ id: shardOf(key), key: null }));
    const place = { uid: 0, params, shards };
    const scatter = async ({ body, shards }: GatherAsk) => {
      const asked = keys.filter((key) => shards === null || shards.includes(shardOf(key)));
      return [(await this.portion(asked, body, request.deadlineMs, request.ring && { ring: request.ring })).body];
    };
    return this.gather(operation, request, { place, scatter, locate: nowhere });
  }

  gather(operation: ReadOperation, request: RawRequest, access: GatherAccess): Promise<Uint8Array> {
    const acts: GatherActs = {
      place: access.place,
      locate: async (collection) => access.locate(collection),
      scatter: (ask) => access.scatter(ask),
      expired: () => this.ways.nowMs() > request.deadlineMs,
      nowMs: () => this.ways.nowMs(),
      later: (run) => this.disk.later(GATHER_MS, run),
      random: () => 0.5,
    };
    return gatherRead(operation, request, acts, 'gather');
  }

  portion(keys: readonly ReplicaKey[], body: Uint8Array, _deadlineMs: number, { ring }: PortionOptions = {}): Promise<PortionResult> {
    const shown = this.ways.mistakes.hidesNothing === true ? null : (ring ?? null);
    const asked = keys.map((key) => ({ shard: shardOf(key), stored: this.#replica(key).stored, ring: shown }));
    const portion = decodePortion(body);
    return this.disk.read(() => {
      const answer = encodePortionAnswer(answerPortion(portion, asked));
      return { body: answer.slice(), positions: asked.map(({ stored }) => stored.applied.index) };
    });
  }

  async split(job: SplitJob): Promise<SplitWrite> {
    return splitRequest(job);
  }

  async weigh(job: WeighJob): Promise<number> {
    return weightOf(job);
  }

  missing(key: ReplicaKey, ids: readonly PointId[]): Promise<PointId | null> {
    return this.#whenApplied(key, ({ stored }) => ids.find((id) => !stored.points.has(id)) ?? null);
  }

  // ---------------------------------------------------------------- the log

  async write(key: ReplicaKey, as: LeaderTag, write: TimedWrite): Promise<LogWritten> {
    const replica = this.#replica(key);
    const written = await replica.inTurn(async () => {
      if (write.deadlineMs <= this.ways.nowMs())
        throw refused('timeout', 'the request was queued until its timeout; nothing was done: retry, or raise `timeout`');
      const mayFail = decodeEncoded(write.operations, replica.config.params).some(({ operation }) => neededPoints(operation).length > 0);
      await replica.checkApplied();
      lead(replica.stored);
      if (mayFail) await replica.applied(lastOf(replica.stored).index);
      // What is applied in the commit that logs it.
      const lacks = (mayFail || write.until !== 'logged') && this.disk.meetsLack();
      const failing = lacks ? { at: 0, failure: REFUSED } : mayFail ? firstFailure(replica.stored, write.operations) : null;
      const carriedOut = failing?.at ?? write.operations.length;
      const operationOf = (at: number) => (at < carriedOut ? (write.operations[at] as Uint8Array).slice() : encodeUpdate(NOTHING));
      const tags = nextTags(replica.end, as, write.operations.length);
      const made = tags.map((tag, at): ShardEntry => ({ tag, operation: operationOf(at) }));
      await this.#log(replica, made);
      return { entries: made, failure: write.until === 'logged' && !lacks ? null : (failing?.failure ?? null) };
    });
    if (write.until !== 'logged') await replica.applied(written.entries.at(-1)?.tag.index ?? 0);
    return written;
  }

  async append(key: ReplicaKey, previous: LogTag, entries: readonly ShardEntry[], until: 'logged' | 'applied'): Promise<LogTag> {
    const replica = this.#replica(key);
    const last = await replica.inTurn(async () => {
      const { stored } = replica;
      await replica.checkApplied();
      const added = newEntries(knownLog(stored, replica.end), previous, entries);
      if (added.length > 0) await this.#log(replica, this.#withMistake(added));
      return replica.end;
    });
    if (until === 'applied') await replica.applied(last.index);
    return last;
  }

  position(key: ReplicaKey): Promise<ShardPosition> {
    const replica = this.#replica(key);
    return replica.inTurn(async () => ({ last: lastOf(replica.stored), base: replica.stored.base }));
  }

  entriesAfter(key: ReplicaKey, after: LogTag, bytesMax: number): Promise<LogPart> {
    const replica = this.#replica(key);
    return replica.inTurn(async (): Promise<LogPart> => {
      const { stored } = replica;
      if (after.index < stored.base.index) return { kind: 'compacted' };
      const behind = entriesBehind(stored, after);
      if (behind === null) return { kind: 'diverged', before: tagBefore(stored, after.index) };
      let bytes = 0;
      const entries = behind.filter(({ operation }) => {
        bytes += operation.length;
        return bytes - operation.length < bytesMax;
      });
      return { kind: 'entries', entries, last: lastOf(stored) };
    });
  }

  /** Nothing has a time in here. */
  reachOf(key: ReplicaKey, after: LogTag): Promise<LogReach> {
    const replica = this.#replica(key);
    return replica.inTurn(async (): Promise<LogReach> => {
      const { stored } = replica;
      if (after.index < stored.base.index) return { kind: 'compacted', base: stored.base, firstMs: null };
      const behind = entriesBehind(stored, after);
      if (behind === null) return { kind: 'diverged', last: lastOf(stored) };
      const [next] = behind;
      if (next !== undefined) return { kind: 'untimed', at: next.tag };
      return { kind: 'reaches', fromMs: null, to: after, toMs: null, operations: 0, bytes: 0, nextMs: null };
    });
  }

  resetLog(key: ReplicaKey, at: LogTag): Promise<void> {
    return this.#whenApplied(key, (replica) => {
      return this.disk.write(`reset ${key}`, () => {
        Object.assign(replica.stored, { base: at, entries: [], applied: at, stale: ALL_BUCKETS, ...this.#trust });
        replica.end = at;
      });
    });
  }

  rewindLog(key: ReplicaKey, to: LogTag): Promise<void> {
    return this.#whenApplied(key, (replica) => {
      const { stored } = replica;
      const behind = entriesBehind(stored, to);
      if (behind === null) throw refused('conflict', `the log does not have operation ${to.index}`);
      return this.disk.write(`rewind ${key}`, () => {
        rewind(stored, behind);
        Object.assign(stored, this.#trust);
        replica.end = to;
      });
    });
  }

  digest(key: ReplicaKey, leaders: ReplicaDigest | null): Promise<ReplicaDigest> {
    return this.#whenApplied(key, async ({ stored }) => {
      if (stored.stale.size > 0)
        await this.disk.write(`compare ${key}`, () => (leaders === null ? lead(stored) : compared(stored, leaders)));
      return this.ways.mistakes.sameDigests === true ? digestOf({ ...stored, points: new Map() }) : digestOf(stored);
    });
  }

  bucketPoints(key: ReplicaKey, buckets: readonly number[]): Promise<BucketPoints> {
    return this.#whenApplied(key, ({ stored }) => {
      const { bytes, count } = bucketBytes(stored, buckets);
      return { at: stored.applied, buckets, points: count, bytes };
    });
  }

  replaceBuckets(key: ReplicaKey, bytes: Uint8Array): Promise<number> {
    return this.#whenApplied(key, async (replica) => {
      let changed = 0;
      await this.disk.write(`replace buckets of ${key}`, () => {
        changed = replaceBuckets(replica.stored, bytes);
      });
      this.#tell(replica);
      return changed;
    });
  }

  settings(key: ReplicaKey): Promise<readonly Uint8Array[]> {
    return this.#whenApplied(key, ({ stored }) =>
      [...stored.fields].map(([field, schema]) => encodeUpdate({ operation: { kind: 'createFieldIndex', field, schema }, chained: false })),
    );
  }

  applySettings(key: ReplicaKey, operations: readonly Uint8Array[]): Promise<void> {
    return this.#whenApplied(key, (replica) =>
      this.disk.write(`settings of ${key}`, () => {
        const decoded = decodeEncoded(operations, replica.config.params);
        for (const { operation } of decoded)
          if (operation.kind === 'createFieldIndex') replica.stored.fields.set(operation.field, operation.schema);
      }),
    );
  }

  checkpoint(key: ReplicaKey, folder: string): Promise<ReplicaCheckpoint> {
    return this.#whenApplied(key, async ({ stored }) => {
      const bytes = checkpointBytes(stored);
      const at = stored.applied;
      await this.disk.write(`checkpoint of ${key}`, () => this.disk.files.set(`${folder}/${CHECKPOINT_FILE}`, bytes));
      return { at, timeMs: null, folder, files: [{ path: CHECKPOINT_FILE, bytes: bytes.length }] };
    });
  }

  async releaseCheckpoint(key: ReplicaKey): Promise<void> {
    this.#replica(key);
  }

  // ---------------------------------------------------------------- within

  #replica(key: ReplicaKey): OpenReplica {
    const replica = this.open.get(key);
    if (replica === undefined) throw refused('unavailable', `replica ${key} is not open here`);
    return replica;
  }

  #log(replica: OpenReplica, entries: readonly ShardEntry[]): Promise<void> {
    return replica.log(entries, this.ways.mistakes.answersEarly === true);
  }

  #whenApplied<Value>(key: ReplicaKey, run: (replica: OpenReplica) => Value | Promise<Value>): Promise<Value> {
    const replica = this.#replica(key);
    return replica.whenApplied(() => run(replica));
  }

  #withMistake(entries: readonly ShardEntry[]): readonly ShardEntry[] {
    const { skipsOneIn } = this.ways.mistakes;
    if (skipsOneIn === undefined) return entries;
    return entries.filter(() => ++this.#appended % skipsOneIn !== 0);
  }

  get #trust(): { readonly trustsStale: boolean } {
    return { trustsStale: this.ways.mistakes.trustsStale === true };
  }

  #tell(replica: OpenReplica): void {
    const stats = this.#statsOf(replica);
    for (const listener of this.#stats) listener(stats);
  }

  #statsOf({ commits, key, stored }: OpenReplica): ReplicaStats {
    const rows = stored.points.size;
    const position = { last: lastOf(stored), base: stored.base };
    return sampleStats([sampleSegment({ rows })], {
      key,
      appliedOperation: stored.applied.index,
      commits,
      fields: new Map(stored.fields),
      position,
    });
  }
}

/** Of a leader's operation that cannot be applied: the log has nothing in its place. */
const REFUSED: ErrorFacts = { code: 'storage', detail: 'the operation cannot be applied', reason: 'failedOnApply', outcome: 'none' };

function collectionOf(key: ReplicaKey): string {
  return key.slice(0, key.lastIndexOf('/'));
}

function shardOf(key: ReplicaKey): ShardId {
  return Number(key.slice(key.lastIndexOf('/') + 1));
}

function nowhere(collection: string): never {
  throw refused('notFound', `there is no ${collection} here`);
}

function refused(code: ErrorCode, detail: string): TroupeError {
  return new TroupeError(code, detail);
}

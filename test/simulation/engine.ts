/**
 * The engine of a node of the simulation: replicas on its virtual disk. What is logged is there after a crash once its write has
 * ended, and points are those of some prefix of the log, as with the database of the real engine.
 */

import type { EnginePort } from '../../actors/runtime/ports.js';
import { type ErrorCode, type ErrorFacts, TroupeError } from '../../protocols/errors.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { ClockTag, ShardEntry } from '../../protocols/model/shard-log.js';
import { encodeOperation } from '../../protocols/operation-codec.js';
import { decodeEncoded } from '../../storage/engine/decode-update.js';
import type {
  BuildReport,
  EncodedWrite,
  PortionResult,
  RawRequest,
  ReadOperation,
  ReplicaKey,
  ReplicaStats,
  SplitJob,
  SplitWrite,
  Written,
} from '../../storage/engine/messages.js';
import { decodePortion, encodePortionAnswer } from '../../storage/engine/portion/codec.js';
import type {
  BucketPoints,
  LogPart,
  OrderedWrite,
  OrderedWritten,
  ReplicaCheckpoint,
  ReplicaDigest,
  ShardLogPort,
  ShardPosition,
} from '../../storage/engine/shard-log.js';
import { splitRequest } from '../../storage/engine/split-request.js';
import { newEntries, nextTags } from '../../storage/replica/follow.js';
import { sampleSegment, sampleStats } from '../actors/samples.js';
import type { VirtualDisk } from './disk.js';
import { answerPortion } from './engine-portions.js';
import { answerRead } from './engine-reads.js';
import {
  applyNext,
  bucketBytes,
  checkpointBytes,
  digestOf,
  entriesBehind,
  knownLog,
  lastOf,
  newReplica,
  replaceBuckets,
  type StoredReplica,
  trim,
} from './replica-files.js';

/** What an engine does against its contract, to see whether the simulation finds it. */
export interface EngineMistakes {
  /** Answers writes before their log is on disk. */
  readonly answersEarly?: boolean;
  /** Passes over one operation in so many that a leader sends. */
  readonly skipsOneIn?: number;
}

export interface EngineSettings {
  /** Applied operations that a log keeps. */
  readonly logKept: number;
  /** The node's wall clock. */
  readonly nowMs: () => number;
  readonly mistakes: EngineMistakes;
}

interface OpenReplica {
  readonly key: ReplicaKey;
  readonly folder: string;
  config: CollectionConfig;
  readonly stored: StoredReplica;
  /** Of the last operation that is on its way to the log. */
  end: ClockTag;
  /** Its last piece of work; never rejects. */
  turn: Promise<unknown>;
  applying: boolean;
  closed: boolean;
  /** Who waits until an operation is applied. */
  waiting: { readonly tick: number; readonly resolve: () => void }[];
  /** Of operations that somebody waits for. */
  readonly failures: Map<number, ErrorFacts>;
  commits: number;
}

const RETRY_MS = 300;

export class VirtualEngine implements EnginePort, ShardLogPort {
  readonly open = new Map<ReplicaKey, OpenReplica>();
  readonly #stats = new Set<(stats: ReplicaStats) => void>();
  readonly #failed = new Set<(key: ReplicaKey, error: TroupeError) => void>();
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
    const replica: OpenReplica = {
      key,
      folder,
      config,
      stored,
      end: lastOf(stored),
      turn: Promise.resolve(),
      applying: false,
      closed: false,
      waiting: [],
      failures: new Map(),
      commits: 0,
    };
    await disk.write(`open ${key}`, () => this.#applyAll(replica));
    this.open.set(key, replica);
    return this.#statsOf(replica);
  }

  async closeReplica(key: ReplicaKey): Promise<void> {
    const replica = this.open.get(key);
    if (replica === undefined) return;
    this.open.delete(key);
    await this.#inTurn(replica, () => this.#allApplied(replica));
    replica.closed = true;
  }

  async configure(key: ReplicaKey, config: CollectionConfig): Promise<void> {
    this.#replica(key).config = config;
  }

  /** Files of the replica turn out to be damaged. */
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
    return { waitingReads: 0, waitingReadsMax: 0, workers: [] };
  }

  setAliases(): void {}

  setShardKeys(): void {}

  /** Replicas here are too small for one. */
  build(): Promise<BuildReport> {
    return Promise.reject(new TroupeError('unavailable', 'nothing is built here'));
  }

  // ---------------------------------------------------------------- requests

  async read(operation: ReadOperation, keys: readonly ReplicaKey[], request: RawRequest): Promise<Uint8Array> {
    const replicas = keys.map((key) => this.#replica(key).stored);
    return this.disk.read(() => answerRead(operation, request, replicas));
  }

  portion(keys: readonly ReplicaKey[], body: Uint8Array): Promise<PortionResult> {
    const asked = keys.map((key) => ({ shard: Number(key.slice(key.lastIndexOf('/') + 1)), stored: this.#replica(key).stored }));
    const portion = decodePortion(body);
    return this.disk.read(() => {
      const answer = encodePortionAnswer(answerPortion(portion, asked));
      return { body: answer.slice(), positions: asked.map(({ stored }) => stored.applied.tick) };
    });
  }

  async split(job: SplitJob): Promise<SplitWrite> {
    return splitRequest(job);
  }

  write(): Promise<{ body: Uint8Array }> {
    return Promise.reject(new Error('writes of the simulation are ordered'));
  }

  writeEncoded(_key: ReplicaKey, _write: EncodedWrite): Promise<Written> {
    return Promise.reject(new Error('writes of the simulation are ordered'));
  }

  missing(key: ReplicaKey, ids: readonly PointId[]): Promise<PointId | null> {
    return this.#whenApplied(key, ({ stored }) => ids.find((id) => !stored.points.has(id)) ?? null);
  }

  // ---------------------------------------------------------------- the log

  async writeOrdered(key: ReplicaKey, write: OrderedWrite): Promise<OrderedWritten> {
    const replica = this.#replica(key);
    const entries = await this.#inTurn(replica, async () => {
      if (write.deadlineMs <= this.ways.nowMs()) throw refused('timeout', 'the request waited for its turn until its time was up');
      decodeEncoded(write.operations, replica.config.params);
      const tags = nextTags(replica.end, write, write.tickAfter, write.operations.length);
      const made = tags.map((tag, at): ShardEntry => ({ tag, operation: (write.operations[at] as Uint8Array).slice() }));
      await this.#log(replica, made);
      return made;
    });
    if (write.until === 'logged') return { entries, failure: null };
    return { entries, failure: await this.#outcome(replica, entries) };
  }

  async append(key: ReplicaKey, previous: ClockTag, entries: readonly ShardEntry[], until: 'logged' | 'applied'): Promise<ClockTag> {
    const replica = this.#replica(key);
    const last = await this.#inTurn(replica, async () => {
      const { stored } = replica;
      const added = newEntries(knownLog(stored, replica.end), previous, entries);
      if (added.length > 0) await this.#log(replica, this.#withMistake(added));
      return replica.end;
    });
    if (until === 'applied') await this.#applied(replica, last.tick);
    return last;
  }

  position(key: ReplicaKey): Promise<ShardPosition> {
    const replica = this.#replica(key);
    return this.#inTurn(replica, async () => ({ last: lastOf(replica.stored), base: replica.stored.base }));
  }

  entriesAfter(key: ReplicaKey, after: ClockTag, bytesMax: number): Promise<LogPart> {
    const replica = this.#replica(key);
    return this.#inTurn(replica, async (): Promise<LogPart> => {
      const { stored } = replica;
      if (after.tick < stored.base.tick) return { kind: 'compacted' };
      const behind = entriesBehind(stored, after);
      if (behind === null) return { kind: 'diverged' };
      let bytes = 0;
      const entries = behind.filter(({ operation }) => {
        bytes += operation.length;
        return bytes - operation.length < bytesMax;
      });
      return { kind: 'entries', entries, last: lastOf(stored) };
    });
  }

  resetLog(key: ReplicaKey, at: ClockTag): Promise<void> {
    return this.#whenApplied(key, (replica) => {
      return this.disk.write(`reset ${key}`, () => {
        Object.assign(replica.stored, { base: at, entries: [], applied: at, failed: false });
        replica.end = at;
      });
    });
  }

  digest(key: ReplicaKey): Promise<ReplicaDigest> {
    return this.#whenApplied(key, ({ stored }) => digestOf(stored));
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
      [...stored.fields].map(([field, schema]) =>
        encodeOperation({ operation: { kind: 'createFieldIndex', field, schema }, chained: false }),
      ),
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
      await this.disk.write(`checkpoint of ${key}`, () => this.disk.files.set(`${folder}/points`, bytes));
      return { at, folder, files: [{ path: 'points', bytes: bytes.length }] };
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

  #inTurn<Value>(replica: OpenReplica, run: () => Promise<Value>): Promise<Value> {
    const result = replica.turn.then(run);
    replica.turn = result.then(
      () => {},
      () => {},
    );
    return result;
  }

  /** Runs when everything that was logged before is applied. */
  async #whenApplied<Value>(key: ReplicaKey, run: (replica: OpenReplica) => Value | Promise<Value>): Promise<Value> {
    const replica = this.#replica(key);
    return this.#inTurn(replica, async () => {
      await this.#allApplied(replica);
      return run(replica);
    });
  }

  async #log(replica: OpenReplica, entries: readonly ShardEntry[]): Promise<void> {
    const { stored } = replica;
    const carryOut = () => {
      stored.entries = [...stored.entries, ...entries];
      this.disk.logged(replica.folder, entries);
    };
    const failed = () => {
      replica.end = lastOf(stored);
    };
    replica.end = entries.at(-1)?.tag ?? replica.end;
    const written = this.disk.write(`log of ${replica.key}`, carryOut, failed).then(() => this.#apply(replica));
    if (this.ways.mistakes.answersEarly !== true) return written;
    written.catch(() => {});
  }

  #withMistake(entries: readonly ShardEntry[]): readonly ShardEntry[] {
    const { skipsOneIn } = this.ways.mistakes;
    if (skipsOneIn === undefined) return entries;
    return entries.filter(() => ++this.#appended % skipsOneIn !== 0);
  }

  #allApplied(replica: OpenReplica): Promise<void> {
    return this.#applied(replica, lastOf(replica.stored).tick);
  }

  #applied(replica: OpenReplica, tick: number): Promise<void> {
    if (replica.stored.applied.tick >= tick) return Promise.resolve();
    return new Promise((resolve) => {
      replica.waiting.push({ tick, resolve });
      this.#apply(replica);
    });
  }

  /** The first failure of these operations, once they are applied. */
  async #outcome(replica: OpenReplica, entries: readonly ShardEntry[]): Promise<ErrorFacts | null> {
    await this.#applied(replica, entries.at(-1)?.tag.tick ?? 0);
    const failures = entries.flatMap(({ tag }) => replica.failures.get(tag.tick) ?? []);
    for (const { tag } of entries) replica.failures.delete(tag.tick);
    return failures[0] ?? null;
  }

  /** Begins to apply what is logged, unless it is under way. */
  #apply(replica: OpenReplica): void {
    if (replica.applying || lastOf(replica.stored).tick === replica.stored.applied.tick) return;
    replica.applying = true;
    const ended = () => {
      replica.applying = false;
      this.#tell(replica);
      const { tick } = replica.stored.applied;
      const done = replica.waiting.filter((waiting) => waiting.tick <= tick);
      replica.waiting = replica.waiting.filter((waiting) => waiting.tick > tick);
      for (const { resolve } of done) resolve();
      this.#apply(replica);
    };
    // A full disk has room again one day.
    const again = () => {
      replica.applying = false;
      this.disk.later(RETRY_MS, () => this.#apply(replica));
    };
    this.disk.write(`apply ${replica.key}`, () => this.#applyAll(replica)).then(ended, again);
  }

  #applyAll(replica: OpenReplica): void {
    const { stored } = replica;
    for (const entry of stored.entries) {
      if (entry.tag.tick <= stored.applied.tick) continue;
      const failure = applyNext(stored, entry);
      if (failure !== null) replica.failures.set(entry.tag.tick, failure);
    }
    replica.commits += 1;
    trim(stored, this.ways.logKept);
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
      appliedOperation: stored.applied.tick,
      commits,
      fields: new Map(stored.fields),
      position,
    });
  }
}

function refused(code: ErrorCode, detail: string): TroupeError {
  return new TroupeError(code, detail);
}

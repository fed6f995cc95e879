/** An engine without workers: it does what a test tells it to. */

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { EnginePort } from '../../actors/runtime/ports.js';
import { TroupeError } from '../../protocols/errors.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { PointId } from '../../protocols/model/point-id.js';
import { type LeaderTag, type LogTag, NO_TAG, type ShardEntry, type TimedWrite } from '../../protocols/model/shard-log.js';
import type { UndecodedUpdate } from '../../protocols/model/update.js';
import { decodeUpdate } from '../../protocols/update-codec.js';
import { markMade } from '../../storage/disk/format-marker.js';
import type { GatherAccess } from '../../storage/gather/access.js';
import type { BuildOrder, BuildProgress } from '../../storage/pool/pool.js';
import { NO_REPLICA_LIMIT } from '../../storage/pool/replica-limit.js';
import { splitRequest } from '../../storage/requests/split-request.js';
import { weightOf } from '../../storage/requests/weigh.js';
import type {
  BuildReport,
  PortionResult,
  RawRequest,
  ReplicaKey,
  ReplicaStats,
  SplitJob,
  SplitWrite,
  WeighJob,
} from '../../storage/threads/messages.js';
import type { LogPart, LogWritten, ShardPosition } from '../../storage/threads/shard-log.js';
import { sampleStats } from './samples.js';

export interface FakeBuild {
  readonly key: ReplicaKey;
  readonly plan: BuildOrder;
  readonly progress: (progress: BuildProgress) => void;
  readonly signal: AbortSignal;
  readonly finish: (stats: ReplicaStats) => void;
  readonly fail: (error: Error) => void;
}

export class FakeEngine implements EnginePort {
  readonly calls: string[] = [];
  readonly open = new Map<ReplicaKey, { config: CollectionConfig; stats: ReplicaStats }>();
  readonly builds: FakeBuild[] = [];
  /** Why replicas cannot be opened, by key. */
  readonly unopenable = new Map<ReplicaKey, TroupeError>();
  /** Figures of replicas when they are opened, by key. */
  readonly statsAtOpening = new Map<ReplicaKey, ReplicaStats>();
  readonly #stats = new Set<(stats: ReplicaStats) => void>();
  readonly #failed = new Set<(key: ReplicaKey, error: TroupeError) => void>();

  aliases: ReadonlyMap<string, string> = new Map();

  setShardKeys(): void {}

  async settled(): Promise<void> {}

  async openAsleep(): Promise<null> {
    return null;
  }

  setAliases(aliases: ReadonlyMap<string, string>): void {
    this.aliases = aliases;
  }

  async read(operation: string, replicas: readonly ReplicaKey[]): Promise<Uint8Array> {
    return bytes(`${operation} of ${replicas.join()}`);
  }

  async portion(replicas: readonly ReplicaKey[], body: Uint8Array): Promise<PortionResult> {
    return { body: bytes(`${Buffer.from(body)} of ${replicas.join()}`), positions: replicas.map(() => 0) };
  }

  async gather(operation: string, _request: RawRequest, { place, scatter }: GatherAccess): Promise<Uint8Array> {
    if (place.shards.length === 0) return bytes('nothing');
    const answers = await scatter({ collection: null, shards: null, body: bytes(operation) });
    return bytes(
      answers
        .map((answer) => Buffer.from(answer).toString())
        .sort()
        .join(', '),
    );
  }

  async split(job: SplitJob): Promise<SplitWrite> {
    return splitRequest(job);
  }

  async weigh(job: WeighJob): Promise<number> {
    return weightOf(job);
  }

  /** Points that no replica has. */
  readonly absent = new Set<PointId>();

  async missing(key: ReplicaKey, ids: readonly PointId[]): Promise<PointId | null> {
    this.calls.push(`missing ${key} ${ids.join()}`);
    return ids.find((id) => this.absent.has(id)) ?? null;
  }

  async openReplica(spec: { key: ReplicaKey; config: CollectionConfig }, damaged: string | null): Promise<ReplicaStats> {
    this.calls.push(`open ${spec.key}${damaged === null ? '' : ` damaged: ${damaged}`}`);
    if (this.open.has(spec.key)) throw new TroupeError('conflict', `replica ${spec.key} is open`);
    const error = damaged === null ? this.unopenable.get(spec.key) : new TroupeError('storage', damaged);
    if (error !== undefined) throw error;
    const stats = this.statsAtOpening.get(spec.key) ?? sampleStats(undefined, { key: spec.key });
    this.open.set(spec.key, { config: spec.config, stats });
    return stats;
  }

  async closeReplica(key: ReplicaKey): Promise<void> {
    if (this.open.delete(key)) this.calls.push(`close ${key}`);
  }

  async configure(key: ReplicaKey, config: CollectionConfig): Promise<void> {
    this.calls.push(`configure ${key}`);
    const replica = this.open.get(key);
    if (replica !== undefined) replica.config = config;
  }

  build(key: ReplicaKey, plan: BuildOrder, progress: (progress: BuildProgress) => void, signal: AbortSignal): Promise<BuildReport> {
    return new Promise((resolve, reject) => {
      const finish = (stats: ReplicaStats) => {
        this.tellStats(stats);
        resolve({ rows: 5000, milliseconds: 1, graphs: [] });
      };
      this.builds.push({ key, plan, progress, signal, finish, fail: reject });
      signal.addEventListener('abort', () => reject(new TroupeError('unavailable', 'the build was cancelled')));
    });
  }

  // Of their shards' logs, replicas know where they end.
  readonly #ends = new Map<ReplicaKey, LogTag>();

  async write(key: ReplicaKey, { indexAfter, peer, term }: LeaderTag, { operations, undecoded, until }: TimedWrite): Promise<LogWritten> {
    if (undecoded !== undefined) return this.#writeUndecoded(key, { peer, term, index: this.#endOf(key).index + 1 }, undecoded, until);
    const after = Math.max(indexAfter, this.#endOf(key).index);
    const entries = operations.map((operation, at) => ({ operation, tag: { peer, term, index: after + 1 + at } }));
    await this.append(key, this.#endOf(key), entries, until === 'logged' ? until : 'applied');
    return { entries, failure: null };
  }

  #writeUndecoded(key: ReplicaKey, tag: LogTag, undecoded: UndecodedUpdate, until: string): LogWritten {
    this.calls.push(`write ${key} ${undecoded.operation} until ${until}`);
    if (!this.open.has(key)) throw new TroupeError('unavailable', `replica ${key} is not open here`);
    undecoded.shape = { parts: [1], listed: false, failure: null };
    this.#ends.set(key, tag);
    return { entries: [{ tag, operation: bytes('') }], failure: null };
  }

  async append(key: ReplicaKey, _previous: LogTag, entries: readonly ShardEntry[], until: string): Promise<LogTag> {
    const kinds = entries.map(({ operation }) => decodeUpdate(operation).operation.kind);
    this.calls.push(`write ${key} ${kinds.join()} until ${until}`);
    this.#ends.set(key, entries.at(-1)?.tag ?? this.#endOf(key));
    return this.#endOf(key);
  }

  async position(key: ReplicaKey): Promise<ShardPosition> {
    return { last: this.#endOf(key), base: NO_TAG };
  }

  #endOf(key: ReplicaKey): LogTag {
    return this.#ends.get(key) ?? NO_TAG;
  }

  /** Nothing is behind what a test has written. */
  async entriesAfter(key: ReplicaKey): Promise<LogPart> {
    return { kind: 'entries', entries: [], last: this.#endOf(key) };
  }

  readonly reachOf = noLog;
  readonly resetLog = noLog;
  readonly rewindLog = noLog;
  readonly digest = noLog;
  readonly bucketPoints = noLog;
  readonly replaceBuckets = noLog;
  readonly settings = noLog;
  readonly applySettings = noLog;
  readonly checkpoint = noLog;
  readonly releaseCheckpoint = noLog;

  stats(key: ReplicaKey): ReplicaStats | null {
    return this.open.get(key)?.stats ?? null;
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

  tellStats(stats: ReplicaStats): void {
    const replica = this.open.get(stats.key);
    if (replica !== undefined) replica.stats = stats;
    for (const listener of this.#stats) listener(stats);
  }

  fail(key: ReplicaKey, error: TroupeError): void {
    for (const listener of this.#failed) listener(key, error);
  }
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

async function noLog(key: ReplicaKey): Promise<never> {
  throw new TroupeError('unavailable', `replica ${key} has no log here`);
}

/** An engine whose replicas leave a file: each opening of an empty folder writes another one. */
export class EngineWithFiles extends FakeEngine {
  static #made = 0;

  override async openReplica(spec: Parameters<FakeEngine['openReplica']>[0] & { folder: string }, damaged: string | null) {
    const stats = await super.openReplica(spec, damaged);
    await mkdir(spec.folder, { recursive: true });
    EngineWithFiles.#made += 1;
    await writeFile(join(spec.folder, 'points'), String(EngineWithFiles.#made), { flag: 'wx' }).catch(() => {});
    markMade(spec.folder, 1);
    return stats;
  }
}

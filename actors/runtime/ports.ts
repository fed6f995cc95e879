/** What actors need of the world, as interfaces, so that tests and simulations can put their own in place. */

import type { TroupeError } from '../../protocols/errors.js';
import type { AliasMap } from '../../protocols/model/alias.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { PointId } from '../../protocols/model/point-id.js';
import type { GatherAccess } from '../../storage/gather/access.js';
import type { BuildOrder, BuildProgress, PoolDepths } from '../../storage/pool/pool.js';
import type {
  BuildReport,
  PortionOptions,
  PortionResult,
  RawRequest,
  ReadOperation,
  ReplicaKey,
  ReplicaSpec,
  ReplicaStats,
  ShardKeyMap,
  SplitJob,
  SplitWrite,
  WeighJob,
} from '../../storage/threads/messages.js';
import type { ShardLogPort } from '../../storage/threads/shard-log.js';

export interface Clock {
  /** Milliseconds, of a clock that is never set: for deadlines, pauses and durations. It begins at about the date when the process starts. */
  nowMs(): number;
  /** The system's date, in milliseconds since the epoch: for showing, and for the turns of backups. It can be set in either direction. */
  dateMs(): number;
}

export interface MonotonicClock extends Clock {
  /** Milliseconds since some moment: it is never set, and goes on while the process is stopped. */
  monotonicMs(): number;
}

export type Cancel = () => void;

export interface Timers {
  /** Runs `run` once after `delayMs`, unless cancelled. */
  after(delayMs: number, run: () => void): Cancel;
}

export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
}

export interface Log {
  debug(message: string, facts?: Record<string, unknown>): void;
  info(message: string, facts?: Record<string, unknown>): void;
  warn(message: string, facts?: Record<string, unknown>): void;
  error(message: string, facts?: Record<string, unknown>): void;
}

/** Delivers messages one after the other, in order, never inside the call that sends them. */
export interface Mailboxes {
  open(parent: Mailbox | null, name: string, receive: (item: unknown) => void): Mailbox;
  close(): void;
}

export interface Mailbox {
  post(item: unknown): void;
  /** What still waits is dropped. */
  close(): void;
}

export interface RuntimePorts {
  readonly clock: MonotonicClock;
  readonly timers: Timers;
  readonly random: Random;
  readonly log: Log;
  readonly mailboxes: Mailboxes;
}

/** The engine's workers as the actors see them: what they use of `EnginePool`. */
export interface EnginePort extends ShardLogPort {
  /** Threads that may ever read segments; left out: as many as CPUs. */
  readonly readersMax?: number;
  read(operation: ReadOperation, replicas: readonly ReplicaKey[], request: RawRequest): Promise<Uint8Array>;
  /** A part of a read over many nodes, on some replicas of its collection. */
  portion(replicas: readonly ReplicaKey[], body: Uint8Array, deadlineMs: number, how?: PortionOptions): Promise<PortionResult>;
  /** A read whose portions are asked through `access`. */
  gather(operation: ReadOperation, request: RawRequest, access: GatherAccess): Promise<Uint8Array>;
  /** Resolves when all threads that answer reads have done what they were sent before. */
  settled(): Promise<void>;
  /** Reads that begin from now on find collections by these aliases, too. */
  setAliases(aliases: AliasMap): void;
  /** Reads that begin from now on choose shards by these keys. */
  setShardKeys(shards: ShardKeyMap): void;
  /** A write request as its shards get it. Nothing is written. */
  split(job: SplitJob): Promise<SplitWrite>;
  /** What a request costs where the rate of requests is limited. */
  weigh(job: WeighJob): Promise<number>;
  /** The first of these points that is not there after all writes before; null: all are. */
  missing(key: ReplicaKey, ids: readonly PointId[], deadlineMs: number): Promise<PointId | null>;
  openReplica(spec: Omit<ReplicaSpec, 'readers'>, damaged: string | null): Promise<ReplicaStats>;
  /** As `openReplica`, of one that is checked and opened when somebody needs it. Null: it has to be opened. */
  openAsleep(spec: Omit<ReplicaSpec, 'readers'>, check: () => Promise<string | null>): Promise<ReplicaStats | null>;
  /** Nothing happens when it is not open. */
  closeReplica(key: ReplicaKey): Promise<void>;
  configure(key: ReplicaKey, config: CollectionConfig): Promise<void>;
  /** Builds and publishes. Aborting `signal` gives it up, and nothing has changed. */
  build(key: ReplicaKey, plan: BuildOrder, onProgress: (progress: BuildProgress) => void, signal: AbortSignal): Promise<BuildReport>;
  /** The newest known figures; null when the replica is not open. */
  stats(key: ReplicaKey): ReplicaStats | null;
  onStats(listener: (stats: ReplicaStats) => void): Cancel;
  /** The replica cannot go on: its files are damaged or its worker is gone. */
  onFailed(listener: (key: ReplicaKey, error: TroupeError) => void): Cancel;
  depths(): PoolDepths;
}

/**
 * A replica's part in its shard's log, as the main thread asks for it of the replica's home worker, which does everything in the
 * order in which it was asked. What stands here goes for `EnginePool` and for the engine that simulations have.
 */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import type { LogTag, ShardEntry } from '../../protocols/model/shard-log.js';
import type { HardwareUsage } from '../../protocols/model/usage.js';
import type { ReplicaKey } from './messages.js';

/** Operations that the leader puts in order. They were one request or a part of one: none behind one that fails is carried out. */
export interface OrderedWrite {
  readonly peer: PeerId;
  /** The leader's term. A lower one than that of the last operation is refused as `conflict`. */
  readonly term: number;
  /** Indexes are larger than this. */
  readonly indexAfter: number;
  /** As `encodeOperation` makes them. */
  readonly operations: readonly Uint8Array[];
  readonly until: 'logged' | 'applied';
  readonly deadlineMs: number;
  readonly usage?: HardwareUsage;
}

/** It is on disk. */
export interface OrderedWritten {
  /** What is in the log, to be sent to other replicas: in the place of an operation that failed, and of those behind it, one that changes nothing. */
  readonly entries: readonly ShardEntry[];
  /** Of the first operation that failed (until: 'applied'). */
  readonly failure: ErrorFacts | null;
}

export interface ShardPosition {
  /** Of the newest operation that is on disk. */
  readonly last: LogTag;
  /** Of the operation before the oldest one that is still in the log: entries can be had after it, or after any later one. */
  readonly base: LogTag;
}

export type LogPart =
  | { readonly kind: 'entries'; readonly entries: readonly ShardEntry[]; readonly last: LogTag }
  /** Its log does not go back so far. */
  | { readonly kind: 'compacted' }
  /** Its log has another operation there, or none. before: the newest that it has before that one, null where it does not go back so far. */
  | { readonly kind: 'diverged'; readonly before: LogTag | null };

/** Buckets that points are counted in by a hash of their id (`bucketOf`). */
export const DIGEST_BUCKETS = 4096;

/** Sums of hashes over (id, version) of the points in each bucket: replicas with equal digests have the same points. */
export interface ReplicaDigest {
  /** Of the last operation that it takes in. */
  readonly at: LogTag;
  /** u64 [DIGEST_BUCKETS]. */
  readonly buckets: BigUint64Array;
  /** Points in each bucket: u32 [DIGEST_BUCKETS]. */
  readonly points: Uint32Array;
}

/** All points of some buckets, with their versions, after the operation `at`. */
export interface BucketPoints {
  readonly at: LogTag;
  readonly buckets: readonly number[];
  readonly points: number;
  /** For `replaceBuckets` of another replica. */
  readonly bytes: Uint8Array;
}

/** A copy of the replica's files as of `at`, which changes no more until it is released. */
export interface ReplicaCheckpoint {
  readonly at: LogTag;
  readonly folder: string;
  /** Paths below it, with `/`. */
  readonly files: readonly { readonly path: string; readonly bytes: number }[];
}

/** Errors of all: `unavailable` when the replica is not open; `storage`; `busy`; `timeout` where there is a deadline. */
export interface ShardLogPort {
  /**
   * Errors: `conflict` for a term that is over, `wrongInput` of the operations, `busy` and `timeout`: nothing is logged then. After
   * `storage`, and `unavailable` where the writer was lost, `position` tells what is. Memory of the operations stays the caller's.
   */
  writeOrdered(key: ReplicaKey, write: OrderedWrite): Promise<OrderedWritten>;
  /**
   * Takes over a leader's operations: those that it has are passed over. previous: of the operation before the first of `entries`.
   * Answers with its last tag when all are on disk. Errors: `conflict` when it has another operation than `previous`, or none, or
   * ends with an operation that is not among them; `unavailable` when the collection does not have their vectors here yet. Without
   * entries it says whether it has `previous`, and until 'applied' waits for what is logged.
   */
  append(key: ReplicaKey, previous: LogTag, entries: readonly ShardEntry[], until: 'logged' | 'applied'): Promise<LogTag>;
  position(key: ReplicaKey): Promise<ShardPosition>;
  /** Entries after an operation, `bytesMax` of them at least where there are as many. */
  entriesAfter(key: ReplicaKey, after: LogTag, bytesMax: number): Promise<LogPart>;
  /**
   * The log begins anew behind `at`, with points as they are, which are stale (`replica/stale.ts`): what follows makes them those of `at`.
   */
  resetLog(key: ReplicaKey, at: LogTag): Promise<void>;
  /**
   * The log ends with `to`, as if nothing had been logged behind it; the points that it had changed since then are stale (`replica/stale.ts`).
   * Errors: `conflict` when it does not have `to`; `storage`, also where what is behind cannot be read.
   */
  rewindLog(key: ReplicaKey, to: LogTag): Promise<void>;
  /**
   * Once everything before is applied. leaders: of the leader, where it is another replica: buckets that are equal after the same operation are no
   * longer taken for stale. null: of the leader itself.
   */
  digest(key: ReplicaKey, leaders: ReplicaDigest | null): Promise<ReplicaDigest>;
  /** Once everything before is applied. */
  bucketPoints(key: ReplicaKey, buckets: readonly number[]): Promise<BucketPoints>;
  /**
   * Makes the points of those buckets the given ones, on disk when it is answered. The answer: points that were changed, added or
   * removed; those that have their version already stay. Errors: `conflict` when the replica's last operation is not the `at` of the points.
   */
  replaceBuckets(key: ReplicaKey, bytes: Uint8Array): Promise<number>;
  /** What is not points, field indexes, as operations, for a replica that is to be filled. */
  settings(key: ReplicaKey): Promise<readonly Uint8Array[]>;
  /** Applies such operations outside of the log; field indexes that are not among them go. */
  applySettings(key: ReplicaKey, operations: readonly Uint8Array[]): Promise<void>;
  /** Into `folder`, which is made. The log keeps what follows until `releaseCheckpoint`. */
  checkpoint(key: ReplicaKey, folder: string): Promise<ReplicaCheckpoint>;
  releaseCheckpoint(key: ReplicaKey): Promise<void>;
}

/**
 * A replica's part in its shard's log: the port by which the main thread asks the replica's home worker, which does everything in the order
 * of the calls. `EnginePool` implements it, and so does the engine of simulations.
 */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { LeaderTag, LogReach, LogTag, ShardEntry, TimedWrite } from '../../protocols/model/shard-log.js';
import type { ReplicaKey } from './messages.js';

/** The result of a write that is on disk. */
export interface LogWritten {
  /**
   * The entries in the log, to send to other replicas. In the place of an operation that failed, and of those after it, the log has one
   * that changes nothing.
   */
  readonly entries: readonly ShardEntry[];
  /** The error of the first operation that failed; null with `until: 'logged'`. */
  readonly failure: ErrorFacts | null;
}

export interface ShardPosition {
  /** Tag of the newest operation on disk. */
  readonly last: LogTag;
  /** Tag of the operation before the oldest one in the log. Entries are available after it and after every later operation. */
  readonly base: LogTag;
}

export type LogPart =
  | { readonly kind: 'entries'; readonly entries: readonly ShardEntry[]; readonly last: LogTag }
  /** The log does not go back so far. */
  | { readonly kind: 'compacted' }
  /** The log has another operation there, or none. before: the newest one that it has before that; null if it does not go back so far. */
  | { readonly kind: 'diverged'; readonly before: LogTag | null };

/** Number of buckets of points, by a hash of their id (`bucketOfId`). */
export const DIGEST_BUCKETS = 4096;

/** Sums of hashes over (id, version) of the points in each bucket: replicas with equal digests have the same points. */
export interface ReplicaDigest {
  /** Tag of the last operation that the digest includes. */
  readonly at: LogTag;
  /** u64 [DIGEST_BUCKETS]. */
  readonly buckets: BigUint64Array;
  /** Number of points in each bucket: u32 [DIGEST_BUCKETS]. */
  readonly points: Uint32Array;
}

/** All points of some buckets, with their versions, after the operation `at`. */
export interface BucketPoints {
  readonly at: LogTag;
  readonly buckets: readonly number[];
  readonly points: number;
  /** The points encoded for another replica's `replaceBuckets`. */
  readonly bytes: Uint8Array;
}

/** A copy of the replica's files as of `at`, which does not change until it is released. */
export interface ReplicaCheckpoint {
  readonly at: LogTag;
  /** When that operation was acknowledged: a date in milliseconds; null: not known. */
  readonly timeMs: number | null;
  readonly folder: string;
  /** Paths below `folder`, with `/`. */
  readonly files: readonly { readonly path: string; readonly bytes: number }[];
}

/** A replica's log. Errors of all calls: `unavailable` if the replica is not open; `storage`; `busy`; `timeout` if there is a deadline. */
export interface ShardLogPort {
  /**
   * Writes to the log, as a leader; with `until` other than `logged` also to the points. Errors: `conflict` for a term that is over, `wrongInput` of the operations, `busy` and `timeout`: nothing
   * is logged then. After `storage`, and after `unavailable` because the writer was lost, `position` tells what is logged. The caller keeps
   * the memory of the operations.
   */
  write(key: ReplicaKey, as: LeaderTag, write: TimedWrite): Promise<LogWritten>;
  /**
   * Takes over a leader's operations; those that the log has already are skipped. Answers with the last tag when all are on disk. previous:
   * tag of the operation before the first of `entries`. Without entries it checks that the log has `previous` and, with until 'applied',
   * waits until everything logged is applied. Errors: `conflict` if the log has another operation than `previous`, or none, or ends with an
   * operation that is not among them; `unavailable` if the collection does not have their vectors here yet.
   */
  append(key: ReplicaKey, previous: LogTag, entries: readonly ShardEntry[], until: 'logged' | 'applied'): Promise<LogTag>;
  position(key: ReplicaKey): Promise<ShardPosition>;
  /** Entries after an operation, at least `bytesMax` bytes of them if the log has as many. */
  entriesAfter(key: ReplicaKey, after: LogTag, bytesMax: number): Promise<LogPart>;
  /** What the log has after an operation until a time, a date in milliseconds. Nothing is read of the operations but their times. */
  reachOf(key: ReplicaKey, after: LogTag, untilMs: number): Promise<LogReach>;
  /**
   * Makes the log begin after `at`. The points stay as they are and are stale (`replica/stale.ts`) until later calls make them those of
   * `at`.
   */
  resetLog(key: ReplicaKey, at: LogTag): Promise<void>;
  /**
   * Makes the log end with `to`, as if nothing had been logged after it; the points that were changed since then are stale
   * (`replica/stale.ts`). Errors: `conflict` if the log does not have `to`; `storage`, also if the operations after it cannot be read.
   */
  rewindLog(key: ReplicaKey, to: LogTag): Promise<void>;
  /**
   * The digest once everything before is applied. leaders: the leader's digest on another replica: buckets that are equal after the same
   * operation are not stale any more. Null on the leader itself.
   */
  digest(key: ReplicaKey, leaders: ReplicaDigest | null): Promise<ReplicaDigest>;
  /** The points of these buckets once everything before is applied. */
  bucketPoints(key: ReplicaKey, buckets: readonly number[]): Promise<BucketPoints>;
  /**
   * Replaces the points of some buckets by the given ones, on disk when it is answered. The answer: the number of points that were changed,
   * added or removed; points that have their version already stay. Errors: `conflict` if the replica's last operation is not the `at` of
   * the points.
   */
  replaceBuckets(key: ReplicaKey, bytes: Uint8Array): Promise<number>;
  /** The settings that are not points (field indexes), as operations for a replica that is to be filled. */
  settings(key: ReplicaKey): Promise<readonly Uint8Array[]>;
  /** Applies such operations outside of the log; field indexes that are not among them are removed. */
  applySettings(key: ReplicaKey, operations: readonly Uint8Array[]): Promise<void>;
  /** Makes a checkpoint in `folder`, which is created. isFollowed: the log keeps later operations until `releaseCheckpoint`. */
  checkpoint(key: ReplicaKey, folder: string, isFollowed: boolean): Promise<ReplicaCheckpoint>;
  releaseCheckpoint(key: ReplicaKey): Promise<void>;
}

/**
 * Calls between nodes about replicas, besides consensus: forwarded writes and reads, the log of a shard, transfers. Each call has an answer
 * and goes over the internal port; bodies are not decoded on the way.
 */

import { type ErrorFacts, TroupeError } from '../protocols/errors.js';
import type { PeerId, ShardId } from '../protocols/model/cluster.js';
import type { FieldSchema } from '../protocols/model/collection.js';
import type { OptimizationsView } from '../protocols/model/optimizations.js';
import type { PointId } from '../protocols/model/point-id.js';
import type { LogReach, LogTag, ShardEntry, ShardWrite } from '../protocols/model/shard-log.js';
import type { UpdateStatus, WriteOperation } from '../protocols/model/update.js';
import type { HardwareUsage } from '../protocols/model/usage.js';
import type { WriteHop } from '../protocols/model/write-hop.js';

/** Sums over the points of each bucket, as of the operation `at`. */
export interface DigestFacts {
  readonly at: LogTag;
  readonly buckets: BigUint64Array;
  readonly points: Uint32Array;
}

/** Names a shard of one collection. A later collection of the same name has another `uid`. */
export interface ShardAddress {
  readonly collection: string;
  readonly uid: number;
  readonly shardId: ShardId;
}

/** Guards a copy from one shard to another: a late copy is refused as `conflict`. */
export interface CopyFence {
  /** See `Resharding`. */
  readonly startedAt: number;
  /** The shard that the points come from, and its term. */
  readonly from: ShardId;
  readonly term: number;
  /** Ascending. A copy with a lower number than one that was taken is refused. */
  readonly sequence: number;
}

/**
 * Calls. timeoutMs: the rest of the caller's time, in milliseconds. measured: the answer reports its cost. shardMapVersion: the caller's
 * version of the shard map; a node with another version refuses the call as `conflict`. fence: set for calls of a migration, which see all
 * points of the shard.
 */
export type DataCall =
  /** The part of a write request for the shard's leader. Answered when it is acknowledged (see `actors/shard-log`). */
  | (ShardWrite & {
      readonly kind: 'write';
      /** The operation as the request has it. */
      readonly operation: WriteOperation;
      readonly shard: ShardAddress;
      readonly timeoutMs: number;
      readonly measured: boolean;
      /** Set for a write that is part of a trace: the answer has its hops. */
      readonly isTraced?: boolean;
      readonly shardMapVersion: number;
      readonly fence?: CopyFence;
    })
  /** Asks the shard's leader for the first of these points that does not exist after all earlier writes. */
  | {
      readonly kind: 'missing';
      readonly shard: ShardAddress;
      readonly ids: readonly PointId[];
      readonly timeoutMs: number;
      readonly shardMapVersion: number;
    }
  /**
   * Asks the shard's leader to log an entry that changes nothing. Answered once all replicas that the leader waits for have applied it. So
   * the leader has led since it was asked, and every earlier write has a lower index (Log-L12).
   */
  | {
      readonly kind: 'barrier';
      readonly shard: ShardAddress;
      readonly timeoutMs: number;
      readonly shardMapVersion: number;
      readonly fence?: CopyFence;
    }
  /** A portion of a read, for replicas of these shards that serve reads (`storage/reader/portion`). */
  | {
      readonly kind: 'read';
      readonly collection: string;
      readonly uid: number;
      readonly shards: readonly ShardId[];
      readonly body: Uint8Array;
      readonly timeoutMs: number;
      readonly measured: boolean;
      readonly shardMapVersion: number;
      readonly fence?: CopyFence;
    }
  /** Asks for the peer's version of the shard map, and whether readers see all points of its replicas. */
  | { readonly kind: 'shardMap'; readonly collection: string; readonly uid: number }
  /** Asks how far the logs of these replicas reach. */
  | { readonly kind: 'reached'; readonly collection: string; readonly uid: number; readonly shards: readonly ShardId[] }
  /** Waits until reads see all points of the replica (`prevent_unoptimized`). */
  | { readonly kind: 'shown'; readonly shard: ShardAddress; readonly timeoutMs: number }
  /** Asks for figures of these replicas, for `GET /collections/{c}`. */
  | { readonly kind: 'figures'; readonly collection: string; readonly uid: number; readonly shards: readonly ShardId[] }
  /** Asks what the optimizers of all replicas of the collection on this peer do. */
  | { readonly kind: 'optimizations'; readonly collection: string; readonly uid: number }
  /**
   * Entries from the shard's leader. Refused as `conflict` if the receiver knows a higher term, or if its replica is not the one that is
   * meant: that one was dropped, or is yet to be made (since: see `ShardRecord`).
   */
  | {
      readonly kind: 'append';
      readonly shard: ShardAddress;
      readonly since: number;
      readonly leader: PeerId;
      readonly term: number;
      readonly previous: LogTag;
      readonly entries: readonly ShardEntry[];
      readonly until: 'logged' | 'applied';
    }
  /** Asks the shard's leader to give the lead to this peer, with no write open. Answered once that is agreed. */
  | { readonly kind: 'handOver'; readonly shard: ShardAddress; readonly term: number; readonly to: PeerId }
  /** Asks the shard's leader to compare the replica of this peer with its own, and to repair what differs. Answered once that is to be done. */
  | { readonly kind: 'compareReplica'; readonly shard: ShardAddress; readonly term: number; readonly peerId: PeerId }
  | { readonly kind: 'position'; readonly shard: ShardAddress; readonly since: number; readonly term: number }
  | {
      readonly kind: 'entriesAfter';
      readonly shard: ShardAddress;
      readonly since: number;
      readonly term: number;
      readonly after: LogTag;
      readonly bytesMax: number;
    }
  | { readonly kind: 'resetLog'; readonly shard: ShardAddress; readonly since: number; readonly term: number; readonly at: LogTag }
  | { readonly kind: 'rewindLog'; readonly shard: ShardAddress; readonly since: number; readonly term: number; readonly to: LogTag }
  /** leaders: the digest of the leader that asks, to compare with. */
  | {
      readonly kind: 'digest';
      readonly shard: ShardAddress;
      readonly since: number;
      readonly term: number;
      readonly leaders: DigestFacts;
    }
  | {
      readonly kind: 'replaceBuckets';
      readonly shard: ShardAddress;
      readonly since: number;
      readonly term: number;
      readonly bytes: Uint8Array;
    }
  | {
      readonly kind: 'applySettings';
      readonly shard: ShardAddress;
      readonly since: number;
      readonly term: number;
      readonly operations: readonly Uint8Array[];
    }
  /**
   * Brings the target of a `snapshot` transfer files of the leader's checkpoint, in parts and in order. `installFiles` then replaces the
   * target's files by them. startedAt: names the transfer, as its record does.
   */
  | {
      readonly kind: 'putFile';
      readonly shard: ShardAddress;
      readonly term: number;
      readonly startedAt: number;
      readonly path: string;
      readonly offset: number;
      readonly bytes: Uint8Array;
    }
  | {
      readonly kind: 'installFiles';
      readonly shard: ShardAddress;
      readonly term: number;
      readonly startedAt: number;
      readonly files: readonly { readonly path: string; readonly bytes: number }[];
    }
  /**
   * Brings the shard's leader files of a snapshot, in parts and in order. `installRestored` then makes them the shard's data. restore: names
   * the restore. at: the last operation that the files have.
   */
  | {
      readonly kind: 'putRestored';
      readonly shard: ShardAddress;
      readonly restore: string;
      readonly path: string;
      readonly offset: number;
      readonly bytes: Uint8Array;
    }
  | {
      readonly kind: 'installRestored';
      readonly shard: ShardAddress;
      readonly restore: string;
      readonly at: LogTag;
      readonly files: readonly { readonly path: string; readonly bytes: number }[];
    }
  /**
   * As `installRestored`, and the operations of the log after `at` up to `to` belong to the restore. A kind of its own: a release that does not know it
   * would restore without them.
   */
  | {
      readonly kind: 'installUntil';
      readonly shard: ShardAddress;
      readonly restore: string;
      readonly at: LogTag;
      readonly to: LogTag;
      readonly files: readonly { readonly path: string; readonly bytes: number }[];
    }
  /** Asks the shard's leader what its log has after an operation until a time. */
  | { readonly kind: 'reachOf'; readonly shard: ShardAddress; readonly after: LogTag; readonly untilMs: number };

/** One replica's part of its collection's figures. */
export interface ShardFigures {
  readonly status: 'green' | 'yellow' | 'grey' | 'red';
  /** The error of its optimizer, or why it is Dead; null if there is no error. */
  readonly error: string | null;
  readonly points: number;
  readonly deferredPoints: number;
  /** Of live points; a peer of an earlier release doesn't tell. */
  readonly vectorBytes?: number;
  readonly payloadBytes?: number;
  readonly indexedVectors: number;
  readonly segments: number;
  readonly queuedOperations: number;
  readonly fields: readonly { readonly field: string; readonly schema: FieldSchema; readonly points: number }[];
}

/** The end of a replica's log. */
export interface ReachedLog {
  /** Term of the newest operation on its disk. */
  readonly term: number;
  readonly index: number;
  /**
   * On a leader: every replica that it waits for, including one that is about to become Active, has all operations up to this index. Null
   * if this node does not know it.
   */
  readonly held: number | null;
}

/** Calls that a replica answers in every role, in the order in which they come. */
export type ReplicaCall = Extract<
  DataCall,
  { kind: 'append' | 'position' | 'entriesAfter' | 'resetLog' | 'rewindLog' | 'digest' | 'replaceBuckets' | 'applySettings' }
>;

export type DataReply =
  | {
      readonly kind: 'written';
      readonly numbers: readonly number[];
      readonly status: UpdateStatus;
      readonly usage: HardwareUsage | null;
      /** Of a write that is part of a trace: what the peer did, by a clock that was 0 when the call came. */
      readonly hop?: WriteHop;
    }
  | { readonly kind: 'missing'; readonly id: PointId | null }
  /** index: of the barrier's entry. Every earlier write has a lower one. */
  | { readonly kind: 'barrier'; readonly index: number }
  /** positions: for each of the asked shards, the index of the last operation that the answer includes. */
  | {
      readonly kind: 'answered';
      readonly body: Uint8Array;
      readonly positions: readonly number[];
      readonly usage: HardwareUsage | null;
    }
  /** The ends of the logs of the asked shards' replicas. */
  | { readonly kind: 'reached'; readonly logs: readonly ReachedLog[] }
  /** showsAll: readers see all points of the replicas on this node (`prevent_unoptimized` holds none back), now and later. */
  | { readonly kind: 'shardMap'; readonly shardMapVersion: number; readonly showsAll: boolean }
  | { readonly kind: 'figures'; readonly figures: readonly ShardFigures[] }
  | { readonly kind: 'optimizations'; readonly view: OptimizationsView }
  | { readonly kind: 'position'; readonly last: LogTag; readonly base: LogTag }
  | { readonly kind: 'entries'; readonly entries: readonly ShardEntry[]; readonly last: LogTag }
  | { readonly kind: 'compacted' }
  | { readonly kind: 'diverged'; readonly before: LogTag | null }
  | ({ readonly kind: 'digest' } & DigestFacts)
  | { readonly kind: 'reach'; readonly reach: LogReach }
  | { readonly kind: 'done'; readonly changed: number }
  | { readonly kind: 'error'; readonly error: ErrorFacts };

/** A reply that is no error. */
export type DataAnswer = Exclude<DataReply, { readonly kind: 'error' }>;

/** Calls over the network, as an interface: gRPC between processes, a virtual network in simulations. */
export interface PeerCalls {
  /**
   * Calls a peer. Errors: `LostAnswer` (`unavailable`, `timeout`) if the peer may execute the call; `NotReached` if there is no connection;
   * `busy` beyond a bound; and the peer's own error. The peer's `conflict` means that it did nothing, as it is not the right peer, or not
   * yet.
   */
  call(peer: PeerId, call: DataCall, timeoutMs: number): Promise<DataAnswer>;
}

/** There is no connection with the peer, so the call has not reached it and nothing was done. */
export class NotReached extends TroupeError {
  constructor(detail: string) {
    super('unavailable', detail, { retryAfterMs: 1000, reason: 'notReached' });
    this.name = 'NotReached';
  }
}

/** The call has left this node and no answer has come: the peer may have executed it, or may still do so. */
export class LostAnswer extends TroupeError {
  constructor(code: 'unavailable' | 'timeout', detail: string, cause?: unknown) {
    super(code, detail, { cause, reason: 'answerLost' });
    this.name = 'LostAnswer';
  }
}

/** Answers calls of peers. Rejections become `error` replies. */
export type AnswerCall = (from: PeerId, call: DataCall) => Promise<DataAnswer>;

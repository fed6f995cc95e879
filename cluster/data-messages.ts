/**
 * What nodes ask of each other's replicas, beside consensus: writes and reads that are passed on, the log of a shard, transfers.
 * Each is a call with an answer, over the internal port; the bytes of bodies are not looked into on the way.
 */

import { type ErrorFacts, TroupeError } from '../protocols/errors.js';
import type { PeerId, ShardId } from '../protocols/model/cluster.js';
import type { FieldSchema } from '../protocols/model/collection.js';
import type { PointId } from '../protocols/model/point-id.js';
import type { LogTag, ShardEntry } from '../protocols/model/shard-log.js';
import type { WriteOperation } from '../protocols/model/update.js';
import type { HardwareUsage } from '../protocols/model/usage.js';

/** Sums over the points of each bucket, as of `at`. */
export interface DigestFacts {
  readonly at: LogTag;
  readonly buckets: BigUint64Array;
  readonly points: Uint32Array;
}

/** A shard of one life of a collection: a later one of the same name has another `uid`. */
export interface ShardAddress {
  readonly collection: string;
  readonly uid: number;
  readonly shardId: ShardId;
}

/** What is written to one shard, and what its answer waits for. */
export interface ShardWrite {
  /** Of the request. */
  readonly operation: WriteOperation;
  /** As `encodeUpdate` makes them. The memory stays the caller's. */
  readonly operations: readonly Uint8Array[];
  readonly until: 'logged' | 'applied' | 'shown';
}

/** Of a copy from one shard to another: refused as `conflict` when it comes late. */
export interface CopyFence {
  /** See `Resharding`. */
  readonly startedAt: number;
  /** The shard that the points come from, and its term. */
  readonly from: ShardId;
  readonly term: number;
  /** Ascending: nothing is taken behind a later one. */
  readonly sequence: number;
}

/**
 * timeoutMs: what is left of the caller's time. measured: the answer says what it cost. shardMapVersion: of the collection's record as the caller
 * knows it; refused as `conflict` where another one is known. fence: of resharding's own; these look at all points that are there.
 */
export type DataCall =
  /** Part of a request for the shard's leader. Answered when it is acknowledged (see actors/shard-log). */
  | (ShardWrite & {
      readonly kind: 'write';
      readonly shard: ShardAddress;
      readonly timeoutMs: number;
      readonly measured: boolean;
      readonly shardMapVersion: number;
      readonly fence?: CopyFence;
    })
  /** For the shard's leader: the first of these points that is not there after all writes before. */
  | {
      readonly kind: 'missing';
      readonly shard: ShardAddress;
      readonly ids: readonly PointId[];
      readonly timeoutMs: number;
      readonly shardMapVersion: number;
    }
  /**
   * For the shard's leader: an entry that changes nothing goes into the log. Answered once all replicas that the leader waits for have
   * applied it, so the one that answers has led since it was asked, and whatever it was given before is behind it (Log-L12).
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
  /** The shardMapVersion that the peer knows, and whether all points of its replicas can be seen. */
  | { readonly kind: 'shardMap'; readonly collection: string; readonly uid: number }
  /** Up to where the logs of these replicas go. */
  | { readonly kind: 'reached'; readonly collection: string; readonly uid: number; readonly shards: readonly ShardId[] }
  /** Answered when reads see all points of the replica (`prevent_unoptimized`). */
  | { readonly kind: 'shown'; readonly shard: ShardAddress; readonly timeoutMs: number }
  /** Figures of these replicas, for `GET /collections/{c}`. */
  | { readonly kind: 'figures'; readonly collection: string; readonly uid: number; readonly shards: readonly ShardId[] }
  /**
   * From the shard's leader. Refused as `conflict` when the receiver knows a higher term, or when its replica is another one than is
   * meant: one that was dropped, or is to be made (since: see `ShardRecord`).
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
  /** For the shard's leader: it gives the lead to this peer, without an open write. Answered once that is agreed. */
  | { readonly kind: 'handOver'; readonly shard: ShardAddress; readonly term: number; readonly to: PeerId }
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
  /** leaders: of the one that asks, to compare with. */
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
   * To the target of a `snapshot` transfer: files of the leader's checkpoint, in parts and in order; `installFiles` puts them in place
   * of what it has. startedAt: names the transfer, as its record does.
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
    };

/** What one replica of a shard adds to the figures of its collection. */
export interface ShardFigures {
  readonly status: 'green' | 'yellow' | 'grey' | 'red';
  /** Of its optimizer, or why it is Dead; null: all is well. */
  readonly error: string | null;
  readonly points: number;
  readonly deferredPoints: number;
  readonly indexedVectors: number;
  readonly segments: number;
  readonly queuedOperations: number;
  readonly fields: readonly { readonly field: string; readonly schema: FieldSchema; readonly points: number }[];
}

/** How far a replica's log is. */
export interface ReachedLog {
  /** Of the newest operation on its disk. */
  readonly term: number;
  readonly index: number;
  /** Of a leader: every replica that it waits for, also one that is to become Active, has all up to this index. Null: not known here. */
  readonly held: number | null;
}

/** Calls that a replica answers whatever its role, in the order in which they come. */
export type ReplicaCall = Extract<
  DataCall,
  { kind: 'append' | 'position' | 'entriesAfter' | 'resetLog' | 'rewindLog' | 'digest' | 'replaceBuckets' | 'applySettings' }
>;

export type DataReply =
  | {
      readonly kind: 'written';
      readonly numbers: readonly number[];
      readonly status: 'acknowledged' | 'completed';
      readonly usage: HardwareUsage | null;
    }
  | { readonly kind: 'missing'; readonly id: PointId | null }
  /** index: of the entry. All that the leader was given before has a lower one. */
  | { readonly kind: 'barrier'; readonly index: number }
  /** positions: index of the last operation that each of the asked shards' answer takes in. */
  | {
      readonly kind: 'answered';
      readonly body: Uint8Array;
      readonly positions: readonly number[];
      readonly usage: HardwareUsage | null;
    }
  /** How far the logs of the asked shards' replicas are. */
  | { readonly kind: 'reached'; readonly logs: readonly ReachedLog[] }
  /** showsAll: no replica here holds points back that reads do not see yet (`prevent_unoptimized`), nor will it. */
  | { readonly kind: 'shardMap'; readonly shardMapVersion: number; readonly showsAll: boolean }
  | { readonly kind: 'figures'; readonly figures: readonly ShardFigures[] }
  | { readonly kind: 'position'; readonly last: LogTag; readonly base: LogTag }
  | { readonly kind: 'entries'; readonly entries: readonly ShardEntry[]; readonly last: LogTag }
  | { readonly kind: 'compacted' }
  | { readonly kind: 'diverged'; readonly before: LogTag | null }
  | ({ readonly kind: 'digest' } & DigestFacts)
  | { readonly kind: 'done'; readonly changed: number }
  | { readonly kind: 'error'; readonly error: ErrorFacts };

/** Of a call: a reply that is no error. */
export type DataAnswer = Exclude<DataReply, { readonly kind: 'error' }>;

/** Calls of the network, as an interface: gRPC between processes, a virtual network in simulations. */
export interface PeerCalls {
  /**
   * Errors: `LostAnswer` (`unavailable`, `timeout`) for a call that the peer may carry out; `NotReached` where there is no connection;
   * `busy` beyond a bound; and what the peer answers: `conflict` where nothing was done, as it is not the right one, or not yet.
   */
  call(peer: PeerId, call: DataCall, timeoutMs: number): Promise<DataAnswer>;
}

/** The call has not reached the peer: there is no connection with it. Nothing was done. */
export class NotReached extends TroupeError {
  constructor(detail: string) {
    super('unavailable', detail, { retryAfterMs: 1000, reason: 'notReached' });
    this.name = 'NotReached';
  }
}

/** The call has left this node and no answer has come: the peer may have carried it out, or may still do so. */
export class LostAnswer extends TroupeError {
  constructor(code: 'unavailable' | 'timeout', detail: string, cause?: unknown) {
    super(code, detail, { cause, reason: 'answerLost' });
    this.name = 'LostAnswer';
  }
}

/** The serving side. Rejections become `error` replies. */
export type AnswerCall = (from: PeerId, call: DataCall) => Promise<DataAnswer>;

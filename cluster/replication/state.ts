/**
 * Roles of a replica in the log of its shard.
 *
 * - `Closed`: its files are not open;
 * - `Following`: another replica leads, or none does; it answers calls;
 * - `Locating`: it is to lead. It asks its own log for the newest position and, after a start, asks the cluster whether its view is up to
 *   date;
 * - `Syncing`: it asks the other replicas for their positions and takes over the entries that it lacks (Log-L4);
 * - `Leading`: it takes writes and sends them to the other replicas.
 */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import type { LogTag, ShardEntry } from '../../protocols/model/shard-log.js';
import type { EntryWindow } from './entry-window.js';
import type { AttachResult, CompareResult, Fetched, FillResult, LogCaller, ShardAssignment, WriteInput } from './messages.js';

export interface ReplicationState {
  /** This node's peer id; 0 until it is known, and on a node without a cluster. */
  readonly self: PeerId;
  readonly assignment: ShardAssignment | null;
  readonly ticks: number;
  /** A `tickLater` effect has been given and its tick has not come yet. */
  readonly ticking: boolean;
  /** The highest term that a leader has called with, or that the own log has. Lower terms are over (Log-L2). */
  readonly heard: number;
  /**
   * The term that this replica may have led before this start of the process: the one in which the replica was opened or, where this node's
   * view of the cluster may be older than what it knew before the start, the newest term. What the replica did in that term is not known
   * (Log-L5). Null until a term is known.
   */
  readonly openedIn: number | null;
  /** This node knows everything that was agreed before its start: terms that it hears of from now on are new. */
  readonly isSettled: boolean;
  /** Targets of transfers that acknowledgements wait for: declared by `require` in this term, or inherited (Log-L5). */
  readonly required: ReadonlySet<PeerId>;
  readonly ahead: AheadNote;
  /** Peers whose death is being proposed. */
  readonly dying: ReadonlySet<PeerId>;
  /**
   * Counts resets of this replica's log to another position. A read between a reset and its refill may see only part of the shard at that
   * position.
   */
  readonly resets: number;
  /** Counts roles and calls. */
  readonly counter: number;
  readonly role: ReplicationRole;
}

/** The note on disk that acknowledged operations may be missing on other replicas (Log-L9). */
export interface AheadNote {
  /** Null until the note has been read. */
  readonly isAhead: boolean | null;
  /** The value that is being written; null while none is. */
  readonly writing: boolean | null;
  /** The tick at which clearing the note is tried again after a failure. */
  readonly retryAt: number;
}

export type ReplicationRole = Closed | Following | Locating | Syncing | Leading;

export interface Closed {
  readonly kind: 'Closed';
}

export interface Following {
  readonly kind: 'Following';
}

export interface Locating {
  readonly kind: 'Locating';
  readonly run: number;
  readonly last: LogTag | null;
  readonly barrier: boolean;
  /** The tick of the next try after a failure; null if nothing failed. */
  readonly retryAt: number | null;
}

export interface Syncing {
  readonly kind: 'Syncing';
  readonly run: number;
  readonly last: LogTag;
  readonly probes: ReadonlyMap<PeerId, Probe>;
  /** The peer whose additional entries are being taken over; null while none are. */
  readonly source: { readonly peer: PeerId; readonly call: number; readonly from: LogTag } | null;
}

export interface Probe {
  readonly since: number;
  /** The peer's position; null until it is known. */
  readonly last: LogTag | null;
  /** The call that is under way; null while none is. */
  readonly call: number | null;
  /** The tick since which the peer has not answered. */
  readonly askedAt: number;
  readonly retryAt: number;
  readonly proposeAt: number;
}

export interface Leading {
  readonly kind: 'Leading';
  readonly run: number;
  /** Tag of the newest operation that is known to be on the own disk. */
  readonly last: LogTag;
  readonly indexAfter: number;
  /** The newest entries, kept in memory for the channels. */
  readonly recent: Recent;
  /** Writes that the own replica has been asked to log, in that order. A result waits for the results before it. */
  readonly issued: readonly IssuedWrite[];
  /** Writes that are on the own disk and wait for other replicas. Ascending indexes. */
  readonly pending: readonly LoggedWrite[];
  /** Bytes of all issued and pending writes. */
  readonly bytes: number;
  readonly channels: ReadonlyMap<PeerId, Channel>;
  /**
   * Set while writes are paused; null while the leader takes writes. until: a tick. waiting: callers that wait until no write is under way.
   */
  readonly pause: { readonly until: number; readonly waiting: readonly LogCaller<true>[] } | null;
}

export interface Recent {
  /** Tag of the operation before the first entry. */
  readonly after: LogTag;
  readonly entries: EntryWindow;
  readonly bytes: number;
}

export interface IssuedWrite {
  readonly write: number;
  readonly input: WriteInput;
  /** Of its operations, whose memory may be given away. */
  readonly bytes: number;
  /** Null while the write is under way. */
  readonly result: { readonly entries: readonly ShardEntry[]; readonly failure: ErrorFacts | null } | { readonly error: ErrorFacts } | null;
}

export interface LoggedWrite {
  readonly input: WriteInput;
  readonly bytes: number;
  readonly numbers: readonly number[];
  /** Index of its last operation. */
  readonly index: number;
  readonly failure: ErrorFacts | null;
}

/** The leader's connection with another replica. One call at a time, so that everything arrives in order. */
export interface Channel {
  readonly peer: PeerId;
  /** See `ShardAssignment.since`. */
  readonly since: number;
  readonly phase: Phase;
  /**
   * The replica is required only if its log continues the leader's: this leader may have declared it required before a restart (Log-L5).
   */
  readonly inherited: boolean;
  /** The call or read that is under way; null while none is. */
  readonly busy: Busy | null;
  /** The tick since which nothing has succeeded; null if nothing fails. */
  readonly failingSince: number | null;
  readonly error: ErrorFacts | null;
  readonly retryAt: number;
  /** Acknowledgements do not wait for this replica before this tick (Log-L9); null if they wait for it. */
  readonly excusedUntil: number | null;
  readonly attaching: { readonly caller: LogCaller<AttachResult>; readonly mayReset: boolean } | null;
  readonly jobs: readonly Job[];
  readonly waiters: readonly { readonly caller: LogCaller<true>; readonly index: number }[];
}

export type Phase =
  /**
   * The replica's position is found out. position: null until the replica has told it; then the leader's log is asked whether it continues
   * that position.
   */
  | { readonly kind: 'Probing'; readonly position: LogTag | null }
  /** The replica has everything up to `logged` on disk, and has applied at least everything up to `applied`. */
  | { readonly kind: 'Streaming'; readonly logged: LogTag; readonly applied: number }
  /** The replica gets nothing until a transfer attaches it. */
  | { readonly kind: 'Idle' }
  /** The replica is to be made Dead. */
  | { readonly kind: 'Broken'; readonly proposeAt: number };

export type Busy = { readonly call: number; readonly startedAt: number } & (
  | { readonly kind: 'position' }
  | { readonly kind: 'check' }
  | { readonly kind: 'read' }
  | { readonly kind: 'append'; readonly upTo: LogTag; readonly applied: boolean }
  | { readonly kind: 'job' }
);

/** A call that has its place between two entries. fetched: what is to be sent there; null until the own replica has delivered it. */
export type Job = { readonly id: number; readonly fetching: boolean; readonly fetched: Fetched | null } & (
  | { readonly kind: 'reset' | 'rewind'; readonly caller: LogCaller<AttachResult>; readonly entries: number }
  /** how: the way in which the replica was attached. */
  | {
      readonly kind: 'settings';
      readonly caller: LogCaller<AttachResult>;
      readonly how: 'delta' | 'rewound' | 'reset';
      readonly entries: number;
    }
  | { readonly kind: 'compare'; readonly caller: LogCaller<CompareResult> }
  | { readonly kind: 'fill'; readonly caller: LogCaller<FillResult>; readonly buckets: readonly number[] }
);

/** The first state of the machine. resets: the count of the actor before its restart, so that readers can tell the two apart. */
export function startReplication(resets = 0): ReplicationState {
  return {
    self: 0,
    assignment: null,
    ticks: 0,
    ticking: false,
    heard: 0,
    openedIn: null,
    isSettled: false,
    required: new Set(),
    ahead: { isAhead: null, writing: null, retryAt: 0 },
    dying: new Set(),
    resets,
    counter: 0,
    role: { kind: 'Closed' },
  };
}

export function newChannel(peer: PeerId, since: number, position: LogTag | null): Channel {
  return {
    peer,
    since,
    phase: { kind: 'Probing', position },
    inherited: false,
    busy: null,
    failingSince: null,
    error: null,
    retryAt: 0,
    excusedUntil: null,
    attaching: null,
    jobs: [],
    waiters: [],
  };
}

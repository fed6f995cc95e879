/**
 * Roles of a replica in its shard's log.
 *
 * - `Closed`: its files are not open;
 * - `Following`: somebody else leads, or nobody: it answers calls;
 * - `Locating`: it is to lead, and asks its own log and, after a start, the cluster how far they are;
 * - `Syncing`: asks the other replicas how far they are, and takes over what it lacks (Log-L4);
 * - `Leading`: takes writes and sends them to the others.
 */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import type { LogTag, ShardEntry } from '../../protocols/model/shard-log.js';
import { NO_TAG } from '../../protocols/model/shard-log.js';
import type { AttachResult, CompareResult, Fetched, FillResult, LogCaller, ShardAssignment, WriteInput } from './messages.js';

export interface ReplicationState {
  /** 0 until it is known. */
  readonly self: PeerId;
  readonly assignment: ShardAssignment | null;
  readonly ticks: number;
  /** A tick is on its way. */
  readonly ticking: boolean;
  /** The highest term that a leader has called with, or the own log has: lower ones are over (Log-L2). */
  readonly heard: number;
  /**
   * Term that an earlier life may have led: the one in which this replica was opened or, where what is known of the cluster may be older
   * than what that life knew, the newest. What it did in it is not known (Log-L5). Null until one is known.
   */
  readonly openedIn: number | null;
  /** Everything that was agreed before this life is known: terms that are heard of from now on are new. */
  readonly isSettled: boolean;
  /** Targets of transfers that acknowledgements wait for: declared by `require` in this term, or inherited (Log-L5). */
  readonly required: ReadonlySet<PeerId>;
  readonly ahead: AheadNote;
  /** Peers whose death is being proposed. */
  readonly dying: ReadonlySet<PeerId>;
  /** How often this replica was set to another place in the log; what is read of it meanwhile has what the place says in parts only. */
  readonly resets: number;
  /** Counts roles and calls. */
  readonly counter: number;
  readonly role: ReplicationRole;
}

/** What the disk remembers of acknowledgements that other replicas may lack (Log-L9). */
export interface AheadNote {
  /** Null before it was read. */
  readonly isAhead: boolean | null;
  /** What is being written; null: nothing. */
  readonly writing: boolean | null;
  /** Tick from which on a note that could not be taken back is tried again. */
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
  /** When what failed is tried again; null: nothing failed. */
  readonly retryAt: number | null;
}

export interface Syncing {
  readonly kind: 'Syncing';
  readonly run: number;
  readonly last: LogTag;
  readonly probes: ReadonlyMap<PeerId, Probe>;
  /** Taking over what this peer has more. */
  readonly source: { readonly peer: PeerId; readonly call: number; readonly from: LogTag } | null;
}

export interface Probe {
  readonly since: number;
  /** Null: not known yet. */
  readonly last: LogTag | null;
  /** The call that is under way. */
  readonly call: number | null;
  /** It has not answered since. */
  readonly askedAt: number;
  readonly retryAt: number;
  readonly proposeAt: number;
}

export interface Leading {
  readonly kind: 'Leading';
  readonly run: number;
  /** The newest operation that is known to be on the own disk. */
  readonly last: LogTag;
  readonly indexAfter: number;
  /** Newest entries, kept for channels. */
  readonly recent: Recent;
  /** Asked of the own replica, in that order; an answer waits for those before it. */
  readonly issued: readonly IssuedWrite[];
  /** On the own disk, waiting for others. Ascending indexes. */
  readonly pending: readonly LoggedWrite[];
  /** Bytes of issued and pending writes. */
  readonly bytes: number;
  readonly channels: ReadonlyMap<PeerId, Channel>;
  /** No write is taken; null: they are. waiting: for what was begun. */
  readonly pause: { readonly until: number; readonly waiting: readonly LogCaller<true>[] } | null;
}

export interface Recent {
  /** Of the operation before the first entry. */
  readonly after: LogTag;
  readonly entries: readonly ShardEntry[];
  readonly bytes: number;
}

export interface IssuedWrite {
  readonly write: number;
  readonly input: WriteInput;
  /** Null: under way. */
  readonly result: { readonly entries: readonly ShardEntry[]; readonly failure: ErrorFacts | null } | { readonly error: ErrorFacts } | null;
}

export interface LoggedWrite {
  readonly input: WriteInput;
  readonly numbers: readonly number[];
  /** Of its last operation. */
  readonly index: number;
  readonly failure: ErrorFacts | null;
}

/** The leader's way to another replica: one call at a time, so everything arrives in order. */
export interface Channel {
  readonly peer: PeerId;
  /** See `ShardAssignment.since`. */
  readonly since: number;
  readonly phase: Phase;
  /** Required only if its log continues this one: an earlier life may have declared it. */
  readonly inherited: boolean;
  /** The call or read that is under way. */
  readonly busy: Busy | null;
  /** Nothing has succeeded since. */
  readonly failingSince: number | null;
  readonly error: ErrorFacts | null;
  readonly retryAt: number;
  /** Not waited for until then (Log-L9); null: it is. */
  readonly excusedUntil: number | null;
  readonly attaching: { readonly caller: LogCaller<AttachResult>; readonly mayReset: boolean } | null;
  readonly jobs: readonly Job[];
  readonly waiters: readonly { readonly caller: LogCaller<true>; readonly index: number }[];
}

export type Phase =
  /** position: null until it has said so; then the own log is asked whether it continues it. */
  | { readonly kind: 'Probing'; readonly position: LogTag | null }
  /** It has everything up to `logged` on disk, and has applied what is up to `applied`, at least. */
  | { readonly kind: 'Streaming'; readonly logged: LogTag; readonly applied: number }
  /** It gets nothing until it is attached. */
  | { readonly kind: 'Idle' }
  /** It is to be made Dead. */
  | { readonly kind: 'Broken'; readonly proposeAt: number };

export type Busy = { readonly call: number; readonly startedAt: number } & (
  | { readonly kind: 'position' }
  | { readonly kind: 'check' }
  | { readonly kind: 'read' }
  | { readonly kind: 'append'; readonly upTo: LogTag; readonly applied: boolean }
  | { readonly kind: 'job' }
);

/** Something that has its place between entries. fetched: what is to be sent there; null where it has not been asked for. */
export type Job = { readonly id: number; readonly fetching: boolean; readonly fetched: Fetched | null } & (
  | { readonly kind: 'reset' | 'rewind'; readonly caller: LogCaller<AttachResult>; readonly entries: number }
  /** how: what came before it. */
  | {
      readonly kind: 'settings';
      readonly caller: LogCaller<AttachResult>;
      readonly how: 'delta' | 'rewound' | 'reset';
      readonly entries: number;
    }
  | { readonly kind: 'compare'; readonly caller: LogCaller<CompareResult> }
  | { readonly kind: 'fill'; readonly caller: LogCaller<FillResult>; readonly buckets: readonly number[] }
);

/** resets: of the actor's life before, so that nobody who reads takes this one for that. */
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

export const NOTHING_RECENT: Recent = { after: NO_TAG, entries: [], bytes: 0 };

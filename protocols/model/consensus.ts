/** What consensus keeps on disk and sends: the words of Raft. Source: Ongaro, «Consensus: Bridging Theory and Practice» (2014). */

import type { Membership, PeerId } from './cluster.js';

export type EntryPayload =
  /** The first entry of each term, and of a change of the membership that is already so. */
  | { readonly kind: 'empty' }
  /** The whole membership from this entry on, committed or not (section 4.1). */
  | { readonly kind: 'membership'; readonly membership: Membership }
  /** An encoded operation on the cluster's state; see `cluster/state/command-codec.ts`. */
  | { readonly kind: 'operation'; readonly bytes: Uint8Array };

export interface Entry {
  /** From 1. */
  readonly index: number;
  readonly term: number;
  readonly payload: EntryPayload;
}

export interface HardState {
  readonly term: number;
  readonly votedFor: PeerId | null;
  /** Known to be committed; may lag behind. */
  readonly commit: number;
}

/** The cluster's state after `index`, in the place of all entries up to it. */
export interface Snapshot {
  readonly index: number;
  readonly term: number;
  readonly membership: Membership;
  /** An encoded state; see `cluster/state/state-codec.ts`. */
  readonly data: Uint8Array;
}

/** Who this node is, from its first start in a cluster on. */
export interface PeerIdentity {
  readonly peerId: PeerId;
  /** Null until it has founded or joined a cluster. */
  readonly clusterId: string | null;
  /** Starts of the process: orders the sessions of its proposals. */
  readonly starts: number;
  /** It was removed from its cluster and has been told so. */
  readonly removed: boolean;
}

/** What one write to the log changes; null and an empty list change nothing. All of it is on disk together or not at all. */
export interface ConsensusWrite {
  /** Everything that was stored goes first: this node becomes a new peer. */
  readonly reset: boolean;
  readonly hardState: HardState | null;
  /** Consecutive. They replace whatever stands from the first one's index on. */
  readonly entries: readonly Entry[];
  /** Takes the place of the stored snapshot. Entries stay unless `firstIndex` or `clearEntries` drops them. */
  readonly snapshot: Snapshot | null;
  /** Entries before this index go. */
  readonly firstIndex: number | null;
  /** All entries go, before `entries` are written: a snapshot from a leader contradicts them. */
  readonly clearEntries: boolean;
  /** Applied to the state that this node serves. */
  readonly applied: number | null;
  readonly identity: PeerIdentity | null;
}

/** All that is stored. */
export interface StoredConsensus {
  readonly identity: PeerIdentity | null;
  readonly hardState: HardState;
  readonly snapshot: Snapshot | null;
  /** Consecutive. They may begin before the snapshot's index, and never leave a gap behind it. */
  readonly entries: readonly Entry[];
  /** At least the snapshot's index. */
  readonly applied: number;
}

/** Where consensus keeps its log. Writes happen one after the other, in the order of the calls. */
export interface ConsensusStore {
  /** Errors: `storage`, saying what is damaged and how to recover. A torn last write is as if it had not been. */
  load(): Promise<StoredConsensus>;
  /** Resolves when it is on disk (synchronised). Errors: `storage`; nothing of this write is there then, nor of later ones. */
  write(write: ConsensusWrite): Promise<void>;
  /** After the writes before it. */
  close(): Promise<void>;
}

/** A write that changes nothing, to build others from. */
export const NO_WRITE: ConsensusWrite = {
  reset: false,
  hardState: null,
  entries: [],
  snapshot: null,
  firstIndex: null,
  clearEntries: false,
  applied: null,
  identity: null,
};

/** What is stored before the first write. */
export const NOTHING_STORED: StoredConsensus = {
  identity: null,
  hardState: { term: 0, votedFor: null, commit: 0 },
  snapshot: null,
  entries: [],
  applied: 0,
};

/** Figures of a peer's Raft. */

import type { PeerId } from '../../protocols/model/cluster.js';

export interface RaftConfig {
  readonly peerId: PeerId;
  /** Ticks without a leader until a follower may campaign, at least; also the leader's lease and its check for a quorum. */
  readonly electionTicks: number;
  /** Up to so many ticks more, at random, so that two rarely campaign at once. */
  readonly electionTicksSpread: number;
  readonly heartbeatTicks: number;
  /** Largest proposal. */
  readonly entryBytesMax: number;
  /** Payload bytes of one `append`; one larger entry goes alone. */
  readonly appendBytesMax: number;
  /** `append`s with entries under way to one follower. */
  readonly appendsInFlightMax: number;
  /** Payload bytes that wait to be committed; beyond it proposals are refused as `busy`. */
  readonly uncommittedBytesMax: number;
  readonly snapshotChunkBytes: number;
  /** Entries kept behind a snapshot for followers that are a little late. */
  readonly entriesKept: number;
}

/** electionTicks 8 + up to 6 at 100 ms: a leader within 2 s of a loss. */
export const RAFT_DEFAULTS: Omit<RaftConfig, 'peerId'> = {
  electionTicks: 8,
  electionTicksSpread: 6,
  heartbeatTicks: 1,
  entryBytesMax: 4 << 20,
  appendBytesMax: 1 << 20,
  appendsInFlightMax: 32,
  uncommittedBytesMax: 64 << 20,
  snapshotChunkBytes: 512 << 10,
  entriesKept: 64,
};

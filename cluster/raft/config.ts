/** Settings of a peer's Raft. */

import type { PeerId } from '../../protocols/model/cluster.js';

export interface RaftConfig {
  readonly peerId: PeerId;
  /**
   * Least number of ticks without a leader after which a follower may campaign. Also the length of the leader's lease and the period of its
   * check for a quorum.
   */
  readonly electionTicks: number;
  /** Upper bound of the random ticks added to `electionTicks`, so that two peers rarely campaign at once. */
  readonly electionTicksSpread: number;
  readonly heartbeatTicks: number;
  /** Largest proposal, in bytes. */
  readonly entryBytesMax: number;
  /** Payload bytes of one `append`; one larger entry goes alone. */
  readonly appendBytesMax: number;
  /** Most `append` messages with entries that are under way to one follower. */
  readonly appendsInFlightMax: number;
  /** Most payload bytes that wait to be committed; proposals beyond it are refused as `busy`. */
  readonly uncommittedBytesMax: number;
  readonly snapshotChunkBytes: number;
  /** Entries before a snapshot's end that are kept for followers that lag a little. */
  readonly entriesKept: number;
}

/** With 8 to 14 election ticks of 100 ms there is a new leader within 2 s of a loss. */
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

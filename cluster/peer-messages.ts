/** What peers say to each other: Raft's messages on their stream, and requests beside it. */

import type { Member, PeerId } from '../protocols/model/cluster.js';
import type { RaftMessage } from './raft/messages.js';

/** On the stream of two peers, in order, at most once; lost when the stream breaks or its queue is full. */
export type PeerMessage =
  | { readonly kind: 'raft'; readonly message: RaftMessage }
  /** Asks for `applied` as soon as the receiver has carried out everything up to `index` in its actors. */
  | { readonly kind: 'awaitApplied'; readonly index: number }
  | { readonly kind: 'applied'; readonly index: number }
  /** The sender's disk is nearly full. Said again and again as long as it is so. */
  | { readonly kind: 'diskFull' };

/** To an address, outside of any stream. */
export type PeerRequest =
  /** From a node that wants to become a peer. Answered once the cluster has agreed on it. */
  | { readonly kind: 'join'; readonly peerId: PeerId; readonly uri: string | null; readonly port: number; readonly version: string }
  /** From a peer that has a new address or version. */
  | { readonly kind: 'announce'; readonly clusterId: string; readonly member: Omit<Member, 'voter'> }
  /** For `GET /cluster/telemetry`. */
  | { readonly kind: 'describe'; readonly clusterId: string }
  /** From the other one of two (Raft-R11): to do nothing alone for a while. */
  | { readonly kind: 'pledge'; readonly clusterId: string; readonly peerId: PeerId };

export type PeerReply =
  /** uri: the sender's, as derived where it gave none. */
  | { readonly kind: 'joined'; readonly clusterId: string; readonly uri: string; readonly members: readonly Member[] }
  | { readonly kind: 'announced' }
  | { readonly kind: 'described'; readonly details: PeerDetails }
  | { readonly kind: 'pledged'; readonly granted: boolean };

/** How a peer sees itself. Source: contract, `DistributedPeerDetails`. */
export interface PeerDetails {
  readonly version: string;
  readonly role: 'Follower' | 'Candidate' | 'Leader' | 'PreCandidate';
  readonly isVoter: boolean;
  readonly term: number;
  readonly commit: number;
  readonly pendingOperations: number;
  readonly lastUpdateMs: number;
  /** Figures of the replicas it holds. */
  readonly replicas: readonly {
    readonly collection: string;
    readonly shardId: number;
    /** Source: contract, `ShardStatus`. */
    readonly status: string;
    readonly pointsCount: number;
    readonly vectorsCount: number;
    /** Of its vectors, about. */
    readonly bytes: number;
    /** Of its payloads, about; 0 from a release that does not tell. */
    readonly payloadBytes: number;
    /** Points that builds have taken since it was opened; 0 from a release that does not tell. */
    readonly optimizedPoints: number;
  }[];
}

/** Messages and effects of the consensus actor. */

import type { PeerMessage, PeerReply, PeerRequest } from '../../cluster/peer-messages.js';
import type { ErrorFacts } from '../../protocols/errors.js';
import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import type { ConsensusWrite, StoredConsensus } from '../../protocols/model/consensus.js';
import type { Adoption, CarriedOut, Desired } from '../context/desired.js';
import type { ReplyTo } from '../runtime/behaviour.js';
import type { Submission } from './proposals/prepare.js';

/** Random values of a start, drawn by the shell. */
export interface Drawn {
  /** Peer id for a node that becomes a new peer. */
  readonly peerId: PeerId;
  readonly clusterId: string;
  /** Seed of Raft's generator. */
  readonly seed: number;
  /** Seconds since the epoch. */
  readonly seconds: number;
}

/** A replica of this node. since: see `ShardRecord.since`. */
export interface OwnReplica {
  readonly collection: string;
  readonly uid: number;
  readonly shardId: ShardId;
  readonly since: number;
  /** See `ReplicationEntry.mayBeAhead`. */
  readonly mayBeAhead: boolean;
}

export type ConsensusMessage =
  | { readonly kind: 'loaded'; readonly stored: StoredConsensus; readonly drawn: Drawn }
  /** The log cannot be read. */
  | { readonly kind: 'loadFailed'; readonly error: ErrorFacts }
  /** This node's collections now belong to the cluster that it founds. */
  | { readonly kind: 'adopted' }
  | { readonly kind: 'adoptFailed'; readonly error: ErrorFacts }
  /** The internal port cannot be used. */
  | { readonly kind: 'listenFailed'; readonly error: ErrorFacts }
  | { readonly kind: 'joined'; readonly reply: Extract<PeerReply, { kind: 'joined' }> }
  | { readonly kind: 'joinFailed'; readonly error: ErrorFacts }
  /** A pause after a failure is over. */
  | { readonly kind: 'retry' }
  /** About `tickMs` have passed since the last tick was handled; ticks that a stalled process missed are not made up for. */
  | { readonly kind: 'tick' }
  | { readonly kind: 'received'; readonly from: PeerId; readonly messages: readonly PeerMessage[] }
  | { readonly kind: 'connectionChanged'; readonly peer: PeerId; readonly connected: boolean }
  | { readonly kind: 'peerUnreachable'; readonly peer: PeerId }
  /**
   * pledged: the other node's pledge, given at `uri`, which counts until `untilMs` (monotonic clock). ended: its process ended before that.
   * contact: the counter when the question was asked (Raft-R11).
   */
  | { readonly kind: 'pledged'; readonly peer: PeerId; readonly uri: string; readonly contact: number; readonly untilMs: number }
  | { readonly kind: 'ended'; readonly peer: PeerId; readonly contact: number }
  /** address: the caller's host. */
  | { readonly kind: 'requested'; readonly request: PeerRequest; readonly address: string; readonly replyTo: ReplyTo<PeerReply> }
  /** The write of this number and all earlier ones are on disk. */
  | { readonly kind: 'written'; readonly number: number }
  | { readonly kind: 'writeFailed'; readonly error: ErrorFacts }
  | ({ readonly kind: 'carriedOut' } & CarriedOut)
  /** These replicas of this node do not serve and are not being repaired. */
  | { readonly kind: 'replicasDied'; readonly replicas: readonly OwnReplica[] }
  /** This node's disk is full (Disk-D4). Said at each tick as long as it is so. */
  | { readonly kind: 'diskFilled' }
  /** The result of `announce`; null if it is agreed. */
  | { readonly kind: 'announceAnswered'; readonly error: ErrorFacts | null }
  /** The node is about to stop. */
  | { readonly kind: 'handOver' }
  /** Submits a request. settles: see `ProposalCaller`. */
  | {
      readonly kind: 'submit';
      readonly submission: Submission;
      readonly settles: boolean;
      readonly timeoutMs: number;
      readonly replyTo: ReplyTo<boolean>;
    }
  /** Answered when everything that was committed before is executed here. */
  | { readonly kind: 'barrier'; readonly timeoutMs: number; readonly replyTo: ReplyTo<boolean> }
  | {
      readonly kind: 'removePeer';
      readonly peerId: PeerId;
      readonly force: boolean;
      readonly timeoutMs: number;
      readonly replyTo: ReplyTo<boolean>;
    }
  | { readonly kind: 'recover'; readonly timeoutMs: number; readonly replyTo: ReplyTo<boolean> };

export type ConsensusEffect =
  /** Reads everything from the log. */
  | { readonly kind: 'load' }
  /** Opens the internal port, so that peers reach this node as this peer. */
  | { readonly kind: 'listen'; readonly peerId: PeerId }
  | { readonly kind: 'adopt'; readonly adoption: Adoption }
  | { readonly kind: 'write'; readonly number: number; readonly write: ConsensusWrite }
  | { readonly kind: 'send'; readonly to: PeerId; readonly messages: readonly PeerMessage[] }
  | { readonly kind: 'setPeers'; readonly uris: ReadonlyMap<PeerId, string> }
  | { readonly kind: 'join'; readonly uri: string; readonly request: Extract<PeerRequest, { kind: 'join' }> }
  | { readonly kind: 'announce'; readonly uri: string; readonly request: Extract<PeerRequest, { kind: 'announce' }> }
  /** Asks a peer for its pledge; answered by `pledged` if it is granted. */
  | {
      readonly kind: 'askPledge';
      readonly peer: PeerId;
      readonly uri: string;
      readonly contact: number;
      readonly request: PeerRequest;
    }
  /** Looks whether a peer has ended; answered by `ended` if its address refuses connections before `untilMs`. */
  | { readonly kind: 'lookFor'; readonly peer: PeerId; readonly uri: string; readonly contact: number; readonly untilMs: number }
  /** Gives the node actor the collections that this node should have. */
  | { readonly kind: 'desire'; readonly desired: Desired }
  /** This node cannot become a member, and an operator has to say what is meant: its process is to end. */
  | { readonly kind: 'giveUp'; readonly error: ErrorFacts }
  /** Asks for a `retry` after `delayMs`. */
  | { readonly kind: 'retryLater'; readonly delayMs: number }
  | { readonly kind: 'tickLater' }
  | { readonly kind: 'log'; readonly level: 'info' | 'warn' | 'error'; readonly text: string }
  | { readonly kind: 'reply'; readonly replyTo: ReplyTo<never>; readonly answer: boolean | PeerReply }
  | { readonly kind: 'refuse'; readonly replyTo: ReplyTo<never>; readonly error: ErrorFacts };

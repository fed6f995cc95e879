/** The request side of a node in a cluster: requests become messages to its consensus actor. */

import type { PeerDetails } from '../../cluster/peer-messages.js';
import { QUEUE_MESSAGES_MAX } from '../../cluster/transport/queue.js';
import { TroupeError } from '../../protocols/errors.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import type { PeerCallStats } from '../context/call-stats.js';
import type { Propose } from '../context/services.js';
import type { ActorRef, ReplyTo } from '../runtime/behaviour.js';
import type { Clock, Timers } from '../runtime/ports.js';
import type { TransferBoard } from '../transfers/board.js';
import type { ClusterApi } from './cluster-api.js';
import type { ConsensusLink } from './link.js';
import type { ConsensusMessage } from './messages.js';
import type { Submission } from './proposals/prepare.js';
import { type ConsensusView, refuseFor } from './view.js';

/** Time limit for commands without one, in milliseconds. */
export const AGREEMENT_MS = 10_000;
/** Time limits of one try to join and of other requests to a peer, in milliseconds. */
export const JOIN_MS = 10_000;
export const PEER_REQUEST_MS = 5000;

/** Longest time that a request is held while this node has just started. */
export const HOLD_MS = 10_000;

export interface ConsensusClient {
  readonly api: ClusterApi;
  /** Resolves when the submission is agreed on and executed; see `NodeApi`. */
  submit(submission: Submission, timeoutMs: number | undefined): Promise<boolean>;
  readonly propose: Propose;
}

export interface ConsensusClientParts {
  readonly view: ConsensusView;
  readonly link: ConsensusLink;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly tickMs: number;
  readonly board: TransferBoard;
  readonly calls: PeerCallStats;
  /** Figures of this node's replicas. */
  readonly replicas: () => PeerDetails['replicas'];
}

export function consensusClient({ board, calls, clock, link, replicas, tickMs, timers, view }: ConsensusClientParts): ConsensusClient {
  async function ask(make: (replyTo: ReplyTo<boolean>, timeoutMs: number) => ConsensusMessage, timeoutMs: number): Promise<boolean> {
    const left = Math.max(1, timeoutMs);
    return actorOf(view).ask<boolean>((replyTo) => make(replyTo, left), left + GRACE_MS);
  }

  /** Null if nothing is in the way; else requests wait for that. whyNot: what is in the way as of now. */
  function held(whyNot: () => string | null, timeoutMs: number): Promise<void> | null {
    if (whyNot() === null) return null;
    return new Promise<void>((resolve) => {
      if (!view.isStarting) return resolve();
      const release = (): void => {
        cancelTimer();
        resolve();
      };
      const cancelHold = view.hold(release, () => whyNot() === null);
      const cancelTimer = timers.after(Math.max(1, Math.min(HOLD_MS, timeoutMs)), () => {
        cancelHold();
        resolve();
      });
    }).then(() => refuseFor(whyNot()));
  }

  const whenStarted = (timeoutMs: number) => held(() => view.whyNotStarted(), timeoutMs);

  const whenRead = (timeoutMs: number) => held(() => view.whyNotRead(), timeoutMs);

  const barrier = async (timeoutMs: number) => {
    await ask((replyTo, left) => ({ kind: 'barrier', timeoutMs: left, replyTo }), timeoutMs);
  };

  const submit = (submission: Submission, timeoutMs = AGREEMENT_MS) =>
    ask((replyTo, left) => ({ kind: 'submit', submission, settles: true, timeoutMs: left, replyTo }), timeoutMs);

  const propose: Propose = (operation, timeoutMs) => {
    const submission = { kind: 'operation', operation } as const;
    return ask((replyTo, left) => ({ kind: 'submit', submission, settles: false, timeoutMs: left, replyTo }), timeoutMs);
  };

  async function removePeer(peerId: PeerId, force: boolean, timeoutMs: number): Promise<boolean> {
    const endMs = clock.nowMs() + timeoutMs;
    // The newest state decides whether the peer exists and holds shards.
    await barrier(timeoutMs);
    return ask((replyTo, left) => ({ kind: 'removePeer', peerId, force, timeoutMs: left, replyTo }), endMs - clock.nowMs());
  }

  async function describePeers(timeoutMs: number): Promise<ReadonlyMap<PeerId, PeerDetails | null>> {
    const { agreed, peerId: self } = view;
    const described = (agreed?.membership ?? []).map(async ({ peerId, uri }): Promise<[PeerId, PeerDetails | null]> => {
      if (peerId === self) return [peerId, detailsOf(view, link, replicas())];
      const request = { kind: 'describe', clusterId: agreed?.clusterId ?? '' } as const;
      const reply = await link.transport.request(uri, request, timeoutMs).catch(() => null);
      return [peerId, reply?.kind === 'described' ? reply.details : null];
    });
    return new Map(await Promise.all(described));
  }

  const api: ClusterApi = {
    config: { tickMs, joinMs: JOIN_MS, requestMs: PEER_REQUEST_MS, queuedMessagesMax: QUEUE_MESSAGES_MAX },
    transfers: board,
    calls,
    status: () => view.status(link.transport),
    state: () => view.agreed,
    checkStarted: () => view.checkStarted(),
    whenRead,
    whenStarted,
    barrier,
    removePeer,
    recover: (timeoutMs) => ask((replyTo, left) => ({ kind: 'recover', timeoutMs: left, replyTo }), timeoutMs),
    updateCollectionCluster: (collection, update, timeoutMs) => submit({ kind: 'updateCollectionCluster', collection, update }, timeoutMs),
    change: (operation, timeoutMs, settles = true) =>
      settles ? submit({ kind: 'operation', operation }, timeoutMs) : propose(operation, timeoutMs),
    describePeers,
  };
  return { api, submit, propose };
}

/** This node's description of itself. */
export function detailsOf(view: ConsensusView, link: Pick<ConsensusLink, 'transport'>, replicas: PeerDetails['replicas']): PeerDetails {
  const { lastUpdateMs, pendingOperations, raft } = view.status(link.transport);
  const own = raft?.membership.find(({ peerId }) => peerId === view.peerId);
  return {
    version: own?.version ?? '',
    role: raft?.role.kind ?? 'Follower',
    isVoter: own?.voter ?? false,
    term: raft?.term ?? 0,
    commit: raft?.commitIndex ?? 0,
    pendingOperations,
    lastUpdateMs,
    replicas,
  };
}

/** Additional time for consensus, which counts deadlines in ticks: its error says more than a timeout here. */
const GRACE_MS = 250;

function actorOf({ actor }: ConsensusView): ActorRef<ConsensusMessage> {
  if (actor === null) throw new TroupeError('unavailable', 'the node is starting', { retryAfterMs: 1000 });
  return actor;
}

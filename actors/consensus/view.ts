/** The view of consensus that requests read without asking its actor: its newest state, written only by it. */

import type { PeerTransport } from '../../cluster/ports.js';
import { lastIndex } from '../../cluster/raft/log.js';
import type { Leads } from '../../cluster/state/giving-back.js';
import type { ClusterState } from '../../cluster/state/state.js';
import { TroupeError } from '../../protocols/errors.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import type { ActorRef } from '../runtime/behaviour.js';
import type { Cancel, Clock } from '../runtime/ports.js';
import type { Assignments } from '../shard-log/assignments.js';
import { mayServe } from './agreed/catching-up.js';
import { silentPeers } from './agreed/health.js';
import type { ClusterStatus } from './cluster-api.js';
import { isAloneWithout } from './membership/alone.js';
import { fullPeers } from './membership/full-disks.js';
import { pledgeHeld } from './membership/survivor.js';
import type { ConsensusMessage } from './messages.js';
import { isLeaderless } from './proposals/readiness.js';
import type { ConsensusState, MemberConsensus } from './state.js';

const NO_LEADS: Leads = new Map();

export class ConsensusView {
  /** The consensus actor; null until it is started. */
  actor: ActorRef<ConsensusMessage> | null = null;
  #state: ConsensusState | null = null;
  #agreed: ClusterState | null = null;
  /** True once this node has caught up in this process. */
  #caughtUp = false;
  /** Index of the last entry on disk when this node became a member; null before. */
  #lastIndexAtStart: number | null = null;
  #leadsAtStart: Leads | null = null;
  #lastUpdateMs: number;
  /** What is called once, each as soon as what it waits for is so. */
  readonly #held = new Map<() => void, () => boolean>();

  /** assignments: also gets each agreed state. */
  constructor(
    private readonly clock: Clock,
    private readonly assignments: Assignments,
  ) {
    this.#lastUpdateMs = clock.dateMs();
  }

  show(state: ConsensusState): void {
    if (state === this.#state) return;
    this.#state = state;
    // A node becomes a member with the log that is on its disk.
    if (state.kind === 'Member') this.#lastIndexAtStart ??= lastIndex(state.raft.log);
    if (state.kind === 'Member' && state.agreed.appliedIndex > 0) this.#showMember(state);
    this.#lastUpdateMs = this.clock.dateMs();
    for (const [release, isDue] of [...this.#held]) {
      if (state.kind !== 'Broken' && !isDue()) continue;
      this.#held.delete(release);
      release();
    }
  }

  /** Calls `release` once it is due, or this node cannot take part in its cluster, until it is cancelled. */
  hold(release: () => void, isDue: () => boolean): Cancel {
    this.#held.set(release, isDue);
    return () => void this.#held.delete(release);
  }

  /** Whether what this node waits for may come by itself soon. */
  get isStarting(): boolean {
    return this.#state?.kind !== 'Broken';
  }

  /** Shows the agreed state. It never shows an older one, even while this node reads its log again or takes over the leader's state. */
  #showMember(state: MemberConsensus): void {
    const { connected, identity, raft } = state;
    const isNewer = this.#agreed === null || state.agreed.appliedIndex >= this.#agreed.appliedIndex;
    const agreed = isNewer || this.#agreed === null ? state.agreed : this.#agreed;
    this.#agreed = agreed;
    this.#leadsAtStart ??= state.loadedLeads;
    this.#caughtUp ||= state.catchUp === null;
    if (this.#caughtUp) this.assignments.settle();
    const isAlone = (peer: PeerId) => isAloneWithout(state, peer);
    const leads = raft.role.kind === 'Leader';
    const serves = this.#caughtUp || mayServe(state);
    // A call to a peer that is about to be Dead would fail.
    const silent = silentPeers(state);
    const answering = silent.size === 0 ? connected : new Set([...connected].filter((peer) => !silent.has(peer)));
    this.assignments.show({
      agreed,
      connected: answering,
      leads,
      peerId: identity.peerId,
      serves,
      lastIndexAtStart: this.#lastIndexAtStart ?? 0,
      leadsAtStart: this.#leadsAtStart ?? NO_LEADS,
      isAloneWithout: isAlone,
      full: fullPeers(state),
    });
  }

  /** Checks that requests may be served. Errors: `unavailable`, see `whyNotStarted`. */
  checkStarted(): void {
    refuseFor(this.whyNotStarted());
  }

  /**
   * Why requests are not served: this node does not know what was agreed before it started, and another node may know it. Null if they are.
   */
  whyNotStarted(): string | null {
    // A removed peer serves its own points.
    if (this.isRemoved) return null;
    const state = this.#state;
    // Without the agreed state the holders of points are unknown.
    if (this.#agreed === null) return 'the node is starting';
    if (this.#caughtUp || state?.kind !== 'Member' || mayServe(state)) return null;
    return 'the node is starting, and does not know yet what its cluster has agreed on meanwhile';
  }

  /** Why this node may not list yet what it knew before it was started: it reads that from its disk. Null if it may. */
  whyNotRead(): string | null {
    const state = this.#state;
    if (state?.kind === 'Member') {
      const { carriedOut, covers } = state.carrying;
      // Nothing is below the first index: a node that joins knew nothing.
      if (carriedOut > 0 || covers < 0) return null;
    } else if (state !== null && state.kind !== 'Starting') return null;
    return 'the node is starting, and has not read yet what it knew before';
  }

  /**
   * Checks that a collection that is not known here does not exist. Errors: as `checkStarted`, and `unavailable` if no other node could be
   * asked.
   */
  checkKnows(): void {
    this.checkStarted();
    if (this.#caughtUp || this.isRemoved) return;
    const detail = 'this node has started and found no leader since: it does not know whether there is such a collection';
    throw new TroupeError('unavailable', detail, { retryAfterMs: 1000 });
  }

  /** The agreed state as applied here; null until this node has heard of its cluster. A node that was removed keeps the last one. */
  get agreed(): ClusterState | null {
    return this.#agreed;
  }

  get isRemoved(): boolean {
    return this.#state?.kind === 'Removed';
  }

  /** This node's peer id; 0 until it is known. */
  get peerId(): PeerId {
    const state = this.#state;
    return state !== null && 'identity' in state ? state.identity.peerId : 0;
  }

  get clusterId(): string | null {
    const state = this.#state;
    return state !== null && 'identity' in state ? state.identity.clusterId : null;
  }

  status(transport: Pick<PeerTransport, 'connections' | 'internalPort'>): ClusterStatus {
    const state = this.#state;
    const member = state?.kind === 'Member' ? state : null;
    return {
      peerId: this.peerId,
      phase: state === null ? 'Starting' : phaseOf(state),
      error: state !== null && 'error' in state ? (state.error?.detail ?? null) : null,
      raft: member?.raft ?? null,
      pledgedBy: member === null ? null : pledgeHeld(member),
      carriedOut: member?.carrying.carriedOut ?? 0,
      fullPeers: member === null ? new Set() : fullPeers(member),
      leaderless: member !== null && isLeaderless(member),
      caughtUp: this.#caughtUp,
      pendingOperations: member === null ? 0 : pendingOperations(member),
      lastUpdateMs: this.#lastUpdateMs,
      connections: transport.connections(),
      internalPort: transport.internalPort(),
    };
  }
}

/** Errors: `unavailable` for that reason; null: there is none. */
export function refuseFor(why: string | null): void {
  if (why !== null) throw new TroupeError('unavailable', why, { retryAfterMs: 1000 });
}

/** The phase as the API shows it. A node that was let in is joining until it is in the membership that it knows. */
function phaseOf(state: ConsensusState): ClusterStatus['phase'] {
  if (state.kind !== 'Member') return state.kind;
  const { agreed, identity } = state;
  return agreed.membership.some(({ peerId }) => peerId === identity.peerId) ? 'Member' : 'Joining';
}

function pendingOperations({ calls, raft }: MemberConsensus): number {
  return raft.commitIndex - raft.appliedIndex + calls.proposals.length;
}

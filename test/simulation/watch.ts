/**
 * Looks at the nodes after each event, for what must never be. Source of Sim-I1 to Sim-I4: Ongaro and Ousterhout, «In Search of an
 * Understandable Consensus Algorithm» (2014), figure 3.
 *
 * - **Sim-I1** election safety: a term has one leader.
 * - **Sim-I2** log matching: entries of one index and term are the same, and so is all before them.
 * - **Sim-I3** leader completeness: a leader has all that was committed in terms before its own.
 * - **Sim-I4** state machine safety: nodes that have applied the same index have the same state, which is the one that the committed
 *   entries lead to.
 * - **Sim-I5** what becomes committed is on the disks of a majority of the voters; of two of which one has ended, on the other one's.
 * - **Sim-I6** a node never forgets what it has said to have committed or applied, also when it starts again. Only the leader's state
 *   that an operator has it take may be an older one.
 * - **Sim-I7** replica states change only as the table has it.
 * - **Sim-I8** a leader counts the copies of entries of its own term only, and with them commits what is before (section 5.4.2).
 */

import { applyEntry } from '../../cluster/apply/apply.js';
import { countedVoters } from '../../cluster/raft/quorum.js';
import type { RaftState } from '../../cluster/raft/state.js';
import { REPLICA_STATE_MOVES, type ReachedState } from '../../cluster/state/replica-state.js';
import type { ClusterState, CollectionRecord } from '../../cluster/state/state.js';
import type { PeerId, ReplicaState } from '../../protocols/model/cluster.js';
import type { Entry, StoredConsensus } from '../../protocols/model/consensus.js';
import type { SimulatedNode } from './node.js';
import { difference, Sameness } from './same.js';
import type { Life } from './world.js';

interface Seen {
  peerId: PeerId;
  raft: RaftState | null;
  state: ClusterState | null;
}

interface Committed {
  readonly entry: Entry;
  /** It was committed in this term or before. */
  readonly inTerm: number;
}

export class Watch {
  /** By index. */
  readonly committed = new Map<number, Committed>();
  committedIndex = 0;
  /** Peer that led each term. */
  readonly leaders = new Map<number, PeerId>();
  /** What stood on disks that are gone, by peer: they said so in their time. */
  readonly lostDisks = new Map<PeerId, StoredConsensus>();
  /** By term: without whom its leader went on. */
  readonly #goneIn = new Map<number, PeerId>();
  readonly #seen = new WeakMap<Life, Seen>();
  /** Each entry that was in a log, and the term of the one before it: by index and term. */
  readonly #entries = new Map<number, Map<number, { readonly entry: Entry; readonly termBefore: number | null }>>();
  /** States that the committed entries lead to, by index. */
  readonly #states = new Map<number, ClusterState>();
  #newestState = -1;
  readonly #sameness = new Sameness();

  constructor(
    private readonly nodes: readonly SimulatedNode[],
    private readonly violation: (what: string) => void,
    private readonly tell: (who: string, what: string) => void,
  ) {}

  /** life: whose event it was; null: anybody may have changed. */
  look(life: Life | null): void {
    for (const node of this.nodes) if (node.life !== null && (life === null || node.life === life)) this.#lookAt(node, node.life);
  }

  /** The state after everything that was committed; null before a cluster was founded. */
  agreed(): ClusterState | null {
    return this.#states.get(this.#newestState) ?? null;
  }

  #lookAt(node: SimulatedNode, life: Life): void {
    const { cluster } = node;
    if (cluster === null) return;
    let seen = this.#seen.get(life);
    if (seen === undefined) {
      seen = { peerId: 0, raft: null, state: null };
      this.#seen.set(life, seen);
    }
    const { peerId, phase, raft } = cluster.status();
    // It begins again from its disk, or as another peer.
    if (phase === 'Broken' || phase === 'Starting' || peerId !== seen.peerId) {
      seen.peerId = peerId;
      seen.raft = null;
      seen.state = null;
    }
    if (phase === 'Broken') return;
    if (raft !== null && raft !== seen.raft) {
      this.#lookAtRaft(node, seen.raft, raft);
      seen.raft = raft;
    }
    const state = cluster.state();
    if (state !== null && state !== seen.state) {
      this.#lookAtState(node, seen.state, state);
      seen.state = state;
    }
  }

  #lookAtRaft(node: SimulatedNode, before: RaftState | null, raft: RaftState): void {
    if (before?.role.kind !== raft.role.kind || before.term !== raft.term || before.leader !== raft.leader)
      this.tell(node.host, `is ${raft.role.kind} in term ${raft.term}${raft.leader === null ? '' : `, led by ${raft.leader}`}`);
    if (before !== null && raft.term < before.term)
      this.violation(`Sim-I6: ${node.host} went back from term ${before.term} to ${raft.term}`);
    if (before !== null && raft.commitIndex < before.commitIndex && node.recoveries === 0)
      this.violation(`Sim-I6: ${node.host} went back from commit ${before.commitIndex} to ${raft.commitIndex}`);
    if (raft.gone !== null) this.#goneIn.set(raft.term, raft.gone);
    if (before?.log !== raft.log) this.#lookAtLog(node, before, raft);
    if (raft.commitIndex > (before?.commitIndex ?? 0)) this.#lookAtCommit(node, before, raft);
    if (raft.role.kind === 'Leader' && (before?.role.kind !== 'Leader' || before.term !== raft.term)) this.#lookAtLeader(node, raft);
  }

  /** Sim-I1 and Sim-I3. */
  #lookAtLeader(node: SimulatedNode, raft: RaftState): void {
    const { peerId } = raft.config;
    const other = this.leaders.get(raft.term);
    if (other !== undefined && other !== peerId)
      this.violation(`Sim-I1: term ${raft.term} has two leaders, ${other} and ${peerId} (${node.host})`);
    this.leaders.set(raft.term, peerId);
    for (let index = this.committedIndex; index > endOfSnapshot(raft); index--) {
      const committed = this.committed.get(index);
      if (committed === undefined || committed.inTerm >= raft.term) continue;
      if (entryAt(raft, index)?.term !== committed.entry.term)
        this.violation(
          `Sim-I3: ${node.host} leads term ${raft.term} without entry ${index}/${committed.entry.term}, which was committed in term ${committed.inTerm}`,
        );
    }
  }

  /** Sim-I2, and that committed entries stay. */
  #lookAtLog(node: SimulatedNode, before: RaftState | null, raft: RaftState): void {
    const { entries, termBefore } = raft.log;
    const old = before?.log.entries ?? [];
    const shift = (entries[0]?.index ?? 0) - (old[0]?.index ?? 0);
    for (let at = entries.length - 1; at >= 0; at--) {
      const entry = entries[at] as Entry;
      if (old[at + shift] === entry) break;
      const previous = at > 0 ? (entries[at - 1] as Entry).term : termBefore;
      this.#register(node, entry, previous);
      const committed = this.committed.get(entry.index);
      if (entry.index <= raft.commitIndex && committed !== undefined && committed.entry.term !== entry.term)
        this.violation(`Sim-I6: ${node.host} replaced its committed entry ${entry.index} by one of term ${entry.term}`);
    }
    if (raft.commitIndex > Math.max(endOfSnapshot(raft), entries.at(-1)?.index ?? 0))
      this.violation(`Sim-I6: ${node.host} lost committed entries: commit ${raft.commitIndex}, log to ${entries.at(-1)?.index ?? 0}`);
  }

  #register(node: SimulatedNode, entry: Entry, termBefore: number): void {
    const terms = this.#entries.get(entry.index) ?? new Map();
    this.#entries.set(entry.index, terms);
    const known = terms.get(entry.term);
    if (known === undefined) terms.set(entry.term, { entry, termBefore });
    else if (known.termBefore !== termBefore || !this.#sameness.same(known.entry, entry))
      this.violation(`Sim-I2: entry ${entry.index}/${entry.term} on ${node.host} is another one, or has another one before it`);
  }

  /** Sim-I4 for entries, and Sim-I8. */
  #lookAtCommit(node: SimulatedNode, before: RaftState | null, raft: RaftState): void {
    for (let index = (before?.commitIndex ?? 0) + 1; index <= raft.commitIndex; index++) {
      const entry = entryAt(raft, index);
      if (entry === null) {
        if (index > endOfSnapshot(raft)) this.violation(`Sim-I4: ${node.host} commits ${index} and does not have it`);
        continue;
      }
      const committed = this.committed.get(index);
      if (committed === undefined) this.#commit(node, entry, raft, before);
      else if (committed.entry.term !== entry.term || !this.#sameness.same(committed.entry, entry))
        this.violation(`Sim-I4: ${node.host} commits ${index}/${entry.term}, others ${index}/${committed.entry.term}`);
    }
    const last = entryAt(raft, raft.commitIndex);
    const leads = before?.role.kind === 'Leader' && before.term === raft.term && raft.role.kind === 'Leader';
    if (leads && last !== null && last.term !== raft.term)
      this.violation(`Sim-I8: ${node.host} leads term ${raft.term} and commits ${last.index}/${last.term} by counting copies of it`);
  }

  /** Sim-I5. A step that commits may change the membership behind what it has committed, so the one before it counts as well. */
  #commit(node: SimulatedNode, entry: Entry, raft: RaftState, before: RaftState | null): void {
    this.committed.set(entry.index, { entry, inTerm: raft.term });
    this.committedIndex = Math.max(this.committedIndex, entry.index);
    // Of two nodes one may have ended, which this very step may have heard of, or heard again; or an earlier life, whose disk says so now.
    const gone = before === null ? (this.#goneIn.get(entry.term) ?? null) : (before.gone ?? raft.gone);
    const { holders, voters } = this.#holders(entry, { ...(before ?? raft), gone });
    this.tell(node.host, `commits ${entry.index}/${entry.term}, on the disks of ${holders} of ${voters} voters`);
    if (holders * 2 > voters) return;
    const after = this.#holders(entry, { ...raft, gone });
    if (after.holders * 2 <= after.voters)
      this.violation(`Sim-I5: ${node.host} commits ${entry.index}/${entry.term}, which is on the disks of ${holders} of ${voters} voters`);
  }

  #holders(entry: Entry, raft: Parameters<typeof countedVoters>[0]): { readonly holders: number; readonly voters: number } {
    const voters = countedVoters(raft);
    return { holders: voters.filter(({ peerId }) => this.#isOnDisk(peerId, entry)).length, voters: voters.length };
  }

  #isOnDisk(peerId: PeerId, entry: Entry): boolean {
    const disk = this.nodes.find((node) => node.disk.consensus.identity?.peerId === peerId)?.disk.consensus ?? this.lostDisks.get(peerId);
    if (disk === undefined) return false;
    if ((disk.snapshot?.index ?? 0) >= entry.index) return true;
    const first = disk.entries[0]?.index ?? 0;
    return disk.entries[entry.index - first]?.term === entry.term;
  }

  /** Sim-I4 for states, and Sim-I6. */
  #lookAtState(node: SimulatedNode, before: ClusterState | null, state: ClusterState): void {
    const index = state.appliedIndex;
    const least = before?.appliedIndex ?? node.disk.consensus.applied;
    if (index < least && node.recoveries === 0)
      this.violation(`Sim-I6: ${node.host} serves the state after ${index}, but had applied ${least}`);
    if (this.#newestState < 0) {
      this.#states.set(index, state);
      this.#newestState = index;
    }
    this.#advance(index);
    const expected = this.#states.get(index);
    if (expected === undefined) {
      // A leader that commits its own removal shows its log no more.
      const isGone = node.cluster?.status().phase === 'Removed';
      if (index > this.#newestState && !isGone) this.violation(`Sim-I4: ${node.host} applied ${index}, which nobody committed`);
      return;
    }
    if (!this.#sameness.same(expected, state))
      this.violation(`Sim-I4: the state of ${node.host} after ${index} is another one: ${difference(expected, state)}`);
  }

  /** The agreed states up to `index`. */
  #advance(index: number): void {
    while (this.#newestState < index) {
      const entry = this.committed.get(this.#newestState + 1)?.entry;
      if (entry === undefined) return;
      const before = this.#states.get(this.#newestState) as ClusterState;
      const { state } = applyEntry(before, entry);
      this.#newestState += 1;
      this.#states.set(this.#newestState, state);
      this.#lookAtReplicas(before, state);
    }
  }

  /** Sim-I7. */
  #lookAtReplicas(before: ClusterState, state: ClusterState): void {
    if (before.collections === state.collections) return;
    for (const [name, record] of state.collections) {
      const old = before.collections.get(name);
      if (old === undefined || old === record || old.uid !== record.uid) continue;
      for (const [where, from, to] of changedReplicas(old, record)) {
        const moves = Object.values<string>(REPLICA_STATE_MOVES[from as ReachedState] ?? {});
        if (!moves.includes(to)) this.violation(`Sim-I7: ${name} ${where} went from ${from} to ${to} at ${state.appliedIndex}`);
      }
    }
  }
}

function* changedReplicas(old: CollectionRecord, record: CollectionRecord): Generator<[string, ReplicaState, ReplicaState]> {
  for (const [shardId, shard] of record.shards) {
    for (const [peerId, to] of shard.replicas) {
      const from = old.shards.get(shardId)?.replicas.get(peerId);
      if (from !== undefined && from !== to) yield [`shard ${shardId} on ${peerId}`, from, to];
    }
  }
}

function endOfSnapshot(raft: RaftState): number {
  return raft.log.snapshot?.index ?? 0;
}

function entryAt(raft: RaftState, index: number): Entry | null {
  const { entries } = raft.log;
  return entries[index - (entries[0]?.index ?? 0)] ?? null;
}

/**
 * What is true of a network of Rafts after each step, whatever was lost, late or down. The properties of the Raft paper's
 * figure 3 come first, then what this project's Raft promises beyond them. Source: Ongaro and Ousterhout, «In Search of an
 * Understandable Consensus Algorithm» (2014).
 */

import { entryBytes } from '../../../cluster/raft/log.js';
import type { RaftEffect, RaftMessage } from '../../../cluster/raft/messages.js';
import type { RaftLog, RaftState } from '../../../cluster/raft/state.js';
import type { Membership, PeerId } from '../../../protocols/model/cluster.js';
import type { Entry, EntryPayload } from '../../../protocols/model/consensus.js';
import { hashOf } from './machine.js';
import type { Network, Peer, Stepped } from './network.js';

export class Violation extends Error {
  constructor(
    readonly invariant: string,
    what: string,
  ) {
    super(`${invariant}: ${what}`);
  }
}

interface Committed {
  readonly term: number;
  /** Of the leader that committed it. */
  readonly inTerm: number;
}

/** What one start of a peer has asked and been told. */
interface Life {
  /** Reads without an answer, with the highest commit index that anyone had when they began. */
  readonly reads: Map<number, number>;
  /** Proposals without an answer; null: a change of the membership. */
  readonly proposals: Map<number, Uint8Array | null>;
  applied: number;
  asksForSnapshot: boolean;
}

const TERMS_MAX = 1 << 20;
/** What says that something is on this peer's disk, or that it votes, has to wait for the disk. */
const LATE = new Set(['vote', 'voteReply', 'appendReply', 'installSnapshotReply']);

export class Invariants {
  /** Highest index that anyone knows to be committed. */
  commitIndex = 0;
  /** The newest membership that is committed. */
  membership: Membership = [];
  readonly #leaders = new Map<number, PeerId>();
  /** By index and term: what the entry says, and the term of the one before it. */
  readonly #entries = new Map<number, { readonly hash: number; readonly termBefore: number | null }>();
  readonly #committed = new Map<number, Committed>();
  /** Of the state machine, by index of the last entry. */
  readonly #digests = new Map<number, number>();
  /** Accepted proposals, by index and term. */
  readonly #accepted = new Map<number, number>();
  readonly #lives = new Map<PeerId, Life>();
  readonly #hashes = new WeakMap<EntryPayload, number>();

  started(peer: Peer, state: RaftState, effects: readonly RaftEffect[]): void {
    const id = peer.config.peerId;
    // The answer to a request for a snapshot may come after a restart.
    const asksForSnapshot = this.#lives.get(id)?.asksForSnapshot ?? false;
    const life: Life = { reads: new Map(), proposals: new Map(), applied: 0, asksForSnapshot };
    this.#lives.set(id, life);
    if (this.commitIndex === 0) this.#found(state);
    expect(state.term >= peer.disk.hardState.term, 'restart', `peer ${id} forgot term ${peer.disk.hardState.term}`);
    this.#checkEntries(state);
    for (const effect of effects) this.#checkEffect(peer, life, effect);
    this.#checkMachine(peer);
  }

  stepped(network: Network, { peer, input, before, state, effects }: Stepped): void {
    const id = peer.config.peerId;
    const life = this.#lives.get(id)!;
    if (input.kind === 'readIndex') life.reads.set(input.id, this.commitIndex);
    if (input.kind === 'propose') life.proposals.set(input.id, input.proposal.kind === 'operation' ? input.proposal.bytes : null);
    if (input.kind === 'requestSnapshot') life.asksForSnapshot = true;
    expect(state.term >= before.term, 'terms grow', `peer ${id} went from term ${before.term} to ${state.term}`);
    if (state.role.kind === 'Leader') this.#checkLeader(id, before, state);
    if (state.log !== before.log) this.#checkEntries(state);
    if (state.commitIndex !== before.commitIndex) this.#checkCommit(network, peer, before, state);
    expect(
      state.appliedIndex <= state.commitIndex && state.commitIndex <= lastIndex(state.log),
      'applied ≤ committed ≤ last',
      `peer ${id} has ${state.appliedIndex}, ${state.commitIndex}, ${lastIndex(state.log)}`,
    );
    for (const effect of effects) this.#checkEffect(peer, life, effect);
    expect(life.applied === state.appliedIndex, 'applied index', `peer ${id} says ${state.appliedIndex}, ${life.applied} is applied`);
    this.#checkMachine(peer);
  }

  /** Requests of running peers that have no answer yet. */
  unanswered(network: Network): string[] {
    return network.running().flatMap(({ config: { peerId } }) => {
      const { reads, proposals } = this.#lives.get(peerId)!;
      return [
        ...[...reads.keys()].map((id) => `read ${id} of ${peerId}`),
        ...[...proposals.keys()].map((id) => `proposal ${id} of ${peerId}`),
      ];
    });
  }

  /** The first peer's snapshot or first entries are committed from the start. */
  #found(state: RaftState): void {
    for (let index = 1; index <= state.commitIndex; index++) {
      this.#committed.set(index, { term: termAt(state.log, index) ?? 1, inTerm: 0 });
    }
    this.commitIndex = state.commitIndex;
    this.membership = state.membership;
  }

  #checkLeader(id: PeerId, before: RaftState, state: RaftState): void {
    const other = this.#leaders.get(state.term);
    expect(other === undefined || other === id, 'election safety', `peers ${other} and ${id} both lead in term ${state.term}`);
    this.#leaders.set(state.term, id);
    for (const [to, { mode }] of state.role.kind === 'Leader' ? state.role.progress : []) {
      const within = mode.kind !== 'Replicate' || mode.inFlight.length <= state.config.appendsInFlightMax;
      expect(within, 'bounds', `leader ${id} has more than ${state.config.appendsInFlightMax} appends under way to ${to}`);
    }
    if (before.role.kind !== 'Leader' || before.term !== state.term) {
      this.#checkCompleteness(state, 1);
    } else if (before.log !== state.log) {
      const lost = before.log.entries.find(
        (entry) => termAt(state.log, entry.index) !== entry.term && entry.index >= firstIndex(state.log),
      );
      expect(
        lost === undefined && lastIndex(state.log) >= lastIndex(before.log),
        'leader append-only',
        `leader ${id} gave up entries of its log, ${lost?.index ?? 'its last'}`,
      );
    }
  }

  /** A leader has every entry that was committed in an earlier term. */
  #checkCompleteness(state: RaftState, from: number): void {
    for (let index = from; index <= this.commitIndex; index++) {
      const committed = this.#committed.get(index);
      if (committed === undefined || committed.inTerm >= state.term) continue;
      const term = termAt(state.log, index);
      const snapshot = state.log.snapshot?.index ?? 0;
      expect(
        term === committed.term || (term === null && index <= snapshot),
        'leader completeness',
        `leader ${state.config.peerId} of term ${state.term} has ${term ?? 'nothing'} at ${index}, where ${committed.term} was committed in term ${committed.inTerm}`,
      );
    }
  }

  #checkEntries(state: RaftState): void {
    let termBefore: number | null = null;
    let indexBefore: number | null = null;
    for (const entry of state.log.entries) {
      if (indexBefore !== null) expect(entry.index === indexBefore + 1, 'log', `${entry.index} follows ${indexBefore}`);
      this.#checkEntry(state, entry, termBefore ?? termAt(state.log, entry.index - 1));
      termBefore = entry.term;
      indexBefore = entry.index;
    }
    const begin = state.log.entries[0]?.index;
    expect(begin === undefined || begin <= (state.log.snapshot?.index ?? 0) + 1, 'log', `a gap before ${begin}`);
  }

  /** Log matching: same index and term, same entry, and so on for the one before it. */
  #checkEntry(state: RaftState, entry: Entry, termBefore: number | null): void {
    const key = keyOf(entry.index, entry.term);
    const hash = this.#hash(entry.payload);
    const known = this.#entries.get(key);
    if (known === undefined) {
      this.#entries.set(key, { hash, termBefore });
    } else {
      expect(
        known.hash === hash && (known.termBefore === termBefore || known.termBefore === null || termBefore === null),
        'log matching',
        `peer ${state.config.peerId} has another entry ${entry.index}/${entry.term}`,
      );
    }
    const accepted = this.#accepted.get(key);
    expect(accepted === undefined || accepted === hash, 'proposals', `entry ${entry.index}/${entry.term} is not what was accepted as it`);
  }

  #checkCommit(network: Network, peer: Peer, before: RaftState, state: RaftState): void {
    const id = peer.config.peerId;
    expect(state.commitIndex >= before.commitIndex, 'commits stay', `peer ${id} went from ${before.commitIndex} to ${state.commitIndex}`);
    for (let index = before.commitIndex + 1; index <= state.commitIndex; index++) {
      const term = termAt(state.log, index);
      const known = this.#committed.get(index);
      if (known !== undefined) {
        expect(
          term === known.term || (term === null && index <= (state.log.snapshot?.index ?? 0)),
          'state machine safety',
          `peer ${id} commits ${index}/${term}, and ${index}/${known.term} was committed`,
        );
        continue;
      }
      // One that commits its own removal leads no more.
      expect(
        [before.role.kind, state.role.kind].includes('Leader'),
        'leaders commit',
        `peer ${id} commits ${index}/${term} before any leader does`,
      );
      this.#committed.set(index, { term: term!, inTerm: state.term });
      this.commitIndex = index;
      const entry = state.log.entries.find((candidate) => candidate.index === index);
      if (entry?.payload.kind === 'membership') this.membership = entry.payload.membership;
      this.#checkQuorum(network, state, index, term!);
      for (const other of network.running()) {
        const theirs = stateOf(other);
        if (theirs.role.kind === 'Leader' && theirs.term > state.term) this.#checkCompleteness(theirs, index);
      }
    }
  }

  #checkQuorum(network: Network, state: RaftState, index: number, term: number): void {
    const voters = state.membership.filter((member) => member.voter);
    const holders = voters.filter(({ peerId }) => {
      const peer = network.peers.get(peerId);
      return peer !== undefined && this.#isOnDisk(peer, { index, term });
    });
    expect(
      holders.length * 2 > voters.length,
      'a quorum has it on disk',
      `${index}/${term} counts as committed in term ${state.term} and is on the disks of ${holders.map((member) => member.peerId).join(' ') || 'nobody'}`,
    );
  }

  #checkEffect(peer: Peer, life: Life, effect: RaftEffect): void {
    const id = peer.config.peerId;
    switch (effect.kind) {
      case 'apply':
        for (const entry of effect.entries) {
          expect(entry.index === life.applied + 1, 'applied once and in order', `peer ${id} applies ${entry.index} behind ${life.applied}`);
          expect(
            this.#committed.get(entry.index)?.term === entry.term,
            'only committed entries are applied',
            `${entry.index}/${entry.term}`,
          );
          expect(this.#isOnDisk(peer, entry), 'applied entries are on disk', `peer ${id} applies ${entry.index}/${entry.term} early`);
          life.applied = entry.index;
        }
        return;
      case 'restore': {
        const { index } = effect.snapshot;
        const back = index <= life.applied && !life.asksForSnapshot;
        expect(!back, 'applied once and in order', `peer ${id} goes back from ${life.applied} to the snapshot of ${index}`);
        life.applied = index;
        return;
      }
      case 'readReady': {
        const floor = life.reads.get(effect.id);
        expect(floor !== undefined, 'one answer', `peer ${id} answers read ${effect.id} twice`);
        const stale = effect.index !== null && effect.index < floor!;
        expect(
          !stale,
          'read index',
          `read ${effect.id} of peer ${id} may be answered at ${effect.index}; ${floor} was committed before it began`,
        );
        life.reads.delete(effect.id);
        return;
      }
      case 'proposed':
        this.#checkProposed(id, life, effect);
        return;
      case 'sendEarly': {
        for (const message of effect.messages) this.#checkSize(peer, message);
        const wrong = effect.messages.find((message) => LATE.has(message.kind));
        expect(wrong === undefined, 'persist before send', `peer ${id} sends ${wrong?.kind} early`);
        return;
      }
      case 'persist':
      case 'send':
      case 'roleChanged':
      case 'removed':
      case 'snapshotWanted':
        return;
      default:
        effect satisfies never;
    }
  }

  /** One entry may be larger than an append; so may none that goes along with others. */
  #checkSize({ config }: Peer, message: RaftMessage): void {
    if (message.kind === 'append' && message.entries.length > 1) {
      const bytes = message.entries.reduce((sum, entry) => sum + entryBytes(entry), 0);
      expect(bytes <= config.appendBytesMax, 'bounds', `an append of ${bytes} bytes`);
    } else if (message.kind === 'installSnapshot') {
      expect(message.chunk.length <= config.snapshotChunkBytes, 'bounds', `a part of ${message.chunk.length} bytes`);
    }
  }

  #isOnDisk({ disk }: Peer, { index, term }: Pick<Entry, 'index' | 'term'>): boolean {
    return (disk.snapshot?.index ?? 0) >= index || disk.entries.some((entry) => entry.index === index && entry.term === term);
  }

  #checkProposed(id: PeerId, life: Life, { id: request, outcome }: Extract<RaftEffect, { kind: 'proposed' }>): void {
    const bytes = life.proposals.get(request);
    expect(bytes !== undefined, 'one answer', `peer ${id} answers proposal ${request} twice`);
    life.proposals.delete(request);
    if (outcome.kind !== 'accepted' || bytes === undefined || bytes === null) return;
    const hash = hashOf({ kind: 'operation', bytes });
    const key = keyOf(outcome.index, outcome.term);
    const known = this.#entries.get(key);
    expect(known === undefined || known.hash === hash, 'proposals', `${outcome.index}/${outcome.term} is not what was accepted as it`);
    this.#accepted.set(key, hash);
  }

  #checkMachine(peer: Peer): void {
    const { index, digest } = peer.machine;
    const known = this.#digests.get(index);
    if (known === undefined) this.#digests.set(index, digest);
    else expect(known === digest, 'state machine safety', `peer ${peer.config.peerId} has another state after ${index}`);
  }

  #hash(payload: EntryPayload): number {
    const known = this.#hashes.get(payload);
    if (known !== undefined) return known;
    const hash = hashOf(payload);
    this.#hashes.set(payload, hash);
    return hash;
  }
}

export function firstIndex(log: RaftLog): number {
  return log.entries[0]?.index ?? (log.snapshot?.index ?? 0) + 1;
}

export function lastIndex(log: RaftLog): number {
  return log.entries.at(-1)?.index ?? log.snapshot?.index ?? 0;
}

/** Null where the log has no such entry any more, or not yet. */
export function termAt(log: RaftLog, index: number): number | null {
  if (index === 0) return 0;
  const begin = firstIndex(log);
  const entry = log.entries[index - begin];
  if (entry !== undefined) return entry.term;
  if (log.snapshot?.index === index) return log.snapshot.term;
  return index === begin - 1 ? log.termBefore : null;
}

function stateOf(peer: Peer): RaftState {
  if (peer.state === null) throw new Error(`peer ${peer.config.peerId} is down`);
  return peer.state;
}

function keyOf(index: number, term: number): number {
  return index * TERMS_MAX + term;
}

function expect(holds: boolean, invariant: string, what: string): void {
  if (!holds) throw new Violation(invariant, what);
}

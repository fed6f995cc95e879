/** Single Rafts, and a few that hear each other at once, for tests of one rule. */

import { RAFT_DEFAULTS, type RaftConfig } from '../../../cluster/raft/config.js';
import type { RaftEffect, RaftInput, RaftMessage } from '../../../cluster/raft/messages.js';
import { startRaft } from '../../../cluster/raft/start.js';
import type { LeaderRole, Progress, RaftState } from '../../../cluster/raft/state.js';
import { stepRaft } from '../../../cluster/raft/step.js';
import type { Member, PeerId } from '../../../protocols/model/cluster.js';
import type { Entry, StoredConsensus } from '../../../protocols/model/consensus.js';

/** Each peer waits the same time, so that who campaigns first is the one that ticks first. */
export const CONFIG: RaftConfig = { ...RAFT_DEFAULTS, peerId: 1, electionTicks: 5, electionTicksSpread: 0 };

export type Sent<Kind extends RaftMessage['kind']> = Extract<RaftMessage, { kind: Kind }>;

export function member(peerId: PeerId, voter = true): Member {
  return { peerId, uri: `http://peer-${peerId}:6335`, version: '1.0.0', voter };
}

export function voters(...peerIds: PeerId[]): readonly Member[] {
  return peerIds.map((peerId) => member(peerId));
}

/** An entry with one byte. */
export function entry(index: number, term: number, byte = index): Entry {
  return { index, term, payload: { kind: 'operation', bytes: Uint8Array.of(byte) } };
}

/** A snapshot at 1 with `members` in term 1, and entries behind it. */
export function stored(members: readonly Member[], change: Partial<StoredConsensus> = {}): StoredConsensus {
  return {
    identity: null,
    hardState: { term: change.entries?.at(-1)?.term ?? 1, votedFor: null, commit: 1 },
    snapshot: { index: 1, term: 1, membership: members, data: new Uint8Array(0) },
    entries: [],
    applied: 1,
    ...change,
  };
}

/** Peer 1, unless `config` names another. */
export function peer(what: StoredConsensus, config: Partial<RaftConfig> = {}): RaftState {
  return startRaft({ ...CONFIG, ...config }, what, 1).state;
}

export interface Taken {
  readonly state: RaftState;
  readonly effects: readonly RaftEffect[];
}

export function take(state: RaftState, ...inputs: readonly RaftInput[]): Taken {
  const effects: RaftEffect[] = [];
  let now = state;
  for (const input of inputs) {
    const next = stepRaft(now, input);
    effects.push(...next.effects);
    now = next.state;
  }
  return { state: now, effects };
}

export function ticks(state: RaftState, count: number): Taken {
  return take(state, ...new Array<RaftInput>(count).fill({ kind: 'tick' }));
}

/** With all its writes on disk. */
export function onDisk(taken: Taken): Taken {
  const next = take(taken.state, { kind: 'persisted', write: taken.state.writes });
  const effects = [...taken.effects, ...next.effects];
  return next.state.persistedWrites < next.state.writes ? onDisk({ state: next.state, effects }) : { state: next.state, effects };
}

export function heard(state: RaftState, message: RaftMessage): Taken {
  return take(state, { kind: 'receive', message });
}

/** Peer 1 of `members` as leader of term 2, elected by all, with its first entry on disk and nobody's answer to it. */
export function leader(members: readonly Member[], change: Partial<StoredConsensus> = {}, config: Partial<RaftConfig> = {}): RaftState {
  let now = ticks(peer(stored(members, change), config), CONFIG.electionTicks).state;
  const others = members.filter(({ peerId, voter }) => voter && peerId !== now.config.peerId);
  for (const { peerId } of others) now = heard(now, { kind: 'preVoteReply', from: peerId, to: 1, term: now.term + 1, granted: true }).state;
  now = onDisk({ state: now, effects: [] }).state;
  const { term } = now;
  for (const { peerId } of others) now = heard(now, { kind: 'voteReply', from: peerId, to: 1, term, granted: true }).state;
  return onDisk({ state: now, effects: [] }).state;
}

export function agreed(state: RaftState, from: PeerId, index: number, round = 0): RaftInput {
  return { kind: 'receive', message: { kind: 'appendReply', from, to: 1, term: state.term, matched: true, index, logTerm: 0, round } };
}

export function messagesOf(effects: readonly RaftEffect[]): readonly RaftMessage[] {
  return effects.flatMap((effect) => (effect.kind === 'send' || effect.kind === 'sendEarly' ? effect.messages : []));
}

export function sent<Kind extends RaftMessage['kind']>(effects: readonly RaftEffect[], kind: Kind): readonly Sent<Kind>[] {
  return messagesOf(effects).filter((message): message is Sent<Kind> => message.kind === kind);
}

export function effectsOf<Kind extends RaftEffect['kind']>(
  effects: readonly RaftEffect[],
  kind: Kind,
): readonly Extract<RaftEffect, { kind: Kind }>[] {
  return effects.filter((effect): effect is Extract<RaftEffect, { kind: Kind }> => effect.kind === kind);
}

export function applied(effects: readonly RaftEffect[]): readonly number[] {
  return effectsOf(effects, 'apply').flatMap(({ entries }) => entries.map(({ index }) => index));
}

export function progress(state: RaftState, of: PeerId): Progress {
  return (state.role as LeaderRole).progress.get(of) as Progress;
}

/** Peers that hear each other at once and write at once, but for links that are cut and disks that are stopped. */
export class Company {
  readonly states = new Map<PeerId, RaftState>();
  /** What each one caused beside messages and writes. */
  readonly effects = new Map<PeerId, RaftEffect[]>();
  readonly cut = new Set<PeerId>();
  readonly stopped = new Set<PeerId>();
  private readonly queue: (() => void)[] = [];

  static of(count: number, config: Partial<RaftConfig> = {}): Company {
    const company = new Company();
    const ids = Array.from({ length: count }, (_, place) => place + 1);
    for (const peerId of ids) company.start(peerId, stored(voters(...ids)), config);
    return company;
  }

  start(peerId: PeerId, what: StoredConsensus, config: Partial<RaftConfig> = {}): void {
    this.effects.set(peerId, []);
    this.take(peerId, startRaft({ ...CONFIG, ...config, peerId }, what, peerId));
    this.settle();
  }

  state(peerId: PeerId): RaftState {
    return this.states.get(peerId) as RaftState;
  }

  input(peerId: PeerId, input: RaftInput): void {
    this.take(peerId, stepRaft(this.state(peerId), input));
    this.settle();
  }

  tick(count = 1): void {
    for (let tick = 0; tick < count; tick++) for (const peerId of this.states.keys()) this.input(peerId, { kind: 'tick' });
  }

  /** The leader of the highest term. */
  get leader(): PeerId | null {
    const leaders = [...this.states.values()].filter(({ role }) => role.kind === 'Leader').sort((a, b) => b.term - a.term);
    return leaders[0]?.config.peerId ?? null;
  }

  indexesApplied(peerId: PeerId): readonly number[] {
    return applied(this.effects.get(peerId) as RaftEffect[]);
  }

  private take(peerId: PeerId, taken: Taken): void {
    this.states.set(peerId, taken.state);
    for (const effect of taken.effects) {
      if (effect.kind === 'persist') {
        if (!this.stopped.has(peerId))
          this.queue.push(() => this.take(peerId, stepRaft(this.state(peerId), { kind: 'persisted', write: effect.number })));
      } else if (effect.kind === 'send' || effect.kind === 'sendEarly') {
        // What waits for a disk that stands still never goes.
        const waits = effect.kind === 'send' && this.state(peerId).persistedWrites < this.state(peerId).writes && this.stopped.has(peerId);
        if (!waits) for (const message of effect.messages) this.queue.push(() => this.deliver(message));
      } else (this.effects.get(peerId) as RaftEffect[]).push(effect);
    }
  }

  private deliver(message: RaftMessage): void {
    if (this.cut.has(message.from) || this.cut.has(message.to)) return;
    const state = this.states.get(message.to);
    if (state !== undefined) this.take(message.to, stepRaft(state, { kind: 'receive', message }));
  }

  private settle(): void {
    for (let next = this.queue.shift(); next !== undefined; next = this.queue.shift()) next();
  }
}

/**
 * A walk by seed through what may happen to a few Rafts: messages are lost, doubled, late and out of order, ways are cut, peers
 * crash with and without their last writes, come, go and fall behind. Every step is checked. In the end all faults are healed,
 * and the peers must agree and work again within `HEALED_ROUNDS_MAX` rounds of ticks.
 */

import type { RaftConfig } from '../../../cluster/raft/config.js';
import type { MembershipChange, RaftEffect } from '../../../cluster/raft/messages.js';
import { stepRaft } from '../../../cluster/raft/step.js';
import { type RandomNumbers, seededRandom } from '../../../ops/random.js';
import type { PeerId } from '../../../protocols/model/cluster.js';
import { NOTHING_STORED } from '../../../protocols/model/consensus.js';
import { foundedBy, member } from './disk.js';
import { Invariants, termAt, Violation } from './invariants.js';
import { BLANK, snapshotData } from './machine.js';
import { Network, type Peer, type Step, type Stepped } from './network.js';
import { printedMessage, printedRole, printedStep } from './print.js';
import { drawConfig, drawRates, type MessageRates, maybe, noFigures, pick, type WalkFigures } from './walk-mixture.js';

export interface WalkOptions {
  readonly seed: number;
  readonly actions?: number;
  /** Raft's own, or one with a mistake. */
  readonly step?: Step;
  /** Takes a line for all that happens. */
  readonly tell?: (line: string) => void;
}

export const HEALED_ROUNDS_MAX = 150;
const ACTIONS = 1200;
const PEERS_MAX = 7;
const IN_FLIGHT_MAX = 200;
const ROUND_MESSAGES_MAX = 3000;

/** Fails with a `Violation`, or with whatever Raft fails with. */
export function walk(options: WalkOptions): WalkFigures {
  const walk = new Walk(options);
  for (let action = 0; action < (options.actions ?? ACTIONS); action++) walk.act();
  walk.heal();
  return walk.figures;
}

interface Action {
  readonly weight: number;
  readonly act: () => void;
}

class Walk {
  readonly figures = noFigures();
  readonly #random: RandomNumbers;
  readonly #tell: ((line: string) => void) | undefined;
  readonly #invariants = new Invariants();
  readonly #network: Network;
  readonly #config: Omit<RaftConfig, 'peerId'>;
  readonly #rates: MessageRates;
  readonly #actions: readonly Action[];
  readonly #weights: number;
  /** Told that they were removed; they never come back. */
  readonly #gone = new Set<PeerId>();
  #leavers: Peer[] = [];
  #requests = 0;
  /** Members that have to bring a proposal through after the healing, and proposals without an answer. */
  readonly #unproposed = new Set<PeerId>();
  readonly #lastProposals = new Map<number, PeerId>();

  constructor(options: WalkOptions) {
    this.#random = seededRandom(options.seed);
    this.#tell = options.tell;
    this.#network = new Network({
      step: options.step ?? stepRaft,
      seed: options.seed,
      stepped: (stepped) => this.#stepped(stepped),
      started: (peer, state, effects) => {
        this.#tell?.(`${peer.config.peerId} starts as ${printedRole(state)}`);
        this.#invariants.started(peer, state, effects);
      },
    });
    this.#config = drawConfig(this.#random);
    this.#rates = drawRates(this.#random);
    this.#actions = this.#drawActions();
    this.#weights = this.#actions.reduce((sum, { weight }) => sum + weight, 0);
    const voters = this.#pick([1, 2, 3, 3, 3, 3, 4, 5]);
    const membership = Array.from({ length: voters }, (_, at) => member(at + 1, true));
    for (const { peerId } of membership) this.#add(peerId, foundedBy(membership, snapshotData({ ...BLANK, index: 1 })));
  }

  act(): void {
    let left = this.#random.unit() * this.#weights;
    for (const { weight, act } of this.#actions) {
      left -= weight;
      if (left >= 0) continue;
      act();
      break;
    }
    for (const peer of this.#leavers) this.#leave(peer);
    this.#leavers = [];
  }

  /** No faults any more: one leader, all members up to date, every request answered, and new ones work at each member. */
  heal(): void {
    this.#tell?.('all faults are healed');
    this.#network.cuts.clear();
    for (const peer of this.#network.peers.values())
      if (peer.state === null && !this.#gone.has(peer.config.peerId)) this.#network.start(peer);
    const began = this.#rounds('after the healing', 0, () => this.#disagreement());
    for (const { peerId } of this.#invariants.membership) this.#unproposed.add(peerId);
    this.figures.healed = this.#rounds('after the healing', began, () => {
      const proposers = [...this.#unproposed];
      this.#unproposed.clear();
      for (const peerId of proposers) {
        const id = this.#request();
        this.#lastProposals.set(id, peerId);
        this.#proposeAt(this.#network.peer(peerId), id, 'healed');
      }
      const waiting = [...this.#lastProposals.keys()][0];
      return waiting === undefined ? this.#disagreement() : `proposal ${waiting} is not accepted`;
    });
    this.figures.committed = this.#invariants.commitIndex;
  }

  /** Rounds until `problem` says there is none. */
  #rounds(what: string, before: number, problem: () => string | null): number {
    for (let round = before; ; round++) {
      const found = problem();
      if (found === null) return round;
      if (round === HEALED_ROUNDS_MAX) throw new Violation('progress', `${found}, ${round} rounds ${what}`);
      this.#round();
    }
  }

  #round(): void {
    for (const peer of this.#network.running()) this.#network.step(peer, { kind: 'tick' });
    for (
      let delivered = 0;
      this.#network.inFlight.length > 0 || this.#network.running().some((peer) => peer.unsynced.length > 0);
      delivered++
    ) {
      if (delivered === ROUND_MESSAGES_MAX) throw new Violation('progress', 'the peers never stop talking');
      for (const peer of this.#network.running()) this.#network.persist(peer);
      if (this.#network.inFlight.length > 0) this.#network.deliver(0);
    }
    for (const peer of this.#leavers) this.#leave(peer);
    this.#leavers = [];
  }

  #disagreement(): string | null {
    const members = new Set(this.#invariants.membership.map(({ peerId }) => peerId));
    const running = this.#network.running();
    const leaders = running.filter((peer) => peer.state?.role.kind === 'Leader');
    if (leaders.length !== 1) return `${leaders.length} leaders`;
    for (const { config, state, machine } of running) {
      const id = config.peerId;
      if (members.has(id)) {
        if (state?.leader !== leaders[0]?.config.peerId) return `peer ${id} follows ${state?.leader}`;
        if (machine.index !== this.#invariants.commitIndex)
          return `peer ${id} has applied ${machine.index} of ${this.#invariants.commitIndex}`;
      } else if (state?.membership.some((other) => other.peerId === id)) {
        return `peer ${id} does not know that it was removed`;
      }
    }
    return this.#invariants.unanswered(this.#network)[0] ?? null;
  }

  #stepped(stepped: Stepped): void {
    const { peer, input, before, state, effects } = stepped;
    const id = peer.config.peerId;
    if (this.#tell !== undefined) {
      const from = input.kind === 'receive' ? `${input.message.from}>${id} ${printedMessage(input.message)}` : `${id} ${input.kind}`;
      for (const line of [from, ...printedStep(stepped, true).map((effect) => `    ${effect}`)]) this.#tell(line);
    }
    this.figures.steps += 1;
    if (state.role.kind === 'Leader' && (before.role.kind !== 'Leader' || before.term !== state.term)) this.figures.leaders += 1;
    for (const effect of effects) {
      if (effect.kind === 'restore') this.figures.snapshots += 1;
      else if (effect.kind === 'readReady' && effect.index !== null) this.figures.reads += 1;
      else if (effect.kind === 'apply')
        this.figures.memberships += effect.entries.filter((entry) => entry.payload.kind === 'membership').length;
      else if (effect.kind === 'removed') this.#leavers.push(peer);
      else if (effect.kind === 'proposed') this.#proposed(effect);
    }
    this.#invariants.stepped(this.#network, stepped);
  }

  /** A leader may be busy, or not be one any more: the proposal is made again. */
  #proposed({ id, outcome }: Extract<RaftEffect, { kind: 'proposed' }>): void {
    const peerId = this.#lastProposals.get(id);
    if (peerId === undefined) return;
    this.#lastProposals.delete(id);
    if (outcome.kind === 'refused') this.#unproposed.add(peerId);
  }

  #leave(peer: Peer): void {
    const id = peer.config.peerId;
    if (peer.state === null) return;
    if (this.#invariants.membership.some((other) => other.peerId === id))
      throw new Violation('only removed peers are told so', `peer ${id} is a member`);
    this.#tell?.(`${id} leaves for good`);
    this.#network.crash(peer, peer.unsynced.length);
    this.#gone.add(id);
    this.#unproposed.delete(id);
    for (const [proposal, proposer] of this.#lastProposals) if (proposer === id) this.#lastProposals.delete(proposal);
    this.figures.removed += 1;
  }

  /** Each walk has its own mixture of faults; some have none of one kind. */
  #drawActions(): readonly Action[] {
    const ofRunning = (act: (peer: Peer) => void) => () => {
      const running = this.#network.running();
      if (running.length > 0) act(this.#pick(running));
    };
    const input = (kind: 'tick' | 'campaign' | 'requestSnapshot') => ofRunning((peer) => this.#network.step(peer, { kind }));
    const overthrows = [
      { weight: 20, act: () => this.#deliver() },
      { weight: 20, act: ofRunning((peer) => this.#persist(peer)) },
      { weight: 3, act: ofRunning((peer) => this.#oversleep([peer])) },
      { weight: 2, act: () => this.#oversleep(this.#network.running().filter(() => this.#random.unit() < 0.5)) },
      { weight: 3, act: () => this.#topple() },
      { weight: 2, act: ofRunning((peer) => this.#bounce(this.#voterOr(peer))) },
      { weight: 2, act: ofRunning((peer) => this.#network.step(this.#leaderOr(peer), { kind: 'readIndex', id: this.#request() })) },
      { weight: 1, act: ofRunning((peer) => this.#proposeAt(this.#leaderOr(peer), this.#request(), 'p')) },
      { weight: 5, act: () => this.#restart() },
      { weight: 5, act: () => this.#network.cuts.clear() },
    ];
    // One walk in three has little but elections, and one has few faults, so that peers come further.
    const kind = this.#pick(['overthrows', 'calm', 'wild']);
    if (kind === 'overthrows') return overthrows;
    const fault = (most: number) => maybe(this.#random, kind === 'calm' ? most / 8 : most);
    const wish = (most: number) => maybe(this.#random, most);
    return [
      { weight: this.#pick([20, 40]), act: () => this.#deliver() },
      { weight: this.#pick([5, 15, 30]), act: input('tick') },
      { weight: fault(3), act: ofRunning((peer) => this.#oversleep([peer])) },
      { weight: fault(3), act: () => this.#oversleep(this.#network.running().filter(() => this.#random.unit() < 0.5)) },
      { weight: this.#pick([10, 30]), act: ofRunning((peer) => this.#persist(peer)) },
      { weight: 4, act: ofRunning((peer) => this.#proposeAt(peer, this.#request(), 'p')) },
      { weight: 3, act: ofRunning((peer) => this.#network.step(this.#leaderOr(peer), { kind: 'readIndex', id: this.#request() })) },
      { weight: 1, act: ofRunning((peer) => this.#network.compact(peer)) },
      { weight: fault(4), act: ofRunning((peer) => this.#crash(this.#leaderOr(peer))) },
      { weight: 4, act: () => this.#restart() },
      { weight: fault(3), act: ofRunning((peer) => this.#bounce(this.#voterOr(peer))) },
      { weight: fault(10), act: () => this.#topple() },
      { weight: fault(2), act: () => this.#cut() },
      { weight: this.#pick([0.5, 2]), act: () => this.#network.cuts.clear() },
      { weight: wish(2), act: ofRunning((peer) => this.#changeMembership(peer)) },
      { weight: wish(1), act: ofRunning((peer) => this.#network.step(peer, { kind: 'transferLeadership', to: this.#anyPeer() })) },
      { weight: wish(0.3), act: input('campaign') },
      { weight: wish(0.2), act: input('requestSnapshot') },
      { weight: 0.2, act: ofRunning((peer) => this.#network.step(peer, { kind: 'unreachable', peer: this.#anyPeer() })) },
    ];
  }

  #deliver(): void {
    const { inFlight } = this.#network;
    for (let count = 1 + this.#random.integer(5); count > 0 && inFlight.length > 0; count--) {
      let at = this.#random.integer(this.#network.inFlight.length);
      const message = this.#network.inFlight[at];
      if (message === undefined) return;
      // Unless they overtake each other, the oldest of the same way comes first.
      if (this.#random.unit() >= this.#rates.disorder) {
        at = this.#network.inFlight.findIndex(({ from, to }) => from === message.from && to === message.to);
      }
      this.#deliverOrLose(at);
    }
    while (this.#network.inFlight.length > IN_FLIGHT_MAX) this.#lose(0);
  }

  #deliverOrLose(at: number): void {
    if (this.#random.unit() < this.#rates.doubling) {
      this.figures.doubled += 1;
      this.#network.inFlight.push(this.#network.inFlight[at]!);
    }
    if (this.#random.unit() < this.#rates.loss) this.#lose(at);
    else this.#network.deliver(at);
  }

  #lose(at: number): void {
    const [message] = this.#network.inFlight.splice(at, 1);
    this.figures.lost += 1;
    if (message !== undefined) this.#tell?.(`${message.from}>${message.to} ${message.kind} of term ${message.term} is lost`);
  }

  #persist(peer: Peer): void {
    this.#network.persist(peer, 1 + this.#random.integer(peer.unsynced.length + 1));
  }

  /** Nothing is delivered for longer than an election timeout: all of them want to lead. */
  #oversleep(peers: readonly Peer[]): void {
    for (const peer of peers) {
      const { electionTicks, electionTicksSpread } = peer.config;
      for (let ticks = electionTicks + electionTicksSpread; ticks > 0; ticks--) this.#network.step(peer, { kind: 'tick' });
    }
  }

  /** It is up again before anyone notices, with messages from before still on the way. */
  #bounce(peer: Peer): void {
    if (this.#random.unit() < 0.7) this.#network.persist(peer);
    this.#crash(peer);
    this.#network.start(peer);
  }

  #crash(peer: Peer): void {
    const survivors = this.#random.integer(peer.unsynced.length + 1);
    this.#tell?.(`${peer.config.peerId} crashes; ${survivors} of ${peer.unsynced.length} writes under way are on its disk`);
    this.figures.crashes += 1;
    this.#network.crash(peer, survivors);
  }

  #restart(): void {
    const down = [...this.#network.peers.values()].filter((peer) => peer.state === null && !this.#gone.has(peer.config.peerId));
    if (down.length > 0) this.#network.start(this.#pick(down));
  }

  /** A leader that has committed nothing yet in its term is cut off or crashes: what it has of earlier terms is at stake. */
  #topple(): void {
    const leader = this.#network.running().find(({ state }) => {
      return state?.role.kind === 'Leader' && termAt(state.log, state.commitIndex) !== state.term;
    });
    if (leader === undefined) return;
    this.#network.persist(leader);
    if (this.#random.unit() < 0.5) this.#crash(leader);
    else this.#isolate(new Set([leader.config.peerId]));
  }

  /** One way; or a leader alone, in one way or both; or all ways between two halves. */
  #cut(): void {
    this.figures.partitions += 1;
    const ids = [...this.#network.peers.keys()];
    const how = this.#random.unit();
    if (how < 0.2) {
      this.#network.cuts.add(`${this.#pick(ids)}>${this.#pick(ids)}`);
    } else {
      const leader = this.#network.running().find((peer) => peer.state?.role.kind === 'Leader')?.config.peerId;
      this.#isolate(new Set(ids.filter((id) => (how < 0.6 ? id === leader : this.#random.unit() < 0.5))));
    }
  }

  /** Nothing gets out of these peers, or in, or neither. */
  #isolate(side: ReadonlySet<PeerId>): void {
    const ways = this.#pick(['out', 'in', 'both', 'both', 'both']);
    for (const from of side) {
      for (const to of this.#network.peers.keys()) {
        if (side.has(to)) continue;
        if (ways !== 'in') this.#network.cuts.add(`${from}>${to}`);
        if (ways !== 'out') this.#network.cuts.add(`${to}>${from}`);
      }
    }
    this.#tell?.(`cut: ${[...this.#network.cuts].join(' ')}`);
  }

  /** Half of the time, somebody who takes itself for the leader. */
  #leaderOr(peer: Peer): Peer {
    const leaders = this.#network.running().filter((other) => other.state?.role.kind === 'Leader');
    return leaders.length > 0 && this.#random.unit() < 0.5 ? this.#pick(leaders) : peer;
  }

  /** Half of the time, somebody who has voted and knows no leader yet. */
  #voterOr(peer: Peer): Peer {
    const voters = this.#network.running().filter(({ config, state }) => {
      return state?.leader === null && state.votedFor !== null && state.votedFor !== config.peerId;
    });
    return voters.length > 0 && this.#random.unit() < 0.5 ? this.#pick(voters) : peer;
  }

  #proposeAt(peer: Peer, id: number, name: string): void {
    // Some are too large.
    const text = `${name}${id}`.padEnd(this.#random.integer(name === 'p' ? this.#config.entryBytesMax + 2 : 1), '.');
    this.#network.step(peer, { kind: 'propose', id, proposal: { kind: 'operation', bytes: new TextEncoder().encode(text) } });
  }

  #changeMembership(peer: Peer): void {
    this.#network.step(peer, { kind: 'propose', id: this.#request(), proposal: { kind: 'membership', change: this.#drawChange() } });
  }

  #drawChange(): MembershipChange {
    const { membership } = this.#invariants;
    const { peerId } = this.#pick(membership);
    const learner = membership.find((other) => !other.voter);
    const kind = this.#random.unit();
    const next = this.#network.peers.size + 1;
    if (kind < 0.35 && next <= PEERS_MAX) {
      this.#add(next, NOTHING_STORED);
      const { voter: _, ...added } = member(next, false);
      return { kind: 'addLearner', member: added };
    }
    if (kind < 0.7 && learner !== undefined) return { kind: 'promote', peerId: learner.peerId };
    if (kind < 0.9) return { kind: 'remove', peerId };
    return { kind: 'announce', member: { peerId, uri: `http://moved-${this.#requests}:6335`, version: '1' } };
  }

  #add(peerId: PeerId, stored: Peer['disk']): void {
    this.#network.add({ ...this.#config, peerId }, stored);
  }

  #anyPeer(): PeerId {
    return this.#pick([...this.#network.peers.keys()]);
  }

  #request(): number {
    this.#requests += 1;
    return this.#requests;
  }

  #pick<Item>(items: readonly Item[]): Item {
    return pick(this.#random, items);
  }
}

/**
 * Runs a text of commands on a network of Rafts and returns it with what they caused, to be compared with the text on file.
 * The commands stand in `test/scenarios/README.md`.
 */

import { RAFT_DEFAULTS, type RaftConfig } from '../../../cluster/raft/config.js';
import type { MembershipChange, Proposal, RaftMessage } from '../../../cluster/raft/messages.js';
import { stepRaft } from '../../../cluster/raft/step.js';
import type { PeerId } from '../../../protocols/model/cluster.js';
import { type Entry, NOTHING_STORED, type StoredConsensus } from '../../../protocols/model/consensus.js';
import { foundedBy, member } from './disk.js';
import { Invariants } from './invariants.js';
import { BLANK, snapshotData } from './machine.js';
import { Network, type Peer, type Step } from './network.js';
import { printedMessage, printedRole, printedState, printedStep } from './print.js';

/** Elections are called by `campaign` unless a scenario is about them: with no spread, ticks do the same in every run. */
const CONFIG = { ...RAFT_DEFAULTS, electionTicks: 10, electionTicksSpread: 0 };
const SETTLE_MESSAGES_MAX = 10_000;

/** The text with the output of each command behind it, indented. raftStep: Raft's own, or one with a mistake. */
export function scenarioOutput(text: string, raftStep: Step = stepRaft): string {
  const scenario = new Scenario(raftStep);
  const lines: string[] = [];
  text.split('\n').forEach((line, at) => {
    if (line.startsWith('  ')) return;
    lines.push(line);
    if (!line.startsWith('> ')) return;
    try {
      lines.push(...scenario.run(line.slice(2)).map((output) => `  ${output}`));
    } catch (error) {
      throw new Error(`line ${at + 1}, «${line}»: ${error instanceof Error ? error.message : error}`, { cause: error });
    }
  });
  return lines.join('\n');
}

class Scenario {
  readonly #invariants = new Invariants();
  readonly #network: Network;
  #output: string[] = [];
  #config: Omit<RaftConfig, 'peerId'> = CONFIG;
  /** Writes reach the disk at once; otherwise by `persist`. */
  #syncs = true;
  #lastRequest = 0;

  constructor(raftStep: Step) {
    this.#network = new Network({
      step: raftStep,
      seed: 1,
      stepped: (stepped) => {
        this.#invariants.stepped(this.#network, stepped);
        this.#output.push(...printedStep(stepped, !this.#syncs));
      },
      started: (peer, state, effects) => this.#invariants.started(peer, state, effects),
    });
  }

  run(line: string): string[] {
    this.#output = [];
    const words = line.split(/\s+/);
    const quiet = words[0] === 'quietly';
    if (quiet) words.shift();
    const command = this.#commands[words[0] ?? ''];
    if (command === undefined) throw new Error('there is no such command');
    command(words.slice(1));
    return quiet ? [] : this.#output;
  }

  readonly #commands: Readonly<Record<string, (words: string[]) => void>> = {
    config: (words) => {
      this.#config = { ...this.#config, ...figures(words) };
    },
    peers: ([count]) => {
      const membership = Array.from({ length: Number(count) }, (_, at) => member(at + 1, true));
      for (const { peerId } of membership) this.#add(peerId, foundedBy(membership, snapshotData({ ...BLANK, index: 1 })));
    },
    peer: ([id, ...words]) => this.#add(Number(id), storedBy(words)),
    tick: ([id, times = '1']) => this.#each(Number(times), () => this.#step(id, { kind: 'tick' })),
    campaign: ([id]) => this.#step(id, { kind: 'campaign' }),
    propose: ([id, ...texts]) => {
      for (const text of texts) this.#propose(id, { kind: 'operation', bytes: bytesOf(text) });
    },
    'add-learner': ([id, other]) => {
      if (!this.#network.peers.has(Number(other))) this.#add(Number(other), NOTHING_STORED);
      const { voter: _, ...added } = member(Number(other), false);
      this.#change(id, { kind: 'addLearner', member: added });
    },
    promote: ([id, other]) => this.#change(id, { kind: 'promote', peerId: Number(other) }),
    remove: ([id, other]) => this.#change(id, { kind: 'remove', peerId: Number(other) }),
    announce: ([id, other, uri = '']) => {
      this.#change(id, { kind: 'announce', member: { peerId: Number(other), uri, version: '2' } });
    },
    read: ([id]) => this.#step(id, { kind: 'readIndex', id: this.#request() }),
    transfer: ([id, to]) => this.#step(id, { kind: 'transferLeadership', to: Number(to) }),
    'request-snapshot': ([id]) => this.#step(id, { kind: 'requestSnapshot' }),
    unreachable: ([id, peer]) => this.#step(id, { kind: 'unreachable', peer: Number(peer) }),
    compact: ([id]) => {
      this.#network.compact(this.#peer(id));
      this.#sync();
    },
    sync: ([how]) => {
      this.#syncs = how !== 'off';
      this.#sync();
    },
    persist: ([id, count]) => this.#network.persist(this.#peer(id), count === undefined ? undefined : Number(count)),
    crash: ([id, survivors = '0']) => this.#network.crash(this.#peer(id), Number(survivors)),
    restart: ([id]) => {
      this.#network.start(this.#peer(id));
      this.#print(this.#peer(id));
    },
    deliver: (words) => {
      for (const message of this.#selected(words)) this.#deliver(message);
    },
    drop: (words) => {
      const gone = new Set(this.#selected(words));
      this.#network.inFlight = this.#network.inFlight.filter((message) => !gone.has(message));
    },
    duplicate: (words) => {
      this.#network.inFlight.push(...this.#selected(words).map((message) => ({ ...message })));
    },
    delay: (words) => {
      const late = new Set(this.#selected(words));
      this.#network.inFlight = [...this.#network.inFlight.filter((message) => !late.has(message)), ...late];
    },
    settle: () => this.#settle(),
    run: ([rounds]) => {
      this.#each(Number(rounds), () => {
        for (const peer of this.#network.running()) this.#step(`${peer.config.peerId}`, { kind: 'tick' });
        this.#settle();
      });
    },
    cut: (ways) => {
      for (const way of ways) this.#network.cuts.add(way);
    },
    partition: (words) => {
      const sides = words
        .join(' ')
        .split('|')
        .map((side) => side.trim().split(' '));
      for (const side of sides) {
        for (const other of sides.filter((candidate) => candidate !== side)) {
          for (const from of side) for (const to of other) this.#network.cuts.add(`${from}>${to}`);
        }
      }
    },
    heal: () => this.#network.cuts.clear(),
    print: (ids) => {
      const peers = ids.length > 0 ? ids.map((id) => this.#peer(id)) : [...this.#network.peers.values()];
      for (const peer of peers) this.#print(peer);
    },
    roles: () => {
      for (const { config, state } of this.#network.peers.values()) {
        this.#output.push(`${config.peerId} ${state === null ? 'is down' : printedRole(state)}`);
      }
    },
    messages: () => {
      for (const message of this.#network.inFlight) this.#output.push(`${message.from}>${message.to} ${printedMessage(message)}`);
    },
  };

  #add(peerId: PeerId, stored: StoredConsensus): void {
    this.#network.add({ ...this.#config, peerId }, stored);
  }

  #propose(id: string | undefined, proposal: Proposal): void {
    this.#step(id, { kind: 'propose', id: this.#request(), proposal });
  }

  #change(id: string | undefined, change: MembershipChange): void {
    this.#propose(id, { kind: 'membership', change });
  }

  #request(): number {
    this.#lastRequest += 1;
    return this.#lastRequest;
  }

  #step(id: string | undefined, input: Parameters<Network['step']>[1]): void {
    this.#network.step(this.#peer(id), input);
    this.#sync();
  }

  /** One tick after the other: what they cause waits for `deliver`. */
  #each(times: number, act: () => void): void {
    for (let time = 0; time < times; time++) act();
  }

  #sync(): void {
    if (!this.#syncs) return;
    // What is written may cause further writes.
    for (const peer of this.#network.running()) while (peer.unsynced.length > 0) this.#network.persist(peer);
  }

  #settle(): void {
    for (let delivered = 0; this.#network.inFlight.length > 0; delivered++) {
      if (delivered === SETTLE_MESSAGES_MAX) throw new Error('the peers never stop talking');
      this.#deliver(this.#network.inFlight[0]!);
    }
  }

  #deliver(message: RaftMessage): void {
    this.#output.push(`${message.from}>${message.to} ${printedMessage(message)}`);
    if (!this.#network.deliver(this.#network.inFlight.indexOf(message))) this.#output.push(`${message.to} does not get it`);
    this.#sync();
  }

  /** Words: a way as `1>2` with `*` for any peer, kinds of messages, `first` for just the oldest. Without words: all. */
  #selected(words: readonly string[]): RaftMessage[] {
    const way = words.find((word) => word.includes('>'))?.split('>') ?? ['*', '*'];
    const kinds = words.filter((word) => !word.includes('>') && word !== 'first');
    const found = this.#network.inFlight.filter(
      (message) =>
        (way[0] === '*' || Number(way[0]) === message.from) &&
        (way[1] === '*' || Number(way[1]) === message.to) &&
        (kinds.length === 0 || kinds.includes(message.kind)),
    );
    if (found.length === 0) throw new Error('no such message is under way');
    return words.includes('first') ? found.slice(0, 1) : found;
  }

  #peer(id: string | undefined): Peer {
    return this.#network.peer(Number(id));
  }

  #print({ config, state }: Peer): void {
    const [first, ...rest] = state === null ? ['is down'] : printedState(state);
    this.#output.push(`${config.peerId} ${first}`, ...rest.map((line) => `  ${line}`));
  }
}

function figures(words: readonly string[]): Record<string, number> {
  return Object.fromEntries(words.map((word) => word.split('=')).map(([name, value]) => [name, Number(value)]));
}

/** `x*100`: a hundred times x. */
function bytesOf(word: string): Uint8Array {
  const [text = '', times = '1'] = word.split('*');
  return new TextEncoder().encode(text.repeat(Number(times)));
}

/** `members=1,2,3 term=2 vote=1 commit=1 log=1,1,2`: entry 1 is the membership, the others are named after index and term. */
function storedBy(words: readonly string[]): StoredConsensus {
  const settings = new Map(words.map((word) => word.split('=') as [string, string]));
  const list = (name: string) => (settings.get(name)?.split(',') ?? []).map(Number);
  const membership = list('members').map((peerId) => member(peerId, true));
  const entries = list('log').map((term, at): Entry => {
    const index = at + 1;
    const payload =
      at === 0 ? ({ kind: 'membership', membership } as const) : ({ kind: 'operation', bytes: bytesOf(`e${index}-${term}`) } as const);
    return { index, term, payload };
  });
  return {
    identity: null,
    hardState: {
      term: Number(settings.get('term') ?? entries.at(-1)?.term ?? 0),
      votedFor: settings.has('vote') ? Number(settings.get('vote')) : null,
      commit: Number(settings.get('commit') ?? 1),
    },
    snapshot: null,
    entries,
    applied: 0,
  };
}

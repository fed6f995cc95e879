/**
 * Some pure Rafts, their disks and the messages between them. Nothing happens by itself: whoever holds a network ticks its
 * peers, writes their disks and delivers their messages, in an order of its own. Scenarios and the random walk stand on it.
 */

import assert from 'node:assert/strict';
import type { RaftConfig } from '../../../cluster/raft/config.js';
import type { RaftEffect, RaftInput, RaftMessage } from '../../../cluster/raft/messages.js';
import { startRaft } from '../../../cluster/raft/start.js';
import type { RaftState } from '../../../cluster/raft/state.js';
import type { PeerId } from '../../../protocols/model/cluster.js';
import { type ConsensusWrite, NO_WRITE, type StoredConsensus } from '../../../protocols/model/consensus.js';
import { written } from './disk.js';
import { BLANK, type Machine, machineAfter, machineOf, snapshotData } from './machine.js';

export type Step = (state: RaftState, input: RaftInput) => { readonly state: RaftState; readonly effects: readonly RaftEffect[] };

export interface Peer {
  readonly config: RaftConfig;
  /** Null while it is down. */
  state: RaftState | null;
  /** What a crash leaves, but for the first of `unsynced`. */
  disk: StoredConsensus;
  /** Writes under way, oldest first; `number` null: the network's own, of the applied index. */
  unsynced: { readonly number: number | null; readonly write: ConsensusWrite }[];
  /** Messages that wait for the write of that number. */
  held: { readonly after: number; readonly messages: readonly RaftMessage[] }[];
  /** What entries were applied to. */
  machine: Machine;
  lastWrite: number;
  starts: number;
}

/** One step of one peer. */
export interface Stepped {
  readonly peer: Peer;
  readonly input: RaftInput;
  readonly before: RaftState;
  readonly state: RaftState;
  readonly effects: readonly RaftEffect[];
}

export interface NetworkOptions {
  readonly step: Step;
  /** Each peer's random numbers follow from it. */
  readonly seed: number;
  /** After the effects were carried out. */
  readonly stepped?: (step: Stepped) => void;
  readonly started?: (peer: Peer, state: RaftState, effects: readonly RaftEffect[]) => void;
}

export class Network {
  readonly peers = new Map<PeerId, Peer>();
  /** Sent, oldest first. */
  inFlight: RaftMessage[] = [];
  /** `from>to` of the ways that lose everything. */
  readonly cuts = new Set<string>();
  readonly #options: NetworkOptions;

  constructor(options: NetworkOptions) {
    this.#options = options;
  }

  /** A peer with `stored` on its disk, running. */
  add(config: RaftConfig, stored: StoredConsensus): Peer {
    assert.ok(!this.peers.has(config.peerId), `there is a peer ${config.peerId} already`);
    const peer: Peer = {
      config,
      state: null,
      disk: stored,
      unsynced: [],
      held: [],
      machine: BLANK,
      lastWrite: 0,
      starts: 0,
    };
    this.peers.set(config.peerId, peer);
    this.start(peer);
    return peer;
  }

  start(peer: Peer): void {
    assert.equal(peer.state, null, `peer ${peer.config.peerId} runs already`);
    peer.starts += 1;
    const seed = this.#options.seed * 1009 + peer.config.peerId * 31 + peer.starts;
    const { state, effects } = startRaft(peer.config, peer.disk, seed);
    peer.state = state;
    peer.machine = BLANK;
    peer.lastWrite = 0;
    for (const effect of effects) this.#perform(peer, effect);
    this.#options.started?.(peer, state, effects);
  }

  /** Its memory is gone; of the writes under way, the first `survivors` reached the disk. */
  crash(peer: Peer, survivors: number): void {
    assert.ok(peer.state !== null, `peer ${peer.config.peerId} is down already`);
    for (const { write } of peer.unsynced.slice(0, survivors)) peer.disk = written(peer.disk, write);
    peer.state = null;
    peer.unsynced = [];
    peer.held = [];
  }

  step(peer: Peer, input: RaftInput): void {
    const before = peer.state;
    if (before === null) throw new Error(`peer ${peer.config.peerId} is down`);
    const { state, effects } = this.#options.step(before, input);
    peer.state = state;
    for (const effect of effects) this.#perform(peer, effect);
    this.#options.stepped?.({ peer, input, before, state, effects });
    if (effects.some((effect) => effect.kind === 'snapshotWanted')) this.compact(peer);
  }

  /** The oldest `count` writes under way reach the disk; what waited for them is sent. Without any, nothing happens. */
  persist(peer: Peer, count = peer.unsynced.length): void {
    const done = peer.unsynced.splice(0, count);
    if (done.length === 0) return;
    for (const { write } of done) peer.disk = written(peer.disk, write);
    const number = done.findLast((write) => write.number !== null)?.number ?? null;
    if (number === null) return;
    while ((peer.held[0]?.after ?? Number.POSITIVE_INFINITY) <= number) this.inFlight.push(...peer.held.shift()!.messages);
    this.step(peer, { kind: 'persisted', write: number });
  }

  /** Takes the message at `at` off the wire and hands it over; false when it is lost: the way is cut, or nobody is there. */
  deliver(at: number): boolean {
    const [message] = this.inFlight.splice(at, 1);
    if (message === undefined) throw new Error('no such message');
    const peer = this.peers.get(message.to);
    if (this.cuts.has(`${message.from}>${message.to}`) || peer === undefined || peer.state === null) return false;
    this.step(peer, { kind: 'receive', message });
    return true;
  }

  /** What `peer` has applied becomes its snapshot. */
  compact(peer: Peer): void {
    this.step(peer, { kind: 'compact', index: peer.machine.index, data: snapshotData(peer.machine) });
  }

  peer(id: PeerId): Peer {
    const peer = this.peers.get(id);
    if (peer === undefined) throw new Error(`there is no peer ${id}`);
    return peer;
  }

  running(): Peer[] {
    return [...this.peers.values()].filter((peer) => peer.state !== null);
  }

  #perform(peer: Peer, effect: RaftEffect): void {
    switch (effect.kind) {
      case 'persist':
        assert.equal(effect.number, peer.lastWrite + 1, 'writes are numbered without gaps');
        peer.lastWrite = effect.number;
        peer.unsynced.push({ number: effect.number, write: effect.write });
        return;
      case 'send':
        if (peer.unsynced.some((write) => write.number !== null)) peer.held.push({ after: peer.lastWrite, messages: effect.messages });
        else this.inFlight.push(...effect.messages);
        return;
      case 'sendEarly':
        this.inFlight.push(...effect.messages);
        return;
      case 'apply':
        for (const entry of effect.entries) peer.machine = machineAfter(peer.machine, entry);
        peer.unsynced.push({ number: null, write: { ...NO_WRITE, applied: peer.machine.index } });
        return;
      case 'restore':
        peer.machine = machineOf(effect.snapshot);
        peer.unsynced.push({ number: null, write: { ...NO_WRITE, applied: peer.machine.index } });
        return;
      case 'proposed':
      case 'readReady':
      case 'roleChanged':
      case 'snapshotWanted':
      case 'removed':
        return;
      default:
        effect satisfies never;
    }
  }
}

/** What goes wrong in a run, and when: drawn from the seed beforehand; whom it hits is drawn when it happens. */

import { errorFacts } from '../../protocols/errors.js';
import { folderName } from '../../storage/disk/folder-name.js';
import { CALM_NETWORK, type VirtualNetwork } from './network.js';
import type { SimulatedNode } from './node.js';
import { POINTS } from './point-names.js';
import type { Stream } from './random.js';
import type { Story } from './story.js';
import type { World } from './world.js';

/** How often each kind is drawn, in parts. */
const KINDS = {
  crash: 12,
  crashLeader: 10,
  crashAll: 3,
  stop: 5,
  move: 4,
  pause: 8,
  split: 12,
  oneWay: 10,
  isolateLeader: 10,
  loss: 8,
  delay: 8,
  duplicate: 6,
  reorder: 6,
  slowDisk: 7,
  fullDisk: 6,
  lack: 8,
  loseFiles: 6,
  clockJump: 6,
  emptyDisk: 4,
  removePeer: 4,
  recover: 4,
} as const;

export type FaultKind = keyof typeof KINDS;

export interface Fault {
  readonly kind: FaultKind;
  readonly atMs: number;
  readonly lastsMs: number;
}

const LONGEST_MS: Partial<Record<FaultKind, number>> = { crashAll: 2000, pause: 5000, split: 10_000, slowDisk: 8000, loseFiles: 3000 };

/** Faults of a seed, by time. among: kinds that may happen. */
export function schedule(random: Stream, fromMs: number, toMs: number, among: (kind: FaultKind) => boolean = () => true): Fault[] {
  const bag = Object.entries(KINDS)
    .flatMap(([kind, parts]) => Array.from({ length: parts }, () => kind as FaultKind))
    .filter(among);
  const faults: Fault[] = [];
  for (let count = random.integer(4, 14); count > 0; count--) {
    const kind = random.pick(bag);
    const lastsMs = random.between(100, LONGEST_MS[kind] ?? 7000);
    faults.push({ kind, atMs: random.between(fromMs, toMs), lastsMs });
  }
  return faults.sort((one, other) => one.atMs - other.atMs);
}

/** What the cluster's membership has to be put right for. */
export interface Administration {
  /** Lets the node, which has an empty disk, join anew; then the peer it was is removed. */
  replace(node: SimulatedNode): void;
  /** Removes the node from its cluster; then it joins anew. */
  renew(node: SimulatedNode): void;
  /** One at a time. */
  readonly busy: boolean;
  /** Whether nothing is lost with it. */
  canSpare(node: SimulatedNode): boolean;
}

export class Faults {
  readonly counts = new Map<FaultKind, number>();
  /** Undoes each fault that is there. */
  readonly #heal = new Set<() => void>();

  constructor(
    private readonly world: World,
    private readonly network: VirtualNetwork,
    private readonly nodes: readonly SimulatedNode[],
    private readonly administration: Administration,
    private readonly story: Story,
    private readonly random: Stream,
  ) {}

  /** Makes them happen when it is time. */
  plan(faults: readonly Fault[]): void {
    for (const fault of faults) this.world.after(fault.atMs - this.world.nowMs, () => this.#begin(fault));
  }

  /** Everything works from now on; nodes that are down start. */
  heal(): void {
    for (const undo of [...this.#heal]) undo();
    this.network.settings = CALM_NETWORK;
    this.network.heal();
    for (const node of this.nodes) node.start();
    this.story.tell('world', 'all faults are healed');
  }

  #begin(fault: Fault): void {
    const undo = this.#strike(fault);
    if (undo === null) return;
    this.counts.set(fault.kind, (this.counts.get(fault.kind) ?? 0) + 1);
    const once = () => {
      if (this.#heal.delete(once)) undo();
    };
    this.#heal.add(once);
    this.world.after(fault.lastsMs, once);
  }

  /** Null when there is nobody whom it could hit. */
  #strike(fault: Fault): (() => void) | null {
    const { kind } = fault;
    switch (kind) {
      case 'crash':
        return this.#crash(this.#victim());
      case 'crashLeader':
        return this.#crash(this.#leader());
      case 'crashAll':
        return this.#crashAll();
      case 'stop':
        return this.#stop(this.#victim(), false);
      case 'move':
        return this.#stop(this.#victim(), true);
      case 'pause':
        return this.#pause();
      case 'split':
        return this.#split();
      case 'oneWay':
        return this.#oneWay();
      case 'isolateLeader':
        return this.#isolate(this.#leader());
      case 'loss':
        return this.#change('loss', { lossRate: this.random.between(0.02, 0.4) });
      case 'delay':
        return this.#change('delay', { delayMs: { low: 1, high: this.random.between(30, 900) } });
      case 'duplicate':
        return this.#change('duplicates', { duplicateRate: this.random.between(0.05, 0.5) });
      case 'reorder':
        return this.#change('reordering', { reorder: true, delayMs: { low: 0.2, high: this.random.between(5, 250) } });
      case 'slowDisk':
        return this.#slowDisk();
      case 'fullDisk':
        return this.#fullDisk();
      case 'lack':
        return this.#lack();
      case 'loseFiles':
        return this.#loseFiles();
      case 'clockJump':
        return this.#clockJump();
      case 'emptyDisk':
        return this.#administer('replace');
      case 'removePeer':
        return this.#administer('renew');
      case 'recover':
        return this.#recover();
      default:
        return kind satisfies never;
    }
  }

  #victim(): SimulatedNode | null {
    const running = this.nodes.filter((node) => node.running);
    return running.length === 0 ? null : this.random.pick(running);
  }

  /** Whoever believes to lead; anybody when nobody does. */
  #leader(): SimulatedNode | null {
    const leaders = this.nodes.filter((node) => node.cluster?.status().raft?.role.kind === 'Leader');
    return leaders.length === 0 ? this.#victim() : this.random.pick(leaders);
  }

  #crash(node: SimulatedNode | null): (() => void) | null {
    if (node === null) return null;
    node.crash();
    return () => node.start();
  }

  #crashAll(): () => void {
    for (const node of this.nodes) node.crash();
    return () => {
      for (const node of this.random.shuffled(this.nodes)) this.world.after(this.random.between(0, 1500), () => node.start());
    };
  }

  #stop(node: SimulatedNode | null, moves: boolean): (() => void) | null {
    if (node === null || node.api === null) return null;
    const stopped = node.stop();
    return () => {
      stopped.then(() => {
        if (node.running) return;
        if (moves) node.move();
        node.start();
      });
    };
  }

  #pause(): (() => void) | null {
    const node = this.#victim();
    const life = node?.life ?? null;
    if (node === null || life === null || life.paused) return null;
    node.tell('is paused');
    this.world.pause(life);
    return () => {
      node.tell('goes on');
      this.world.resume(life);
    };
  }

  #split(): () => void {
    const order = this.random.shuffled(this.nodes);
    const size = this.random.integer(1, order.length - 1);
    const [one, other] = [order.slice(0, size), order.slice(size)];
    this.story.tell('world', `splits ${hostsOf(one)} from ${hostsOf(other)}`);
    return this.#cut(one.flatMap((a) => other.flatMap((b) => [pair(a, b), pair(b, a)])));
  }

  #oneWay(): () => void {
    const pairs = this.nodes.flatMap((a) => this.nodes.filter((b) => b !== a).map((b) => pair(a, b)));
    const chosen = this.random.shuffled(pairs).slice(0, this.random.integer(1, 8));
    this.story.tell('world', `cuts ${chosen.map(([a, b]) => `${a} → ${b}`).join(', ')}`);
    return this.#cut(chosen);
  }

  #isolate(node: SimulatedNode | null): (() => void) | null {
    if (node === null) return null;
    const way = this.random.pick(['both ways', 'it hears nobody', 'nobody hears it'] as const);
    this.story.tell('world', `isolates ${node.host}, ${way}`);
    const others = this.nodes.filter((other) => other !== node);
    return this.#cut([
      ...(way === 'it hears nobody' ? [] : others.map((other) => pair(node, other))),
      ...(way === 'nobody hears it' ? [] : others.map((other) => pair(other, node))),
    ]);
  }

  #cut(pairs: readonly (readonly [string, string])[]): () => void {
    for (const [from, to] of pairs) this.network.cut(from, to);
    return () => {
      this.story.tell('world', 'mends a cut');
      for (const [from, to] of pairs) this.network.mend(from, to);
    };
  }

  #change(what: string, settings: Partial<VirtualNetwork['settings']>): () => void {
    this.story.tell('world', `${what} on the network: ${JSON.stringify(settings)}`);
    this.network.settings = { ...this.network.settings, ...settings };
    return () => {
      this.story.tell('world', `no more ${what}`);
      const back = Object.keys(settings).map((key) => [key, CALM_NETWORK[key as keyof typeof CALM_NETWORK]]);
      this.network.settings = { ...this.network.settings, ...Object.fromEntries(back) };
    };
  }

  #slowDisk(): () => void {
    const { disk } = this.random.pick(this.nodes);
    const high = this.random.between(30, 1500);
    disk.tell(`disk is slow: up to ${Math.round(high)} ms`);
    disk.settings.latencyMs = { low: 5, high };
    return () => {
      disk.tell('disk is fast again');
      disk.settings.latencyMs = { low: 0.3, high: 3 };
    };
  }

  #fullDisk(): () => void {
    const { disk } = this.random.pick(this.nodes);
    disk.tell('disk is full');
    disk.settings.full = true;
    return () => {
      disk.tell('disk has room again');
      disk.settings.full = false;
    };
  }

  /** What is logged cannot be applied, once or for a while: there is no memory, or no descriptor, to do it with. */
  #lack(): () => void {
    const { disk } = this.random.pick(this.nodes);
    const isOnce = this.random.chance(0.4);
    disk.tell(`lacks the means to apply an operation, ${isOnce ? 'once' : 'for a while'}`);
    disk.lacking = isOnce ? 1 : Number.POSITIVE_INFINITY;
    return () => {
      disk.tell('has the means again');
      disk.lacking = 0;
    };
  }

  /** It crashes, and is without the points' files when it starts: the rest of its disk is there. */
  #loseFiles(): (() => void) | null {
    const node = this.random
      .shuffled(this.nodes)
      .find((each) => each.cluster?.status().phase === 'Member' && this.administration.canSpare(each));
    if (node === undefined) return null;
    node.crash();
    node.disk.loseCollection(folderName(POINTS));
    node.tell('has lost the files of its points');
    return () => node.start();
  }

  #clockJump(): () => void {
    const node = this.random.pick(this.nodes);
    const jumpMs = Math.round(this.random.pick([1000, 60_000, 86_400_000]) * this.random.between(-1, 1));
    node.tell(`clock jumps by ${jumpMs} ms`);
    node.skewMs += jumpMs;
    return () => {};
  }

  /** An operator takes a peer for broken and has it fetch the leader's state. */
  #recover(): (() => void) | null {
    const node = this.#victim();
    const cluster = node?.cluster ?? null;
    if (node === null || cluster === null) return null;
    node.tell("is to fetch the leader's state");
    node.recoveries += 1;
    cluster.recover(5000).then(
      () => node.tell("has the leader's state"),
      (error: unknown) => node.tell(`has not fetched the leader's state: ${errorFacts(error).detail}`),
    );
    return () => {};
  }

  #administer(what: 'replace' | 'renew'): (() => void) | null {
    const node = this.#victim();
    if (node === null || node.cluster?.status().phase !== 'Member' || this.administration.busy) return null;
    if (!this.administration.canSpare(node)) return null;
    this.administration[what](node);
    return () => {};
  }
}

function pair(from: SimulatedNode, to: SimulatedNode): readonly [string, string] {
  return [from.host, to.host];
}

function hostsOf(nodes: readonly SimulatedNode[]): string {
  return nodes.map(({ host }) => host).join(' ');
}

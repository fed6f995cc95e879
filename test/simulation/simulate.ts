/** One run: a cluster is founded, lives with faults and clients, is healed, and must agree and work again. */

import type { StoredCollection } from '../../actors/collection/config-file.js';
import type { ClusterState, CollectionRecord } from '../../cluster/state/state.js';
import { Operator } from './administration.js';
import { type ClientCounts, Clients } from './clients.js';
import { type FaultKind, Faults, schedule } from './faults.js';
import { guarded } from './guard.js';
import { type NetworkCounts, VirtualNetwork } from './network.js';
import { type Mistakes, SimulatedNode } from './node.js';
import { PointClients, type PointCounts } from './point-clients.js';
import { POINTS } from './point-names.js';
import { PointWatch } from './point-watch.js';
import { Stream } from './random.js';
import { Reshardings } from './reshardings.js';
import { difference, Sameness } from './same.js';
import { type MoveCounts, ShardMoves } from './shard-moves.js';
import { Story } from './story.js';
import { Watch } from './watch.js';
import { World } from './world.js';

export interface SimulationOptions {
  /** Default: five, in some seeds two. */
  readonly nodes?: number;
  /** Default: all that a cluster of so many nodes survives. */
  readonly faults?: readonly FaultKind[];
  /** Virtual time with faults. */
  readonly faultsMs?: number;
  /** Keep the story's lines. */
  readonly tell?: boolean;
  readonly mistakes?: Mistakes;
  /** Default: with points. */
  readonly points?: boolean;
}

export interface SimulationResult {
  readonly seed: number;
  /** What should never have been, which ended the run; empty when all is well. */
  readonly violations: readonly string[];
  /** Equal for equal runs. */
  readonly digest: string;
  readonly story: readonly string[];
  readonly events: number;
  readonly virtualMs: number;
  readonly faults: ReadonlyMap<FaultKind | 'tornWrite', number>;
  readonly network: NetworkCounts;
  readonly clients: ClientCounts;
  readonly points: PointCounts;
  readonly moves: MoveCounts;
  /** Of all collections: begun, done and given up, by method. */
  readonly transfers: ReadonlyMap<string, number>;
  /** The same of shards that came and went, by direction. */
  readonly reshardings: ReadonlyMap<string, number>;
  /** Of two nodes; with one that only listens. */
  readonly sort: 'pair' | 'listener' | 'five';
  /** The operator removed the last copy of a shard by force: the run ended there, and what was seen up to then was checked. */
  readonly lastCopyRemoved: boolean;
  readonly undecided: number;
  readonly committed: number;
  readonly terms: number;
  /** From healing until all nodes agreed and worked. */
  readonly recoveredMs: number;
}

/** A cluster of all nodes is there by then, without faults. */
const FOUNDING_MS = 20_000;
const FAULTS_MS = 30_000;
/** Bound from healing to agreement and answers to all requests. */
const RECOVERY_MS = 40_000;
const STEP_MS = 250;
/** Of all seeds. */
const TWO_NODES = 0.15;
const LISTENS = 0.2;
const RESHARDED = 0.6;

export async function simulate(seed: number, options: SimulationOptions = {}): Promise<SimulationResult> {
  const simulation = new Simulation(seed, options);
  return guarded(
    () => simulation.run(),
    (error) => simulation.strayed(error),
  );
}

class Simulation {
  readonly #world = new World();
  readonly #story: Story;
  readonly #network: VirtualNetwork;
  readonly #nodes: SimulatedNode[] = [];
  readonly #watch: Watch;
  readonly #clients: Clients;
  readonly #points: PointClients;
  readonly #pointWatch: PointWatch;
  readonly #moves: ShardMoves;
  readonly #reshardings: Reshardings;
  readonly #reshards: boolean;
  readonly #operator: Operator;
  readonly #faults: Faults;
  readonly #violations: string[] = [];
  #recoveredMs = 0;
  #lastCopyRemoved = false;

  constructor(
    private readonly seed: number,
    private readonly options: SimulationOptions,
  ) {
    const world = this.#world;
    const story = new Story(options.tell ?? false, () => world.nowMs);
    const violation = (what: string) => this.#violation(what);
    const tell = (who: string, what: string) => story.tell(who, what);
    this.#story = story;
    this.#network = new VirtualNetwork(world, new Stream(seed, 'network'), tell);
    const shape = new Stream(seed, 'shape');
    const compactEntries = shape.pick([8, 20, 50, 0]);
    const logKept = shape.pick([0, 5, 40, 400]);
    const mistakes = options.mistakes ?? {};
    const around = { seed, world, network: this.#network, story, compactEntries, logKept, mistakes, violation };
    const sort = new Stream(seed, 'sort of cluster');
    const nodes = options.nodes ?? (sort.chance(TWO_NODES) ? 2 : 5);
    const listener = nodes > 2 && sort.chance(LISTENS) ? sort.integer(2, nodes) : 0;
    for (let number = 1; number <= nodes; number++)
      this.#nodes.push(new SimulatedNode(number, around, number === 1 ? null : 'http://node-1:6335', number === listener));
    this.#watch = new Watch(this.#nodes, violation, tell);
    const calls = { world, story, violation };
    this.#clients = new Clients(calls, this.#nodes, new Stream(seed, 'clients'));
    this.#points = new PointClients(calls, this.#nodes, new Stream(seed, 'points'));
    this.#pointWatch = new PointWatch(this.#nodes, violation, (peerId, shardId) => {
      if (this.#lastCopyRemoved) return;
      story.tell('world', `ends: peer ${peerId}, removed by force, had the last Active replica of shard ${shardId}`);
      this.#lastCopyRemoved = true;
      world.stop();
    });
    this.#operator = new Operator(world, this.#nodes, this.#watch, story, new Stream(seed, 'operator'));
    this.#moves = new ShardMoves(
      calls,
      this.#nodes,
      () => !this.#operator.busy,
      new Stream(seed, 'moves'),
      () => this.#watch.agreed(),
    );
    this.#reshardings = new Reshardings(calls, this.#nodes, new Stream(seed, 'reshardings'));
    this.#faults = new Faults(world, this.#network, this.#nodes, this.#operator, story, new Stream(seed, 'faults'));
    this.#network.silenceRefuses = mistakes.silenceRefuses ?? false;
    this.#network.pledgesAll = mistakes.pledgesAll ?? false;
    const { calls: answered } = mistakes;
    this.#network.intercept = (to, call) => {
      if (call.kind === 'resetLog' || call.kind === 'rewindLog') this.#points.press();
      return answered?.(this.#watch.agreed(), to, call) ?? null;
    };
    this.#reshards = new Stream(seed, 'reshards').chance(RESHARDED);
    world.afterEvent = (life) => {
      this.#watch.look(life);
      this.#pointWatch.follow(this.#watch.agreed());
    };
  }

  async run(): Promise<SimulationResult> {
    try {
      await this.#found();
      await this.#live();
      await this.#recover();
      if (this.#goesOn) this.#checkAgreement();
      if (this.#violations.length === 0) this.#clients.check();
      if (this.#violations.length === 0) this.#points.check();
      for (const node of this.#nodes) node.end();
    } catch (error) {
      this.#violation(error instanceof Error ? (error.stack ?? error.message) : String(error));
    }
    return this.#result();
  }

  /** An error that nobody caught ends a process. */
  strayed(error: unknown): void {
    this.#violation(`nobody caught ${error instanceof Error ? error.stack : String(error)}`);
  }

  /** The first node founds a cluster, the others join it. */
  async #found(): Promise<void> {
    const random = new Stream(this.seed, 'founding');
    for (const node of this.#nodes) this.#world.after(node.number === 1 ? 0 : random.between(0, 2000), () => node.start());
    await this.#until(FOUNDING_MS, 'founding the cluster', () => this.#isWhole() && this.#knowsListeners());
    if (!this.#withPoints) return;
    let founded = false;
    this.#points.found(this.#nodes[0] as SimulatedNode).then(() => {
      founded = true;
    });
    await this.#until(FOUNDING_MS, 'making a collection', () => founded && this.#isWhole());
  }

  async #live(): Promise<void> {
    const faultsMs = this.options.faultsMs ?? FAULTS_MS;
    const fromMs = this.#world.nowMs;
    this.#clients.start(5);
    if (this.#withPoints) {
      this.#points.start(4);
      this.#moves.start();
      if (this.#reshards) void this.#reshardings.start();
    }
    const { faults } = this.options;
    // Half of a cluster's disks hold no majority, and two that move at once don't find each other.
    const isPair = this.#nodes.length === 2;
    const among = (kind: FaultKind) => faults?.includes(kind) ?? !(isPair && (kind === 'emptyDisk' || kind === 'move'));
    this.#faults.plan(schedule(new Stream(this.seed, 'schedule'), fromMs, fromMs + faultsMs, among));
    await this.#world.run(faultsMs);
  }

  /** All agree and work again within bounded time. */
  async #recover(): Promise<void> {
    const healedMs = this.#world.nowMs;
    this.#faults.heal();
    this.#clients.stop();
    this.#points.stop();
    this.#moves.stop();
    this.#reshardings.stop();
    let mended = !this.#withPoints;
    if (!mended)
      void this.#moves.mend().then(() => {
        mended = true;
      });
    await this.#until(RECOVERY_MS, 'agreeing after the last fault', () => this.#isWhole() && !this.#operator.busy);
    await this.#until(
      RECOVERY_MS,
      'giving shards the replicas that they lack',
      () => mended,
      () => this.#shards(),
    );
    await this.#rest();
    this.#points.settle();
    let checked = 0;
    for (const node of this.#nodes) {
      const points = this.#withPoints ? this.#points.finish(node) : true;
      Promise.all([this.#clients.finish(node), points]).then((answers) => {
        if (answers.includes(false)) this.#violation(`${node.host} does not work after healing`);
        checked += 1;
      });
    }
    await this.#until(RECOVERY_MS, 'answering after the last fault', () => checked === this.#nodes.length && this.#isWhole());
    await this.#rest();
    if (this.#goesOn) this.#recoveredMs = this.#world.nowMs - healedMs;
  }

  /** All replicas are there and the same, and all nodes know so. */
  async #rest(): Promise<void> {
    const unrest = () => (this.#withPoints ? this.#pointWatch.unrest(this.#watch.agreed()) : null);
    const isSo = () => unrest() === null && this.#isWhole();
    await this.#until(RECOVERY_MS, 'replicas that are the same', isSo, () => unrest() ?? this.#describe());
  }

  get #goesOn(): boolean {
    return this.#violations.length === 0 && !this.#lastCopyRemoved;
  }

  get #withPoints(): boolean {
    return this.options.points ?? true;
  }

  /** All nodes are voters of one cluster, connected with each other, know one leader, and have applied and carried out the same. */
  #isWhole(): boolean {
    const first = this.#nodes[0]?.cluster?.status().raft;
    if (first === undefined || first === null || first.leader === null) return false;
    const voters = first.membership.filter((member) => member.voter);
    return (
      first.membership.length === this.#nodes.length &&
      voters.length === this.#nodes.length &&
      this.#nodes.every((node) => {
        const status = node.cluster?.status();
        const raft = status?.raft;
        return (
          status?.phase === 'Member' &&
          status.pendingOperations === 0 &&
          raft?.leader === first.leader &&
          raft?.term === first.term &&
          raft?.commitIndex === first.commitIndex &&
          raft?.appliedIndex === first.commitIndex &&
          node.cluster?.state()?.appliedIndex === first.commitIndex &&
          status.carriedOut >= first.commitIndex &&
          [...status.connections.values()].every(({ connected }) => connected) &&
          voters.some(({ peerId }) => peerId === status.peerId)
        );
      }) &&
      !this.#hasNewReplicas() &&
      this.#failedReplica() === null
    );
  }

  /** What is made before would have replicas there that never serve. */
  #knowsListeners(): boolean {
    const listening = this.#nodes.filter((node) => node.listens).map((node) => node.cluster?.status().peerId ?? 0);
    return listening.every((peerId) => this.#watch.agreed()?.marks.get(peerId)?.listens === true);
  }

  /** Replicas do not stay as they were made. */
  #hasNewReplicas(): boolean {
    for (const { shards } of this.#watch.agreed()?.collections.values() ?? [])
      for (const { replicas } of shards.values()) if ([...replicas.values()].includes('Initializing')) return true;
    return false;
  }

  /** A replica that counts and does not serve. */
  #failedReplica(): string | null {
    for (const node of this.#nodes) {
      const peerId = node.cluster?.status().peerId ?? 0;
      for (const [name, { shards }] of this.#watch.agreed()?.collections ?? []) {
        const here = node.api?.localShards(name);
        for (const [shardId, { replicas }] of shards)
          if (replicas.get(peerId) === 'Active' && here?.get(shardId)?.state !== 'Active') return `${node.host} ${name}/${shardId}`;
      }
    }
    return null;
  }

  #checkAgreement(): void {
    const agreed = this.#watch.agreed();
    const sameness = new Sameness();
    for (const node of this.#nodes) {
      const state = node.cluster?.state() ?? null;
      if (!sameness.same(agreed, state)) this.#violation(`agreement: ${node.host} differs: ${difference(agreed, state)}`);
      if (agreed === null || node.api === null) continue;
      const [wanted, there] = [wantedOn(node, agreed), thereOn(node)];
      if (!sameness.same(wanted, there)) this.#violation(`carried out: ${node.host} has something else: ${difference(wanted, there)}`);
    }
  }

  async #until(withinMs: number, what: string, isSo: () => boolean, why: () => string | null = () => this.#describe()): Promise<void> {
    const lateMs = this.#world.nowMs + withinMs;
    while (this.#goesOn && !isSo()) {
      if (this.#world.nowMs >= lateMs) return this.#violation(`progress: ${what} took longer than ${withinMs} ms: ${why()}`);
      await this.#world.run(STEP_MS);
    }
  }

  /** The points' shards, as agreed. */
  #shards(): string {
    const { shards, transfers } = this.#watch.agreed()?.collections.get(POINTS) ?? { shards: new Map(), transfers: [] };
    const parts = [...shards].map(([shardId, { leader, replicas }]) => {
      const states = [...replicas].map(([peerId, state]) => `peer ${peerId} is ${state}`).join(', ');
      return `shard ${shardId} (peer ${leader} leads): ${states}`;
    });
    return `${this.#operator.busy ? 'the operator is busy; ' : ''}${transfers.length} transfers; ${parts.join('; ')}`;
  }

  #describe(): string {
    const parts = this.#nodes.map((node) => {
      const status = node.cluster?.status();
      const raft = status?.raft;
      if (status === undefined) return `${node.host} is down`;
      const error = status.error === null ? '' : ` (${status.error})`;
      return `${node.host} peer ${status.peerId} ${status.phase}${error} ${raft?.role.kind} term ${raft?.term} leader ${raft?.leader} commit ${raft?.commitIndex} applied ${raft?.appliedIndex}/${node.cluster?.state()?.appliedIndex} carried out ${status.carriedOut} pending ${status.pendingOperations} of ${raft?.membership.map((member) => `${member.peerId}${member.voter ? '' : ' (learner)'}`).join()}`;
    });
    const waiting = this.#hasNewReplicas() ? 'replicas are not Active yet; ' : '';
    const failed = this.#failedReplica();
    const silent = failed === null ? '' : `an Active replica does not serve: ${failed}; `;
    return `${this.#operator.busy ? 'the operator is busy; ' : ''}${waiting}${silent}${parts.join('; ')}`;
  }

  #violation(what: string): void {
    // What follows the first one is its wreckage.
    if (this.#violations.length > 0) return;
    this.#story.tell('world', `VIOLATION ${what}`);
    this.#violations.push(what);
    this.#world.stop();
  }

  #result(): SimulationResult {
    const torn = this.#nodes.reduce((total, node) => total + node.disk.torn, 0);
    return {
      seed: this.seed,
      violations: this.#violations,
      digest: this.#story.digest(),
      story: this.#story.lines,
      events: this.#world.events,
      virtualMs: this.#world.nowMs,
      faults: new Map([...this.#faults.counts, ['tornWrite', torn]]),
      network: this.#network.counts,
      clients: this.#clients.counts,
      points: this.#points.counts,
      moves: this.#moves.counts,
      transfers: this.#pointWatch.transfers,
      reshardings: this.#pointWatch.reshardings,
      sort: this.#nodes.length === 2 ? 'pair' : this.#nodes.some((node) => node.listens) ? 'listener' : 'five',
      lastCopyRemoved: this.#lastCopyRemoved,
      undecided: this.#clients.undecided + this.#points.undecided,
      committed: this.#watch.committedIndex,
      terms: Math.max(0, ...this.#watch.leaders.keys()),
      recoveredMs: this.#recoveredMs,
    };
  }
}

/** What a node should serve and have on its disk. */
function wantedOn(node: SimulatedNode, agreed: ClusterState): unknown {
  const peerId = node.cluster?.status().peerId ?? 0;
  const shardsOf = ({ shards }: CollectionRecord) =>
    [...shards].filter(([, { replicas }]) => replicas.has(peerId)).map(([shardId]) => shardId);
  return {
    listed: [...agreed.collections.keys()].sort(),
    aliases: new Map(agreed.aliases),
    onDisk: new Map(
      [...agreed.collections].map(([name, record]) => [name, { uid: record.uid, config: record.config, shards: shardsOf(record) }]),
    ),
  };
}

function thereOn({ api, disk }: SimulatedNode): unknown {
  const stored = [...disk.folders.values()] as StoredCollection[];
  return {
    listed: api?.listCollections(),
    aliases: new Map(api?.aliases(null).map(({ alias_name, collection_name }) => [alias_name, collection_name])),
    onDisk: new Map(stored.map(({ belonging, config, name }) => [name, { uid: belonging?.uid, config, shards: belonging?.shards }])),
  };
}

/** A node of the simulation: production actors on a virtual disk, clock and network. */

import type { ClusterApi, StepRaft } from '../../actors/consensus/cluster-api.js';
import type { NodeApi } from '../../actors/requests/node-api.js';
import type { Clock, Log, RuntimePorts } from '../../actors/runtime/ports.js';
import { startClusterNode } from '../../actors/start/cluster-node.js';
import { prepareNode } from '../../actors/start/node-base.js';
import type { DataAnswer, DataCall } from '../../cluster/data-messages.js';
import type { ClusterState } from '../../cluster/state/state.js';
import type { ErrorFacts } from '../../protocols/errors.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import { virtualAliases, virtualCollections } from './collection-files.js';
import { type DiskMistakes, VirtualDisk } from './disk.js';
import { type EngineMistakes, VirtualEngine } from './engine.js';
import type { VirtualNetwork } from './network.js';
import { Stream } from './random.js';
import type { Story } from './story.js';
import { Life, type World } from './world.js';

/** The virtual wall clock at the beginning. */
const EPOCH_MS = 1_700_000_000_000;

/** Rules that nodes break on purpose. */
export interface Mistakes extends DiskMistakes {
  readonly raftStep?: StepRaft;
  readonly engine?: EngineMistakes;
  /** Whoever is not connected counts as ended. */
  readonly silenceRefuses?: boolean;
  /** Who has something alone, and who goes on alone, pledges all the same. */
  readonly pledgesAll?: boolean;
  /** A call that is answered without its peer; agreed: the state that all nodes have come to. */
  readonly calls?: (agreed: ClusterState | null, to: PeerId, call: DataCall) => DataAnswer | null;
}

export interface Surroundings {
  readonly seed: number;
  readonly world: World;
  readonly network: VirtualNetwork;
  readonly story: Story;
  readonly compactEntries: number;
  /** Applied operations that a replica's log keeps. */
  readonly logKept: number;
  readonly mistakes: Mistakes;
  /** Something that must never happen has happened. */
  readonly violation: (what: string) => void;
}

export class SimulatedNode {
  readonly host: string;
  readonly disk: VirtualDisk;
  /** Where others call it; another one after it has moved. */
  uri: string;
  /** `--bootstrap` of its next start. */
  bootstrap: string | null;
  /** By which its dates are wrong. */
  skewMs = 0;
  life: Life | null = null;
  /** Of its last start. */
  engine: VirtualEngine | null = null;
  /** Null while it does not run. */
  api: NodeApi | null = null;
  starts = 0;
  /** Times that it was told to take the leader's state, which may be one that it had before. */
  recoveries = 0;
  #moves = 0;

  constructor(
    readonly number: number,
    private readonly around: Surroundings,
    bootstrap: string | null,
    /** A node of type Listener. */
    readonly listens = false,
  ) {
    this.host = `node-${number}`;
    this.uri = `http://${this.host}:6335`;
    this.bootstrap = bootstrap;
    const random = new Stream(around.seed, `disk ${number}`);
    this.disk = new VirtualDisk(this.host, around.world, random, (what) => this.tell(what), around.mistakes);
  }

  get cluster(): ClusterApi | null {
    return this.api?.cluster ?? null;
  }

  get running(): boolean {
    return this.life !== null;
  }

  start(): void {
    if (this.life !== null) return;
    this.starts += 1;
    const life = new Life(this.host);
    this.life = life;
    this.disk.attach(life);
    this.tell(`starts at ${this.uri}${this.bootstrap === null ? '' : `, bootstrap ${this.bootstrap}`}`);
    const { network, compactEntries, logKept, mistakes } = this.around;
    this.engine = new VirtualEngine(this.disk, { logKept, nowMs: () => this.nowMs(), mistakes: mistakes.engine ?? {} });
    const options = {
      storagePath: `/${this.host}`,
      pool: this.engine,
      log: this.#log(),
      ports: this.#ports(life),
      store: virtualCollections(this.disk),
      aliases: virtualAliases(this.disk),
      verify: async (folders: readonly string[]) => new Map(folders.map((folder) => [folder, null])),
      cpus: 2,
      clock: this.#clock(),
      onFatal: (error: ErrorFacts) => this.around.violation(`${this.host} gave up: ${error.detail}`),
      cluster: {
        store: this.disk.openConsensus(),
        transport: network.transport(this.host, this.uri, life),
        uri: this.uri,
        bootstrap: this.bootstrap,
        port: 6335,
        version: '0.1.0',
        tickMs: 100,
        compactEntries,
        listens: this.listens,
        ...(mistakes.raftStep === undefined ? {} : { raftStep: mistakes.raftStep }),
      },
    };
    // Not `startNode`: it loads what a cluster needs, and virtual time does not wait for a disk that is real.
    const started = prepareNode(options).then((base) => startClusterNode(base, options.cluster));
    started.then(
      (api) => {
        if (this.life === life) this.api = api;
      },
      (error: unknown) => this.around.violation(`${this.host} does not start: ${String(error)}`),
    );
  }

  /** As by SIGKILL and a power failure: what was not synced may be gone. */
  crash(): void {
    if (this.life === null) return;
    this.tell('crashes');
    this.end();
  }

  /** As by SIGTERM. */
  async stop(): Promise<void> {
    const { life, api } = this;
    if (life === null) return;
    this.tell('stops');
    await api?.close();
    if (this.life === life) this.end();
  }

  /** It gets another address, which others learn from it at its next start. */
  move(): void {
    this.#moves += 1;
    this.uri = `http://${this.host}-${this.#moves}:6335`;
  }

  nowMs(): number {
    return Math.floor(EPOCH_MS + this.around.world.nowMs);
  }

  #clock(): Clock {
    return { nowMs: () => this.nowMs(), dateMs: () => this.nowMs() + this.skewMs };
  }

  tell(what: string): void {
    this.around.story.tell(this.host, what);
  }

  /** It runs no more. */
  end(): void {
    if (this.life === null) return;
    this.life.alive = false;
    this.disk.crash();
    this.life = null;
    this.api = null;
    this.around.network.linksChanged();
  }

  #ports(life: Life): RuntimePorts {
    const { world, seed } = this.around;
    const random = new Stream(seed, `node ${this.number} start ${this.starts}`);
    return {
      clock: { ...this.#clock(), monotonicMs: () => world.nowMs },
      timers: world.timersOf(life),
      random: { next: () => random.unit() },
      log: this.#log(),
      mailboxes: world.mailboxesOf(life),
    };
  }

  #log(): Log {
    const line = (level: string) => (message: string) => this.tell(`${level}: ${message}`);
    return {
      debug: () => {},
      info: line('info'),
      warn: line('warn'),
      error: (message, facts) => {
        this.tell(`error: ${message}`);
        if (/ crashed: /.test(message)) this.around.violation(`${this.host}: ${message}\n${String(facts?.stack ?? '')}`);
      },
    };
  }
}

/** Nodes of a cluster in one process, whose time, network and consensus logs a test has in hand. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ClusterApi, ClusterOptions } from '../../../actors/consensus/cluster-api.js';
import type { NodeApi } from '../../../actors/requests/node-api.js';
import type { NodeOptions } from '../../../actors/start/node-base.js';
import { startNode } from '../../../actors/start/start-node.js';
import { type DataAnswer, type DataCall, NotReached } from '../../../cluster/data-messages.js';
import type { PeerMessage, PeerReply, PeerRequest } from '../../../cluster/peer-messages.js';
import type { InternalPort, PeerConnection, PeerTransport, TransportListener } from '../../../cluster/ports.js';
import { TroupeError } from '../../../protocols/errors.js';
import type { PeerId } from '../../../protocols/model/cluster.js';
import {
  type ConsensusStore,
  type ConsensusWrite,
  type Entry,
  NOTHING_STORED,
  type StoredConsensus,
} from '../../../protocols/model/consensus.js';
import { EngineWithFiles, type FakeEngine } from '../fake-engine.js';
import { FakeWorld } from '../fake-world.js';

/** What a write makes of what is stored. */
export function written(before: StoredConsensus, write: ConsensusWrite): StoredConsensus {
  const stored = write.reset ? NOTHING_STORED : before;
  const snapshot = write.snapshot ?? stored.snapshot;
  const first = write.entries[0]?.index ?? Number.POSITIVE_INFINITY;
  let entries: readonly Entry[] = write.clearEntries ? [] : stored.entries.filter(({ index }) => index < first);
  entries = [...entries, ...write.entries].filter(({ index }) => index >= (write.firstIndex ?? 0));
  return {
    identity: write.identity ?? stored.identity,
    hardState: write.hardState ?? stored.hardState,
    snapshot,
    entries,
    applied: Math.max(write.applied ?? stored.applied, snapshot?.index ?? 0),
  };
}

/** A log in memory: a write is there after a millisecond. */
export class FakeStore implements ConsensusStore {
  stored = NOTHING_STORED;
  readonly writes: ConsensusWrite[] = [];
  /** Refuses what is written from now on, until it is loaded again after it was set to false. */
  full = false;
  #failed = false;
  /** Writes that a crash has cut off do not happen. */
  #life = 0;

  constructor(private readonly world: FakeWorld) {}

  async load(): Promise<StoredConsensus> {
    this.#failed = false;
    return this.stored;
  }

  write(write: ConsensusWrite): Promise<void> {
    const life = this.#life;
    return new Promise((resolve, reject) => {
      this.world.ports.timers.after(1, () => {
        if (life !== this.#life) return;
        if (this.full || this.#failed) {
          this.#failed = true;
          reject(new TroupeError('storage', 'no space left on the disk'));
          return;
        }
        this.writes.push(write);
        this.stored = written(this.stored, write);
        resolve();
      });
    });
  }

  crash(): void {
    this.#life += 1;
  }

  async close(): Promise<void> {}
}

interface Endpoint {
  readonly listener: TransportListener;
  readonly peerId: PeerId;
  readonly clusterId: () => string | null;
}

/** Delivers after a millisecond, unless it is cut between two nodes. */
export class FakeNetwork {
  readonly endpoints = new Map<string, Endpoint>();
  /** `from>to`, by address. */
  readonly #cut = new Set<string>();
  readonly #transports = new Set<FakeTransport>();

  constructor(readonly world: FakeWorld) {}

  open(uri: string): FakeTransport {
    const transport = new FakeTransport(this, uri);
    this.#transports.add(transport);
    return transport;
  }

  isCut(from: string, to: string): boolean {
    return this.#cut.has(`${from}>${to}`);
  }

  cut(one: string, other: string): void {
    this.#cut.add(`${one}>${other}`).add(`${other}>${one}`);
    this.refresh();
  }

  heal(): void {
    this.#cut.clear();
    this.refresh();
  }

  uriOf(peerId: PeerId): string | undefined {
    return [...this.endpoints].find(([, endpoint]) => endpoint.peerId === peerId)?.[0];
  }

  refresh(): void {
    for (const transport of this.#transports) transport.refresh();
  }
}

export class FakeTransport implements PeerTransport {
  #uris: ReadonlyMap<PeerId, string> = new Map();
  #connected = new Set<PeerId>();
  /** Nobody hears of it, and its connections stay. */
  silent = false;

  constructor(
    private readonly network: FakeNetwork,
    readonly uri: string,
  ) {}

  async start(self: { readonly peerId: PeerId; readonly clusterId: () => string | null }, listener: TransportListener): Promise<void> {
    this.network.endpoints.set(this.uri, { ...self, listener });
    this.network.refresh();
  }

  setPeers(uris: ReadonlyMap<PeerId, string>): void {
    this.#uris = uris;
    this.network.refresh();
  }

  refresh(): void {
    const own = this.network.endpoints.get(this.uri);
    if (own === undefined) return;
    const connected = new Set([...this.#uris.keys()].filter((peer) => this.#reach(peer) !== null));
    for (const peer of new Set([...connected, ...this.#connected])) {
      if (connected.has(peer) !== this.#connected.has(peer)) own.listener.connectionChanged(peer, connected.has(peer));
    }
    this.#connected = connected;
  }

  send(to: PeerId, messages: readonly PeerMessage[]): void {
    const own = this.network.endpoints.get(this.uri);
    if (own === undefined || this.silent) return;
    this.network.world.ports.timers.after(1, () => {
      const target = this.#reach(to);
      if (target === null) own.listener.unreachable(to);
      else target.listener.received(own.peerId, messages);
    });
  }

  request(uri: string, request: PeerRequest): Promise<PeerReply> {
    const target = this.network.endpoints.get(uri);
    if (target === undefined || this.network.isCut(this.uri, uri)) {
      return Promise.reject(new TroupeError('unavailable', `nobody answers at ${uri}`));
    }
    return target.listener.requested(request, new URL(this.uri).hostname);
  }

  async refuses(uri: string): Promise<boolean> {
    return !this.network.endpoints.has(uri) && !this.network.isCut(this.uri, uri);
  }

  async call(peer: PeerId, call: DataCall): Promise<DataAnswer> {
    const own = this.network.endpoints.get(this.uri);
    const target = this.#reach(peer);
    if (own === undefined || target === null) throw new NotReached(`there is no connection with peer ${peer}`);
    return target.listener.called(own.peerId, call);
  }

  connections(): ReadonlyMap<PeerId, PeerConnection> {
    const facts = { failures: 0, lastError: null, lastErrorMs: null, protocolVersion: 1, queued: 0 };
    return new Map([...this.#uris.keys()].map((peer) => [peer, { ...facts, connected: this.#connected.has(peer) }]));
  }

  internalPort(): InternalPort {
    return { connections: 0, plainConnections: 0, callStreams: 0, calls: 0 };
  }

  async close(): Promise<void> {
    this.network.endpoints.delete(this.uri);
    this.network.refresh();
  }

  #reach(peer: PeerId): Endpoint | null {
    const uri = this.network.uriOf(peer);
    if (uri === undefined || this.network.isCut(this.uri, uri)) return null;
    return this.network.endpoints.get(uri) ?? null;
  }
}

export interface FakeNode {
  readonly number: number;
  readonly uri: string;
  readonly store: FakeStore;
  readonly engine: FakeEngine;
  readonly api: NodeApi;
  readonly cluster: ClusterApi;
  readonly peerId: PeerId;
}

export class FakeCluster {
  readonly world = new FakeWorld();
  readonly network = new FakeNetwork(this.world);
  readonly #stores = new Map<number, FakeStore>();
  readonly #transports = new Map<number, FakeTransport>();
  readonly #worlds = new Map<number, { dead: boolean }>();
  /** Numbers of the nodes whose disks are full; nothing is refused for it. */
  readonly fullDisks = new Set<number>();
  #folder: string | null = null;
  #starts = 0;

  uri(number: number): string {
    return `http://node-${number}:6335`;
  }

  /** bootstrap: the node to join through; null founds a cluster. address: where the network has it. */
  async start(
    number: number,
    bootstrap: number | null,
    options: Partial<ClusterOptions> = {},
    address = options.uri ?? this.uri(number),
    engine = new EngineWithFiles(),
  ): Promise<FakeNode> {
    const store = this.#stores.get(number) ?? new FakeStore(this.world);
    this.#stores.set(number, store);
    const transport = this.network.open(address);
    this.#transports.set(number, transport);
    const life = { dead: false };
    this.#worlds.set(number, life);
    const api = await startNode({
      ...(await this.#options(number, life)),
      pool: engine,
      cluster: {
        store,
        transport,
        uri: this.uri(number),
        bootstrap: bootstrap === null ? null : this.uri(bootstrap),
        port: 6335,
        version: '1.0.0',
        tickMs: 100,
        compactEntries: 0,
        ...options,
      },
    });
    const cluster = api.cluster as ClusterApi;
    return {
      number,
      uri: address,
      store,
      engine,
      api,
      cluster,
      get peerId() {
        return cluster.status().peerId;
      },
    };
  }

  /** The first founds a cluster, the others join it; all are members in the end. */
  async founded(count: number, options: Partial<ClusterOptions> = {}): Promise<FakeNode[]> {
    const nodes = [await this.start(1, null, options)];
    for (let number = 2; number <= count; number++) nodes.push(await this.start(number, 1, options));
    await this.until(
      () => nodes.every(({ cluster }) => isVoter(cluster) && cluster.state()?.membership.length === count),
      'all have joined',
    );
    return nodes;
  }

  /** As `--reinit` does, on a node that has ended. */
  forgetConsensus({ number }: FakeNode): void {
    this.#stores.delete(number);
  }

  /** A node of its own, with no cluster. */
  async startAlone(number: number): Promise<{ readonly api: NodeApi; readonly stop: () => void }> {
    const life = { dead: false };
    this.#worlds.set(number, life);
    const api = await startNode(await this.#options(number, life));
    return {
      api,
      stop: () => {
        life.dead = true;
      },
    };
  }

  /** Ends a node as SIGKILL does. */
  async kill(node: FakeNode): Promise<void> {
    const life = this.#worlds.get(node.number);
    if (life !== undefined) life.dead = true;
    node.store.crash();
    await this.#transports.get(node.number)?.close();
  }

  /** As a process that was stopped for a while. */
  silence(node: FakeNode): void {
    (this.#transports.get(node.number) as FakeTransport).silent = true;
  }

  /** Lets time pass until it holds. */
  async until(holds: () => boolean, what: string, withinMs = 60_000): Promise<void> {
    const endMs = this.world.nowMs + withinMs;
    while (!holds()) {
      if (this.world.nowMs > endMs) throw new Error(`not within ${withinMs} ms: ${what}`);
      await this.pass(10);
    }
  }

  /** The answer of a call, for which time passes. */
  async run<Answer>(call: Promise<Answer>): Promise<Answer> {
    let done = false;
    const ended = call.finally(() => {
      done = true;
    });
    ended.catch(() => {});
    await this.until(() => done, 'an answer');
    return ended;
  }

  async pass(ms: number): Promise<void> {
    this.world.advance(ms);
    // Real files are written meanwhile. However slow the disk is, time of the world does not pass before they are.
    do {
      await new Promise((resolve) => setTimeout(resolve, 1));
      this.world.deliver();
    } while (usesFiles());
  }

  async remove(): Promise<void> {
    for (const life of this.#worlds.values()) life.dead = true;
    if (this.#folder !== null) await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }

  /** A node's storage folder, which outlives it. */
  async storagePath(number: number): Promise<string> {
    this.#folder ??= await mkdtemp(join(tmpdir(), 'troupe-cluster-'));
    return join(this.#folder, String(number));
  }

  async #options(number: number, life: { dead: boolean }): Promise<NodeOptions> {
    this.#starts += 1;
    const { fullDisks } = this;
    return {
      storagePath: await this.storagePath(number),
      pool: new EngineWithFiles(),
      log: this.world.log,
      clock: this.world.ports.clock,
      ports: this.#ports(number * 1000 + this.#starts, life),
      cpus: 4,
      disk: {
        refuseCopy: () => null,
        get isFull() {
          return fullDisks.has(number);
        },
      },
      verify: async (folders) => new Map(folders.map((folder) => [folder, null])),
    };
  }

  /** The world as one node has it, until it is killed. */
  #ports(seed: number, life: { dead: boolean }) {
    const { ports } = this.world;
    let random = seed;
    return {
      ...ports,
      random: {
        next: () => {
          random = (Math.imul(random, 1664525) + 1013904223) >>> 0;
          return random / 2 ** 32;
        },
      },
      timers: { after: (delayMs: number, run: () => void) => ports.timers.after(delayMs, () => life.dead || run()) },
      mailboxes: {
        ...ports.mailboxes,
        open: (...[parent, name, receive]: Parameters<typeof ports.mailboxes.open>) =>
          ports.mailboxes.open(parent, name, (item) => life.dead || receive(item)),
      },
    };
  }
}

/** Whether this process waits for a file. */
function usesFiles(): boolean {
  return process.getActiveResourcesInfo().some((resource) => resource.startsWith('FSReq'));
}

export function isVoter(cluster: ClusterApi): boolean {
  const { peerId } = cluster.status();
  return cluster.state()?.membership.some((member) => member.peerId === peerId && member.voter) === true;
}

export function leaderOf(nodes: readonly FakeNode[]): FakeNode | undefined {
  return nodes.find(({ cluster }) => cluster.status().raft?.role.kind === 'Leader');
}

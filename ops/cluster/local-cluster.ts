/**
 * Nodes of one cluster as processes of this machine: started, stopped, killed, paused, added, removed, parted from each
 * other. For `npm run cluster` and for tests.
 */

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts } from '../ports.js';
import type { Authority } from '../tls/authority.js';
import { type ClusterAnswer, LocalNode, type LocalNodeSettings } from './local-node.js';
import { NodeProxy } from './proxy.js';

export interface LocalClusterOptions {
  readonly nodes: number;
  /** One folder for each node in it; kept when the cluster ends, and another one may be started on it. */
  readonly folder: string;
  /** Further variables of each node (`SERVICE__…`). */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly nodeArguments?: readonly string[];
  /** Clients and nodes talk within TLS, by certificates that it signs. */
  readonly authority?: Authority;
  /** `service.api_key` of all nodes. */
  readonly apiKey?: string;
  /** Another program in the server's place (tests), or another release's server (benchmarks). */
  readonly program?: string | undefined;
  /** Told of nodes as soon as they have their addresses. */
  readonly onNode?: (node: LocalNode) => void;
  readonly readyTimeoutMs?: number;
}

const READY_TIMEOUT_MS = 60_000;
const POLL_MS = 20;

export class LocalCluster {
  private readonly byNumber = new Map<number, LocalNode>();
  /** `source>target` by node numbers: what is sent that way does not arrive. */
  private readonly cuts = new Set<string>();
  /** Nodes that `remove` has taken out. */
  private readonly removed = new Set<number>();
  private nextNumber = 1;

  private constructor(private readonly options: LocalClusterOptions) {}

  /** Resolves when every node is a ready member. Rejects with what a node printed that does not become one; all have ended then. */
  static async start(options: LocalClusterOptions): Promise<LocalCluster> {
    const cluster = new LocalCluster(options);
    try {
      await cluster.add();
      await Promise.all(Array.from({ length: options.nodes - 1 }, () => cluster.add()));
      return cluster;
    } catch (error) {
      await cluster.close();
      throw error;
    }
  }

  /** By number, removed ones included. */
  get nodes(): readonly LocalNode[] {
    return [...this.byNumber.values()];
  }

  /** Throws when there is none of that number. */
  node(number: number): LocalNode {
    const node = this.byNumber.get(number);
    if (node === undefined) throw new Error(`there is no node ${number}; there are ${[...this.byNumber.keys()].join(', ')}`);
    return node;
  }

  /** The address a node joins by: of any other that runs; undefined for the first node. */
  private contactFor(number: number): string | undefined {
    const others = this.nodes.filter((node) => node.number !== number);
    return (others.find((node) => node.state === 'running') ?? others[0])?.uri;
  }

  /** A further node joins. Resolves with it when it is ready. */
  async add(): Promise<LocalNode> {
    const number = this.nextNumber++;
    const node = await this.place(number);
    await this.start(number);
    return node;
  }

  /** Gives a node that has ended other addresses; its folder stays. Resolves with it when it runs. */
  async move(number: number): Promise<LocalNode> {
    const { folder } = this.node(number);
    await this.node(number).close();
    rmSync(portsFile(folder));
    const node = await this.place(number);
    this.launch(number);
    return node;
  }

  private async place(number: number): Promise<LocalNode> {
    const { apiKey = null, authority, environment, nodeArguments = [], program } = this.options;
    const folder = join(this.options.folder, `node-${number}`);
    const { port, grpcPort, internalPort } = await portsIn(folder);
    const proxy = await NodeProxy.start(internalPort, (source, target) => this.passes(source, target));
    const settings: LocalNodeSettings = {
      environment: {
        ...(authority === undefined ? {} : securedBy(authority, folder)),
        ...(apiKey === null ? {} : { SERVICE__SERVICE__API_KEY: apiKey }),
        ...environment,
      },
      apiKey,
      tls: authority === undefined ? null : { ca: authority.cert },
      nodeArguments,
      program,
    };
    const node = new LocalNode({ number, folder, port, grpcPort, internalPort }, proxy, settings);
    this.byNumber.set(number, node);
    this.options.onNode?.(node);
    return node;
  }

  /** Starts a node that has ended. Resolves when it is ready; see `launch` to go on at once. */
  async start(number: number): Promise<void> {
    this.launch(number);
    await this.untilReady(number);
  }

  /** Starts a node's process. One that was removed joins again. */
  launch(number: number): void {
    const contact = this.contactFor(number);
    // It may have ended before it heard of its removal, and would go on as who it was.
    const afresh = this.removed.delete(number) ? ['--reinit'] : [];
    this.node(number).launch([...afresh, ...(contact === undefined ? [] : ['--bootstrap', contact])]);
  }

  /** Ready, and with a vote: one that has joined gets it a moment later. */
  async untilReady(number: number, timeoutMs = this.options.readyTimeoutMs ?? READY_TIMEOUT_MS): Promise<void> {
    const node = this.node(number);
    const deadline = performance.now() + timeoutMs;
    while (!(await node.isReady()) || (await node.cluster())?.raft_info.is_voter !== true) {
      if (node.state === 'ended') throw new Error(`node ${number} ended before it was ready: ${JSON.stringify(node.exit)}\n${node.log()}`);
      if (performance.now() > deadline) throw new Error(`node ${number} was not ready after ${timeoutMs} ms\n${node.log()}`);
      await sleep(POLL_MS);
    }
  }

  /**
   * Takes a peer out of the cluster, asking any other node that runs, then stops its process. force: also when it holds shards.
   * Rejects with the cluster's answer when it refuses.
   */
  async remove(number: number, force = false): Promise<void> {
    const node = this.node(number);
    if (this.removed.has(number)) throw new Error(`node ${number} is no peer of the cluster any more; it joins again when it is started`);
    const peerId = await this.peerIdOf(node);
    const asked = this.nodes.find((other) => other !== node && other.state === 'running');
    if (asked === undefined) throw new Error('no other node runs that could be asked');
    const path = `/cluster/peer/${peerId}${force ? '?force=true' : ''}`;
    const answer = await asked.client.call('DELETE', path);
    if (answer.status !== 200) throw new Error(`node ${asked.number} answered DELETE ${path} with ${answer.status}: ${answer.text}`);
    this.removed.add(number);
    await node.stop();
  }

  /** From its own answer or, when it has none, from what others know of its address. */
  async peerIdOf(node: LocalNode): Promise<number> {
    const own = await node.cluster();
    if (own !== null) return own.peer_id;
    for (const other of this.nodes) {
      const peers = Object.entries((await other.cluster())?.peers ?? {});
      const found = peers.find(([, { uri }]) => uri.replace(/\/$/, '') === node.uri);
      if (found !== undefined) return Number(found[0]);
    }
    throw new Error(`nobody knows the peer id of node ${node.number}`);
  }

  // ---------------------------------------------------------------- network

  /** Only nodes of the same group reach each other; a node that no group names is alone. Takes the place of other cuts. */
  partition(...groups: readonly (readonly number[])[]): void {
    this.cuts.clear();
    const groupOf = (number: number): number => groups.findIndex((group) => group.includes(number));
    for (const source of this.byNumber.keys()) {
      for (const target of this.byNumber.keys()) {
        if (source !== target && (groupOf(source) < 0 || groupOf(source) !== groupOf(target))) this.cuts.add(`${source}>${target}`);
      }
    }
    this.applyCuts();
  }

  /** Nothing that `source` sends arrives at `target` any more; the other way stays as it is. */
  cut(source: number, target: number): void {
    this.cuts.add(`${this.node(source).number}>${this.node(target).number}`);
    this.applyCuts();
  }

  /** All nodes reach each other. */
  heal(): void {
    this.cuts.clear();
    this.applyCuts();
  }

  private passes(source: number, target: number): boolean {
    if (this.cuts.size === 0) return true;
    const numberOf = (port: number): number | undefined => this.nodes.find((node) => node.internalPort === port)?.number;
    const [from, to] = [numberOf(source), numberOf(target)];
    if (from !== undefined && to !== undefined) return !this.cuts.has(`${from}>${to}`);
    // One is a port of a reader, which does not tell whose it is: it is cut off with any other node.
    return ![...this.cuts].some((cut) => cut.split('>').includes(String(from ?? to)));
  }

  private applyCuts(): void {
    for (const { proxy } of this.byNumber.values()) proxy.apply();
  }

  // ---------------------------------------------------------------- waiting

  /** The node that a majority of the running nodes names as leader, and that says so itself. Rejects after `timeoutMs`. */
  async untilLeader(timeoutMs = 10_000): Promise<LocalNode> {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const leader = await this.leader();
      if (leader !== null) return leader;
      if (performance.now() > deadline) throw new Error(`no leader after ${timeoutMs} ms:\n${await this.told()}`);
      await sleep(POLL_MS);
    }
  }

  /** Null when there is none, or when it is not agreed upon. */
  async leader(): Promise<LocalNode | null> {
    const running = this.nodes.filter((node) => node.state === 'running');
    const answers = await Promise.all(running.map(async (node) => ({ node, answer: await node.cluster(500) })));
    const members = Math.max(...answers.map(({ answer }) => Object.keys(answer?.peers ?? {}).length), 1);
    for (const { node, answer } of answers) {
      if (answer === null || answer.raft_info.role !== 'Leader') continue;
      const followers = answers.filter((other) => isLedBy(other.answer, answer));
      // Of two, one goes on alone when the other one has ended.
      const isSurvivor = members === 2 && this.nodes.every((other) => other === node || other.state === 'ended');
      if (followers.length * 2 > members || isSurvivor) return node;
    }
    return null;
  }

  /** What each node says of its Raft, and of those it cannot reach. */
  private async told(): Promise<string> {
    const lines = this.nodes.map(async (node) => {
      const answer = await node.cluster(2000);
      const said = answer === null ? 'no answer' : JSON.stringify([answer.raft_info, answer.message_send_failures]);
      return `node ${node.number} (${node.state}): ${said}`;
    });
    return (await Promise.all(lines)).join('\n');
  }

  /** Ends every process, hard if they don't end in time. */
  async close(): Promise<void> {
    await Promise.allSettled(this.nodes.map((node) => node.stop(10_000)));
    await Promise.allSettled(this.nodes.map((node) => node.close()));
  }
}

interface Ports {
  readonly port: number;
  readonly grpcPort: number;
  readonly internalPort: number;
}

/** Writes a node's certificate into its folder, which is there. Result: the variables that have it used for clients and for other nodes. */
function securedBy(authority: Authority, folder: string): Record<string, string> {
  const { cert, key } = authority.sign({ name: basename(folder), hosts: ['localhost', '127.0.0.1'] });
  const file = (name: string, text: string): string => {
    const path = join(folder, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };
  return {
    SERVICE__SERVICE__ENABLE_TLS: 'true',
    SERVICE__CLUSTER__P2P__ENABLE_TLS: 'true',
    SERVICE__TLS__CERT: file('cert.pem', cert),
    SERVICE__TLS__KEY: file('key.pem', key),
    SERVICE__TLS__CA_CERT: file('cacert.pem', authority.cert),
  };
}

function portsFile(folder: string): string {
  return join(folder, 'ports.json');
}

/** Those of the node that ran in the folder before, as its peers look for it there; else free ones. */
async function portsIn(folder: string): Promise<Ports> {
  const file = portsFile(folder);
  if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')) as Ports;
  const [port, grpcPort, internalPort] = (await freePorts(3)) as [number, number, number];
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, JSON.stringify({ port, grpcPort, internalPort }));
  return { port, grpcPort, internalPort };
}

function isLedBy(answer: ClusterAnswer | null, leader: ClusterAnswer): boolean {
  return answer !== null && answer.raft_info.leader === leader.peer_id && answer.raft_info.term === leader.raft_info.term;
}

/** A REST door over a node that only pretends: it records what it is asked and answers as told. */

import { connect } from 'node:net';
import { BackupBoard } from '../../../actors/backups/board.js';
import type { ClusterApi } from '../../../actors/consensus/cluster-api.js';
import type { LocalShard, NodeApi } from '../../../actors/requests/node-api.js';
import type { CollectionView } from '../../../actors/requests/report.js';
import { LongWorks } from '../../../actors/runtime/long-works.js';
import { Advice } from '../../../http/advice/advice.js';
import type { DoorThreads } from '../../../http/context/reader-servers.js';
import { Reports } from '../../../http/context/reports.js';
import { RequestStats } from '../../../http/context/request-stats.js';
import type { DoorServices } from '../../../http/context/services.js';
import { SlowRequests } from '../../../http/context/slow-requests.js';
import { UnknownFieldCounts } from '../../../http/context/unknown-fields.js';
import { LiveHub } from '../../../http/live/hub.js';
import { FilterCaches } from '../../../http/reports/filter-caches.js';
import type { LoneReader } from '../../../http/rest/readers/door.js';
import { ReaderDoor } from '../../../http/rest/readers/door.js';
import type { ReaderDoorSettings } from '../../../http/rest/readers/messages.js';
import { type RestDoor, type RestOptions, startRestDoor } from '../../../http/rest/start.js';
import { ROUTES } from '../../../http/routes.js';
import { TroupeError } from '../../../protocols/errors.js';
import { GRPC_METHOD_NAMES } from '../../../protocols/grpc/method-names.js';
import type { AliasAction } from '../../../protocols/model/alias.js';
import type { CollectionConfig } from '../../../protocols/model/collection.js';
import { type HardwareUsage, noUsage } from '../../../protocols/model/usage.js';
import { BUILT_IN_DEFAULTS } from '../../../protocols/rest/collections.js';
import type { DiskReport } from '../../../storage/disk/disk-watch.js';
import { MemoryWatch } from '../../../storage/memory/watch.js';
import type { PoolDepths } from '../../../storage/pool/pool.js';
import { NO_REPLICA_LIMIT } from '../../../storage/pool/replica-limit.js';
import type { RawRequest } from '../../../storage/threads/messages.js';
import { FakeSnapshots } from './fake-snapshots.js';

export interface Asked {
  readonly operation: string;
  readonly collection: string;
  readonly wait?: boolean;
  readonly request: RawRequest;
}

export class FakeNode {
  readonly collections = new Map<string, CollectionConfig>();
  readonly asked: Asked[] = [];
  readonly backups = new BackupBoard();
  readonly snapshots = new FakeSnapshots((name) => this.exists(name));
  /** Of each change of collections and aliases. */
  readonly timeouts: (number | undefined)[] = [];
  /** Null: a node of its own. */
  cluster: ClusterApi | null = null;
  /** What reads and writes answer: JSON of a result, or an error. */
  answer: () => Promise<Uint8Array> = () => Promise.resolve(Buffer.from('[]'));

  listCollections(): string[] {
    return [...this.collections.keys()];
  }

  exists(name: string): boolean {
    return this.collections.has(name);
  }

  replicas(name: string): [] {
    this.config(name);
    return [];
  }

  stats(name: string): [] {
    this.config(name);
    return [];
  }

  localShards(name: string): Map<number, LocalShard> {
    this.config(name);
    return new Map([[0, { points: 3, state: 'Active' }]]);
  }

  aliases(): [] {
    return [];
  }

  async createCollection(name: string, config: CollectionConfig, timeoutMs?: number): Promise<boolean> {
    this.timeouts.push(timeoutMs);
    if (this.exists(name)) throw new TroupeError('conflict', `Collection \`${name}\` already exists!`);
    this.collections.set(name, config);
    return true;
  }

  async updateCollection(name: string, change: (config: CollectionConfig) => CollectionConfig, timeoutMs?: number): Promise<boolean> {
    this.timeouts.push(timeoutMs);
    this.collections.set(name, change(this.config(name)));
    return true;
  }

  async changeAliases(_actions: readonly AliasAction[], timeoutMs?: number): Promise<boolean> {
    this.timeouts.push(timeoutMs);
    return true;
  }

  async deleteCollection(name: string, timeoutMs?: number): Promise<boolean> {
    this.timeouts.push(timeoutMs);
    return this.collections.delete(name);
  }

  async wholeInfo(name: string): Promise<CollectionView> {
    return this.info(name);
  }

  info(name: string): CollectionView {
    const config = this.config(name);
    return {
      status: 'green',
      optimizer_status: 'ok',
      indexed_vectors_count: 0,
      points_count: 3,
      segments_count: 1,
      config,
      payload_schema: {},
      update_queue: { length: 0 },
    };
  }

  optimizations(name: string): unknown {
    this.config(name);
    const summary = { queued_optimizations: 0, queued_segments: 0, queued_points: 0, idle_segments: 1 };
    return { summary, running: [], queued: [], completed: [1, 2, 3], idle_segments: [] };
  }

  async wholeOptimizations(name: string): Promise<unknown> {
    return this.optimizations(name);
  }

  telemetry(): unknown {
    const actor = (path: string, kind: string, children: unknown[]) => ({
      path,
      kind,
      state: 'Running',
      mailbox: { depth: 1, capacity: 10 },
      processed: 5,
      restarts: 0,
      busyRefusals: 0,
      lastError: { message: 'about secret', timeMs: 1 },
      uptimeMs: 10,
      recent: [],
      children,
    });
    return actor('/node', 'node', [actor('/node/secret', 'collection', [])]);
  }

  read(collection: string, operation: string, request: RawRequest): Promise<Uint8Array> {
    this.config(collection);
    this.asked.push({ operation, collection, request });
    return this.answer();
  }

  write(collection: string, operation: string, wait: boolean, request: RawRequest): Promise<Uint8Array> {
    this.config(collection);
    this.asked.push({ operation, collection, wait, request });
    return this.answer();
  }

  hardware(): Map<string, HardwareUsage> {
    return new Map([['secret', { ...noUsage(), cpu: 7 }]]);
  }

  depths(): PoolDepths {
    const reader = {
      begun: true,
      stuck: null,
      up: true,
      depth: 1,
      queuedBytes: 5,
      processed: 7,
      restarts: 0,
      uptimeMs: 1,
      lastError: 'about secret',
    };
    return {
      waitingReads: 2,
      waitingReadsMax: 9,
      workers: [{ name: 'reader-0', kind: 'reader', ...reader }],
      replicas: { open: 1, ...NO_REPLICA_LIMIT },
    };
  }

  buildBudget() {
    return { threads: 0, threadsMax: 1, waiting: 0 };
  }

  async whenReady(): Promise<void> {}

  async close(): Promise<void> {}

  private config(name: string): CollectionConfig {
    const config = this.collections.get(name);
    if (config === undefined) throw new TroupeError('notFound', `Collection \`${name}\` doesn't exist!`);
    return config;
  }
}

export interface Harness {
  readonly node: FakeNode;
  readonly services: DoorServices;
  readonly door: RestDoor;
  readonly url: string;
  ready: boolean;
  readonly errors: string[];
  /** About unknown fields. */
  readonly warnings: string[];
}

export interface HarnessOptions extends Partial<RestOptions> {
  readonly maxCollections?: number;
  readonly metricsPrefix?: string;
  /** `service.unknown_fields: refuse`. */
  readonly refuseUnknown?: boolean;
  readonly hardwareReporting?: boolean;
  readonly monotonicMs?: () => number;
  readonly nowMs?: () => number;
  /** Default: `nowMs`. */
  readonly dateMs?: () => number;
  /** Default: those of the event loop. */
  readonly works?: LongWorks;
  /** Default: one that refuses nothing. */
  readonly memory?: DoorServices['memory'];
  readonly audit?: DoorServices['audit'];
  readonly clients?: DoorServices['clients'];
  readonly exposure?: string;
  readonly recoveryMode?: string;
  /** Requests are taken by a reader's server, which asks this before it hands a read on. */
  readonly readAlone?: LoneReader['readAlone'];
  /** Of a reader's server. Default: nothing is refused for its rate. */
  readonly refusalOf?: LoneReader['refusalOf'];
  /** Of a reader's server. Default: the main thread decides. */
  readonly payWrite?: LoneReader['payWrite'];
  /** Null and left out: none is slow. */
  readonly slowRequestMs?: number | null;
}

/** budget: of all memory; without it nothing is refused. */
export function fakeMemory(budget?: number): DoorServices['memory'] {
  const limits = { processBytes: null, cgroupBytes: null, cgroupHighBytes: null, machineBytes: budget ?? Number.MAX_SAFE_INTEGER };
  const watch = new MemoryWatch(null, limits);
  watch.stop();
  return watch;
}

const ROOMY_DISK: DiskReport = {
  totalBytes: 2 ** 40,
  freeBytes: 2 ** 39,
  freeBytesMin: 2 ** 29,
  reserveBytes: 2 ** 22,
  heldBytes: 2 ** 22,
  isLow: false,
  refused: 0,
};

/** A door on a free port. */
export async function openDoor(options: HarnessOptions = {}): Promise<Harness> {
  const node = new FakeNode();
  const errors: string[] = [];
  const warnings: string[] = [];
  const harness = { node, errors, warnings, ready: true };
  const quiet = () => {};
  const unknownFields = new UnknownFieldCounts({
    refuse: options.refuseUnknown ?? false,
    log: { warn: (message, facts) => warnings.push(`${message}: ${String(facts?.fields)}`) },
    nowMs: options.nowMs ?? Date.now,
    monotonicMs: options.monotonicMs ?? (() => performance.now()),
  });
  const memory = options.memory ?? fakeMemory();
  const disk = { require: quiet, report: () => ROOMY_DISK, stop: quiet };
  const monotonicMs = options.monotonicMs ?? (() => performance.now());
  const advice = new Advice({ node: node as unknown as NodeApi, memory, disk, unknownFields, dateMs: Date.now, monotonicMs });
  const log = {
    debug: quiet,
    info: quiet,
    warn: quiet,
    error: (_message: string, facts?: Record<string, unknown>) => errors.push(String(facts?.error)),
  };
  const services: DoorServices = {
    node: node as unknown as NodeApi,
    access: null,
    identity: { id: '6d4f596c-0000-4dc7-8420-e0fa32990667', peerId: 77, version: '0.0.1', startedMs: 0 },
    defaults: BUILT_IN_DEFAULTS,
    maxCollections: options.maxCollections ?? null,
    metricsPrefix: options.metricsPrefix ?? '',
    hardwareReporting: options.hardwareReporting ?? false,
    stats: new RequestStats(ROUTES),
    grpcStats: new RequestStats(GRPC_METHOD_NAMES),
    reports: new Reports(options.works ?? new LongWorks({ monotonicMs: () => performance.now(), later: setImmediate })),
    unknownFields,
    advice,
    caches: new FilterCaches((name) => node.exists(name)),
    live: new LiveHub({ node: node as unknown as NodeApi, memory, monotonicMs }),
    slow: new SlowRequests({ thresholdMs: options.slowRequestMs ?? null, log, dateMs: () => 0, monotonicMs }),
    audit: options.audit ?? null,
    traces: null,
    calls: options.audit ?? null,
    clients: options.clients ?? null,
    exposure: options.exposure ?? null,
    log,
    memory,
    disk,
    recoveryMode: options.recoveryMode ?? null,
    notReady: () => (harness.ready ? null : 'its collections are being opened'),
    nowMs: options.nowMs ?? Date.now,
    dateMs: options.dateMs ?? options.nowMs ?? Date.now,
    monotonicMs,
  };
  const door = await startRestDoor(services, {
    host: '127.0.0.1',
    port: 0,
    maxBodyBytes: 1 << 20,
    packFromBytes: 1024,
    cors: true,
    logRequests: false,
    ...options,
    readers:
      options.readAlone === undefined
        ? null
        : oneReader({
            memory: services.memory.ledger,
            readAlone: options.readAlone,
            refusalOf: options.refusalOf ?? (() => null),
            payWrite: options.payWrite ?? (() => 0),
          }),
  });
  const close = async (graceMs: number): Promise<void> => {
    await door.close(graceMs);
    node.snapshots.close();
  };
  return Object.assign(harness, { door: { ...door, close }, services, url: `http://127.0.0.1:${door.port}` });
}

/** Bytes that all connections together hold of the ledger. */
export function held({ memory }: DoorServices, account: 'bodies' | 'answers'): number {
  return memory.report().accounts[account];
}

/** Waits until something is so within this process; throws after some ten seconds. */
export async function until(isSo: () => boolean): Promise<void> {
  for (let tries = 0; !isSo(); tries++) {
    if (tries > 2000) throw new Error('it did not become so');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A reader's server in this thread. */
function oneReader(reader: LoneReader): DoorThreads<ReaderDoorSettings> {
  return {
    openDoors: (open) => {
      const { port, settings } = open(0);
      new ReaderDoor(reader, port, settings, null, null).listen();
      return 1;
    },
    forgetDoors: () => {},
  };
}

/** Sends bytes as they are and returns all that comes back until the server closes the connection. */
export function sendRaw(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.write(text));
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('latin1')));
  });
}

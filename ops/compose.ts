/** A node from its settings: engine, actors and what the doors work with. For the server and for `Troupe.open`. */

import os from 'node:os';
import { hasCollections } from '../actors/collection/collections-folder.js';
import type { ClusterApi, ClusterOptions } from '../actors/consensus/cluster-api.js';
import type { NodeApi } from '../actors/requests/node-api.js';
import { LongWorks } from '../actors/runtime/long-works.js';
import { startNode } from '../actors/start/start-node.js';
import { DoorAccess } from '../http/access/door-access.js';
import { openKnownCallers } from '../http/access/known-callers.js';
import { ExistingValues } from '../http/access/value-exists.js';
import { Advice } from '../http/advice/advice.js';
import { allCallLogs } from '../http/context/call-log.js';
import { Reports } from '../http/context/reports.js';
import { RequestStats } from '../http/context/request-stats.js';
import type { DoorServices, Identity } from '../http/context/services.js';
import { SlowRequests } from '../http/context/slow-requests.js';
import { UnknownFieldCounts } from '../http/context/unknown-fields.js';
import { LiveHub } from '../http/live/hub.js';
import { FilterCaches } from '../http/reports/filter-caches.js';
import { ROUTES } from '../http/routes.js';
import { GRPC_METHOD_NAMES } from '../protocols/grpc/method-names.js';
import { type DiskNews, DiskWatch } from '../storage/disk/disk-watch.js';
import { descriptorsMax } from '../storage/disk/machine.js';
import { cautionAfter, type LastRun } from '../storage/memory/last-run.js';
import { MemoryWatch } from '../storage/memory/watch.js';
import { EnginePool, type PoolOptions } from '../storage/pool/pool.js';
import { machineFigures, replicaLimit } from '../storage/pool/replica-limit.js';
import { steadyNowMs } from '../storage/threads/clock.js';
import { verifierOfChanges } from '../storage/verify/verify-lmdb.js';
import { logBudgetBytes } from '../storage/wal/log-budget.js';
import { membershipWaitsFor } from './cluster-readiness.js';
import { accessSettings } from './config/access-settings.js';
import { openAudit } from './config/audit-settings.js';
import { readBackupPlans } from './config/backup-settings.js';
import { clientGateFor } from './config/client-settings.js';
import { collectionDefaults, optimizersOverwrite } from './config/collection-defaults.js';
import { openTraces, otlpSettings } from './config/otlp-settings.js';
import type { NodeSettings } from './config/settings.js';
import { exposureOf } from './exposure.js';
import type { ModuleLog } from './log.js';
import { readerWithServers } from './reader-entry.js';
import { RunKeeper } from './run-mark.js';
import { snapshotOptions } from './snapshots.js';

const LOOK_FOR_ADVICE_MS = 5000;

/** crashed: the node's actor did, too often. stuck: a thread does not answer, and nothing but the end of the process ends it. */
export type FatalReason = 'crashed' | 'stuck';

export interface Composition {
  readonly services: DoorServices;
  readonly node: NodeApi;
  readonly pool: EnginePool;
  readonly memory: MemoryWatch;
  /** Resolves when the first threads are ready; rejects, with the pool closed, when they do not start. */
  readonly started: Promise<void>;
  /** The process has ended in order: nothing is open any more. */
  readonly end: () => void;
}

/**
 * Starts everything but doors; collections are being opened when it resolves. The storage folder must be locked.
 * cluster: null for a node of its own. onFatal: see `FatalReason`. doorsInReaders: readers will take clients' connections.
 */
export async function compose(
  settings: NodeSettings,
  cluster: ClusterOptions | null,
  identity: Identity,
  logOf: (module: string) => ModuleLog,
  onFatal: (reason: FatalReason) => void,
  doorsInReaders = false,
): Promise<Composition> {
  const log = logOf('main');
  const { service, storage } = settings;
  const memory = new MemoryWatch(storage.performance.memory_budget_mb);
  log.info(memory.describe());
  const disk = watchDisk(settings, log);
  const replicas = replicaLimit(machineFigures());
  if (replicas.max !== null) log.info(`this machine has room for ${replicas.max} replicas of shards: ${replicas.reason}`);
  const overwrite = optimizersOverwrite(settings);
  if (Object.keys(overwrite).length > 0) log.info('these settings of optimizers go before those of every collection', { ...overwrite });
  const run = new RunKeeper(storage.storage_path, memory.limit.bytes);
  memory.onUse = (bytes) => run.peak(bytes);
  const recoveryMode = recoveryModeOf(storage.recovery_mode, run.last);
  tellLastRun(run.last, recoveryMode, log);
  const poolOptions = {
    replicaLimit: replicas,
    ...readersOf(storage.performance.max_search_threads, doorsInReaders),
    ...(storage.update_concurrency === null ? {} : { writers: storage.update_concurrency }),
    gathers: cluster !== null,
    ledger: memory.ledger,
    silenceMs: storage.performance.thread_silence_sec * 1000,
    disk,
    isRestorable: storage.point_in_time_restore,
    logBudgetBytes: logBudgetBytes(storage.log_budget_mb, disk.report().totalBytes, memory.ledger.budget.bytes),
  };
  const { pool, started } = EnginePool.begin(poolOptions, hasCollections(storage.storage_path));
  pool.onWorker(({ name, event, error }) => {
    if (event === 'silent') log.error('an engine worker does not answer', { worker: name, error });
    else if (event === 'stuck') {
      log.error('an engine worker does not answer and cannot be replaced: the process has to end', { worker: name, error });
      onFatal('stuck');
    } else if (event === 'lost') log.error('an engine worker was lost and is replaced', { worker: name, error });
    else log.debug('an engine worker started', { worker: name });
  });
  const snapshots = snapshotOptions(settings, disk.marks, identity.version, Date.now, logOf('snapshots'));
  pool.watch(snapshots.archive);
  const starting = startNode({
    storagePath: storage.storage_path,
    pool,
    snapshots,
    backups: readBackupPlans(settings).plans,
    log: logOf('actors'),
    cluster,
    optimizersOverwrite: overwrite,
    optimizerCpuBudget: storage.performance.optimizer_cpu_budget,
    updateRateLimit: storage.performance.update_rate_limit,
    ...(run.lastEnded ? { verify: verifierOfChanges() } : {}),
    disk,
    usage: () => ({ memoryPercent: (100 * memory.ledger.usedBytes) / memory.limit.bytes, diskPercent: diskPercent(disk) }),
    memory: {
      figures: {
        budgetBytes: memory.ledger.budget.bytes,
        usedBytes: (when) => (when === 'now' ? memory.measure() : memory.ledger.usedBytes),
        noteHeld: (bytes) => memory.noteHeld(bytes),
      },
      caution: cautionAfter(run.last),
      recoveryMode,
    },
    onFatal: (error) => {
      log.error('the node cannot go on', { error: error.detail });
      onFatal('crashed');
    },
  });
  // The caller waits for the threads: meanwhile it can open servers, which readers take when they are ready.
  started.catch(() => {});
  const node = await starting.catch(async (error: unknown) => {
    await pool.close();
    throw error;
  });
  if (doorsInReaders) node.watchOwnReads((take) => pool.changeOwnReads(take));
  const ready = watchReadiness(node, log);
  const membership = watchMembership(node.cluster);
  const httpLog = logOf('http');
  const monotonicMs = (): number => performance.now();
  const room = { descriptors: descriptorsMax(), memoryBytes: memory.limit.bytes };
  // Nobody sees what comes of these numbers, so they need not be of a kind that cannot be computed.
  const clients = clientGateFor(settings, room, pool.readers, [randomWord(), randomWord()]);
  const audit = await openAudit(settings);
  const otlp = otlpSettings(settings, identity.version);
  const traces = await openTraces(otlp, identity.version);
  const callers = await openKnownCallers(accessSettings(settings), Date.now);
  const unknownFields = new UnknownFieldCounts({ refuse: service.unknown_fields === 'refuse', log: httpLog, nowMs: Date.now, monotonicMs });
  const advice = new Advice({ node, memory, disk, unknownFields, dateMs: Date.now, monotonicMs });
  pool.onScans = (scans) => advice.unindexed.note(scans);
  const caches = new FilterCaches((name) => node.exists(name));
  pool.onCacheUses = (reader, uses) => caches.note(reader, uses);
  const looking = setInterval(() => advice.look(), LOOK_FOR_ADVICE_MS).unref();
  const services: DoorServices = {
    node,
    access: callers === null ? null : new DoorAccess(callers, new ExistingValues({ node, nowMs: steadyNowMs })),
    identity: identityOf(node, identity),
    defaults: collectionDefaults(settings),
    maxCollections: storage.max_collections,
    metricsPrefix: service.metrics_prefix,
    hardwareReporting: service.hardware_reporting,
    stats: new RequestStats(ROUTES),
    grpcStats: new RequestStats(GRPC_METHOD_NAMES),
    reports: new Reports(new LongWorks({ monotonicMs, later: setImmediate })),
    unknownFields,
    advice,
    caches,
    live: new LiveHub({ node, memory, monotonicMs }),
    slow: new SlowRequests({ thresholdMs: service.slow_request_ms, log: httpLog, dateMs: Date.now, monotonicMs }),
    audit,
    traces,
    calls: allCallLogs([audit, traces]),
    clients,
    exposure: exposureOf(settings),
    log: httpLog,
    memory,
    disk,
    recoveryMode,
    notReady: () => (ready.done ? (silentWorker(pool) ?? membership()) : 'collections are being opened'),
    nowMs: steadyNowMs,
    dateMs: Date.now,
    monotonicMs,
  };
  const end = (): void => {
    clearInterval(looking);
    memory.stop();
    run.end();
  };
  node.whenReady().then(
    () => run.ready(),
    () => {},
  );
  return { services, node, pool, memory, started, end };
}

function randomWord(): number {
  return Math.floor(Math.random() * 2 ** 32);
}

/** What to tell whoever asks for a collection; null: not in recovery mode. */
function recoveryModeOf(setting: string | null, { whileStarting }: LastRun): string | null {
  if (setting !== null && setting !== '') return setting;
  if (!whileStarting || process.env.SERVICE_ALLOW_RECOVERY_MODE !== 'true') return null;
  return 'the last start was ended for want of memory: delete collections or give the node more memory, and start it again';
}

function tellLastRun({ kills }: LastRun, recoveryMode: string | null, log: ModuleLog): void {
  if (recoveryMode !== null) log.warn(`recovery mode: no collection is opened: ${recoveryMode}`);
  else if (kills > 0)
    log.warn('this node was ended for memory before: builds and loading wait until there is ample room', { times: kills });
}

/** A thread that gives no sign of life; null: there is none. */
function silentWorker(pool: EnginePool): string | null {
  const worker = pool.depths().workers.find(({ stuck }) => stuck !== null);
  return worker === undefined ? null : `${worker.name} does not answer`;
}

const DISK_NEWS: Readonly<Record<DiskNews, string>> = {
  low: 'the disk is nearly full: writes that need room are refused until more is free',
  enough: 'the disk has room again, and writes are taken',
  'given up': 'the disk is full: the reserve is given up for deletions',
  held: 'a reserve for a full disk is in place',
};

/** Null where the disk does not tell how large it is. */
function diskPercent(disk: DiskWatch): number | null {
  const { freeBytes, totalBytes } = disk.report();
  return totalBytes === 0 ? null : (100 * (totalBytes - freeBytes)) / totalBytes;
}

/** Looks at the disk from now on. */
function watchDisk({ storage }: NodeSettings, log: ModuleLog): DiskWatch {
  const settings = { freeMegabytes: storage.disk_free_min_mb, reserveMegabytes: storage.disk_reserve_mb };
  const watch = new DiskWatch(storage.storage_path, settings, (news, { freeBytes, freeBytesMin }) => {
    const isGood = news === 'enough' || news === 'held';
    log[isGood ? 'info' : 'warn'](DISK_NEWS[news], { free_bytes: freeBytes, free_bytes_min: freeBytesMin });
  });
  watch.start();
  return watch;
}

/** Readers with servers are as many as CPUs, since little else is left to do for a search. */
function readersOf(searchThreads: number, withDoors: boolean): Pick<PoolOptions, 'readers' | 'entries'> {
  const count = searchThreads > 0 ? searchThreads : withDoors ? os.availableParallelism() : null;
  return {
    ...(count === null ? {} : { readers: count }),
    ...(withDoors ? { entries: { reader: readerWithServers() } } : {}),
  };
}

/** In a cluster, this process is the peer that consensus has made of it. */
function identityOf({ cluster }: NodeApi, identity: Identity): Identity {
  if (cluster === null) return identity;
  return {
    ...identity,
    get peerId() {
      return cluster.status().peerId;
    },
  };
}

/** What a node of a cluster waits for; null once it has been ready: what is agreed later is on its way, and no reason to stand aside. */
function watchMembership(cluster: ClusterApi | null): () => string | null {
  let wasReady = false;
  return () => {
    if (cluster === null) return null;
    const status = cluster.status();
    if (wasReady && status.phase === 'Member') return null;
    const reason = membershipWaitsFor(status);
    wasReady ||= reason === null;
    return reason;
  };
}

/** Whether every collection found at start is open. */
function watchReadiness(node: NodeApi, log: ModuleLog): { readonly done: boolean } {
  const ready = { done: false };
  node.whenReady().then(
    () => {
      ready.done = true;
      log.info('every collection is open', { collections: node.listCollections().length, milliseconds: Math.round(performance.now()) });
    },
    (error: unknown) => log.error('the node does not become ready', { error }),
  );
  return ready;
}

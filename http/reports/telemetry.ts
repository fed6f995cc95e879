/** `GET /telemetry`: the process, its collections, its requests, its engine and the tree of its actors. */

import os from 'node:os';
import type { CallStats } from '../../actors/context/call-stats.js';
import type { Durations } from '../../actors/context/durations.js';
import type { ActorTelemetry } from '../../actors/runtime/telemetry.js';
import { crypto } from '../../protocols/late-modules.js';
import type { DiskReport } from '../../storage/disk/disk-watch.js';
import type { MemoryReport } from '../../storage/memory/watch.js';
import type { WorkerDepth } from '../../storage/pool/pool.js';
import type { ReplicaStats } from '../../storage/threads/messages.js';
import type { RequestStats } from '../context/request-stats.js';
import { API_VERSION, type DoorServices } from '../context/services.js';
import { telemetryClusterReport } from './cluster-report.js';

export interface TelemetryOptions {
  /** 0: figures only; from 1: system, memory and collections too. */
  readonly detailsLevel: number;
  /** Names of collections are replaced by hashes, messages of errors and actors left out. */
  readonly anonymize: boolean;
}

type Json = Record<string, unknown>;

/** The report as the API has it, with `actors` and `engine` beside. */
export function telemetryReport(services: DoorServices, options: TelemetryOptions): Json {
  const names = services.node.listCollections();
  const detailed = options.detailsLevel >= 1;
  const collections: Json = { number_of_collections: names.length };
  if (services.maxCollections !== null) collections.max_collections = services.maxCollections;
  if (detailed) {
    collections.collections = names.map((name) => collectionReport(services, name, options));
    collections.snapshots = [];
  }
  const report: Json = {
    id: services.identity.id,
    app: appReport(services, detailed),
    collections,
    cluster: telemetryClusterReport(services.node.cluster, options.anonymize ? hashedName : (text) => text),
    requests: { rest: { responses: restResponses(services) }, grpc: { responses: grpcResponses(services) } },
  };
  if (detailed) {
    report.memory = memoryReport();
    report.hardware = { collection_data: hardwareReport(services, options) };
  }
  const { cluster } = services.node;
  if (cluster !== null) {
    report.peer_calls = { made: callReport(cluster.calls.made), answered: callReport(cluster.calls.answered) };
    report.transfers = cluster.transfers.report(
      { nowMs: services.nowMs(), dateMs: services.dateMs() },
      options.anonymize ? hashedName : (name) => name,
      !options.anonymize,
    );
  }
  report.engine = engineReport(services, options);
  report.actors = actorReport(services.node.telemetry(), options);
  return report;
}

/** A name that stands for another one without telling it. */
export function hashedName(name: string): string {
  return crypto().createHash('sha256').update(name).digest('hex').slice(0, 16);
}

function appReport({ identity, recoveryMode }: DoorServices, detailed: boolean): Json {
  const app: Json = {
    name: 'troupe',
    version: API_VERSION,
    troupe_version: identity.version,
    startup: new Date(identity.startedMs).toISOString(),
  };
  if (!detailed) return app;
  return {
    ...app,
    features: {
      debug: false,
      service_debug_feature: false,
      recovery_mode: recoveryMode !== null,
      gpu: false,
      rocksdb: false,
      staging: false,
    },
    system: {
      distribution: os.type(),
      distribution_version: os.release(),
      is_docker: false,
      cores: os.availableParallelism(),
      ram_size: Math.floor(os.totalmem() / 1024),
      cpu_flags: '',
      cpu_endian: os.endianness() === 'LE' ? 'little' : 'big',
    },
  };
}

/**
 * The part of each replica of this node in its shard's log: lag is counted in operations, and null where it is not known. may_be_ahead:
 * it has acknowledged without the others, and keeps the lead until they have everything.
 */
function replicationReport(node: DoorServices['node'], name: string, anonymize: boolean): Json[] {
  return [...node.localShards(name)].flatMap(([shardId, { replication }]) => {
    if (replication === undefined) return [];
    const { followers, mayBeAhead, position, role, term, waiting } = replication;
    const lagOf = (its: number | null) => (its === null || position === null ? null : position - its);
    const shown = followers.map(({ error, peer, phase, position: its, required }) => {
      return { peer_id: peer, phase, required, lag: lagOf(its), ...(anonymize || error === null ? {} : { error }) };
    });
    return [{ shard_id: shardId, role, term, position, waiting, may_be_ahead: mayBeAhead, followers: shown }];
  });
}

/**
 * What the replicas here have on disk that deletions and builds leave. deleted_rows: go when their segments are cleaned. log_bytes: kept for other
 * replicas. database_free_bytes: of `data.mdb` files, for later writes; given back when a replica is opened or falls asleep (Room-R6).
 */
function replicasOnDisk(replicas: readonly ReplicaStats[]): Json {
  const total = { deleted_rows: 0, log_bytes: 0, database_bytes: 0, database_free_bytes: 0 };
  for (const { database, segments, walBytes } of replicas) {
    for (const { deleted } of segments) total.deleted_rows += deleted;
    total.log_bytes += walBytes;
    total.database_bytes += database?.bytes ?? 0;
    total.database_free_bytes += database?.freeBytes ?? 0;
  }
  return total;
}

function collectionReport({ node }: DoorServices, name: string, { anonymize }: TelemetryOptions): Json {
  const id = anonymize ? hashedName(name) : name;
  try {
    const info = node.info(name);
    return {
      id,
      status: info.status,
      optimizer_status: anonymize && info.optimizer_status !== 'ok' ? { error: 'hidden' } : info.optimizer_status,
      points_count: info.points_count,
      indexed_vectors_count: info.indexed_vectors_count,
      segments_count: info.segments_count,
      ...(info.update_queue.deferred_points === undefined ? {} : { update_queue: info.update_queue }),
      ...(anonymize ? {} : { config: info.config }),
      disk: replicasOnDisk(node.stats(name)),
      ...(node.cluster === null ? {} : { replication: replicationReport(node, name, anonymize) }),
    };
  } catch (error) {
    // A collection that cannot be read, or was deleted since, must not hide the others.
    return { id, status: 'red', ...(anonymize ? {} : { error: error instanceof Error ? error.message : String(error) }) };
  }
}

/** Sums since the start; of no collection unless requests are measured. */
function hardwareReport({ node }: DoorServices, { anonymize }: TelemetryOptions): Json {
  return Object.fromEntries([...node.hardware()].map(([name, usage]) => [anonymize ? hashedName(name) : name, usage]));
}

function restResponses({ stats }: DoorServices): Json {
  return responses(stats, ({ method, path }) => `${method} ${path}`);
}

function grpcResponses({ grpcStats }: DoorServices): Json {
  return responses(grpcStats, (method) => `/${method}`);
}

/** Calls of peers by kind and what became of them, as the doors' requests are shown. */
function callReport(stats: CallStats): Json {
  const byKind: Record<string, Json> = {};
  for (const { durations, kind, outcome } of stats.counts()) byKind[kind] = { ...byKind[kind], [outcome]: durationReport(durations) };
  return { responses: byKind };
}

function responses<Endpoint>(stats: RequestStats<Endpoint>, nameOf: (endpoint: Endpoint) => string): Json {
  const byName: Record<string, Json> = {};
  for (const { endpoint, status, durations } of stats.counts()) {
    const name = nameOf(endpoint);
    const byStatus = byName[name] ?? {};
    byStatus[status] = durationReport(durations);
    byName[name] = byStatus;
  }
  return byName;
}

function durationReport(durations: Durations): Json {
  return {
    count: durations.count,
    avg_duration_micros: (durations.totalMs * 1000) / durations.count,
    min_duration_micros: durations.minMs * 1000,
    max_duration_micros: durations.maxMs * 1000,
    total_duration_micros: Math.round(durations.totalMs * 1000),
    last_responded: new Date(durations.lastMs).toISOString(),
  };
}

function memoryReport(): Json {
  const { rss, heapUsed, heapTotal, external } = process.memoryUsage();
  return {
    active_bytes: heapTotal + external,
    allocated_bytes: heapUsed + external,
    metadata_bytes: 0,
    resident_bytes: rss,
    retained_bytes: Math.max(0, rss - heapTotal - external),
  };
}

function engineReport({ disk, memory, node }: DoorServices, { anonymize }: TelemetryOptions): Json {
  const { workers, ...waiting } = node.depths();
  const builds = node.buildBudget();
  return {
    ...waiting,
    builds,
    memory: memoryLedgerReport(memory.report()),
    disk: diskReport(disk.report()),
    workers: anonymize ? workers.map(hiddenWorker) : workers,
  };
}

/** Without names that are in errors and calls. */
function hiddenWorker(worker: WorkerDepth): WorkerDepth {
  const { lastError, stuck } = worker;
  return { ...worker, lastError: lastError === null ? null : 'hidden', stuck: stuck === null ? null : { ...stuck, call: 'hidden' } };
}

function diskReport({ freeBytes, freeBytesMin, heldBytes, isLow, refused, reserveBytes, totalBytes }: DiskReport): Json {
  return {
    total_bytes: totalBytes,
    free_bytes: freeBytes,
    free_bytes_min: freeBytesMin,
    reserve_bytes: reserveBytes,
    reserve_held_bytes: heldBytes,
    refuses_writes: isLow,
    refused_writes: refused,
  };
}

function memoryLedgerReport({ accounts, budget, limitedBy, limits, threads, usedBytes }: MemoryReport): Json {
  return {
    limits: {
      process_bytes: limits.processBytes,
      cgroup_bytes: limits.cgroupBytes,
      cgroup_high_bytes: limits.cgroupHighBytes,
      machine_bytes: limits.machineBytes,
    },
    limited_by: limitedBy,
    budget_bytes: budget.bytes,
    request_budget_bytes: budget.requestBytes,
    used_bytes: usedBytes,
    accounts,
    threads: Object.fromEntries(threads),
  };
}

/** The tree; anonymized, it keeps kinds, states and counts, and loses names and messages. */
function actorReport(actor: ActorTelemetry, options: TelemetryOptions): Json {
  const { facts, kind, path, state, ...figures } = actor;
  const children = actor.children.map((child) => actorReport(child, options));
  const shown = { path, kind, state, ...facts, ...figures, children };
  if (!options.anonymize) return shown;
  const hashedPath = path
    .split('/')
    .map((segment, at) => (at === 2 ? hashedName(segment) : segment))
    .join('/');
  const lastError = actor.lastError === null ? null : { ...actor.lastError, message: 'hidden' };
  return { ...shown, path: hashedPath, lastError, recent: [] };
}

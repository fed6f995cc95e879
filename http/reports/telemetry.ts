/** `GET /telemetry`: the process, its collections, its requests, its engine and the tree of its actors. */

import type { CallStats } from '../../actors/context/call-stats.js';
import type { Durations } from '../../actors/context/durations.js';
import type { ActorTelemetry } from '../../actors/runtime/telemetry.js';
import { TroupeError } from '../../protocols/errors.js';
import { crypto } from '../../protocols/late-modules.js';
import type { DiskReport } from '../../storage/disk/disk-watch.js';
import type { MemoryReport } from '../../storage/memory/watch.js';
import type { WorkerDepth } from '../../storage/pool/pool.js';
import type { ReplicaStats } from '../../storage/threads/messages.js';
import type { ClientGate } from '../context/client-gate.js';
import { collectionNames } from '../context/collection-stats.js';
import type { Endpoint } from '../context/endpoint.js';
import { LongList, LongObject, longList } from '../context/long-value.js';
import type { RequestCounts, RequestStats } from '../context/request-stats.js';
import type { DoorServices } from '../context/services.js';
import { appReport } from './app-telemetry.js';
import { telemetryClusterReport } from './cluster-report.js';
import { takenBy } from './collection-sizes.js';
import { processMemory } from './process-memory.js';
import { shardTelemetry } from './shard-telemetry.js';

/** From this `details_level` on nothing is added. */
export const DETAILS_LEVEL_MAX = 3;

export interface TelemetryOptions {
  /** From 1 on: the application's settings, system, memory and collections too; from 2 on shards and what moves between them; from 3 on segments. */
  readonly level: number;
  /** Names of collections are replaced by hashes, messages of errors and actors left out. */
  readonly anonymize: boolean;
  /** Answers are counted by collection, too. */
  readonly perCollection: boolean;
}

/** shown: what to show of a name. */
interface ShownOptions extends TelemetryOptions {
  readonly shown: ShowName;
}

type Json = Record<string, unknown>;
type ShowName = (name: string) => string;

/** Of a collection nearly always all: some shards, each with up to four actors of its own. */
const CHILDREN_AT_ONCE = 8;

/** The report as the API has it; what is Troupe's own stands within: its top level is read by clients that know all of its keys. */
export function telemetryReport(services: DoorServices, options: TelemetryOptions): LongObject {
  const { node } = services;
  const { anonymize, level, perCollection } = options;
  const detailed = level >= 1;
  const shown = nameShower(anonymize);
  const shownOptions = { ...options, shown };
  const collections = node.listCollections();
  const { cluster } = node;
  const names = perCollection ? { of: collectionNames(node), shown } : null;
  return LongObject.of({
    id: services.identity.id,
    app: LongObject.of({
      ...appReport(services, { anonymize, detailed }),
      engine: engineReport(services, options),
      ...(detailed ? { collection_sizes: new LongList(sizeReports(services, collections, shown)) } : {}),
      followers: services.live.report(),
      ...(cluster === null
        ? {}
        : {
            peer_calls: { made: callReport(cluster.calls.made), answered: callReport(cluster.calls.answered) },
            full_disk_peers: [...cluster.status().fullPeers],
            transfers: cluster.transfers.report({ nowMs: services.nowMs(), dateMs: services.dateMs() }, shown, !anonymize),
          }),
      actors: actorReport(node.telemetry(), shownOptions),
    }),
    collections: LongObject.of({
      number_of_collections: collections.length,
      max_collections: services.maxCollections ?? undefined,
      ...(detailed
        ? {
            collections: new LongList(collectionReports(services, collections, shownOptions)),
            snapshots: new LongList(snapshotReports(services, collections, shown)),
          }
        : {}),
    }),
    ...(detailed ? { search_pool: searchPoolReport(services) } : {}),
    cluster: telemetryClusterReport(cluster, shown),
    requests: {
      rest: doorReport(services.stats, restName, names),
      grpc: doorReport(services.grpcStats, grpcName, names),
      ...(services.audit === null ? {} : { audit: services.audit.counts() }),
      ...(services.clients === null ? {} : { connections: connectionReport(services.clients) }),
    },
    ...(detailed
      ? { memory: memoryReport(), hardware: LongObject.of({ collection_data: new LongObject(hardwareReport(services, shown)) }) }
      : {}),
  });
}

/** What a report shows of names. anonymize: hashes, each made once, since a collection is named by all of its actors. */
export function nameShower(anonymize: boolean): ShowName {
  if (!anonymize) return (name) => name;
  const hashes = new Map<string, string>();
  return (name) => {
    const known = hashes.get(name);
    if (known !== undefined) return known;
    const hash = hashedName(name);
    hashes.set(name, hash);
    return hash;
  };
}

/** A name that stands for another one without telling it. */
function hashedName(name: string): string {
  return crypto().createHash('sha256').update(name).digest('hex').slice(0, 16);
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

function* collectionReports({ node, nowMs }: DoorServices, names: readonly string[], options: ShownOptions): Generator<Json> {
  for (const name of names) {
    const report = collectionReport(node, name, options, nowMs());
    if (report !== null) yield report;
  }
}

function* sizeReports({ caches, node }: DoorServices, names: readonly string[], shown: ShowName): Generator<Json> {
  for (const name of names) {
    try {
      const { cache, diskBytes, memoryBytes } = takenBy(node.stats(name), caches.of(name));
      yield { id: shown(name), disk_bytes: diskBytes, memory_bytes: memoryBytes, filter_cache: cache };
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}

/** Of collections that snapshots were made or restored of. */
function* snapshotReports({ node }: DoorServices, names: readonly string[], shown: ShowName): Generator<Json> {
  for (const name of names) {
    const { created, creating, restoring } = node.snapshots.figures(name);
    if (created + creating + restoring === 0) continue;
    yield { id: shown(name), running_snapshots: creating, running_snapshot_recovery: restoring, total_snapshot_creations: created };
  }
}

/** Null for one that was deleted since. */
function collectionReport(node: DoorServices['node'], name: string, { anonymize, level, shown }: ShownOptions, nowMs: number): Json | null {
  const id = shown(name);
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
      ...(level < 2 ? {} : shardTelemetry(node, name, { anonymize, level, shown, nowMs })),
    };
  } catch (error) {
    if (isNotFound(error)) return null;
    // A collection that cannot be read must not hide the others.
    return { id, status: 'red', ...(anonymize ? {} : { error: error instanceof Error ? error.message : String(error) }) };
  }
}

/** Whether somebody has deleted the collection while a report was made. */
export function isNotFound(error: unknown): boolean {
  return error instanceof TroupeError && error.code === 'notFound';
}

/** Sums since the start; of no collection unless requests are measured. */
function* hardwareReport({ node }: DoorServices, shown: ShowName): Generator<[string, unknown]> {
  for (const [name, usage] of node.hardware()) yield [shown(name), usage];
}

function restName({ method, path }: Pick<Endpoint, 'method' | 'path'>): string {
  return `${method} ${path}`;
}

function grpcName(method: string): string {
  return `/${method}`;
}

/** Answers of a door. names: for those of each collection; null: they are not asked for. */
function doorReport<Of>(
  stats: RequestStats<Of>,
  nameOf: (endpoint: Of) => string,
  names: { readonly of: (name: string) => string | null; readonly shown: ShowName } | null,
): Json {
  const all = { responses: responses(stats.counts(), nameOf) };
  if (names === null) return all;
  const each = stats
    .countsByCollection(names.of)
    .map(([collection, counts]) => [names.shown(collection), responses(counts, nameOf)] as const);
  return { ...all, per_collection_responses: Object.fromEntries(each) };
}

/** Calls of peers by kind and what became of them, as the doors' requests are shown. */
function callReport(stats: CallStats): Json {
  const byKind: Record<string, Json> = {};
  for (const { durations, kind, outcome } of stats.counts()) byKind[kind] = { ...byKind[kind], [outcome]: durationReport(durations) };
  return { responses: byKind };
}

function responses<Of>(counts: readonly RequestCounts<Of>[], nameOf: (endpoint: Of) => string): Json {
  const byName: Record<string, Json> = {};
  for (const { endpoint, status, durations } of counts) {
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

/** The threads that read and score; they wait for files themselves. Source: contract, `SearchThreadPoolTelemetry`. */
function searchPoolReport({ node }: DoorServices): Json {
  const readers = node.depths().workers.filter(({ kind }) => kind === 'reader').length;
  return { mode: 'shared', high_cpu_threads: readers, high_io_threads: 0 };
}

function memoryReport(): Json {
  const { rss, heapUsed, heapTotal, external } = processMemory();
  return {
    active_bytes: heapTotal + external,
    allocated_bytes: heapUsed + external,
    metadata_bytes: 0,
    resident_bytes: rss,
    retained_bytes: rss === undefined ? undefined : Math.max(0, rss - heapTotal - external),
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

function connectionReport(clients: ClientGate): Json {
  const { max, maxPerClient, open } = clients.connections();
  return { open, max, max_per_client: maxPerClient, refused: { ...clients.refusals().counts } };
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
function actorReport(actor: ActorTelemetry, options: ShownOptions): Json | LongObject {
  const { facts, kind, path, state, ...figures } = actor;
  const children = childReports(actor, options);
  const all = { path, kind, state, ...facts, ...figures, children };
  const whole = children instanceof LongList ? LongObject.of : (report: Json) => report;
  if (!options.anonymize) return whole(all);
  const hashedPath = path
    .split('/')
    .map((segment, at) => (at === 2 ? options.shown(segment) : segment))
    .join('/');
  const lastError = actor.lastError === null ? null : { ...actor.lastError, message: 'hidden' };
  return whole({ ...all, path: hashedPath, lastError, recent: [] });
}

/** A few are made and printed at once, which is cheaper. */
function childReports({ children }: ActorTelemetry, options: ShownOptions): unknown[] | LongList {
  const reports: unknown[] = [];
  for (const child of children) {
    if (reports.length === CHILDREN_AT_ONCE) return longList(children, (one) => actorReport(one, options));
    reports.push(actorReport(child, options));
  }
  return reports.some((report) => report instanceof LongObject) ? new LongList(reports) : reports;
}

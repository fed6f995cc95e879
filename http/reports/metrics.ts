/** `GET /metrics`: figures of the process for Prometheus. Source of names: contract, `GET /metrics`. */

import { readdirSync } from 'node:fs';
import type { PlanStatus } from '../../actors/backups/state.js';
import { BUCKET_SECONDS, type Durations } from '../../actors/context/durations.js';
import type { NodeApi } from '../../actors/requests/node-api.js';
import type { LongWork } from '../../actors/runtime/long-works.js';
import type { ActorTelemetry } from '../../actors/runtime/telemetry.js';
import type { SnapshotFigures } from '../../actors/snapshots/snapshot-api.js';
import { DEFAULT_VECTOR, isSingleVector } from '../../protocols/model/collection.js';
import { readSystemFile } from '../../storage/memory/system-file.js';
import { collectionNames } from '../context/collection-stats.js';
import type { RequestCounts, RequestStats } from '../context/request-stats.js';
import { API_VERSION, type DoorServices } from '../context/services.js';
import type { TextBytes } from '../context/text-bytes.js';
import { clusterReplicaCounts, NO_REPLICAS, type ReplicaCounts, withShard, writeCluster } from './cluster-metrics.js';
import { type CollectionSizes, largest, NO_SIZES, SIZES_SHOWN_MAX, takenBy } from './collection-sizes.js';
import { processMemory } from './process-memory.js';
import { labelText, MetricsWriter } from './prometheus.js';
import { isNotFound, nameShower } from './telemetry.js';

export interface MetricsOptions {
  /** Names of collections are replaced by hashes. */
  readonly anonymize: boolean;
  /** Answers are counted by collection, in place of all together: those to requests that name none are left out. */
  readonly perCollection: boolean;
}

/** Figures of one collection. */
interface CollectionFigures {
  readonly snapshots: SnapshotFigures;
  readonly id: string;
  /** The label `id`, as text. */
  readonly idLabels: string;
  readonly points: number;
  readonly segments: number;
  readonly sizes: CollectionSizes;
  readonly indexedVectors: number;
  readonly vectorNames: readonly string[];
  readonly queueLength: number;
  /** Null: it defers no points. */
  readonly deferredPoints: number | null;
  readonly runningOptimizations: number;
  /** State of each shard's replica on this node. */
  readonly replicas: readonly string[];
}

/** Writes the figures in the text exposition format. */
export function* writeMetrics(
  out: TextBytes,
  services: DoorServices,
  { anonymize, perCollection: byCollection }: MetricsOptions,
): LongWork {
  const { node } = services;
  const shown = nameShower(anonymize);
  const collections = yield* collectionFigures(services, shown);
  const replicas = yield* replicasOf(node, collections);
  const writer = new MetricsWriter(services.metricsPrefix, out);
  writeApp(writer, services);
  writeCluster(writer, node.cluster);
  yield;
  yield* writeCollections(writer, collections, replicas);
  writeDoors(writer, services);
  yield* writeRequests(writer, services, byCollection ? shown : null);
  writeEngine(writer, services);
  writeBackups(writer, node.backups.plans);
  writeActors(writer, yield* actorSums(node.telemetry()));
  writeProcess(writer);
}

function* collectionFigures(services: DoorServices, shown: (name: string) => string): LongWork<CollectionFigures[]> {
  const figures: CollectionFigures[] = [];
  for (const name of services.node.listCollections()) {
    const ofOne = figuresOf(services, name, shown(name));
    if (ofOne !== null) figures.push(ofOne);
    yield;
  }
  return figures;
}

/** Null for one that was deleted since. */
function figuresOf({ caches, node }: DoorServices, name: string, id: string): CollectionFigures | null {
  const shown = { id, idLabels: labelText({ id }), snapshots: node.snapshots.figures(name) };
  try {
    const info = node.info(name);
    const optimizations = node.optimizations(name);
    const { vectors } = info.config.params;
    return {
      ...shown,
      points: info.points_count,
      segments: info.segments_count,
      sizes: takenBy(node.stats(name), caches.of(name)),
      indexedVectors: info.indexed_vectors_count,
      vectorNames: isSingleVector(vectors) ? [DEFAULT_VECTOR] : Object.keys(vectors),
      queueLength: info.update_queue.length,
      deferredPoints: info.update_queue.deferred_points ?? null,
      runningOptimizations: optimizations.running.length,
      replicas: [...node.localShards(name).values()].map(({ state }) => state),
    };
  } catch (error) {
    // A damaged one counts as one without a replica that serves.
    return isNotFound(error) ? null : { ...shown, ...NO_FIGURES };
  }
}

const NO_FIGURES: Omit<CollectionFigures, 'id' | 'idLabels' | 'snapshots'> = {
  points: 0,
  segments: 0,
  sizes: NO_SIZES,
  indexedVectors: 0,
  vectorNames: [],
  queueLength: 0,
  deferredPoints: null,
  runningOptimizations: 0,
  replicas: ['Dead'],
};

function writeApp(writer: MetricsWriter, { identity, recoveryMode }: DoorServices): void {
  writer
    .family('app_info', 'gauge', 'information about the server')
    .sample('app_info', { name: 'troupe', version: API_VERSION, troupe_version: identity.version }, 1);
  writer
    .family('app_status_recovery_mode', 'gauge', 'whether the server runs in recovery mode')
    .sample('app_status_recovery_mode', {}, recoveryMode === null ? 0 : 1);
}

/** On a node of its own each shard has one replica. */
function* replicasOf({ cluster }: NodeApi, collections: readonly CollectionFigures[]): LongWork<ReplicaCounts> {
  const state = cluster?.state() ?? null;
  if (state !== null) return yield* clusterReplicaCounts(state);
  let counts: ReplicaCounts | null = null;
  for (const { replicas } of collections) {
    for (const state of replicas) counts = withShard(counts, [state]);
    yield;
  }
  return counts ?? NO_REPLICAS;
}

function* writeCollections(writer: MetricsWriter, collections: readonly CollectionFigures[], replicas: ReplicaCounts): LongWork {
  const { activeMax, activeMin, dead } = replicas;
  const vectors = collections.reduce((sum, collection) => sum + collection.points * collection.vectorNames.length, 0);
  single(writer, 'collections_total', 'number of collections', collections.length);
  single(writer, 'collections_vector_total', 'number of vectors of all collections', vectors);
  single(writer, 'collection_active_replicas_min', 'fewest active replicas of a shard', activeMin);
  single(writer, 'collection_active_replicas_max', 'most active replicas of a shard', activeMax);
  single(writer, 'collection_dead_replicas', 'replicas that do not serve', dead);
  yield* perCollection(writer, collections, 'collection_points', 'number of points', (collection) => collection.points);
  writer.family('collection_vectors', 'gauge', 'number of vectors by name');
  for (const { id, points, vectorNames } of collections) {
    for (const vector of vectorNames) writer.sample('collection_vectors', { collection: id, vector }, points);
    yield;
  }
  yield* perCollection(
    writer,
    collections,
    'collection_indexed_vectors',
    'vectors in a graph, in lists or in an inverted index',
    (collection) => collection.indexedVectors,
  );
  yield* perCollection(writer, collections, 'collection_segments', 'number of segments', (collection) => collection.segments);
  yield* writeSizes(writer, collections);
  yield* perCollection(
    writer,
    collections,
    'collection_running_optimizations',
    'optimizations under way',
    (collection) => collection.runningOptimizations,
  );
  yield* perCollection(
    writer,
    collections,
    'collection_update_queue_length',
    'updates that wait to be applied',
    (collection) => collection.queueLength,
  );
  const deferring = collections.filter((collection) => collection.deferredPoints !== null);
  if (deferring.length > 0)
    yield* perCollection(
      writer,
      deferring,
      'collection_deferred_points',
      'points that reads see once they are indexed',
      (collection) => collection.deferredPoints ?? 0,
    );
  yield* perCollection(
    writer,
    collections,
    'snapshot_creation_running',
    'snapshots that are being made',
    ({ snapshots }) => snapshots.creating,
  );
  yield* perCollection(writer, collections, 'snapshot_recovery_running', 'restores under way', ({ snapshots }) => snapshots.restoring);
  writer.family('snapshot_created_total', 'counter', 'snapshots made');
  for (const { idLabels, snapshots } of collections) {
    writer.labelled('snapshot_created_total', idLabels, snapshots.created);
    yield;
  }
}

/** Collections that are not among the largest have one sample together. */
function* writeSizes(writer: MetricsWriter, collections: readonly CollectionFigures[]): LongWork {
  const sized = collections.map(({ idLabels, sizes }) => ({ idLabels, ...sizes }));
  const { others, shown } = largest(sized, SIZES_SHOWN_MAX);
  yield;
  const families = [
    ['collection_disk_bytes', 'gauge', 'files of a collection: log, database and segments', ({ diskBytes }: CollectionSizes) => diskBytes],
    ['collection_memory_bytes', 'gauge', 'memory of the segments of a collection', ({ memoryBytes }: CollectionSizes) => memoryBytes],
    ['collection_filter_cache_bytes', 'gauge', 'what readers keep of filters', ({ cache }: CollectionSizes) => cache.bytes],
    ['collection_filter_cache_hits_total', 'counter', 'filters that a reader knew, by segment', ({ cache }: CollectionSizes) => cache.hits],
    [
      'collection_filter_cache_misses_total',
      'counter',
      'filters that a reader did not know, by segment',
      ({ cache }: CollectionSizes) => cache.misses,
    ],
  ] as const;
  for (const [name, type, help, figure] of families) {
    writer.family(name, type, help);
    for (const collection of shown) writer.labelled(name, collection.idLabels, figure(collection));
    if (others !== null) writer.sample(name, { id: '<others>' }, figure(others));
    yield;
  }
}

function writeDoors(writer: MetricsWriter, { audit, clients, traces }: DoorServices): void {
  if (traces !== null) {
    const { lost, sent } = traces.counts();
    const name = 'trace_spans_total';
    writer.family(name, 'counter', 'spans of traces').sample(name, { outcome: 'sent' }, sent).sample(name, { outcome: 'lost' }, lost);
  }
  if (audit !== null) {
    const { lost, written } = audit.counts();
    const name = 'audit_records_total';
    writer
      .family(name, 'counter', 'records of the audit log')
      .sample(name, { state: 'written' }, written)
      .sample(name, { state: 'lost' }, lost);
  }
  if (clients !== null) {
    const { max, open } = clients.connections();
    writer.family('connections_open', 'gauge', 'connections of clients, over REST and gRPC').sample('connections_open', {}, open);
    writer.family('connections_max', 'gauge', 'connections of clients that may be open').sample('connections_max', {}, max);
    const name = 'refused_connections_total';
    const refused = writer.family(name, 'counter', 'connections of clients that were refused, for their address or as one too many');
    for (const [reason, count] of Object.entries(clients.refusals().counts)) refused.sample(name, { reason }, count);
  }
}

/** shown: what to show of the name of a collection, by which answers are counted; null: all are counted together. */
function* writeRequests(
  writer: MetricsWriter,
  { grpcStats, node, stats }: DoorServices,
  shown: ((name: string) => string) | null,
): LongWork {
  const nameOf = shown === null ? null : collectionNames(node);
  const labelled = <Endpoint>(of: RequestStats<Endpoint>, labelsOf: (endpoint: Endpoint) => LabelledDurations['labels']) => {
    const withLabels = (counts: RequestCounts<Endpoint>[], more: LabelledDurations['labels']): LabelledDurations[] =>
      counts.map(({ durations, endpoint, status }) => ({ labels: { ...labelsOf(endpoint), status: String(status), ...more }, durations }));
    if (shown === null || nameOf === null) return withLabels(of.counts(), {});
    return of.countsByCollection(nameOf).flatMap(([collection, counts]) => withLabels(counts, { collection: shown(collection) }));
  };
  yield* writeResponses(
    writer,
    'rest',
    labelled(stats, ({ method, path }) => ({ method, endpoint: path })),
  );
  yield* writeResponses(
    writer,
    'grpc',
    labelled(grpcStats, (endpoint) => ({ endpoint: `/${endpoint}` })),
  );
}

interface LabelledDurations {
  readonly labels: Readonly<Record<string, string>>;
  readonly durations: Durations;
}

function* writeResponses(writer: MetricsWriter, door: 'rest' | 'grpc', counts: readonly LabelledDurations[]): LongWork {
  writer.family(`${door}_responses_total`, 'counter', 'answered requests');
  for (const { labels, durations } of counts) writer.sample(`${door}_responses_total`, labels, durations.count);
  const gauges = [
    ['avg', 'mean', (d: Durations) => d.totalMs / d.count],
    ['min', 'shortest', (d: Durations) => d.minMs],
    ['max', 'longest', (d: Durations) => d.maxMs],
  ] as const;
  for (const [name, word, value] of gauges) {
    const family = `${door}_responses_${name}_duration_seconds`;
    writer.family(family, 'gauge', `${word} time to answer`);
    for (const { labels, durations } of counts) writer.sample(family, labels, value(durations) / 1000);
    yield;
  }
  const family = `${door}_responses_duration_seconds`;
  writer.family(family, 'histogram', 'time to answer');
  for (const { labels, durations } of counts) {
    writer.histogram(family, labels, BUCKET_SECONDS, durations.buckets, durations.totalMs / 1000);
    yield;
  }
}

function writeEngine(writer: MetricsWriter, { node }: DoorServices): void {
  const { waitingReads, waitingReadsMax, ...depths } = node.depths();
  // A thread that nothing has needed yet is not down.
  const workers = depths.workers.filter(({ begun }) => begun);
  single(writer, 'engine_waiting_reads', 'reads that wait for a worker', waitingReads);
  single(writer, 'engine_waiting_reads_max', 'reads that may wait', waitingReadsMax);
  const figures = [
    ['engine_worker_up', 'gauge', 'whether the worker takes requests', (worker: (typeof workers)[number]) => (worker.up ? 1 : 0)],
    ['engine_worker_queue_depth', 'gauge', 'requests the worker holds', (worker: (typeof workers)[number]) => worker.depth],
    [
      'engine_worker_queue_bytes',
      'gauge',
      'bytes of the requests the worker holds',
      (worker: (typeof workers)[number]) => worker.queuedBytes,
    ],
    ['engine_worker_processed_total', 'counter', 'requests the worker answered', (worker: (typeof workers)[number]) => worker.processed],
    ['engine_worker_restarts_total', 'counter', 'times the worker was replaced', (worker: (typeof workers)[number]) => worker.restarts],
  ] as const;
  for (const [name, type, help, value] of figures) {
    writer.family(name, type, help);
    for (const worker of workers) writer.sample(name, { worker: worker.name, kind: worker.kind }, value(worker));
  }
}

function writeBackups(writer: MetricsWriter, plans: readonly PlanStatus[]): void {
  if (plans.length === 0) return;
  const figures = [
    [
      'backup_last_success_timestamp_seconds',
      'gauge',
      'when a plan was last carried out without a failure',
      (status: PlanStatus) => inSeconds(status.lastSuccessMs),
    ],
    ['backup_next_timestamp_seconds', 'gauge', 'when a plan has its next turn', (status: PlanStatus) => inSeconds(status.nextMs)],
    ['backup_failures_total', 'counter', 'turns of a plan that had a failure', (status: PlanStatus) => status.failures],
    ['backup_last_duration_seconds', 'gauge', 'how long the last turn took', (status: PlanStatus) => inSeconds(status.last?.durationMs)],
    ['backup_last_size_bytes', 'gauge', 'size of the snapshots of the last turn', (status: PlanStatus) => status.last?.bytes],
  ] as const;
  for (const [name, type, help, value] of figures) {
    writer.family(name, type, help);
    for (const status of plans) {
      const figure = value(status);
      if (figure !== undefined) writer.sample(name, { plan: status.plan.name }, figure);
    }
  }
}

/** Undefined: not known. */
function inSeconds(milliseconds: number | null | undefined): number | undefined {
  return milliseconds == null ? undefined : milliseconds / 1000;
}

const ACTOR_FIGURES = [
  ['actor_count', 'gauge', 'actors', () => 1],
  ['actor_mailbox_depth', 'gauge', 'messages in mailboxes', (actor: ActorTelemetry) => actor.mailbox.depth],
  ['actor_messages_processed_total', 'counter', 'messages processed', (actor: ActorTelemetry) => actor.processed],
  ['actor_restarts_total', 'counter', 'restarts after a failure', (actor: ActorTelemetry) => actor.restarts],
  ['actor_busy_refusals_total', 'counter', 'messages refused by full mailboxes', (actor: ActorTelemetry) => actor.busyRefusals],
] as const;

type ActorFigure = (typeof ACTOR_FIGURES)[number];

/** Sums by kind of actor, in the order of `ACTOR_FIGURES`: a label per actor would be one series per collection and more. */
function* actorSums(root: ActorTelemetry, sums = new Map<string, number[]>()): LongWork<ReadonlyMap<string, readonly number[]>> {
  const { children, kind } = root;
  const ofKind = sums.get(kind) ?? ACTOR_FIGURES.map(() => 0);
  sums.set(kind, ofKind);
  for (let at = 0; at < ACTOR_FIGURES.length; at++) ofKind[at] = (ofKind[at] as number) + (ACTOR_FIGURES[at] as ActorFigure)[3](root);
  yield;
  for (const child of children) yield* actorSums(child, sums);
  return sums;
}

function writeActors(writer: MetricsWriter, sums: ReadonlyMap<string, readonly number[]>): void {
  ACTOR_FIGURES.forEach(([name, type, help], at) => {
    writer.family(name, type, help);
    for (const [kind, ofKind] of sums) writer.sample(name, { kind }, ofKind[at] as number);
  });
}

function writeProcess(writer: MetricsWriter): void {
  const { rss, heapUsed, external } = processMemory();
  if (rss !== undefined) single(writer, 'memory_resident_bytes', 'resident memory', rss);
  single(writer, 'memory_allocated_bytes', 'memory of the JavaScript heap and of buffers', heapUsed + external);
  const { user, system } = process.cpuUsage();
  writer
    .family('process_cpu_seconds_total', 'counter', 'processor time used')
    .sample('process_cpu_seconds_total', {}, (user + system) / 1e6);
  const threads = /^Threads:\s+(\d+)/m.exec(readSystemFile('/proc/self/status'))?.[1];
  if (threads !== undefined) single(writer, 'process_threads', 'threads', Number(threads));
  const descriptors = countProc('/proc/self/fd');
  if (descriptors !== undefined) single(writer, 'process_open_fds', 'open file descriptors', descriptors);
}

function single(writer: MetricsWriter, name: string, help: string, value: number): void {
  writer.family(name, 'gauge', help).sample(name, {}, value);
}

function* perCollection(
  writer: MetricsWriter,
  collections: readonly CollectionFigures[],
  name: string,
  help: string,
  value: (collection: CollectionFigures) => number,
): LongWork {
  writer.family(name, 'gauge', help);
  for (const collection of collections) {
    writer.labelled(name, collection.idLabels, value(collection));
    yield;
  }
}

function countProc(path: string): number | undefined {
  try {
    return readdirSync(path).length;
  } catch {
    return undefined;
  }
}

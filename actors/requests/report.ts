/**
 * Builds the API's view of a collection from its configuration, its figures and its optimizer. Source: API reference, `GET
 * /collections/{name}` and `…/optimizations`.
 */

import type { ShardFigures } from '../../cluster/data-messages.js';
import type { ErrorFacts } from '../../protocols/errors.js';
import type { PeerId, ReplicaState, ShardId } from '../../protocols/model/cluster.js';
import type { CollectionConfig, FieldSchema } from '../../protocols/model/collection.js';
import type { OptimizationsView, OptimizationView, SegmentReport } from '../../protocols/model/optimizations.js';
import type { ReplicaStats } from '../../storage/threads/messages.js';
import { NO_OVERWRITE, type OptimizersOverwrite, ownConfig } from '../context/own-config.js';
import type { NodeServices } from '../context/services.js';
import type { StateAlone } from '../context/view.js';
import { type Decision, decideOptimization } from '../optimizer/decide.js';
import { MERGE_QUIET_MS, type PlanFacts, type PlannedBuild, planOptimization } from '../optimizer/plan.js';
import type { FinishedBuild, OptimizerStatus, RunningBuild, SourceSegment } from '../optimizer/status.js';
import type { Clock } from '../runtime/ports.js';
import { sizesOf } from './limits/collection-limits.js';

/** One local replica, as the reports need it. */
export interface ReplicaFacts {
  readonly shardId: ShardId;
  /** State of the replica on this node, in the API's words. */
  readonly state: StateAlone;
  readonly reason: ErrorFacts | null;
  readonly stats: ReplicaStats | null;
  /** Null while it has no optimizer. */
  readonly optimizer: OptimizerStatus | null;
  /** See `ReplicaEntry`. */
  readonly openedInMs?: number | undefined;
}

export interface ReportFacts {
  readonly nowMs: number;
  /** The date at that moment. */
  readonly dateMs: number;
  readonly cpus: number;
  /** See `PlanFacts`. */
  readonly readers?: number;
  /** See `PlanFacts`. */
  readonly resultBytesMax: number;
  /** The node's id in its cluster: replicas of a shard have segments of their own. Default: 0. */
  readonly peer?: PeerId;
  /** What the node's settings put before the collection's. Default: nothing. */
  readonly overwrite?: OptimizersOverwrite;
}

type ReportServices = Pick<NodeServices, 'assignments' | 'cpus' | 'optimizersOverwrite' | 'readers' | 'room'>;

/** As a node's optimizers know them, so that its reports show what these will do. */
export function reportFacts(
  { assignments, cpus, optimizersOverwrite: overwrite, readers, room }: ReportServices,
  clock: Clock,
): ReportFacts {
  return {
    nowMs: clock.nowMs(),
    dateMs: clock.dateMs(),
    cpus,
    readers,
    resultBytesMax: room.resultBytesMax,
    peer: assignments.peerId,
    overwrite,
  };
}

/** The agreed state of the replicas of a cluster's collection. */
export interface AgreedFacts {
  /** Number of replicas whose figures are expected. */
  readonly wanted: number;
  /** The states of each shard's replicas. */
  readonly shards: readonly (readonly ReplicaState[])[];
  /** See `CollectionRecord.payloadIndexes`. */
  readonly indexes: ReadonlyMap<string, FieldSchema>;
}

/** `CollectionInfo` of the API. */
export interface CollectionView {
  readonly status: 'green' | 'yellow' | 'grey' | 'red';
  readonly optimizer_status: 'ok' | { readonly error: string };
  readonly indexed_vectors_count: number;
  readonly points_count: number;
  readonly segments_count: number;
  readonly config: CollectionConfig;
  readonly payload_schema: { readonly [field: string]: { readonly data_type: string; readonly params?: object; readonly points: number } };
  /** `deferred_points`: where the collection defers points. */
  readonly update_queue: { readonly length: number; readonly deferred_points?: number };
}

/** A build and the numbers that its segments have in their replica. */
export interface BuildView {
  readonly view: OptimizationView;
  readonly segmentIds: readonly number[];
}

/** The view of a collection from its local replicas. agreed: null on a node without a cluster. */
export function collectionView(
  config: CollectionConfig,
  replicas: readonly ReplicaFacts[],
  facts: ReportFacts,
  agreed: AgreedFacts | null = null,
): CollectionView {
  const figures = replicas.map((replica) => shardFigures(config, replica, facts));
  return viewOfFigures(config, figures, agreed);
}

/** The view of a collection from figures of one replica of each shard, on any node. agreed: null on a node without a cluster. */
export function viewOfFigures(config: CollectionConfig, figures: readonly ShardFigures[], agreed: AgreedFacts | null): CollectionView {
  const error = figures.find((shard) => shard.error !== null)?.error ?? null;
  return {
    status: agreed === null ? together(figures) : statusInCluster(figures, agreed),
    optimizer_status: error === null ? 'ok' : { error },
    indexed_vectors_count: sum(figures.map((shard) => shard.indexedVectors)),
    points_count: sum(figures.map((shard) => shard.points)),
    segments_count: sum(figures.map((shard) => shard.segments)),
    config,
    payload_schema: payloadSchema(figures, agreed?.indexes ?? NO_INDEXES),
    update_queue: {
      length: sum(figures.map((shard) => shard.queuedOperations)),
      ...(config.optimizer_config.prevent_unoptimized === true
        ? { deferred_points: sum(figures.map((shard) => shard.deferredPoints)) }
        : {}),
    },
  };
}

/** A replica's part of its collection's figures. */
export function shardFigures(config: CollectionConfig, replica: ReplicaFacts, facts: ReportFacts): ShardFigures {
  const { optimizer, reason, state, stats } = replica;
  const error = optimizer?.error ?? (state === 'Dead' ? reason : null);
  const waits = optimizer?.waitsFor ?? null;
  return {
    status: replicaStatus(config, replica, facts),
    error: error?.detail ?? waits,
    points: stats?.points ?? 0,
    deferredPoints: stats?.deferredPoints ?? 0,
    ...(stats === null ? {} : storedBytes(stats)),
    indexedVectors: sum((stats?.segments ?? []).map((segment) => segment.indexedVectors)),
    segments: stats?.segments.length ?? 0,
    queuedOperations: stats?.queuedOperations ?? 0,
    fields: [...(stats?.fields ?? [])].map(([field, schema]) => ({ field, schema, points: stats?.fieldPoints.get(field) ?? 0 })),
  };
}

/** Bytes of live points. */
function storedBytes(stats: ReplicaStats): Pick<ShardFigures, 'payloadBytes' | 'vectorBytes'> {
  const { payloadBytes, vectorBytes } = sizesOf(stats);
  return { payloadBytes, vectorBytes };
}

export function optimizationsView(config: CollectionConfig, replicas: readonly ReplicaFacts[], facts: ReportFacts): OptimizationsView {
  const each = replicas.map((replica) => replicaOptimizations(config, replica, facts));
  const queuedSources = each.flatMap(({ queued }) => queued).flatMap(({ segments }) => segments);
  const idle = each.flatMap((one) => one.idle);
  return {
    summary: {
      queued_optimizations: sum(each.map(({ queued }) => queued.length)),
      queued_segments: queuedSources.length,
      queued_points: sum(queuedSources.map((source) => source.points_count)),
      idle_segments: idle.length,
    },
    running: each.flatMap(({ running }) => running),
    queued: each.flatMap(({ queued }) => queued),
    completed: each
      .flatMap(({ completed }) => completed)
      .sort((one, other) => other.finishedMs - one.finishedMs)
      .map(({ view }) => view),
    idle_segments: idle,
  };
}

/** A replica's part of the optimizations. Each shard numbers its segments from the start, so reports combine both numbers. */
function replicaOptimizations(config: CollectionConfig, replica: ReplicaFacts, facts: ReportFacts) {
  const { optimizer, shardId, stats } = replica;
  const builds = optimizer?.builds ?? [];
  const queued = queuedPlans(config, replica, facts).map((plan) => ({ plan, sources: sourcesOf(plan, stats) }));
  const busy = new Set([...builds, ...queued].flatMap((build) => build.sources.map((source) => source.id)));
  const idle = (stats?.segments ?? [])
    .filter((segment) => !busy.has(segment.id))
    .map((segment) => ({ id: segment.id, points: segment.rows - segment.deleted }));
  const view = (source: SourceSegment) => segmentView(source, shardId, facts);
  return {
    running: builds.map((build) => runningView(build, facts, shardId)),
    queued: queued.map(({ plan, sources }) => ({ optimizer: plan.reason, segments: sources.map(view) })),
    completed: (optimizer?.finished ?? []).map((build) => ({ finishedMs: build.finishedMs, view: finishedView(build, facts, shardId) })),
    idle: idle.map(view),
  };
}

/**
 * The status in a cluster. In addition to `together`: red if all replicas of a shard are Dead or gone with their peers; yellow if one is
 * not Active yet, or is Dead while others serve.
 */
function statusInCluster(figures: readonly ShardFigures[], { shards, wanted }: AgreedFacts): CollectionView['status'] {
  if (shards.some((states) => states.every((state) => state === 'Dead'))) return 'red';
  const here = figures.length === 0 && wanted === 0 ? 'green' : together(figures);
  if (here === 'red') return 'red';
  return figures.length < wanted || shards.flat().some((state) => state !== 'Active' && state !== 'Listener') ? 'yellow' : here;
}

/**
 * The status of a collection by its replicas:
 *
 * - red: a replica is Dead, or its optimizer failed;
 * - yellow: a replica is being opened or filled, updates wait to be applied, or the optimizer works or will;
 * - grey: there is work for the optimizer, but it is off;
 * - green: nothing to do.
 */
function together(figures: readonly ShardFigures[]): CollectionView['status'] {
  const statuses = new Set(figures.map(({ status }) => status));
  if (statuses.has('red')) return 'red';
  if (statuses.has('yellow') || statuses.size === 0) return 'yellow';
  return statuses.has('grey') ? 'grey' : 'green';
}

/** The status of one replica. config: null if it cannot be read. */
export function replicaStatus(config: CollectionConfig | null, replica: ReplicaFacts, facts: ReportFacts): CollectionView['status'] {
  if (config === null || replica.state === 'Dead' || (replica.optimizer?.error ?? null) !== null) return 'red';
  const decision = decisionOf(config, replica, facts);
  if (isBusy(replica) || hasWork(decision)) return 'yellow';
  return decision.kind === 'off' ? 'grey' : 'green';
}

function isBusy(replica: ReplicaFacts): boolean {
  const { optimizer, state, stats } = replica;
  return state === 'Initializing' || (stats?.queuedOperations ?? 0) > 0 || (optimizer?.builds.length ?? 0) > 0;
}

function hasWork(decision: Decision): boolean {
  return decision.kind === 'build' || (decision.kind === 'rest' && decision.pending);
}

/** The optimizer's next decision. Computed for each request, so that the answer includes the last acknowledged write. */
function decisionOf(config: CollectionConfig, replica: ReplicaFacts, facts: ReportFacts): Decision {
  if (replica.stats === null) return { kind: 'rest', wakeAfterMs: null, pending: false };
  return decideOptimization(replica.stats, ownConfig(config, facts.overwrite ?? NO_OVERWRITE), planFacts(replica, facts));
}

function planFacts({ optimizer }: ReplicaFacts, facts: ReportFacts): PlanFacts {
  return { ...facts, runningSources: new Set((optimizer?.builds ?? []).flatMap((build) => build.plan.segments)) };
}

const NO_INDEXES: AgreedFacts['indexes'] = new Map();

/** agreed: those that no shard may have yet. */
function payloadSchema(figures: readonly ShardFigures[], agreed: AgreedFacts['indexes']): CollectionView['payload_schema'] {
  const schema: Record<string, { data_type: string; params?: object; points: number }> = {};
  const wanted = { fields: [...agreed].map(([field, its]) => ({ field, points: 0, schema: its })) };
  for (const { fields } of [wanted, ...figures]) {
    for (const {
      field,
      points: own,
      schema: { params, type },
    } of fields) {
      const points = (Object.hasOwn(schema, field) ? (schema[field]?.points ?? 0) : 0) + own;
      const value = params === undefined ? { data_type: type, points } : { data_type: type, params, points };
      // A field may be called `__proto__`.
      Object.defineProperty(schema, field, { value, enumerable: true, configurable: true, writable: true });
    }
  }
  return schema;
}

/** Builds of a replica, newest first, with the numbers that its segments have in it. */
export function buildViews({ optimizer, shardId }: ReplicaFacts, facts: ReportFacts): BuildView[] {
  const report = (build: RunningBuild, view: OptimizationView) => ({ view, segmentIds: build.sources.map(({ id }) => id) });
  const running = (optimizer?.builds ?? []).map((build) => report(build, runningView(build, facts, shardId)));
  return [...running, ...(optimizer?.finished ?? []).map((finished) => report(finished.build, finishedView(finished, facts, shardId)))];
}

/** The next build: it waits for threads or memory, for an upload to pause (then as it would be now), or for optimizers to be on. */
function queuedPlans(config: CollectionConfig, replica: ReplicaFacts, facts: ReportFacts): PlannedBuild[] {
  const decision = decisionOf(config, replica, facts);
  if (decision.kind === 'build') return [decision.plan];
  if (replica.stats === null || (decision.kind === 'rest' && !decision.pending)) return [];
  const later = planFacts(replica, { ...facts, nowMs: facts.nowMs + MERGE_QUIET_MS });
  const plan = planOptimization(replica.stats, ownConfig(config, facts.overwrite ?? NO_OVERWRITE), later);
  return plan.kind === 'build' ? [plan] : [];
}

function sourcesOf(plan: PlannedBuild, stats: ReplicaStats | null): SourceSegment[] {
  const segments = (stats?.segments ?? []).filter((segment) => plan.segments.includes(segment.id));
  return segments.map((segment) => ({ id: segment.id, points: segment.rows - segment.deleted }));
}

function runningView(build: RunningBuild, facts: ReportFacts, shardId: ShardId): OptimizationView {
  const { progress, startedMs } = build;
  const counts = progress === null ? {} : { done: Math.round(progress.done), total: Math.round(progress.total) };
  return {
    uuid: uuidOf(startedMs, ofShard(shardId, build.id), facts),
    optimizer: build.plan.reason,
    status: 'optimizing',
    segments: build.sources.map((source) => segmentView(source, shardId, facts)),
    progress: {
      name: progress?.stage ?? 'waiting',
      started_at: iso(startedMs, facts),
      duration_sec: (facts.nowMs - startedMs) / 1000,
      ...counts,
    },
  };
}

function finishedView({ build, error, finishedMs }: FinishedBuild, facts: ReportFacts, shardId: ShardId): OptimizationView {
  const { startedMs } = build;
  return {
    uuid: uuidOf(startedMs, ofShard(shardId, build.id), facts),
    optimizer: build.plan.reason,
    status: error === null ? 'done' : { error: error.detail },
    segments: build.sources.map((source) => segmentView(source, shardId, facts)),
    progress: {
      name: build.plan.reason,
      started_at: iso(startedMs, facts),
      finished_at: iso(finishedMs, facts),
      duration_sec: (finishedMs - startedMs) / 1000,
    },
  };
}

function segmentView(source: SourceSegment, shardId: ShardId, facts: ReportFacts): SegmentReport {
  return { uuid: segmentUuid(shardId, source.id, facts), points_count: source.points };
}

/** Names a segment in reports. */
export function segmentUuid(shardId: ShardId, segmentId: number, { peer }: Pick<ReportFacts, 'peer'>): string {
  return uuidOf(0, ofShard(shardId, segmentId), { peer });
}

/** A number that is unique over all shards: segments and builds have 32 bits, shards 16. */
function ofShard(shardId: ShardId, number: number): number {
  return (shardId % 0x1_0000) * 0x1_0000_0000 + number;
}

/** A UUID made of two numbers and the node's id, for an object that has no UUID of its own. */
function uuidOf(high: number, low: number, { peer = 0 }: Pick<ReportFacts, 'peer'>): string {
  const hex = (number: number) => (number % 0x1000).toString(16).padStart(3, '0');
  const first = high.toString(16).padStart(12, '0');
  const second = low.toString(16).padStart(12, '0');
  return `${first.slice(0, 8)}-${first.slice(8, 12)}-8${hex(Math.floor(peer / 0x1000))}-8${hex(peer)}-${second}`;
}

/** The date of a moment. */
function iso(timeMs: number, { dateMs, nowMs }: ReportFacts): string {
  return new Date(dateMs + timeMs - nowMs).toISOString();
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

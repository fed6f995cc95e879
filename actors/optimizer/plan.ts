/**
 * What a replica's optimizer does next: a pure decision over the replica's segments.
 *
 * Every segment costs every query another walk (or, without a graph, a scan), and every build costs CPU, so the policy
 * collects first and builds once:
 *
 * 1. *repair*: a sealed segment whose graph, lists, codes or inverted index failed their checksum is built again from its vectors, at once.
 * 2. *fieldIndex*: a sealed segment that lacks the index of a field gets it, at once; the segment stays.
 * 3. *indexing*: due when the rows without a graph hold more than `indexing_threshold` KB of vectors (0: never).
 *    While an upload runs (a write within the last second, or the last eighth of the upload) it waits, unless those rows reach 32 thresholds and half of
 *    what is indexed already: a bulk upload then ends in one build instead of many, and a stream that never pauses
 *    scans no more than that. A build takes all rows without a graph, and folds in sealed segments from the smallest
 *    up while each is at most twice what the build has gathered. So a point's segment grows by half or more
 *    each time the point is built again: O(log n) builds per point. Deferred rows, which nobody sees before they are built,
 *    wait for no pause: what arrives during a build is the next one.
 *    A paced stream, which builds keep up with (`PACED_BYTES_PER_CPU`, streams that are as fast counted together), waits for nothing either, as searches meanwhile scan
 *    what has no graph: its rows are built alone, beside any other build, as soon as they exceed the threshold.
 *    What then stays below the threshold, an eighth of it and 2,000 rows at least, is indexed, too, beside rows that have a graph: after 5 quiet seconds, or when it has
 *    gathered for a minute, and with it segments of up to four times its size. Each search would scan it, which takes longer than a walk of all the rest.
 * 4. *reindex*: a sealed segment whose graphs were built with other settings (`m`, `ef_construct`, `payload_m` and the fields
 *    it is for), with a graph where lists on disk are wanted or the other way round, or whose codes were made by another quantization, than the collection has now is built again, at once and
 *    alone; not while indexing is off (threshold 0).
 * 5. *vacuum*: a segment of `vacuum_min_vector_number` rows or more, `deleted_threshold` of them deleted.
 * 6. *seal*: full appendable segments that are not to be indexed (threshold 0, or not reached) become sealed
 *    segments without a graph, so that LMDB stays small; not the first one of a replica alone, which is small.
 * 7. *merge*: after 5 quiet seconds, more sealed segments than `default_segment_number` (0: CPUs): the smallest ones,
 *    three or more, unless the largest of them is over four times the others together (copying it would cost
 *    more than the walk it saves). Where the collection names a number, full appendable segments count too, however small,
 *    and are merged among themselves. While a paced stream runs, eight segments or more, each of them as large as all smaller
 *    ones together at most, are merged at once, one such merge at a time.
 * 8. *merge* in a long pause: the rows without a graph join the smallest segment of up to a thousand times their size,
 *    and the sealed segments that are left are merged into one, from the smallest up while each is at most sixteen times the others together (but
 *    where the collection names a number). Each segment less saves every search a walk or a scan. The pause
 *    is 5 seconds and one for each 25 MB of vectors that are built again, so that what comes in steps does not keep a CPU busy.
 *
 * Where the collection names a number, *indexing* makes as many segments as it takes to have so many, none smaller than `indexing_threshold`.
 * Otherwise it makes as few as it can.
 *
 * No result exceeds `max_segment_size` KB of vectors (null: 1.5 GB) or what one 4 GiB memory holds with scratch for each reader. A single source
 * beyond that (other settings of graphs, an added vector, more readers than on the machine that built it, a lower `max_segment_size`) is built alone, into
 * as many segments as it takes; a lower `max_segment_size` makes no segment smaller than `indexing_threshold`, and is no reason to build by itself.
 * Where memory is short results are smaller (`resultBytesMax`).
 * While a build runs, its sources are left alone, and besides it only field indexes and an upload that outgrew 32 thresholds start.
 * Source of the rules: `Optimizers` of the API's reference; the figures are ours.
 */

import type { CollectionConfig } from '../../protocols/model/collection.js';
import { listedVector, vectorsByName } from '../../protocols/model/collection.js';
import { quantizationSetting } from '../../storage/builder/quantization-settings.js';
import { reservedPlans } from '../../storage/builder/reserved-plans.js';
import {
  graphSettings,
  indexingThresholdBytes,
  isIndexed,
  isMadeFor,
  LAYERS_MAX,
  subgraphSetting,
} from '../../storage/segment/graph-settings.js';
import { itemBytes, segmentLayout, type VectorPlan } from '../../storage/segment/layout.js';
import { vectorPlans } from '../../storage/segment/plans.js';
import type { ReplicaStats, SegmentStats } from '../../storage/threads/messages.js';
import { nearRowsBytes } from '../../vectors/maker-places.js';

export type BuildReason = 'indexing' | 'merge' | 'reindex' | 'vacuum' | 'repair' | 'fieldIndex' | 'seal';

export type OptimizationPlan =
  /** Nothing to do now. `waitingFor`: work that waits for the upload to pause; look again after `wakeAfterMs`. */
  | { readonly kind: 'none'; readonly wakeAfterMs?: number; readonly waitingFor?: BuildReason }
  | {
      readonly kind: 'build';
      readonly reason: BuildReason;
      /** Sources, ascending. */
      readonly segments: readonly number[];
      readonly plan: 'segment' | 'fieldIndex';
      readonly missingFields: readonly string[];
      readonly withGraph: boolean;
      /** Segments that it makes of its sources: 1, or more where they do not fit in one. */
      readonly results: number;
      /** Memory that it may need beside that of its sources. */
      readonly bytes: number;
      /** It runs beside a stream of writes and other builds, and leaves half of the CPUs to them. */
      readonly beside?: true;
      /** Nothing is missing without it: searches are the quicker for it. */
      readonly optional?: true;
    };

export type PlannedBuild = Extract<OptimizationPlan, { kind: 'build' }>;

export interface PlanFacts {
  readonly nowMs: number;
  readonly cpus: number;
  /** Readers that a segment's memory has scratch for. Default: as many as CPUs. */
  readonly readers?: number;
  /** The last build whose results did not fit in a memory although they should have, with the configuration that is in force. */
  readonly tooLarge?: TooLargeBuild | null;
  /** Sources of builds that run. */
  readonly runningSources: ReadonlySet<number>;
  /** One of them is a merge. Default: none is. */
  readonly isMerging?: boolean;
  /** Since when the rows that have no graph, and are no sources of builds, have gathered. Default: it is not known. */
  readonly gatheringSinceMs?: number;
  /** Bytes of vectors a second that come to the node for this replica and others as fast (`NodePace`). Default: what this one has gathered. */
  readonly paceBytesPerSecond?: number;
  /** The most bytes of vectors that a result of several segments should have where memory is short. Default: any. */
  readonly resultBytesMax?: number;
}

/** A build that was given up because one of its results was too large. */
export interface TooLargeBuild {
  /** Sources, ascending. */
  readonly segments: readonly number[];
  readonly results: number;
}

/** An upload runs until this long after its last write, at most. */
export const QUIET_MS = 1000;
/** One of rows that are to be indexed has paused sooner, if it is short: when nothing came for a part of the time in which they have gathered. */
const PAUSE_SHARE = 1 / 8;
const PAUSE_MS_MIN = 300;
/** Merging is not urgent: it waits longer. */
export const MERGE_QUIET_MS = 5000;
/** Unindexed bytes, in thresholds, beyond which indexing waits for no pause. */
export const BUSY_THRESHOLDS = 32;

/** Bytes of vectors a second, for each CPU of the node, that builds of its streams keep up with on half of the CPUs, merges included. */
const PACED_BYTES_PER_CPU = 1.25e6;
/** Rows of a stream gather for so long at least. */
export const PACED_GATHER_MS = 4000;
/** Segments that a merge beside a stream takes at least: with four, builds of a stream took 1.2 times the CPU; with twelve, by a model, a search walks two segments more. */
const STREAM_MERGE_MIN = 8;

/** Rows below the threshold wait for so long without a write, or gather for so long, until they are indexed beside others. */
const REST_QUIET_MS = 5000;
const REST_GATHER_MS = 60_000;
/** Fewer are scanned about as soon as a graph of their own is walked. */
const REST_ROWS_MIN = 2000;
/** Of the threshold. */
const REST_SHARE = 1 / 8;
/** Then there is time to join them to a larger segment, so that searches walk one graph. */
const REST_FOLD_RATIO = 4;

/** Of a segment to the rows without a graph that join it. */
const JOIN_REST_RATIO = 1000;
/** Of a sealed segment to what else is joined. */
const JOIN_RATIO = 16;
/** Milliseconds without a write that a byte of vectors waits for, beside `MERGE_QUIET_MS`, before it is built again only to have fewer segments. */
const JOIN_QUIET_MS_PER_BYTE = 1000 / 25e6;

const SEGMENT_BYTES_MAX = 1.5e9;
/** A memory holds 4 GiB; some is left for readers that are added. */
const MEMORY_BYTES_PLANNED = 3.75 * 2 ** 30;
/** Of one build. */
const RESULTS_MAX = 64;
/** Result, codes, and vectors of half the size for the library. */
const VECTORS_FACTOR = 1.75;
/** Values of an indexed field of a row, while the index is built. */
const FIELD_ROW_BYTES = 100;
const FOLD_RATIO = 2;
const MERGE_RATIO = 4;
/** The first segment of a replica, which lies beside those of others; sealed it would have a memory of its own. */
const SEAL_BYTES_MIN = 2 ** 20;
/** Full appendable segments that are sealed without waiting for a pause. */
const BUSY_SEALS = 4;

/** The next step for a replica. */
export function planOptimization(stats: ReplicaStats, config: CollectionConfig, facts: PlanFacts): OptimizationPlan {
  const world = survey(stats, config, facts);
  const steps = [
    planRepair,
    planFieldIndex,
    planPaced,
    planIndexing,
    planReindex,
    planVacuum,
    planSeal,
    planStreamMerge,
    planMerge,
    planRest,
    planJoin,
  ];
  let waiting: OptimizationPlan | undefined;
  for (const step of steps) {
    const plan = step(world);
    if (plan?.kind === 'build') return plan;
    if (plan !== undefined && (waiting === undefined || wakeOf(plan) < wakeOf(waiting))) waiting = plan;
  }
  return waiting ?? { kind: 'none' };
}

/** Bytes of vectors that have no graph and are not being built. */
export function gatheredBytes({ fields, segments }: ReplicaStats, config: CollectionConfig, runningSources: ReadonlySet<number>): number {
  const free = segments.filter((segment) => segment.rows > 0 && !isSource(segment, runningSources));
  return sum(unindexedOf({ config, fields, free }));
}

/** A plan as one line, for logs and tests. */
export function describePlan(plan: OptimizationPlan): string {
  if (plan.kind === 'none') {
    if (plan.wakeAfterMs === undefined) return 'nothing to do';
    return `look again in ${plan.wakeAfterMs} ms${plan.waitingFor ? `: ${plan.waitingFor} waits for the upload to pause` : ''}`;
  }
  const sources = plan.segments.join(' + ');
  if (plan.plan === 'fieldIndex') return `${plan.reason}: ${plan.missingFields.join(', ')} of segment ${sources}`;
  const made = plan.results === 1 ? 'one segment' : `${plan.results} segments`;
  return `${plan.reason}: ${sources} to ${made} ${plan.withGraph ? 'with' : 'without'} a graph`;
}

/** What the steps decide from. */
interface World {
  /** Segments with rows that no running build takes, smallest first. */
  readonly free: readonly SegmentStats[];
  readonly config: CollectionConfig;
  /** Indexed payload fields. */
  readonly fields: ReplicaStats['fields'];
  readonly facts: PlanFacts;
  readonly building: boolean;
  /** Milliseconds since the last write. */
  readonly quietMs: number;
  /** Bytes; 0: no graphs. */
  readonly threshold: number;
  readonly indexedBytes: number;
}

function survey(stats: ReplicaStats, config: CollectionConfig, facts: PlanFacts): World {
  const isRunning = (segment: SegmentStats) => isSource(segment, facts.runningSources);
  const free = stats.segments.filter((segment) => segment.rows > 0 && !isRunning(segment));
  return {
    free: free.sort((a, b) => a.vectorBytes - b.vectorBytes || a.id - b.id),
    config,
    fields: stats.fields,
    facts,
    building: facts.runningSources.size > 0 || stats.segments.some(isRunning),
    quietMs: Math.max(0, facts.nowMs - stats.lastWriteMs),
    threshold: indexingThresholdBytes(config),
    indexedBytes: sum(stats.segments.filter((segment) => isIndexed(segment, config, stats.fields))),
  };
}

function planRepair(world: World): OptimizationPlan | undefined {
  const damaged = world.free.find((segment) => segment.kind === 'sealed' && segment.damagedFiles.some(needsRebuild));
  if (damaged === undefined || world.building) return undefined;
  return buildOf('repair', [damaged], world);
}

const REBUILT = ['graph.', 'codes.', 'lists.', 'tokens.', 'sparse.', 'sums.'];

/** Field indexes are made again by `fieldIndex`; what is built from vectors needs a whole build. */
function needsRebuild(file: string): boolean {
  return REBUILT.some((start) => file.startsWith(start));
}

function planFieldIndex(world: World): OptimizationPlan | undefined {
  const lacking = world.free.find((segment) => segment.kind === 'sealed' && segment.missingFields.length > 0);
  if (lacking === undefined) return undefined;
  return {
    kind: 'build',
    reason: 'fieldIndex',
    segments: [lacking.id],
    plan: 'fieldIndex',
    missingFields: lacking.missingFields,
    withGraph: false,
    results: 1,
    bytes: lacking.rows * FIELD_ROW_BYTES,
  };
}

/** Alone: rows that wait until larger segments are built again are scanned by each search. */
function planPaced(world: World): OptimizationPlan | undefined {
  const { facts, threshold } = world;
  if (threshold === 0 || world.quietMs >= QUIET_MS) return undefined;
  const unindexed = unindexedOf(world);
  const bytes = sum(unindexed);
  const sinceMs = gatheredMs(facts, 0);
  if (bytes <= threshold || sinceMs < PACED_GATHER_MS) return undefined;
  const bytesPerSecond = Math.max((bytes / sinceMs) * 1000, facts.paceBytesPerSecond ?? 0);
  if (bytesPerSecond > PACED_BYTES_PER_CPU * facts.cpus) return undefined;
  return { ...settledBuild(unindexed, world), beside: true };
}

/** For how long rows without a graph have gathered. */
function gatheredMs({ gatheringSinceMs, nowMs }: PlanFacts, unknown: number): number {
  return gatheringSinceMs === undefined ? unknown : nowMs - gatheringSinceMs;
}

function planIndexing(world: World): OptimizationPlan | undefined {
  const unindexed = unindexedOf(world);
  const bytes = sum(unindexed);
  if (world.threshold === 0 || bytes <= world.threshold) return undefined;
  const outgrown = bytes >= Math.max(BUSY_THRESHOLDS * world.threshold, world.indexedBytes / 2);
  if (outgrown && (world.building || world.quietMs < QUIET_MS)) return settledBuild(unindexed, world);
  if (world.building) return undefined;
  const hidden = unindexed.some((segment) => segment.deferred);
  const pauseMs = Math.min(QUIET_MS, Math.max(PAUSE_MS_MIN, PAUSE_SHARE * gatheredMs(world.facts, QUIET_MS / PAUSE_SHARE)));
  if (world.quietMs < pauseMs && !hidden) return { kind: 'none', wakeAfterMs: Math.ceil(pauseMs - world.quietMs), waitingFor: 'indexing' };
  return buildOf('indexing', folded(unindexed, world), world);
}

/** While writes go on: of the rows without a graph alone. */
function settledBuild(unindexed: readonly SegmentStats[], world: World): PlannedBuild {
  return buildOf('indexing', withinLimits(settled(unindexed, world.threshold), world), world);
}

function planReindex(world: World): OptimizationPlan | undefined {
  if (world.building || world.threshold === 0) return undefined;
  const outdated = world.free.find((segment) => hasOutdatedGraph(segment, world) || hasOutdatedCodes(segment, world.config));
  return outdated && buildOf('reindex', [outdated], world);
}

function hasOutdatedGraph(segment: SegmentStats, { config, fields }: World): boolean {
  const listed = listedVector(config);
  return segment.graphs.some(({ name, m, efConstruct, inLists, subgraphs }) => {
    if (inLists === true || name === listed) return inLists !== true || name !== listed;
    const wanted = graphSettings(config, name);
    return m !== wanted.m || efConstruct !== wanted.efConstruct || !isMadeFor(subgraphs, subgraphSetting(config, name, fields));
  });
}

function hasOutdatedCodes(segment: SegmentStats, config: CollectionConfig): boolean {
  if (segment.kind === 'appendable') return false;
  return [...vectorsByName(config.params.vectors).keys()].some((name) => {
    const wanted = quantizationSetting(config, name);
    const made = segment.quantized.find((vector) => vector.name === name)?.setting;
    return made !== (wanted === null ? undefined : JSON.stringify(wanted));
  });
}

function planVacuum(world: World): OptimizationPlan | undefined {
  if (world.building) return undefined;
  const { deleted_threshold, vacuum_min_vector_number } = world.config.optimizer_config;
  const worn = world.free.find(
    (segment) => segment.rows >= vacuum_min_vector_number && segment.deleted > 0 && segment.deleted / segment.rows >= deleted_threshold,
  );
  if (worn === undefined) return undefined;
  // An active segment collects updates until they pause: sealing it at each step would cost more than it frees.
  if (isActive(worn) && world.quietMs < QUIET_MS) return { kind: 'none', wakeAfterMs: QUIET_MS - world.quietMs, waitingFor: 'vacuum' };
  return buildOf('vacuum', [worn], world);
}

function planSeal(world: World): OptimizationPlan | undefined {
  if (world.building) return undefined;
  const full = world.free.filter((segment) => segment.kind === 'appendable' && segment.frozen);
  if (sum(full) <= SEAL_BYTES_MIN || (world.threshold > 0 && sum(unindexedOf(world)) > world.threshold)) return undefined;
  if (full.length < BUSY_SEALS && world.quietMs < QUIET_MS)
    return { kind: 'none', wakeAfterMs: QUIET_MS - world.quietMs, waitingFor: 'seal' };
  return buildOf('seal', folded(full, world), world);
}

/** Merges what a paced stream has left, largest in proportion last. While an upload waits to be built, its builds come first. */
function planStreamMerge(world: World): OptimizationPlan | undefined {
  const { config, facts, threshold } = world;
  if (threshold === 0 || world.quietMs >= QUIET_MS || facts.isMerging || sum(unindexedOf(world)) > 2 * threshold) return undefined;
  const sealed = world.free.filter((segment) => segment.kind === 'sealed');
  const chosen: SegmentStats[] = [];
  for (const segment of sealed) {
    if ((chosen.length > 0 && liveBytes(segment) > sumLive(chosen)) || !fits([...chosen, segment], world)) break;
    chosen.push(segment);
  }
  const left = sealed.length - chosen.length + 1;
  if (chosen.length < STREAM_MERGE_MIN || left < config.optimizer_config.default_segment_number) return undefined;
  return { ...buildOf('merge', chosen, world), beside: true };
}

function planMerge(world: World): OptimizationPlan | undefined {
  if (world.building) return undefined;
  const { default_segment_number: named } = world.config.optimizer_config;
  const target = named || world.facts.cpus;
  const sealed = world.free.filter((segment) => segment.kind === 'sealed');
  const counted = named === 0 || sealed.length > target ? sealed : world.free.filter(({ deferred, frozen }) => frozen && !deferred);
  if (counted.length <= target) return undefined;
  // No graph is built again for the sake of rows that have none yet.
  const candidates = counted === sealed ? sealed : unindexedOf({ ...world, free: counted });
  const chosen = candidates.slice(0, Math.max(3, counted.length - target + 1));
  while (chosen.length >= 3 && !isCheapMerge(chosen, world)) chosen.pop();
  if (chosen.length < 3) return undefined;
  if (world.quietMs < MERGE_QUIET_MS) return { kind: 'none', wakeAfterMs: MERGE_QUIET_MS - world.quietMs, waitingFor: 'merge' };
  return buildOf('merge', chosen, world);
}

function isCheapMerge(chosen: readonly SegmentStats[], world: World): boolean {
  const largest = chosen[chosen.length - 1] as SegmentStats;
  return liveBytes(largest) <= MERGE_RATIO * (sumLive(chosen) - liveBytes(largest)) && fits(chosen, world);
}

/** Indexes what is below the threshold. Nobody waits for it, so nothing is told to wait. */
function planRest(world: World): OptimizationPlan | undefined {
  const { building, facts, indexedBytes, quietMs, threshold } = world;
  if (building || threshold === 0 || indexedBytes === 0) return undefined;
  const unindexed = unindexedOf(world);
  const isDue = sum(unindexed) > threshold;
  if (isDue || liveRows(unindexed) < REST_ROWS_MIN || sumLive(unindexed) < REST_SHARE * threshold) return undefined;
  const leftMs = Math.min(REST_QUIET_MS - quietMs, REST_GATHER_MS - gatheredMs(facts, 0));
  if (leftMs > 0) return { kind: 'none', wakeAfterMs: leftMs };
  return { ...buildOf('indexing', folded(unindexed, world, REST_FOLD_RATIO), world), withGraph: true, optional: true };
}

/** Has searches walk one graph where they walk several or scan besides. As with the rest, nothing is told to wait. */
function planJoin(world: World): OptimizationPlan | undefined {
  const { building, config, free, indexedBytes, quietMs, threshold } = world;
  if (building || threshold === 0 || indexedBytes === 0) return undefined;
  const rest = unindexedOf(world);
  const sealed = free.filter((segment) => segment.kind === 'sealed' && !rest.includes(segment));
  const smallest = sealed[0];
  if (smallest === undefined || sum(rest) > threshold) return undefined;
  const joinsRest = liveBytes(smallest) <= JOIN_REST_RATIO * sumLive(rest) && fits([...rest, smallest], world);
  const base = joinsRest ? [...rest, smallest] : [smallest];
  const isNamed = config.optimizer_config.default_segment_number !== 0;
  const chosen = isNamed ? base : folded(base, { ...world, free: sealed }, JOIN_RATIO);
  if (chosen.length < 2) return undefined;
  const plan: PlannedBuild = { ...buildOf('merge', chosen, world), withGraph: true, optional: true };
  // One that turned out not to fit stays as it is.
  if (plan.results > 1) return undefined;
  const leftMs = MERGE_QUIET_MS + JOIN_QUIET_MS_PER_BYTE * sumLive(chosen) - quietMs;
  return leftMs > 0 ? { kind: 'none', wakeAfterMs: Math.ceil(leftMs) } : plan;
}

function isSource({ building, id }: SegmentStats, runningSources: ReadonlySet<number>): boolean {
  return building || runningSources.has(id);
}

function unindexedOf({ config, fields, free }: Pick<World, 'config' | 'fields' | 'free'>): SegmentStats[] {
  return free.filter((segment) => !isIndexed(segment, config, fields));
}

/** Under writes the active segment stays active, unless the others make no build. */
function settled(unindexed: readonly SegmentStats[], threshold: number): SegmentStats[] {
  const frozen = unindexed.filter((segment) => !isActive(segment));
  return sum(frozen) > threshold ? frozen : [...unindexed];
}

/** `base` and the sealed segments that are worth building again with it: each at most so many times what is chosen before. */
function folded(base: readonly SegmentStats[], world: World, ratio = FOLD_RATIO): SegmentStats[] {
  const chosen = withinLimits(base, world);
  for (const segment of world.free) {
    if (segment.kind !== 'sealed' || chosen.includes(segment)) continue;
    if (liveBytes(segment) > ratio * sumLive(chosen) || !fits([...chosen, segment], world)) break;
    chosen.push(segment);
  }
  return chosen;
}

/** The first segments that fit in one result: at least one. */
function withinLimits(segments: readonly SegmentStats[], world: World): SegmentStats[] {
  const chosen: SegmentStats[] = [];
  for (const segment of segments) if (chosen.length === 0 || fits([...chosen, segment], world)) chosen.push(segment);
  return chosen;
}

/** Whether one segment can hold the live rows of all. */
function fits(segments: readonly SegmentStats[], world: World): boolean {
  const bytes = sumLive(segments);
  if (bytes > (world.facts.resultBytesMax ?? Number.POSITIVE_INFINITY) || bytes > resultBytesMax(world)) return false;
  return memoryBytes(liveRows(segments), bytes, world) <= MEMORY_BYTES_PLANNED;
}

/** Segments that `default_segment_number` asks for besides those that are no sources. */
function segmentsLacking(sources: readonly SegmentStats[], { config, free }: World): number {
  const others = free.filter((segment) => segment.kind === 'sealed' && !sources.includes(segment)).length;
  return config.optimizer_config.default_segment_number - others;
}

/** Segments to make of these: as few as hold their live rows, or as many as are wanted. */
function resultsOf(sources: readonly SegmentStats[], world: World, wanted: number): number {
  const { tooLarge } = world.facts;
  const [bytes, rows] = [sumLive(sources), liveRows(sources)];
  // Smaller ones would go without graphs.
  const largeOnes = world.threshold > 0 ? Math.floor(bytes / world.threshold) : Number.POSITIVE_INFINITY;
  const failed = tooLarge != null && tooLarge.segments.join() === idsOf(sources).join() ? 2 * tooLarge.results : 1;
  let results = Math.max(1, failed, Math.min(largeOnes, Math.max(wanted, Math.ceil(bytes / resultBytesMax(world)))));
  while (results < RESULTS_MAX && memoryBytes(Math.ceil(rows / results), bytes / results, world) > MEMORY_BYTES_PLANNED) results++;
  return Math.min(results, RESULTS_MAX, Math.max(1, rows));
}

/** Bytes of vectors that a result should have at most. */
function resultBytesMax({ config }: World): number {
  const { max_segment_size } = config.optimizer_config;
  return max_segment_size ? max_segment_size * 1024 : SEGMENT_BYTES_MAX;
}

/**
 * Bytes of a segment's memory with scratch for each reader. bytes: of its vectors. How many items multivectors and sparse vectors have is
 * not known: what dense vectors leave of the bytes, if all rows have them. A build that finds out otherwise is planned anew (`tooLarge`).
 */
function memoryBytes(rows: number, bytes: number, { config, facts, fields }: World): number {
  const plans = vectorPlans(config.params);
  const ragged = plans.filter(({ kind }) => kind !== 'dense');
  const denseBytes = plans.reduce((total, plan) => total + (plan.kind === 'dense' ? rows * itemBytes(plan) : 0), 0);
  const itemsOf = (plan: VectorPlan) => Math.ceil(Math.max(0, bytes - denseBytes) / ragged.length / itemBytes(plan));
  const reserved = reservedPlans(config, { rows, withGraph: true, itemsOf });
  const layout = segmentLayout(rows, reserved, { ordered: true, readers: facts.readers ?? facts.cpus });
  return layout.bytes + rows * layersBytes(config, fields);
}

/** Bytes a row takes in the layers of sub-graphs. */
function layersBytes(config: CollectionConfig, fields: World['fields']): number {
  let bytes = 0;
  for (const name of vectorsByName(config.params.vectors).keys()) {
    const values = subgraphSetting(config, name, fields);
    // Fields whose rows have one value each need one layer each.
    if (values !== null) bytes += Math.min(values.fields.length, LAYERS_MAX) * (4 * (2 + 2 * values.m) + 8);
  }
  return bytes;
}

/** Bytes a row takes in memory besides its vectors and codes: ids, marks and order, scratch of each thread, adjacency of each graph. */
function rowOverheadBytes(world: World): number {
  const { hnsw_config, params } = world.config;
  const scratchSlots = world.facts.cpus + 2;
  let adjacency = 0;
  const listed = listedVector(world.config);
  for (const [name, vector] of vectorsByName(params.vectors)) {
    if (name === listed) continue;
    const m = vector.hnsw_config?.m ?? hnsw_config.m;
    adjacency += 4 * (2 + 2 * m) + 8 + 32;
  }
  return 40 + 22 * scratchSlots + adjacency + layersBytes(world.config, world.fields);
}

function buildOf(reason: BuildReason, sources: readonly SegmentStats[], world: World): PlannedBuild {
  const withGraph = world.threshold > 0 && sumLive(sources) > world.threshold;
  const results = resultsOf(sources, world, reason === 'indexing' ? segmentsLacking(sources, world) : 1);
  const bytes = buildBytes(sources, world);
  return { kind: 'build', reason, segments: idsOf(sources), plan: 'segment', missingFields: [], withGraph, results, bytes };
}

/** The results with their codes and scratch, and a copy of the vectors with its graph, and near rows of each, while that is built. */
function buildBytes(sources: readonly SegmentStats[], world: World): number {
  return sumLive(sources) * VECTORS_FACTOR + liveRows(sources) * (2 * rowOverheadBytes(world) + nearBytes(world));
}

/** Bytes that near rows of a row take while a graph is made of pairs; graphs are made one after the other. */
function nearBytes({ config: { hnsw_config, params } }: World): number {
  const linksOf = Array.from(vectorsByName(params.vectors).values(), (vector) => vector.hnsw_config?.m ?? hnsw_config.m);
  return nearRowsBytes(Math.max(0, ...linksOf));
}

/** Ascending. */
function idsOf(segments: readonly SegmentStats[]): number[] {
  return segments.map((segment) => segment.id).sort((a, b) => a - b);
}

function liveRows(segments: readonly SegmentStats[]): number {
  return segments.reduce((total, segment) => total + segment.rows - segment.deleted, 0);
}

function isActive(segment: SegmentStats): boolean {
  return segment.kind === 'appendable' && !segment.frozen;
}

function sum(segments: readonly SegmentStats[]): number {
  return segments.reduce((total, segment) => total + segment.vectorBytes, 0);
}

function sumLive(segments: readonly SegmentStats[]): number {
  return segments.reduce((total, segment) => total + liveBytes(segment), 0);
}

function liveBytes(segment: SegmentStats): number {
  return segment.vectorBytes * (1 - segment.deleted / segment.rows);
}

function wakeOf(plan: OptimizationPlan): number {
  return plan.kind === 'none' ? (plan.wakeAfterMs ?? Number.POSITIVE_INFINITY) : 0;
}

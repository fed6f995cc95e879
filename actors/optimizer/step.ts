/** What an optimizer does about each message in each state. What to build is the planner's decision (`plan.ts`). */

import { decide, ignore, type Of, type Table } from '../../protocols/machine.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import { indexingThresholdBytes } from '../../storage/segment/graph-settings.js';
import type { ReplicaStats } from '../../storage/threads/messages.js';
import { become, type Step } from '../runtime/behaviour.js';
import { decideOptimization, threadsWanted } from './decide.js';
import type { OptimizerEffect, OptimizerMessage } from './messages.js';
import { writtenBytes } from './pace.js';
import { describePlan, gatheredBytes, type PlannedBuild } from './plan.js';
import {
  type BuildingOptimizer,
  buildsOf,
  type CoolingOptimizer,
  cooling,
  type Knowledge,
  type OptimizerState,
  optimizerStatus,
  type WaitingOptimizer,
  wantedOf,
  working,
} from './state.js';
import type { FinishedBuild, RunningBuild, SourceSegment } from './status.js';

type OptimizerStep = Step<OptimizerState, OptimizerEffect>;
type Message<Kind extends OptimizerMessage['kind']> = Of<OptimizerMessage, Kind>;
type Running = BuildingOptimizer | CoolingOptimizer;

/** States × messages. A grant or a result for a build that is not known any more changes nothing. */
export const OPTIMIZER_TABLE: Table<OptimizerState, OptimizerMessage, OptimizerStep> = {
  Idle: {
    stats: takeStats,
    configure: takeConfig,
    wake: replanNow,
    granted: ignore,
    lacksRoom: ignore,
    progress: ignore,
    built: ignore,
    buildFailed: ignore,
    cooled: ignore,
  },
  Waiting: {
    stats: takeStats,
    configure: takeConfig,
    wake: replanNow,
    granted: build,
    lacksRoom: takeLess,
    progress: ignore,
    built: ignore,
    buildFailed: ignore,
    cooled: ignore,
  },
  Building: {
    stats: takeStats,
    configure: takeConfig,
    wake: replanNow,
    granted: build,
    lacksRoom: takeLess,
    progress: showProgress,
    built: finish,
    buildFailed: fail,
    cooled: ignore,
  },
  Cooling: {
    stats: learn,
    // New settings may be the cure.
    configure: takeConfig,
    wake: ignore,
    granted: ignore,
    lacksRoom: ignore,
    progress: showProgress,
    built: finishWhileCooling,
    buildFailed: fail,
    cooled: replanNow,
  },
};

/** Of the memory that is left: estimates are rough. */
const ROOM_SHARE = 0.9;
/** Builds that the report of finished ones shows. */
const FINISHED_MAX = 16;

/** What the machine has. */
export type OptimizerFacts = Pick<Knowledge, 'cpus'> & Partial<Pick<Knowledge, 'readers' | 'resultBytesMax'>>;

export function startOptimizer(config: CollectionConfig, { cpus, readers, resultBytesMax }: OptimizerFacts): OptimizerStep {
  const known: Knowledge = {
    config,
    stats: null,
    gathering: null,
    paceBytesPerSecond: 0,
    cpus,
    readers: readers ?? cpus,
    resultBytesMax: resultBytesMax ?? Number.POSITIVE_INFINITY,
    roomBytesMax: Number.POSITIVE_INFINITY,
    tooLarge: null,
    nextBuildId: 1,
    trouble: null,
    finished: [],
    published: { builds: 0, points: 0 },
  };
  const state = working(known, [], null);
  return become<OptimizerState, OptimizerEffect>(state, { kind: 'announce', status: optimizerStatus(state) }, { kind: 'askStats' });
}

/** A changed state is announced after its other effects. */
export function stepOptimizer(state: OptimizerState, message: OptimizerMessage): OptimizerStep {
  const next = decide(OPTIMIZER_TABLE, state, message);
  if (next.state === state) return next;
  return become<OptimizerState, OptimizerEffect>(next.state, ...next.effects, { kind: 'announce', status: optimizerStatus(next.state) });
}

function takeStats(state: OptimizerState, message: Message<'stats'>): OptimizerStep {
  const next = replan({ ...state, known: withStats(state, message) }, message.nowMs);
  return become<OptimizerState, OptimizerEffect>(next.state, ...paceOf(state, message), ...next.effects);
}

/** While it cools down, figures wait for the end of the pause. */
function learn(state: CoolingOptimizer, message: Message<'stats'>): OptimizerStep {
  return become<OptimizerState, OptimizerEffect>({ ...state, known: withStats(state, message) }, ...paceOf(state, message));
}

function paceOf({ known }: OptimizerState, { nowMs, stats }: Message<'stats'>): OptimizerEffect[] {
  const bytes = known.stats === null ? 0 : writtenBytes(known.stats, stats);
  return bytes === 0 ? [] : [{ kind: 'tellPace', bytes, nowMs }];
}

function withStats(state: OptimizerState, { paceBytesPerSecond, nowMs, stats }: Message<'stats'>): Knowledge {
  const { config, gathering } = state.known;
  const bytes = gatheredBytes(stats, config, sourcesOfBuilds(buildsOf(state)));
  // Where some were taken, what is left has come since.
  const sinceMs = gathering === null || bytes < gathering.bytes ? nowMs : gathering.sinceMs;
  return { ...state.known, stats, paceBytesPerSecond, gathering: bytes === 0 ? null : { sinceMs, bytes } };
}

function takeConfig(state: OptimizerState, { config, nowMs }: Message<'configure'>): OptimizerStep {
  return replan({ ...state, known: { ...state.known, config, tooLarge: null } }, nowMs);
}

function replanNow(state: OptimizerState, { nowMs }: Message<'wake' | 'cooled'>): OptimizerStep {
  return replan(state, nowMs);
}

/** Asks for threads for the next build, or withdraws what is not wanted any more. */
function replan(state: OptimizerState, nowMs: number): OptimizerStep {
  const { known } = state;
  const builds = buildsOf(state);
  const wanted = wantedOf(state);
  if (known.stats === null) return become(state.kind === 'Cooling' ? working(known, builds, null) : state);
  const runningSources = sourcesOfBuilds(builds);
  const { cpus, gathering, paceBytesPerSecond, readers, resultBytesMax, roomBytesMax, tooLarge } = known;
  const decision = decideOptimization(known.stats, known.config, {
    nowMs,
    cpus,
    readers,
    runningSources,
    isMerging: builds.some(({ plan }) => plan.reason === 'merge'),
    ...(gathering === null ? {} : { gatheringSinceMs: gathering.sinceMs }),
    paceBytesPerSecond,
    resultBytesMax: Math.min(resultBytesMax, roomBytesMax),
    tooLarge,
  });
  const withdrawn: OptimizerEffect[] = wanted === null ? [] : [{ kind: 'releaseThreads', id: wanted.id }];
  if (decision.kind !== 'build') {
    const delayMs = decision.kind === 'rest' ? decision.wakeAfterMs : null;
    return become<OptimizerState, OptimizerEffect>(working(known, builds, null), ...withdrawn, { kind: 'wakeLater', delayMs });
  }
  // The same segments for the same reason: it keeps its place among those who wait.
  if (wanted !== null && describePlan(wanted.plan) === describePlan(decision.plan)) return become(state);
  const id = known.nextBuildId;
  const threads = threadsWanted(decision.plan, known.config, known.cpus);
  return become<OptimizerState, OptimizerEffect>(
    working({ ...known, nextBuildId: id + 1 }, builds, { id, plan: decision.plan }),
    ...withdrawn,
    { kind: 'wakeLater', delayMs: null },
    { kind: 'requestThreads', id, plan: decision.plan, threads },
  );
}

function build(state: WaitingOptimizer | BuildingOptimizer, message: Message<'granted'>): OptimizerStep {
  const { wanted } = state;
  if (wanted === null || wanted.id !== message.id) return become(state);
  const sources = sourcesOf(wanted.plan, state.known.stats);
  const running: RunningBuild = {
    id: wanted.id,
    plan: wanted.plan,
    sources,
    threads: message.threads,
    startedMs: message.nowMs,
    progress: null,
  };
  // What comes from now on gathers anew.
  const known = wanted.plan.reason === 'indexing' ? { ...state.known, gathering: null } : state.known;
  return become<OptimizerState, OptimizerEffect>(working(known, [...buildsOf(state), running], null), {
    kind: 'build',
    id: wanted.id,
    plan: wanted.plan,
    threads: message.threads,
  });
}

/**
 * Plans a build of fewer segments, which there is room for: the one that is wanted would wait for ever, as writes are refused before their memory is short,
 * and only builds give some back, whose vectors go on disk. Parts that would get no graph are not worth it.
 */
function takeLess(state: WaitingOptimizer | BuildingOptimizer, message: Message<'lacksRoom'>): OptimizerStep {
  const { known, wanted } = state;
  if (wanted === null || wanted.id !== message.id) return become(state);
  const { bytes, segments } = wanted.plan;
  const vectors = (known.stats?.segments ?? []).reduce((sum, { id, vectorBytes }) => sum + (segments.includes(id) ? vectorBytes : 0), 0);
  const roomBytesMax = Math.floor((ROOM_SHARE * vectors * message.leftBytes) / bytes);
  if (roomBytesMax <= indexingThresholdBytes(known.config)) return become(state);
  return replan({ ...state, known: { ...known, roomBytesMax } }, message.nowMs);
}

function showProgress(state: Running, message: Message<'progress'>): OptimizerStep {
  const { builds } = state;
  if (!builds.some((running) => running.id === message.id)) return become(state);
  const shown = builds.map((running) => (running.id === message.id ? { ...running, progress: message.progress } : running));
  return become(withBuilds(state, state.known, shown));
}

function finish(state: BuildingOptimizer, message: Message<'built'>): OptimizerStep {
  const ended = endOf(state, message);
  if (ended === null) return become(state);
  const next = replan(working({ ...ended.known, trouble: null }, ended.others, state.wanted), message.nowMs);
  return become(next.state, ...ended.effects, ...next.effects);
}

/** The pause after another build's failure goes on. */
function finishWhileCooling(state: CoolingOptimizer, message: Message<'built'>): OptimizerStep {
  const ended = endOf(state, message);
  return ended === null ? become(state) : become(cooling(ended.known, ended.others, state.trouble), ...ended.effects);
}

/** What is known after a build has ended well, and the builds that still run; null for a build that is not known any more. */
function endOf(
  { builds, known }: Running,
  message: Message<'built'>,
): { known: Knowledge; others: readonly RunningBuild[]; effects: OptimizerEffect[] } | null {
  const done = builds.find((running) => running.id === message.id);
  if (done === undefined) return null;
  const finished = noted(known.finished, { build: done, finishedMs: message.nowMs, error: null });
  const { builds: count, points: taken } = known.published;
  const published = { builds: count + 1, points: done.sources.reduce((sum, { points }) => sum + points, taken) };
  return {
    known: { ...known, stats: message.stats ?? known.stats, roomBytesMax: Number.POSITIVE_INFINITY, finished, published },
    others: builds.filter((running) => running !== done),
    effects: [
      { kind: 'releaseThreads', id: done.id },
      { kind: 'note', text: `built ${describePlan(done.plan)}`, facts: { ...message.report } },
    ],
  };
}

function fail(state: Running, message: Message<'buildFailed'>): OptimizerStep {
  const failed = state.builds.find((running) => running.id === message.id);
  if (failed === undefined) return become(state);
  const others = state.builds.filter((running) => running !== failed);
  const trouble = { error: message.error, failures: (state.known.trouble?.failures ?? 0) + 1 };
  const finished = noted(state.known.finished, { build: failed, finishedMs: message.nowMs, error: message.error });
  const tooLarge = message.error.reason === 'segmentTooLarge' ? failed.plan : state.known.tooLarge;
  const wanted = wantedOf(state);
  const withdrawn: OptimizerEffect[] = wanted === null ? [] : [{ kind: 'releaseThreads', id: wanted.id }];
  return become<OptimizerState, OptimizerEffect>(
    cooling({ ...state.known, tooLarge, trouble, finished }, others, trouble),
    { kind: 'releaseThreads', id: failed.id },
    ...withdrawn,
    { kind: 'wakeLater', delayMs: null },
    { kind: 'note', text: `failed to build ${describePlan(failed.plan)}`, facts: { error: message.error.detail } },
    { kind: 'coolDown', failures: trouble.failures },
  );
}

/** The state with other builds; it stays cooling if it was. */
function withBuilds(state: OptimizerState, known: Knowledge, builds: readonly RunningBuild[]): OptimizerState {
  return state.kind === 'Cooling' ? cooling(known, builds, state.trouble) : working(known, builds, wantedOf(state));
}

function noted(finished: readonly FinishedBuild[], build: FinishedBuild): readonly FinishedBuild[] {
  return [build, ...finished].slice(0, FINISHED_MAX);
}

function sourcesOfBuilds(builds: readonly RunningBuild[]): Set<number> {
  return new Set(builds.flatMap(({ plan }) => plan.segments));
}

function sourcesOf(plan: PlannedBuild, stats: ReplicaStats | null): SourceSegment[] {
  return plan.segments.map((id) => {
    const segment = stats?.segments.find((candidate) => candidate.id === id);
    return { id, points: segment === undefined ? 0 : segment.rows - segment.deleted };
  });
}

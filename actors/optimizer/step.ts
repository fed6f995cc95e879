/** What an optimizer does about each message in each state. What to build is the planner's decision (`plan.ts`). */

import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { ReplicaStats } from '../../storage/threads/messages.js';
import { become, type Step, unreachable } from '../runtime/behaviour.js';
import { type BuildPlan, decideOptimization, threadsWanted } from './decide.js';
import type { OptimizerEffect, OptimizerMessage } from './messages.js';
import { describePlan } from './plan.js';
import { buildsOf, cooling, type Knowledge, type OptimizerState, statusOf, wantedOf, working } from './state.js';
import type { FinishedBuild, RunningBuild, SourceSegment } from './status.js';

type OptimizerStep = Step<OptimizerState, OptimizerEffect>;
type MessageOf<Kind extends OptimizerMessage['kind']> = Extract<OptimizerMessage, { kind: Kind }>;

export type OptimizerMove = 'ignore' | 'replan' | 'learn' | 'build' | 'showProgress' | 'finish' | 'fail';

/** States × messages. A grant or a result for a build that is not known any more is ignored. */
export const OPTIMIZER_MOVES: Readonly<Record<OptimizerState['kind'], Readonly<Record<OptimizerMessage['kind'], OptimizerMove>>>> = {
  Idle: {
    stats: 'replan',
    configure: 'replan',
    wake: 'replan',
    granted: 'ignore',
    progress: 'ignore',
    built: 'ignore',
    buildFailed: 'ignore',
    cooled: 'ignore',
  },
  Waiting: {
    stats: 'replan',
    configure: 'replan',
    wake: 'replan',
    granted: 'build',
    progress: 'ignore',
    built: 'ignore',
    buildFailed: 'ignore',
    cooled: 'ignore',
  },
  Building: {
    stats: 'replan',
    configure: 'replan',
    wake: 'replan',
    granted: 'build',
    progress: 'showProgress',
    built: 'finish',
    buildFailed: 'fail',
    cooled: 'ignore',
  },
  Cooling: {
    stats: 'learn',
    // New settings may be the cure.
    configure: 'replan',
    wake: 'ignore',
    granted: 'ignore',
    progress: 'showProgress',
    built: 'finish',
    buildFailed: 'fail',
    cooled: 'replan',
  },
};

/** Builds that the report of finished ones shows. */
const FINISHED_MAX = 16;

export function startOptimizer(config: CollectionConfig, cpus: number): OptimizerStep {
  const known: Knowledge = { config, stats: null, cpus, nextBuildId: 1, trouble: null, finished: [] };
  const state = working(known, [], null);
  return become<OptimizerState, OptimizerEffect>(state, { kind: 'announce', status: statusOf(state) }, { kind: 'askStats' });
}

/** A changed state is announced after its other effects. */
export function stepOptimizer(state: OptimizerState, message: OptimizerMessage): OptimizerStep {
  const next = move(state, message);
  if (next.state === state) return next;
  return become<OptimizerState, OptimizerEffect>(next.state, ...next.effects, { kind: 'announce', status: statusOf(next.state) });
}

function move(state: OptimizerState, message: OptimizerMessage): OptimizerStep {
  const chosen = OPTIMIZER_MOVES[state.kind][message.kind];
  // The table says which messages reach a move, so the casts below only repeat it.
  switch (chosen) {
    case 'ignore':
      return become(state);
    case 'replan':
      return replan(learned(state, message), (message as MessageOf<'wake'>).nowMs);
    case 'learn':
      return become({ ...state, known: learned(state, message).known });
    case 'build':
      return build(state, message as MessageOf<'granted'>);
    case 'showProgress':
      return showProgress(state, message as MessageOf<'progress'>);
    case 'finish':
      return finish(state, message as MessageOf<'built'>);
    case 'fail':
      return fail(state, message as MessageOf<'buildFailed'>);
    default:
      return unreachable(chosen);
  }
}

/** The state with what the message tells about the replica. */
function learned(state: OptimizerState, message: OptimizerMessage): OptimizerState {
  if (message.kind === 'stats') return { ...state, known: { ...state.known, stats: message.stats } };
  if (message.kind === 'configure') return { ...state, known: { ...state.known, config: message.config } };
  return state;
}

/** Asks for threads for the next build, or withdraws what is not wanted any more. */
function replan(state: OptimizerState, nowMs: number): OptimizerStep {
  const { known } = state;
  const builds = buildsOf(state);
  const wanted = wantedOf(state);
  if (known.stats === null) return become(state.kind === 'Cooling' ? working(known, builds, null) : state);
  const runningSources = new Set(builds.flatMap((running) => running.plan.segments));
  const decision = decideOptimization(known.stats, known.config, { nowMs, cpus: known.cpus, runningSources });
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

function build(state: OptimizerState, message: MessageOf<'granted'>): OptimizerStep {
  const wanted = wantedOf(state);
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
  return become<OptimizerState, OptimizerEffect>(working(state.known, [...buildsOf(state), running], null), {
    kind: 'build',
    id: wanted.id,
    plan: wanted.plan,
    threads: message.threads,
  });
}

function showProgress(state: OptimizerState, message: MessageOf<'progress'>): OptimizerStep {
  const builds = buildsOf(state);
  if (!builds.some((running) => running.id === message.id)) return become(state);
  const shown = builds.map((running) => (running.id === message.id ? { ...running, progress: message.progress } : running));
  return become(withBuilds(state, state.known, shown));
}

function finish(state: OptimizerState, message: MessageOf<'built'>): OptimizerStep {
  const done = buildsOf(state).find((running) => running.id === message.id);
  if (done === undefined) return become(state);
  const others = buildsOf(state).filter((running) => running !== done);
  const finished = noted(state.known.finished, { build: done, finishedMs: message.nowMs, error: null });
  const stats = message.stats ?? state.known.stats;
  const left: OptimizerEffect[] = [
    { kind: 'releaseThreads', id: done.id },
    { kind: 'note', text: `built ${describePlan(done.plan)}`, facts: { ...message.report } },
  ];
  if (state.kind === 'Cooling') return become(cooling({ ...state.known, stats, finished }, others, state.trouble), ...left);
  const known = { ...state.known, stats, finished, trouble: null };
  const next = replan(working(known, others, wantedOf(state)), message.nowMs);
  return become(next.state, ...left, ...next.effects);
}

function fail(state: OptimizerState, message: MessageOf<'buildFailed'>): OptimizerStep {
  const failed = buildsOf(state).find((running) => running.id === message.id);
  if (failed === undefined) return become(state);
  const others = buildsOf(state).filter((running) => running !== failed);
  const trouble = { error: message.error, failures: (state.known.trouble?.failures ?? 0) + 1 };
  const finished = noted(state.known.finished, { build: failed, finishedMs: message.nowMs, error: message.error });
  const wanted = wantedOf(state);
  const withdrawn: OptimizerEffect[] = wanted === null ? [] : [{ kind: 'releaseThreads', id: wanted.id }];
  return become<OptimizerState, OptimizerEffect>(
    cooling({ ...state.known, trouble, finished }, others, trouble),
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

function sourcesOf(plan: BuildPlan, stats: ReplicaStats | null): SourceSegment[] {
  return plan.segments.map((id) => {
    const segment = stats?.segments.find((candidate) => candidate.id === id);
    return { id, points: segment === undefined ? 0 : segment.rows - segment.deleted };
  });
}

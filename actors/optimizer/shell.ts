/** The optimizer actor: asks for threads, starts builds, and gives them up when its replica goes. */

import { decideInRow, type Row } from '../../protocols/machine.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { BuildProgress } from '../../storage/pool/pool.js';
import type { ReplicaKey, ReplicaStats } from '../../storage/threads/messages.js';
import type { NodeServices } from '../context/services.js';
import type { CollectionEntry } from '../context/view.js';
import { type ActorContext, type Behaviour, unreachable } from '../runtime/behaviour.js';
import type { Cancel } from '../runtime/ports.js';
import { jittered, restartDelayMs } from '../runtime/restart.js';
import type { BuildTicket } from './budget.js';
import type { OptimizerEffect, OptimizerMessage } from './messages.js';
import { describePlan, type PlannedBuild } from './plan.js';
import type { OptimizerState } from './state.js';
import type { OptimizerStatus } from './status.js';
import { type OptimizerFacts, startOptimizer, stepOptimizer } from './step.js';

export interface OptimizerProps {
  readonly key: ReplicaKey;
  readonly entry: CollectionEntry;
  /** The configuration at the actor's start and at each restart. */
  readonly config: () => CollectionConfig;
  readonly services: NodeServices;
}

type OptimizerContext = ActorContext<OptimizerProps, OptimizerMessage>;

/** Priority of builds: queries and writes go first. */
export const BUILD_NICENESS = 10;
/** Progress is shown no more often. */
const PROGRESS_INTERVAL_MS = 200;
const COOLING = { delayMinMs: 1000, delayMaxMs: 300_000 };

export function optimizerBehaviour(): Behaviour<OptimizerProps, OptimizerState, OptimizerMessage, OptimizerEffect> {
  const held: Held = { waitsFor: null, tickets: new Map(), cancelWake: () => {} };
  return {
    kind: 'optimizer',
    start: (props) => startOptimizer(props.config(), factsOf(props.services)),
    step: stepOptimizer,
    perform: (effect, context) => decideInRow(PERFORM, { held, context }, effect),
    summarize,
  };
}

function factsOf({ cpus, readers, room }: NodeServices): OptimizerFacts {
  return { cpus, readers, resultBytesMax: room.resultBytesMax };
}

/** What one life of the actor holds; its end gives that back. */
interface Held {
  /** Why the wanted build waits for memory. */
  waitsFor: string | null;
  /** By build. */
  readonly tickets: Map<number, { readonly ticket: BuildTicket; readonly forget: Cancel }>;
  cancelWake: Cancel;
}

interface Performing {
  readonly held: Held;
  readonly context: OptimizerContext;
}

const PERFORM: Row<OptimizerEffect, Performing, void> = {
  askStats: ({ context }) => tellStats(context),
  requestThreads: ({ held, context }, { id, plan, threads }) => {
    const lane = plan.plan === 'fieldIndex' ? 'fieldIndex' : 'segment';
    const ticket = context.props.services.budget.request(
      { lane, threads, bytes: plan.bytes },
      {
        granted: (granted) => {
          held.waitsFor = null;
          context.report({ kind: 'granted', id, threads: granted, nowMs: context.clock.nowMs() });
        },
        waits: (reason, leftBytes) => {
          showWaiting(plan, reason, held, context);
          if (leftBytes !== null) context.report({ kind: 'lacksRoom', id, leftBytes, nowMs: context.clock.nowMs() });
        },
      },
    );
    const forget = context.onEnd(() => releaseThreads(id, held));
    held.tickets.set(id, { ticket, forget });
  },
  releaseThreads: ({ held }, { id }) => releaseThreads(id, held),
  build: ({ context }, { id, plan, threads }) => build(id, plan, threads, context),
  wakeLater: ({ held, context }, { delayMs }) => {
    held.cancelWake();
    if (delayMs !== null) held.cancelWake = wakeLater(delayMs, context);
  },
  tellPace: ({ context }, { bytes, nowMs }) => context.props.services.pace.came(context.props.key, bytes, nowMs),
  coolDown: ({ context }, { failures }) => coolDown(failures, context),
  note: ({ context }, { text, facts }) => context.log.info(`${context.path} ${text}`, facts),
  announce: ({ held, context }, { status }) => {
    context.props.entry.optimizers.set(context.props.key, withReason(status, held));
  },
};

function releaseThreads(id: number, { tickets }: Held): void {
  const held = tickets.get(id);
  tickets.delete(id);
  held?.forget();
  held?.ticket.release();
}

function showWaiting(plan: PlannedBuild, reason: string, held: Held, context: OptimizerContext): void {
  const { entry, key } = context.props;
  context.log.warn(`${context.path} waits with ${describePlan(plan)}: ${reason}`);
  held.waitsFor = `${plan.reason} waits: ${reason}. Delete points or collections, set \`on_disk\` of vectors, or give the node more memory`;
  const status = entry.optimizers.get(key);
  if (status !== undefined) entry.optimizers.set(key, withReason(status, held));
}

function withReason(status: OptimizerStatus, { waitsFor }: Held): OptimizerStatus {
  return waitsFor === null || status.wanted === null ? status : { ...status, waitsFor };
}

function tellStats(context: OptimizerContext): void {
  const { key, services } = context.props;
  const stats = services.engine.stats(key);
  if (stats !== null) context.report(statsMessage(stats, services, context.clock.nowMs()));
}

/** What an optimizer hears of its replica's figures. */
export function statsMessage(stats: ReplicaStats, { pace }: Pick<NodeServices, 'pace'>, nowMs: number): OptimizerMessage {
  return { kind: 'stats', stats, paceBytesPerSecond: pace.bytesPerSecond(stats.key, nowMs), nowMs };
}

function build(id: number, plan: PlannedBuild, threads: number, context: OptimizerContext): void {
  const { key, services } = context.props;
  const cancelled = new AbortController();
  const forget = context.onEnd(() => cancelled.abort());
  context.log.info(`${context.path} starts ${describePlan(plan)}`, { threads });
  const order = {
    plan: plan.plan,
    segments: plan.segments,
    missingFields: plan.missingFields,
    withGraph: plan.withGraph,
    results: plan.results,
    threads,
    niceness: BUILD_NICENESS,
  };
  const built = services.files.build(key, order, throttledProgress(id, context), cancelled.signal);
  context.settle(
    built.finally(forget),
    (report) => ({ kind: 'built', id, report, stats: services.engine.stats(key), nowMs: context.clock.nowMs() }),
    (error) => ({ kind: 'buildFailed', id, error, nowMs: context.clock.nowMs() }),
  );
}

function throttledProgress(id: number, context: OptimizerContext): (progress: BuildProgress) => void {
  let shownMs = Number.NEGATIVE_INFINITY;
  return (progress) => {
    const nowMs = context.clock.nowMs();
    if (nowMs - shownMs < PROGRESS_INTERVAL_MS) return;
    shownMs = nowMs;
    context.report({ kind: 'progress', id, progress });
  };
}

function wakeLater(delayMs: number, context: OptimizerContext): Cancel {
  // The time in the message is when it is due: the planner compares it with the last write.
  return context.after(delayMs, { kind: 'wake', nowMs: context.clock.nowMs() + delayMs });
}

function coolDown(failures: number, context: OptimizerContext): void {
  const delayMs = jittered(restartDelayMs(failures, COOLING), context.random.next());
  context.after(delayMs, { kind: 'cooled', nowMs: context.clock.nowMs() + delayMs });
}

function summarize(message: OptimizerMessage): string {
  switch (message.kind) {
    case 'stats':
      return `${message.stats.points} points, ${message.stats.segments.length} segments`;
    case 'granted':
      return `build ${message.id}: ${message.threads} threads`;
    case 'lacksRoom':
      return `build ${message.id}: ${message.leftBytes} bytes left`;
    case 'progress':
      return `build ${message.id}: ${message.progress.stage} ${message.progress.done}/${message.progress.total}`;
    case 'built':
      return `build ${message.id}: ${message.report.rows} rows in ${Math.round(message.report.milliseconds)} ms`;
    case 'buildFailed':
      return `build ${message.id}: ${message.error.detail}`;
    case 'configure':
    case 'wake':
    case 'cooled':
      return '';
    default:
      return unreachable(message);
  }
}

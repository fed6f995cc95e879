/** The replica actor: opens its files in the engine, keeps its optimizer, and tries again when it failed. */

import { type ErrorFacts, errorFromFacts, TroupeError } from '../../protocols/errors.js';
import { decideInRow, type Of, type Row } from '../../protocols/machine.js';
import type { ReplicaKey, ReplicaStats } from '../../storage/threads/messages.js';
import { ownConfig } from '../context/own-config.js';
import type { NodeServices } from '../context/services.js';
import { type CollectionEntry, STATE_ALONE } from '../context/view.js';
import type { OptimizerMessage } from '../optimizer/messages.js';
import { optimizerBehaviour, statsMessage } from '../optimizer/shell.js';
import { type ActorContext, type ActorRef, type Behaviour, unreachable } from '../runtime/behaviour.js';
import { jittered, restartDelayMs } from '../runtime/restart.js';
import type { ShardMessage } from '../shard/messages.js';
import type { InstallMessage, ReplicaEffect, ReplicaMessage } from './messages.js';
import type { ReplicaLife } from './state.js';
import { startReplica, stepReplica } from './step.js';

export interface ReplicaProps {
  readonly key: ReplicaKey;
  readonly shardId: number;
  readonly folder: string;
  readonly entry: CollectionEntry;
  readonly services: NodeServices;
  readonly parent: ActorRef<ShardMessage>;
}

type ReplicaContext = ActorContext<ReplicaProps, ReplicaMessage>;

/** Tries to open a replica that failed come further and further apart. */
const RETRY = { delayMinMs: 1000, delayMaxMs: 60_000 };
const OPTIMIZER = 'optimizer';

export function replicaBehaviour(): Behaviour<ReplicaProps, ReplicaLife, ReplicaMessage, ReplicaEffect> {
  const parts: ReplicaParts = { optimizer: null, figures: null, loggedLine: '', beganMs: null, openedInMs: undefined };
  return {
    kind: 'replica',
    start: (props) => {
      // The optimizer and the listener of an earlier life ended with it.
      parts.optimizer = null;
      parts.figures = null;
      return startReplica(configOf(props));
    },
    step: stepReplica,
    perform: (effect, context) => decideInRow(PERFORM, { parts, context }, effect),
    summarize,
    facts: (props, state) => ({ ...agreedFact(props, state), ...memoryFact(props) }),
    childFailed: (_name, error) => ({ kind: 'optimizerStopped', error }),
  };
}

/** What belongs to a replica and lives outside of its state. */
interface ReplicaParts {
  optimizer: ActorRef<OptimizerMessage> | null;
  figures: StatsValve | null;
  /** What was logged last: each try of a replica that fails ends the same way as a rule. */
  loggedLine: string;
  /** When its files were first to be opened, and how long that took; null and undefined before. */
  beganMs: number | null;
  openedInMs: number | undefined;
}

interface Performing {
  readonly parts: ReplicaParts;
  readonly context: ReplicaContext;
}

const PERFORM: Row<ReplicaEffect, Performing, void> = {
  open: ({ parts, context }, { isDamaged }) => {
    parts.figures ??= listen(context);
    open(context, isDamaged);
  },
  install: ({ context }, effect) => install(effect.install, context),
  retryLater: ({ context }, { attempt }) => {
    context.after(jittered(restartDelayMs(attempt, RETRY), context.random.next()), { kind: 'retry' });
  },
  announce: ({ parts, context }, { state, reason }) => {
    const { key, shardId, entry } = context.props;
    parts.beganMs ??= context.clock.nowMs();
    if (state === 'Serving') parts.openedInMs ??= Math.round(context.clock.nowMs() - parts.beganMs);
    entry.replicas.set(shardId, { key, actor: context.self, state, reason, openedInMs: parts.openedInMs });
    entry.onChange?.();
  },
  startOptimizer: ({ parts, context }) => {
    parts.optimizer = startOptimizer(context);
  },
  stopOptimizer: ({ parts, context }) => {
    context.stopChild(OPTIMIZER);
    parts.optimizer = null;
    context.props.entry.optimizers.delete(context.props.key);
  },
  showStoppedOptimizer: ({ parts, context }, { error }) => {
    parts.optimizer = null;
    showStoppedOptimizer(error, context);
  },
  considerStats: ({ parts, context }, { stats }) => {
    parts.figures?.taken();
    parts.optimizer?.report(statsMessage(stats, context.props.services, context.clock.nowMs()));
  },
  configure: ({ parts, context }, effect) => {
    parts.optimizer?.report({ kind: 'configure', config: effect.config, nowMs: context.clock.nowMs() });
    configure(effect, context);
  },
  configured: ({ context }, { replyTo }) => context.reply(replyTo, true),
  answer: ({ context }, { answer: { replyTo, written } }) => context.reply(replyTo, written),
  refuse: ({ context }, { replyTo, error }) => context.fail(replyTo, errorFromFacts(error)),
  tellOpened: ({ parts, context }) => {
    parts.loggedLine = '';
    context.props.parent.report({ kind: 'replicaOpened' });
  },
  tellFailed: ({ parts, context }, { error }) => {
    const line = `${context.path} does not serve: ${error.detail}`;
    if (line !== parts.loggedLine) context.log.error(line);
    parts.loggedLine = line;
    context.props.parent.report({ kind: 'replicaFailed', error });
  },
  close: ({ context }) => close(context),
  tellClosedAndStop: ({ context }) => {
    context.props.parent.report({ kind: 'replicaClosed' });
    context.stop();
  },
};

/** What the API calls this replica: the state that is agreed in its cluster; on a node of its own, what its life here makes of it. */
function agreedFact({ entry, services, shardId }: ReplicaProps, { kind }: ReplicaLife): Readonly<Record<string, string>> {
  const { belonging, name } = entry;
  if (belonging === null || services.barrier === null) return { replicaState: STATE_ALONE[kind] };
  const { assignments } = services;
  const agreed = assignments.of({ collection: name, uid: belonging.uid, shardId })?.replicas.get(assignments.peerId);
  return agreed === undefined ? {} : { replicaState: agreed };
}

/** Bytes of the original vectors of its segments. */
function memoryFact({ key, services }: ReplicaProps): Readonly<Record<string, number>> {
  const stats = services.engine.stats(key);
  return stats === null ? {} : { vectorBytes: stats.segments.reduce((bytes, segment) => bytes + segment.vectorBytes, 0) };
}

/** Passes on the newest figures, one message at a time: figures that come while one waits replace each other. */
interface StatsValve {
  taken(): void;
}

function listen(context: ReplicaContext): StatsValve {
  const { key, services } = context.props;
  let newest: ReplicaStats | null = null;
  let waiting = false;
  const send = () => {
    if (waiting || newest === null) return;
    const stats = newest;
    newest = null;
    waiting = true;
    context.report({ kind: 'stats', stats });
  };
  const cancel = services.signals.listen(key, {
    stats: (stats) => {
      newest = stats;
      send();
    },
    failed: (error) => context.report({ kind: 'failed', error }),
  });
  context.onEnd(cancel);
  return {
    taken: () => {
      waiting = false;
      send();
    },
  };
}

function open(context: ReplicaContext, isDamaged: boolean): void {
  const { entry, key, folder, services, shardId } = context.props;
  const config = () => configOf(context.props);
  const setAside = async () => {
    const kept = await services.store.setShardAside(entry.folder, shardId);
    if (kept !== null) context.log.warn(`${context.path}: its files are damaged and kept as ${kept}; another replica fills it`);
  };
  context.settle(
    refuseLost(context.props).then(async () => {
      const room = await services.openingGate(folder, config());
      const isAnew = isDamaged && isFilledAnyway(context.props);
      const opened = isAnew ? services.files.reopen(key, folder, config, setAside) : services.files.open(key, folder, config);
      return opened.finally(() => room.release());
    }),
    (stats) => ({ kind: 'opened', stats }),
    (error) => ({ kind: 'openFailed', error }),
  );
}

/** Whether another replica has everything, and it is agreed that this one gets it from there. */
function isFilledAnyway({ entry, services, shardId }: ReplicaProps): boolean {
  const { assignments, barrier } = services;
  if (entry.belonging === null || barrier === null || !assignments.isSettled) return false;
  const replicas = assignments.of({ collection: entry.name, uid: entry.belonging.uid, shardId })?.replicas;
  const own = replicas?.get(assignments.peerId);
  if (replicas === undefined || own === undefined || own === 'Active' || own === 'Initializing') return false;
  return [...replicas.values()].includes('Active');
}

/**
 * A replica that the cluster has counted on since before this process began has files: made anew it would serve nothing as if that were
 * all. Where another one is Active its node has it agreed that this one is Dead; then it is made anew, and filled.
 * Errors: `storage` where they are gone; `unavailable` while it is not known whether there are any.
 */
async function refuseLost({ entry, key, services, shardId }: ReplicaProps): Promise<void> {
  const { assignments, barrier, files, store } = services;
  const { belonging, folder, name } = entry;
  // A node of its own has nobody to tell it.
  if (belonging === null || barrier === null || (await store.hasShard(folder, shardId))) return;
  const assignment = assignments.of({ collection: name, uid: belonging.uid, shardId });
  const since = assignment?.since.get(assignments.peerId);
  if (since !== undefined && since > assignments.lastIndexAtStart) return;
  if (!assignments.isSettled)
    throw new TroupeError('unavailable', 'it has no files, and this node does not know yet whether there should be any', {
      retryAfterMs: 1000,
    });
  if (assignment?.replicas.get(assignments.peerId) !== 'Active') return;
  files.noteLost(key, { collection: name, uid: belonging.uid, shardId });
  const others = [...assignment.replicas].filter(([peer]) => peer !== assignments.peerId);
  if (others.some(([, state]) => state === 'Active'))
    throw new TroupeError('storage', 'its files are gone: it becomes Dead, and another replica fills it');
  const peers = others.map(([peer, state]) => `peer ${peer} (${state})`).join(', ');
  throw new TroupeError(
    'storage',
    'its files are gone, and no other replica of the shard is Active: put them back and start the node again, or give up what only it ' +
      `had: \`activate_replica\` has the shard go on with ${peers === '' ? 'nothing' : `another one: ${peers}`}`,
  );
}

/** An opening that fails is tried again as any other one; whoever sent the files hears of it. */
function install({ replyTo, staged }: InstallMessage, context: ReplicaContext): void {
  const { entry, folder, key, services, shardId } = context.props;
  const exchange = () => services.store.exchangeShard(entry.folder, shardId, staged);
  const opened = services.files.reopen(key, folder, () => configOf(context.props), exchange);
  context.settle(
    opened,
    (stats) => ({ kind: 'opened', stats }),
    (error) => ({ kind: 'openFailed', error }),
  );
  opened.then(
    () => context.reply(replyTo, true),
    (error: unknown) => context.fail(replyTo, error),
  );
}

function startOptimizer(context: ReplicaContext): ActorRef<OptimizerMessage> {
  const { key, entry, services } = context.props;
  const config = () => configOf(context.props);
  return context.spawn(optimizerBehaviour(), OPTIMIZER, { key, entry, config, services });
}

function showStoppedOptimizer(error: ErrorFacts, context: ReplicaContext): void {
  const { key, entry } = context.props;
  const finished = entry.optimizers.get(key)?.finished ?? [];
  entry.optimizers.set(key, { state: 'Stopped', builds: [], wanted: null, error, finished });
}

function configure({ config, replyTo }: Of<ReplicaEffect, 'configure'>, context: ReplicaContext): void {
  const { key, services } = context.props;
  services.engine.configure(key, config).then(
    () => {
      if (replyTo !== null) context.reply(replyTo, true);
    },
    (error: unknown) => {
      context.log.warn(`${context.path} goes on with its earlier configuration: ${String(error)}`);
      if (replyTo !== null) context.fail(replyTo, error);
    },
  );
}

function close(context: ReplicaContext): void {
  const { key, services } = context.props;
  const closed = services.files.close(key).catch((error: unknown) => {
    context.log.warn(`${context.path} could not be closed cleanly: ${String(error)}`);
  });
  context.settle(
    closed,
    () => ({ kind: 'closed' }),
    () => ({ kind: 'closed' }),
  );
}

/** As this node carries it out. A collection whose configuration cannot be read has no replicas. */
function configOf(props: ReplicaProps) {
  if (props.entry.config === null) throw new Error(`${props.key} has no configuration`);
  return ownConfig(props.entry.config, props.services.optimizersOverwrite);
}

function summarize(message: ReplicaMessage): string {
  switch (message.kind) {
    case 'opened':
    case 'stats':
      return `${message.stats.points} points, operation ${message.stats.appliedOperation}`;
    case 'openFailed':
    case 'failed':
    case 'optimizerStopped':
      return message.error.detail;
    case 'install':
      return message.staged;
    case 'indexCreated':
    case 'configure':
    case 'retry':
    case 'close':
    case 'closed':
      return '';
    default:
      return unreachable(message);
  }
}

/** The actor of a migration: calls the leaders of shards, has the end of each stage agreed on, and shows how far it is. */

import type { MigrationTask } from '../../cluster/apply/migration.js';
import type { TransferProgress } from '../../cluster/transfer/progress.js';
import { decideInRow, type Of, type Row } from '../../protocols/machine.js';
import type { ActorContext, Behaviour } from '../runtime/behaviour.js';
import { jittered, restartDelayMs } from '../runtime/restart.js';
import type { MigrationEffect, MigrationMessage } from './messages.js';
import type { MigrationPorts } from './ports.js';
import type { MigrationState } from './state.js';
import { startMigration, stepMigration } from './step.js';

export interface MigrationProps {
  readonly task: MigrationTask;
  readonly ports: MigrationPorts;
  /** Null: there is nothing to be shown any more. */
  readonly show: (progress: TransferProgress | null) => void;
}

type MigrationContext = ActorContext<MigrationProps, MigrationMessage>;
type EffectOf<Kind extends MigrationEffect['kind']> = Of<MigrationEffect, Kind>;

/** After an error that another call may not meet. */
const RETRY_SOON_MS = 50;
const RETRY = { delayMinMs: 250, delayMaxMs: 5000 };

export function migrationBehaviour(): Behaviour<MigrationProps, MigrationState, MigrationMessage, MigrationEffect> {
  return {
    kind: 'migration',
    start: ({ task }) => startMigration(task),
    step: stepMigration,
    perform: (effect, context) => decideInRow(EFFECTS, context, effect),
    summarize,
  };
}

const EFFECTS: Row<MigrationEffect, MigrationContext, void> = {
  watch: (context) => {
    const { ports, task } = context.props;
    context.onEnd(ports.watch(task, (part) => context.report({ kind: 'agreed', part, nowMs: ports.nowMs() })));
  },
  askShardMaps,
  copyIndexes: (context, { call, target }) => {
    const { ports, task } = context.props;
    settle(context, call, ports.copyIndexes(task, target), () => ({ kind: 'indexed', call }));
  },
  passBarrier: (context, { call, to }) => {
    const { ports, task } = context.props;
    settle(context, call, ports.passBarrier(task, to), (index) => ({ kind: 'barrierPassed', call, index }));
  },
  read,
  write: (context, { call, to, write }) => {
    const { ports, task } = context.props;
    settle(context, call, ports.write(task, to, write), () => ({ kind: 'written', call }));
  },
  finish: (context, { call, stage }) => {
    const { ports, task } = context.props;
    settle(context, call, ports.finish(task, stage), () => ({ kind: 'finished', call }));
  },
  retrySoon: (context, { call }) => context.after(RETRY_SOON_MS, { kind: 'retry', call }),
  retryLater: (context, { attempt, call }) => {
    context.after(jittered(restartDelayMs(attempt, RETRY), context.random.next()), { kind: 'retry', call });
  },
  show: (context, { progress }) => context.props.show(progress),
  log: (context, { level, text }) => context.log[level](`${describeMigration(context.props.task)} ${text}`),
};

/** Names a migration in logs. */
export function describeMigration({ collection, shardId }: MigrationTask): string {
  return `the migration of points of shard ${shardId} of ${collection}`;
}

function askShardMaps(context: MigrationContext, { call, peers, shardMapVersion }: EffectOf<'askShardMaps'>): void {
  const { ports, task } = context.props;
  const asked = peers.map(async (peer) => ((await ports.isInformed(peer, task, shardMapVersion)) ? [peer] : []));
  settle(context, call, Promise.all(asked), (informed) => ({ kind: 'informed', call, peers: informed.flat() }));
}

function read(context: MigrationContext, { ask, call, index, to }: EffectOf<'read'>): void {
  const { ports, task } = context.props;
  settle(context, call, ports.read(task, to, ask, index), ({ answer, position }): MigrationMessage => {
    switch (answer.kind) {
      case 'count':
        return { kind: 'counted', call, count: answer.count, nowMs: ports.nowMs() };
      case 'leaving':
        return { kind: 'pageRead', call, parts: answer.parts, next: answer.next, position };
      case 'ids':
        return { kind: 'idsRead', call, shardId: to.shardId, count: answer.count, ids: answer.ids, next: answer.next };
      case 'deletion':
        return { kind: 'deletionMade', call, count: answer.count, deletion: answer.operation, next: answer.next };
      default:
        return answer satisfies never;
    }
  });
}

function settle<Answer>(
  context: MigrationContext,
  call: number,
  promise: Promise<Answer>,
  message: (answer: Answer) => MigrationMessage,
): void {
  context.settle(promise, message, (error) => ({ kind: 'failed', call, error }));
}

function summarize(message: MigrationMessage): string {
  switch (message.kind) {
    case 'agreed':
      return message.part === null ? 'over' : `${message.part.migration.stage}${message.part.isDone ? ', done' : ''}`;
    case 'barrierPassed':
      return String(message.index);
    case 'counted':
    case 'idsRead':
    case 'deletionMade':
      return `${message.count} points`;
    case 'pageRead':
      return `${message.parts.reduce((sum, { points }) => sum + points, 0)} points`;
    case 'failed':
      return message.error.detail;
    default:
      return '';
  }
}

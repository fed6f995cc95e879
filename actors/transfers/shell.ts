/** The supervisor of a node's transfers and migrations: looks at the agreed state, keeps one actor for each of those of the shards led here. */

import type { HandOver } from '../../cluster/plans/leadership.js';
import type { GivingBack } from '../../cluster/state/giving-back.js';
import { nextBatch } from '../../cluster/transfer/batches.js';
import type { Comparison } from '../../cluster/transfer/comparing.js';
import type { IncomingFiles } from '../../cluster/transfer/runs.js';
import { type ErrorFacts, errorFacts } from '../../protocols/errors.js';
import { decideInRow, type Of, type Row } from '../../protocols/machine.js';
import type { MigrationPorts } from '../migration/ports.js';
import { describeMigration, migrationBehaviour } from '../migration/shell.js';
import type { ActorContext, Behaviour } from '../runtime/behaviour.js';
import type { TransferBoard } from './board.js';
import type { Sight, TransfersEffect, TransfersMessage, WhyHandedOver } from './messages.js';
import type { LeadingShard, TransferPorts } from './run/ports.js';
import { describe, transferBehaviour } from './run/shell.js';
import type { TransfersSettings, TransfersState } from './state.js';
import { startTransfers, stepTransfers } from './step.js';

export interface TransfersProps {
  readonly settings: TransfersSettings;
  readonly board: TransferBoard;
  readonly ports: TransferPorts;
  readonly migrationPorts: MigrationPorts;
  readonly look: () => Sight;
  readonly tickMs: number;
  /** See `Sight`. A comparison that begins, or that is no more this node's to make, is taken out. */
  readonly asked: Set<string>;
  readonly discardFiles: (files: IncomingFiles) => Promise<void>;
  /** Resolves when it is agreed; where it is not, the shard is led as before. */
  readonly handOver: (handOver: HandOver) => Promise<void>;
  /** Resolves when it is agreed. Errors: those of the peer's replica; `conflict` if it is empty, or if the shard has another term by now. */
  readonly giveBack: (lead: GivingBack) => Promise<void>;
  /** Of a shard that is led here; null: it is not, or not open. */
  readonly shardOf: (collection: string, uid: number, shardId: number) => LeadingShard | null;
}

type TransfersContext = ActorContext<TransfersProps, TransfersMessage>;
type EffectOf<Kind extends TransfersEffect['kind']> = Of<TransfersEffect, Kind>;

export function transfersBehaviour(): Behaviour<TransfersProps, TransfersState, TransfersMessage, TransfersEffect> {
  return {
    kind: 'transfers',
    start: ({ settings }) => startTransfers(settings),
    step: stepTransfers,
    perform: (effect, context) => decideInRow(EFFECTS, context, effect),
    summarize: (message) => ('error' in message && message.error !== null ? message.error.detail : ''),
    childFailed: (name, error) => ({ kind: 'childGaveUp', name, error }),
  };
}

const EFFECTS: Row<TransfersEffect, TransfersContext, void> = {
  tickLater: (context) => context.after(context.props.tickMs, { kind: 'tick' }),
  look: (context) => context.report({ kind: 'saw', sight: context.props.look() }),
  startRun: (context, { name, run }) => {
    const { board, ports } = context.props;
    board.show(name, run, null);
    context.log.info(`${describe(run)} begins`);
    context.spawn(transferBehaviour(), name, { run, ports, show: (progress) => board.show(name, run, progress) });
  },
  stopRun: (context, { name, outcome, release, run }) => {
    const { board, ports } = context.props;
    context.stopChild(name);
    if (release) ports.leadingShard(run)?.release(run.transfer.to);
    board.end(name, outcome, ports.nowMs());
    context.log.info(`${describe(run)} is ${outcome}`);
  },
  startMigration: (context, { task }) => {
    const { board, migrationPorts: ports } = context.props;
    context.log.info(`${describeMigration(task)} begins`);
    context.spawn(migrationBehaviour(), task.name, { task, ports, show: (progress) => board.showMigration(task, progress) });
  },
  stopMigration: (context, { error, task }) => {
    context.stopChild(task.name);
    context.props.board.showMigration(task, null);
    const text = error === null ? 'is over' : `begins again, as its actor crashed again and again: ${error.detail}`;
    context.log[error === null ? 'info' : 'warn'](`${describeMigration(task)} ${text}`);
  },
  discardFiles: (context, { files }) => {
    context.props.discardFiles(files).catch((error: unknown) => {
      context.log.warn(`what has arrived of a transfer that is over could not be removed: ${String(error)}`);
    });
  },
  propose: proposeHealing,
  compare: compareDigests,
  forgetAsked: ({ props: { asked } }, { names }) => {
    for (const name of names) asked.delete(name);
  },
  handOver: (context, { handOver, why }) => {
    context.props.handOver(handOver).then(
      () => context.report({ kind: 'handedOver', handOver, why, error: null }),
      (error: unknown) => context.report({ kind: 'handedOver', handOver, why, error: errorFacts(error) }),
    );
  },
  giveBack: (context, { lead }) => {
    context.props.giveBack(lead).then(
      () => context.report({ kind: 'gaveBack', lead, error: null }),
      (error: unknown) => context.report({ kind: 'gaveBack', lead, error: errorFacts(error) }),
    );
  },
  tellGivenBack,
  countHandOver,
  count: countComparison,
};

function proposeHealing(context: TransfersContext, { operations }: EffectOf<'propose'>): void {
  const { ports } = context.props;
  const all = operations.map((operation) =>
    ports.propose(operation).catch((error: unknown) => {
      context.log.info(`a transfer could not be ${operation.kind === 'startTransfer' ? 'started' : 'ended'}: ${errorFacts(error).detail}`);
    }),
  );
  void Promise.all(all).then(() => context.report({ kind: 'proposed' }));
}

function compareDigests(context: TransfersContext, { comparison }: EffectOf<'compare'>): void {
  const { collection, name, peerId, shardId, uid } = comparison;
  context.props.asked.delete(name);
  const shard = context.props.shardOf(collection, uid, shardId);
  const found = { differences: 0, repaired: 0 };
  const end = (error: ErrorFacts | null) => context.report({ kind: 'comparisonEnded', comparison, ...found, error });
  const missing: ErrorFacts = { code: 'unavailable', detail: 'the replica that leads the shard is not open' };
  if (shard === null) end(missing);
  else
    repair(shard, peerId, found).then(
      () => end(null),
      (error: unknown) => end(errorFacts(error)),
    );
}

/** What a follower has otherwise than its leader is replaced by what the leader has. */
async function repair(shard: LeadingShard, peerId: Comparison['peerId'], found: { differences: number; repaired: number }): Promise<void> {
  const compared = await shard.compare(peerId);
  found.differences = compared.buckets.length;
  let at = 0;
  let bytesPerPoint: number | null = null;
  while (at < compared.buckets.length) {
    const { buckets } = nextBatch(compared, at, bytesPerPoint);
    const { bytes, changed, points } = await shard.fill(peerId, buckets);
    found.repaired += changed;
    if (points > 0) bytesPerPoint = bytes / points;
    at += buckets.length;
  }
}

const WHY_HANDED_OVER: Readonly<Record<WhyHandedOver, string>> = {
  leaving: 'as its peer is drained',
  full: 'as its peer has a full disk',
  spread: 'so that peers lead equally many',
};

function countHandOver(context: TransfersContext, { error, handOver, why }: EffectOf<'countHandOver'>): void {
  const { collection, from, shardId, to } = handOver;
  const { handOvers } = context.props.board;
  const what = `the lead of shard ${shardId} of ${collection} from peer ${from} to peer ${to}`;
  if (error === null) {
    handOvers.done += 1;
    context.log.info(`${what} was handed over, ${WHY_HANDED_OVER[why]}`);
  } else {
    handOvers.failed += 1;
    context.log.info(`${what} could not be handed over: ${error.detail}`);
  }
}

function tellGivenBack(context: TransfersContext, { error, lead }: EffectOf<'tellGivenBack'>): void {
  const what = `the lead of shard ${lead.shardId} of ${lead.collection}`;
  if (error !== null) context.log.info(`${what} could not be given back to peer ${lead.to}: ${error.detail}`);
  else
    context.log.warn(`${what} was given back to peer ${lead.to}: this node's files were gone before it led, and that peer has everything`);
}

function countComparison(context: TransfersContext, { ended }: EffectOf<'count'>): void {
  const { comparison, differences, error, repaired } = ended;
  const { digests } = context.props.board;
  const what = `shard ${comparison.shardId} of ${comparison.collection} on peer ${comparison.peerId}`;
  digests.comparisons += 1;
  digests.differences += differences;
  digests.repaired += repaired;
  if (error !== null) {
    digests.failures += 1;
    context.log.info(`the digest of ${what} could not be compared with its leader's: ${error.detail}`);
  } else if (differences > 0) {
    context.log.warn(`${what} differed from its leader's replica in ${differences} buckets; ${repaired} points were repaired`);
  }
}

/** The supervisor of a node's transfers: looks at the agreed state, keeps one actor for each transfer of the shards led here. */

import type { HandOver } from '../../cluster/plans/leadership.js';
import { nextBatch } from '../../cluster/transfer/batches.js';
import type { Comparison } from '../../cluster/transfer/comparing.js';
import type { IncomingFiles } from '../../cluster/transfer/runs.js';
import { type ErrorFacts, errorFacts } from '../../protocols/errors.js';
import { type ActorContext, type Behaviour, unreachable } from '../runtime/behaviour.js';
import type { TransferBoard } from './board.js';
import type { Sight, TransfersEffect, TransfersMessage } from './messages.js';
import type { LeadingShard, TransferPorts } from './run/ports.js';
import { describe, transferBehaviour } from './run/shell.js';
import type { TransfersSettings, TransfersState } from './state.js';
import { startTransfers, stepTransfers } from './step.js';

export interface TransfersProps {
  readonly settings: TransfersSettings;
  readonly board: TransferBoard;
  readonly ports: TransferPorts;
  readonly look: () => Sight;
  readonly tickMs: number;
  readonly discardFiles: (files: IncomingFiles) => Promise<void>;
  /** Resolves when it is agreed; where it is not, the shard is led as before. */
  readonly handOver: (handOver: HandOver) => Promise<void>;
  /** Of a shard that is led here; null: it is not, or not open. */
  readonly shardOf: (collection: string, uid: number, shardId: number) => LeadingShard | null;
}

type TransfersContext = ActorContext<TransfersProps, TransfersMessage>;

export function transfersBehaviour(): Behaviour<TransfersProps, TransfersState, TransfersMessage, TransfersEffect> {
  return {
    kind: 'transfers',
    start: ({ settings }) => startTransfers(settings),
    step: stepTransfers,
    perform,
    summarize: (message) => ('error' in message && message.error !== null ? message.error.detail : ''),
    childFailed: (name, error) => ({ kind: 'transferGaveUp', name, error }),
  };
}

function perform(effect: TransfersEffect, context: TransfersContext): void {
  const { board, ports } = context.props;
  switch (effect.kind) {
    case 'tickLater':
      context.after(context.props.tickMs, { kind: 'tick' });
      break;
    case 'look':
      context.report({ kind: 'saw', sight: context.props.look() });
      break;
    case 'startRun': {
      const { name, run } = effect;
      board.show(name, run, null);
      context.log.info(`${describe(run)} begins`);
      context.spawn(transferBehaviour(), name, { run, ports, show: (progress) => board.show(name, run, progress) });
      break;
    }
    case 'stopRun': {
      const { name, outcome, release, run } = effect;
      context.stopChild(name);
      if (release) ports.leadingShard(run)?.release(run.transfer.to);
      board.end(name, outcome, ports.nowMs());
      context.log.info(`${describe(run)} is ${outcome}`);
      break;
    }
    case 'discardFiles':
      context.props.discardFiles(effect.files).catch((error: unknown) => {
        context.log.warn(`what has arrived of a transfer that is over could not be removed: ${String(error)}`);
      });
      break;
    case 'propose':
      propose(effect.operations, context);
      break;
    case 'compare':
      compare(effect.comparison, context);
      break;
    case 'handOver': {
      const { handOver } = effect;
      context.props.handOver(handOver).then(
        () => context.report({ kind: 'handedOver', handOver, error: null }),
        (error: unknown) => context.report({ kind: 'handedOver', handOver, error: errorFacts(error) }),
      );
      break;
    }
    case 'countHandOver':
      countHandOver(effect, context);
      break;
    case 'count':
      count(effect.ended, context);
      break;
    default:
      unreachable(effect);
  }
}

function propose(operations: Extract<TransfersEffect, { kind: 'propose' }>['operations'], context: TransfersContext): void {
  const { ports } = context.props;
  const all = operations.map((operation) =>
    ports.propose(operation).catch((error: unknown) => {
      context.log.info(`a transfer could not be ${operation.kind === 'startTransfer' ? 'started' : 'ended'}: ${errorFacts(error).detail}`);
    }),
  );
  void Promise.all(all).then(() => context.report({ kind: 'proposed' }));
}

function compare(comparison: Comparison, context: TransfersContext): void {
  const { collection, peerId, shardId, uid } = comparison;
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

function countHandOver(
  { error, handOver: { collection, from, shardId, to } }: Extract<TransfersEffect, { kind: 'countHandOver' }>,
  context: TransfersContext,
): void {
  const { handOvers } = context.props.board;
  const what = `the lead of shard ${shardId} of ${collection} from peer ${from} to peer ${to}`;
  if (error === null) {
    handOvers.done += 1;
    context.log.info(`${what} was handed over, so that peers lead equally many`);
  } else {
    handOvers.failed += 1;
    context.log.info(`${what} could not be handed over: ${error.detail}`);
  }
}

function count(
  { comparison, differences, error, repaired }: Extract<TransfersEffect, { kind: 'count' }>['ended'],
  context: TransfersContext,
) {
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

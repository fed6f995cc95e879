/** The actor of one run of a transfer: asks the leader's replica, has things agreed on, and shows how far it is. */

import type { TransferProgress } from '../../../cluster/transfer/progress.js';
import type { TransferRun } from '../../../cluster/transfer/runs.js';
import { TroupeError } from '../../../protocols/errors.js';
import { decideInRow, type Row } from '../../../protocols/machine.js';
import type { PeerId } from '../../../protocols/model/cluster.js';
import type { ActorContext, Behaviour } from '../../runtime/behaviour.js';
import { jittered, restartDelayMs } from '../../runtime/restart.js';
import type { TransferEffect, TransferRunMessage } from './messages.js';
import type { LeadingShard, TransferPorts } from './ports.js';
import type { TransferState } from './state.js';
import { startTransferRun, stepTransfer } from './step.js';

export interface TransferProps {
  readonly run: TransferRun;
  readonly ports: TransferPorts;
  readonly show: (progress: TransferProgress) => void;
}

type TransferContext = ActorContext<TransferProps, TransferRunMessage>;

const RETRY = { delayMinMs: 250, delayMaxMs: 10_000 };
/** Progress of files is told so often. */
const TELL_FILES_MS = 500;

export function transferBehaviour(): Behaviour<TransferProps, TransferState, TransferRunMessage, TransferEffect> {
  return {
    kind: 'transfer',
    start: ({ ports, run }) => startTransferRun(run, ports.nowMs()),
    step: stepTransfer,
    perform: (effect, context) => decideInRow(EFFECTS, context, effect),
    summarize,
  };
}

const EFFECTS: Row<TransferEffect, TransferContext, void> = {
  sendFiles,
  attach: (context, { mayReset }) => {
    const { nowMs, peer } = subjectOf(context);
    ask(
      context,
      (shard) => shard.attach(peer, mayReset),
      (attached) => ({ kind: 'attached', attached, nowMs: nowMs() }),
    );
  },
  compare: (context) => {
    const { nowMs, peer } = subjectOf(context);
    ask(
      context,
      (shard) => shard.compare(peer),
      (compared) => ({ kind: 'compared', compared, nowMs: nowMs() }),
    );
  },
  fill: (context, { buckets }) => {
    const { nowMs, peer } = subjectOf(context);
    ask(
      context,
      (shard) => shard.fill(peer, buckets),
      (filled) => ({ kind: 'filled', filled, nowMs: nowMs() }),
    );
  },
  require: (context) => {
    const { nowMs, peer } = subjectOf(context);
    ask(
      context,
      (shard) => shard.require(peer),
      () => ({ kind: 'required', nowMs: nowMs() }),
    );
  },
  pause: (context) => {
    const { ports, run } = context.props;
    // Where it could not stop the end is the same, and less smooth.
    const goOn = () => context.report({ kind: 'paused', nowMs: ports.nowMs() });
    (ports.leadingShard(run)?.pause() ?? Promise.resolve()).then(goOn, goOn);
  },
  resume: ({ props: { ports, run } }) => ports.leadingShard(run)?.resume(),
  propose: (context, { operation }) => {
    const { ports } = context.props;
    settle(context, ports.propose(operation), () => ({ kind: 'agreed', nowMs: ports.nowMs() }));
  },
  retryLater: (context, { attempt }) => {
    const delayMs = jittered(restartDelayMs(attempt, RETRY), context.random.next());
    // The time is that of the message's arrival.
    context.after(delayMs, { kind: 'retry', nowMs: context.props.ports.nowMs() + delayMs });
  },
  show: (context, { progress }) => context.props.show(progress),
  log: (context, { level, text }) => context.log[level](`${describe(context.props.run)} ${text}`),
};

function subjectOf({ props: { ports, run } }: TransferContext): { readonly peer: PeerId; readonly nowMs: () => number } {
  return { peer: run.transfer.to, nowMs: () => ports.nowMs() };
}

/** Names a transfer in logs. */
export function describe({ collection, transfer: { from, method, shardId, to } }: TransferRun): string {
  return `the transfer (${method}) of shard ${shardId} of ${collection} from peer ${from} to peer ${to as PeerId}`;
}

function ask<Answer>(
  context: TransferContext,
  question: (shard: LeadingShard) => Promise<Answer>,
  message: (answer: Answer) => TransferRunMessage,
): void {
  const { ports, run } = context.props;
  const shard = ports.leadingShard(run);
  const missing = new TroupeError('unavailable', 'the replica that leads the shard is not open');
  settle(context, shard === null ? Promise.reject(missing) : question(shard), message);
}

function settle<Answer>(context: TransferContext, promise: Promise<Answer>, message: (answer: Answer) => TransferRunMessage): void {
  const { ports, run } = context.props;
  context.settle(promise, message, (error) => ({ kind: 'failed', error, announced: ports.isAnnounced(run), nowMs: ports.nowMs() }));
}

function sendFiles(context: TransferContext): void {
  const { ports, run } = context.props;
  const given = new AbortController();
  context.onEnd(() => given.abort());
  let toldMs = 0;
  const onSent = (sent: number, total: number) => {
    const nowMs = ports.nowMs();
    if (given.signal.aborted || (nowMs - toldMs < TELL_FILES_MS && sent < total)) return;
    toldMs = nowMs;
    context.report({ kind: 'fileSent', sent, total, nowMs });
  };
  settle(context, ports.sendFiles(run, onSent, given.signal), () => ({ kind: 'filesInstalled', nowMs: ports.nowMs() }));
}

function summarize(message: TransferRunMessage): string {
  switch (message.kind) {
    case 'fileSent':
      return `${message.sent} of ${message.total} bytes`;
    case 'attached':
      return message.attached.how;
    case 'compared':
      return `${message.compared.buckets.length} buckets differ`;
    case 'filled':
      return `${message.filled.points} points, ${message.filled.changed} changed`;
    case 'failed':
      return message.error.detail;
    default:
      return '';
  }
}

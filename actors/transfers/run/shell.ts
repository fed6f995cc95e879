/** The actor of one run of a transfer: asks the leader's replica, has things agreed on, and shows how far it is. */

import type { TransferProgress } from '../../../cluster/transfer/progress.js';
import type { TransferRun } from '../../../cluster/transfer/runs.js';
import { TroupeError } from '../../../protocols/errors.js';
import type { PeerId } from '../../../protocols/model/cluster.js';
import { type ActorContext, type Behaviour, unreachable } from '../../runtime/behaviour.js';
import { jittered, restartDelayMs } from '../../runtime/restart.js';
import type { TransferEffect, TransferMessage } from './messages.js';
import type { LeadingShard, TransferPorts } from './ports.js';
import type { TransferState } from './state.js';
import { startTransfer, stepTransfer } from './step.js';

export interface TransferProps {
  readonly run: TransferRun;
  readonly ports: TransferPorts;
  readonly show: (progress: TransferProgress) => void;
}

type TransferContext = ActorContext<TransferProps, TransferMessage>;

const RETRY = { delayMinMs: 250, delayMaxMs: 10_000 };
/** Progress of files is told so often. */
const TELL_FILES_MS = 500;

export function transferBehaviour(): Behaviour<TransferProps, TransferState, TransferMessage, TransferEffect> {
  function perform(effect: TransferEffect, context: TransferContext): void {
    const { ports, run, show } = context.props;
    const peer = run.transfer.to;
    const nowMs = () => ports.nowMs();
    switch (effect.kind) {
      case 'sendFiles':
        sendFiles(context);
        break;
      case 'attach':
        ask(
          context,
          (shard) => shard.attach(peer, effect.mayReset),
          (attached) => ({ kind: 'attached', attached, nowMs: nowMs() }),
        );
        break;
      case 'compare':
        ask(
          context,
          (shard) => shard.compare(peer),
          (compared) => ({ kind: 'compared', compared, nowMs: nowMs() }),
        );
        break;
      case 'fill':
        ask(
          context,
          (shard) => shard.fill(peer, effect.buckets),
          (filled) => ({ kind: 'filled', filled, nowMs: nowMs() }),
        );
        break;
      case 'require':
        ask(
          context,
          (shard) => shard.require(peer),
          () => ({ kind: 'required', nowMs: nowMs() }),
        );
        break;
      case 'pause': {
        // Where it could not stop the end is the same, and less smooth.
        const goOn = () => context.report({ kind: 'paused', nowMs: nowMs() });
        (ports.leadingShard(run)?.pause() ?? Promise.resolve()).then(goOn, goOn);
        break;
      }
      case 'resume':
        ports.leadingShard(run)?.resume();
        break;
      case 'propose':
        settle(context, ports.propose(effect.operation), () => ({ kind: 'agreed', nowMs: nowMs() }));
        break;
      case 'retryLater': {
        const delayMs = jittered(restartDelayMs(effect.attempt, RETRY), context.random.next());
        // The time is that of the message's arrival.
        context.after(delayMs, { kind: 'retry', nowMs: nowMs() + delayMs });
        break;
      }
      case 'show':
        show(effect.progress);
        break;
      case 'log':
        context.log[effect.level](`${describe(run)} ${effect.text}`);
        break;
      default:
        unreachable(effect);
    }
  }

  return {
    kind: 'transfer',
    start: ({ ports, run }) => startTransfer(run, ports.nowMs()),
    step: stepTransfer,
    perform,
    summarize,
  };
}

/** Names a transfer in logs. */
export function describe({ collection, transfer: { from, method, shardId, to } }: TransferRun): string {
  return `the transfer (${method}) of shard ${shardId} of ${collection} from peer ${from} to peer ${to as PeerId}`;
}

function ask<Answer>(
  context: TransferContext,
  question: (shard: LeadingShard) => Promise<Answer>,
  message: (answer: Answer) => TransferMessage,
): void {
  const { ports, run } = context.props;
  const shard = ports.leadingShard(run);
  const missing = new TroupeError('unavailable', 'the replica that leads the shard is not open');
  settle(context, shard === null ? Promise.reject(missing) : question(shard), message);
}

function settle<Answer>(context: TransferContext, promise: Promise<Answer>, message: (answer: Answer) => TransferMessage): void {
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

function summarize(message: TransferMessage): string {
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

/**
 * What a transfer does about each message in each state.
 *
 * - M1. The target becomes Active only after its digest was the leader's after the same operation, and it was required from then on:
 *   also where its log continued the leader's, as an earlier run may have reset the log and been cut short.
 * - M2. What was required stays so until it is agreed what the transfer came to: `finishTransfer` without an answer is proposed again.
 * - M3. Whatever fails is tried again, from the attaching on; after `FAILURES_MAX` failures without a point that was brought in between
 *   the transfer is aborted.
 * - M4. A `wal_delta` whose difference cannot be had from the log goes on as `stream_records`. What the target alone had logged is taken out of
 *   its log; the few points that this had changed are sent.
 * - M9. A leader that hands its shard over takes no writes while the end is agreed on, and none is under way then: it leads on where it is
 *   not agreed.
 */

import { nextBatch } from '../../../cluster/transfer/batches.js';
import { noProgress, type TransferProgress, type TransferStage } from '../../../cluster/transfer/progress.js';
import { keyOf, type TransferRun } from '../../../cluster/transfer/runs.js';
import type { ErrorFacts } from '../../../protocols/errors.js';
import type { TransferMethod } from '../../../protocols/model/cluster.js';
import { become, type Step, unreachable } from '../../runtime/behaviour.js';
import type { TransferEffect, TransferMessage } from './messages.js';
import type { Filling, TransferState, Waiting } from './state.js';

type TransferStep = Step<TransferState, TransferEffect>;
type MessageOf<Kind extends TransferMessage['kind']> = Extract<TransferMessage, { kind: Kind }>;
type StateKind = TransferState['kind'];

export type TransferMove =
  | 'ignore'
  | 'count'
  | 'attach'
  | 'attached'
  | 'announced'
  | 'compared'
  | 'filled'
  | 'required'
  | 'finish'
  | 'end'
  | 'fail'
  | 'tryAgain';

/** With waiting from 0.25 s to 10 s in between, that is about two minutes. */
export const FAILURES_MAX = 15;
/** Buckets that were sent are the leader's from then on, so one is enough. */
const ROUNDS_MAX = 8;

const NOTHING: Readonly<Record<TransferMessage['kind'], TransferMove>> = {
  fileSent: 'ignore',
  filesInstalled: 'ignore',
  attached: 'ignore',
  compared: 'ignore',
  filled: 'ignore',
  required: 'ignore',
  paused: 'ignore',
  agreed: 'ignore',
  failed: 'ignore',
  retry: 'ignore',
};

/** States × messages: each state has one answer that it waits for, or its failure. */
export const TRANSFER_MOVES: Readonly<Record<StateKind, Readonly<Record<TransferMessage['kind'], TransferMove>>>> = {
  Copying: { ...NOTHING, fileSent: 'count', filesInstalled: 'attach', failed: 'fail' },
  Attaching: { ...NOTHING, attached: 'attached', failed: 'fail' },
  Announcing: { ...NOTHING, agreed: 'announced', failed: 'fail' },
  Comparing: { ...NOTHING, compared: 'compared', failed: 'fail' },
  Filling: { ...NOTHING, filled: 'filled', failed: 'fail' },
  Requiring: { ...NOTHING, required: 'required', failed: 'fail' },
  Pausing: { ...NOTHING, paused: 'finish' },
  Finishing: { ...NOTHING, agreed: 'end', failed: 'fail' },
  Restarting: { ...NOTHING, agreed: 'end', failed: 'fail' },
  Aborting: { ...NOTHING, agreed: 'end', failed: 'fail' },
  Waiting: { ...NOTHING, retry: 'tryAgain' },
  Done: NOTHING,
};

export function startTransfer(run: TransferRun, nowMs: number): TransferStep {
  const { method } = run.transfer;
  const announced = run.target === 'Partial';
  const common = { run, progress: noProgress(method, 'attaching', nowMs), announced, rewound: false, rounds: 0, bytesPerPoint: null };
  // An earlier run may have put the files in place already.
  return method === 'snapshot' && !announced ? copy(common) : attach(common);
}

export function stepTransfer(state: TransferState, message: TransferMessage): TransferStep {
  const move = TRANSFER_MOVES[state.kind][message.kind];
  switch (move) {
    case 'ignore':
      return become(state);
    case 'count': {
      const { nowMs, sent, total } = message as MessageOf<'fileSent'>;
      return shown(state, counted(state.progress, total, sent, 'bytes', nowMs));
    }
    case 'attach':
      return attach({ ...well(state), announced: false });
    case 'attached':
      return attached(state, message as MessageOf<'attached'>);
    case 'announced':
      return compare({ ...state, announced: true });
    case 'compared':
      return compared(state, message as MessageOf<'compared'>);
    case 'filled':
      return filled(well(state as Filling), message as MessageOf<'filled'>);
    case 'required':
      return required(state);
    case 'finish':
      return finish(state);
    case 'end':
      return enter({ ...state, kind: 'Done' }, 'done');
    case 'fail':
      return failed(state, message as MessageOf<'failed'>);
    case 'tryAgain':
      return tryAgain(state as Waiting);
    default:
      return unreachable(move);
  }
}

type Common = Pick<TransferState, 'run' | 'progress' | 'announced' | 'rewound' | 'rounds' | 'bytesPerPoint'>;

function copy(state: Common): TransferStep {
  return enter({ ...common(state), kind: 'Copying' }, 'copying files', { kind: 'sendFiles' });
}

function attach(state: Common): TransferStep {
  const { run } = state;
  // A delta that was announced was possible once: an earlier run of it was cut short.
  const mayReset = run.transfer.method !== 'wal_delta';
  return enter({ ...common(state), kind: 'Attaching' }, 'attaching', { kind: 'attach', mayReset });
}

function attached(state: Common, { attached: { how } }: MessageOf<'attached'>): TransferStep {
  if (how === 'refused') return restart(state, 'stream_records', 'its log does not continue from what the target has');
  // After a reset everything has to be looked at anew.
  const next = how === 'reset' ? { ...common(state), rounds: 0 } : { ...common(state), rewound: state.rewound || how === 'rewound' };
  if (state.announced) return compare(next);
  const { collection, transfer, uid } = state.run;
  const change = { collection, uid, shardId: transfer.shardId, peerId: transfer.to, from: state.run.target, to: 'Partial' } as const;
  const operation = { kind: 'setReplicaStates', changes: [{ ...change, clock: state.run.term }] } as const;
  return enter({ ...common(next), kind: 'Announcing' }, 'announcing', { kind: 'propose', operation });
}

function compare(state: Common): TransferStep {
  return enter({ ...common(state), kind: 'Comparing' }, 'comparing', { kind: 'compare' });
}

function compared(state: Common, { compared, nowMs }: MessageOf<'compared'>): TransferStep {
  if (compared.buckets.length === 0) return enter({ ...common(state), kind: 'Requiring' }, 'catching up', { kind: 'require' });
  const { method } = state.run.transfer;
  if (method === 'wal_delta' && !state.rewound)
    return restart(state, 'stream_records', `${compared.buckets.length} buckets differ after the delta`);
  if (state.rounds >= ROUNDS_MAX)
    return fail(state, { code: 'internal', detail: `${compared.buckets.length} buckets still differ after they were sent` });
  const total = compared.points.reduce((sum, points) => sum + points, 0);
  const progress = { ...state.progress, total, sent: 0, unit: 'points', sendingSinceMs: nowMs } as const;
  return fill({ ...common(state), progress, kind: 'Filling', differences: compared, next: 0 });
}

function fill(state: Filling): TransferStep {
  const { buckets } = nextBatch(state.differences, state.next, state.bytesPerPoint);
  return enter({ ...state, next: state.next + buckets.length }, 'filling', { kind: 'fill', buckets });
}

function filled(state: Filling, { filled: { bytes, points }, nowMs }: MessageOf<'filled'>): TransferStep {
  const { progress } = state;
  const counts = counted({ ...progress, bytes: progress.bytes + bytes }, progress.total, progress.sent + points, 'points', nowMs);
  const bytesPerPoint = points === 0 ? state.bytesPerPoint : bytes / points;
  const next = { ...state, progress: counts, bytesPerPoint };
  return next.next < next.differences.buckets.length ? fill(next) : compare({ ...next, rounds: next.rounds + 1 });
}

/** M9 */
function required(state: Common): TransferStep {
  if (!state.run.handsOver) return finish(state);
  return enter({ ...common(state), kind: 'Pausing' }, 'finishing', { kind: 'pause' });
}

function finish(state: Common): TransferStep {
  const { collection, term, transfer } = state.run;
  const operation = { kind: 'finishTransfer', collection, transfer: keyOf(transfer), clock: term } as const;
  return enter({ ...common(state), kind: 'Finishing' }, 'finishing', { kind: 'propose', operation });
}

function restart(state: Common, method: TransferMethod, reason: string): TransferStep {
  const { collection, term, transfer } = state.run;
  const operation = { kind: 'restartTransfer', collection, transfer: keyOf(transfer), method, clock: term } as const;
  const text = `goes on with ${method}: ${reason}`;
  const next = { ...common(state), kind: 'Restarting', method } as const;
  return enter(next, 'falling back', { kind: 'log', level: 'info', text }, { kind: 'propose', operation });
}

function abort(state: Common, reason: string): TransferStep {
  const { collection, term, transfer } = state.run;
  const operation = { kind: 'abortTransfer', collection, transfer: keyOf(transfer), reason, clock: term } as const;
  return enter({ ...common(state), kind: 'Aborting', reason }, 'aborting', { kind: 'propose', operation });
}

/** Files are there once the target is announced, and it would take no others. */
function failed(state: TransferState, { announced, error }: MessageOf<'failed'>): TransferStep {
  const known = announced && !state.announced ? { ...state, announced } : state;
  return fail(known, error);
}

/** A pause, and then again; an end of its own when it failed too often. */
function fail(state: TransferState | Common, error: ErrorFacts): TransferStep {
  const failures = state.progress.failures + 1;
  const progress: TransferProgress = { ...state.progress, failures, cause: error.detail };
  const again = { ...common(state), progress };
  const kind = 'kind' in state ? state.kind : 'Attaching';
  const reason = kind === 'Aborting' ? (state as { reason: string }).reason : error.detail;
  const method = kind === 'Restarting' ? (state as { method: TransferMethod }).method : state.run.transfer.method;
  const then = againOf(kind, state);
  if (failures >= FAILURES_MAX && givesUp(then, error)) return abort(again, `${failures} tries failed: ${error.detail}`);
  const text = `failed ${failures} ${failures === 1 ? 'time' : 'times'}: ${error.detail}`;
  return enter(
    { ...again, kind: 'Waiting', then, method, reason },
    'waiting',
    ...resumed(kind, state),
    { kind: 'log', level: failures === 1 ? 'info' : 'warn', text },
    { kind: 'retryLater', attempt: failures },
  );
}

function resumed(kind: StateKind, { run }: Common): TransferEffect[] {
  return kind === 'Finishing' && run.handsOver ? [{ kind: 'resume' }] : [];
}

/** A cluster that cannot agree on anything for a while does not make a transfer worthless. */
function givesUp(then: Waiting['then'], { code }: ErrorFacts): boolean {
  if (then === 'abort' || then === 'restart') return false;
  return then !== 'finish' || (code !== 'unavailable' && code !== 'timeout' && code !== 'busy');
}

function againOf(kind: StateKind, { announced }: Common): Waiting['then'] {
  switch (kind) {
    case 'Copying':
      return announced ? 'attach' : 'copy';
    case 'Finishing':
      return 'finish';
    case 'Restarting':
      return 'restart';
    case 'Aborting':
      return 'abort';
    default:
      return 'attach';
  }
}

function tryAgain(state: Waiting): TransferStep {
  switch (state.then) {
    case 'copy':
      return copy(state);
    case 'attach':
      return attach(state);
    case 'finish':
      return required(state);
    case 'restart':
      return restart(state, state.method, state.reason);
    case 'abort':
      return abort(state, state.reason);
    default:
      return unreachable(state.then);
  }
}

/** The state with the stage shown, and its effects. */
function enter<State extends TransferState>(state: State, stage: TransferStage, ...effects: TransferEffect[]): TransferStep {
  return shown(state, { ...state.progress, stage }, ...effects);
}

function shown(state: TransferState, progress: TransferProgress, ...effects: TransferEffect[]): TransferStep {
  return become<TransferState, TransferEffect>({ ...state, progress }, { kind: 'show', progress }, ...effects);
}

function counted(progress: TransferProgress, total: number, sent: number, unit: TransferProgress['unit'], nowMs: number): TransferProgress {
  const sendingSinceMs = progress.total === 0 ? nowMs : progress.sendingSinceMs;
  return { ...progress, total, sent, unit, sendingSinceMs };
}

/** Something was brought: earlier failures do not count. */
function well<State extends TransferState>(state: State): State {
  return state.progress.failures === 0 ? state : { ...state, progress: { ...state.progress, failures: 0, cause: null } };
}

function common({ announced, bytesPerPoint, progress, rewound, rounds, run }: Common): Common {
  return { run, progress, announced, rewound, rounds, bytesPerPoint };
}

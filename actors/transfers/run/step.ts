/**
 * What a transfer does about each message in each state.
 *
 * Its rules are Transfer-M1 to Transfer-M4 and Transfer-M9 in actors/README.md.
 */

import { nextBatch } from '../../../cluster/transfer/batches.js';
import { noProgress, type TransferProgress, type TransferStage } from '../../../cluster/transfer/progress.js';
import { keyOf, type TransferRun } from '../../../cluster/transfer/runs.js';
import type { ErrorFacts } from '../../../protocols/errors.js';
import { decide, decideInRow, ignore, type Of, type Row, type Table } from '../../../protocols/machine.js';
import type { TransferMethod } from '../../../protocols/model/cluster.js';
import { become, type Step } from '../../runtime/behaviour.js';
import type { TransferEffect, TransferRunMessage } from './messages.js';
import type { Aborting, Attaching, Comparing, Copying, Filling, Finishing, Restarting, Retried, TransferState, Waiting } from './state.js';

type TransferStep = Step<TransferState, TransferEffect>;
type MessageOf<Kind extends TransferRunMessage['kind']> = Of<TransferRunMessage, Kind>;

/** With waiting from 0.25 s to 10 s in between, that is about two minutes. */
export const FAILURES_MAX = 15;
/** Buckets that were sent are the leader's from then on, so one is enough. */
const ROUNDS_MAX = 8;

const IGNORE_ALL: Row<TransferRunMessage, TransferState, TransferStep> = {
  fileSent: ignore,
  filesInstalled: ignore,
  attached: ignore,
  compared: ignore,
  filled: ignore,
  required: ignore,
  paused: ignore,
  agreed: ignore,
  failed: ignore,
  retry: ignore,
};

/** Each state has one answer that it waits for, or its failure. */
export const TRANSFER_TABLE: Table<TransferState, TransferRunMessage, TransferStep> = {
  Copying: { ...IGNORE_ALL, fileSent: countBytes, filesInstalled: attachWithFiles, failed: failCopying },
  Attaching: { ...IGNORE_ALL, attached: takeAttached, failed: failAttaching },
  Announcing: { ...IGNORE_ALL, agreed: compareAnnounced, failed: failAttaching },
  Comparing: { ...IGNORE_ALL, compared: takeCompared, failed: failAttaching },
  Filling: { ...IGNORE_ALL, filled: takeFilled, failed: failAttaching },
  Requiring: { ...IGNORE_ALL, required: pauseOrFinish, failed: failAttaching },
  Pausing: { ...IGNORE_ALL, paused: finish },
  Finishing: { ...IGNORE_ALL, agreed: becomeDone, failed: failFinishing },
  Restarting: { ...IGNORE_ALL, agreed: becomeDone, failed: failRestarting },
  Aborting: { ...IGNORE_ALL, agreed: becomeDone, failed: failAborting },
  Waiting: { ...IGNORE_ALL, retry: tryAgain },
  Done: IGNORE_ALL,
};

/** What is tried again after a pause. */
const RETRIES: Row<Retried, Waiting, TransferStep> = {
  copy: (state) => copy(state),
  attach: (state) => attach(state),
  finish: (state) => pauseOrFinish(state),
  restart: (state, { method, reason }) => restart(state, method, reason),
  abort: (state, { reason }) => abort(state, reason),
};

export function startTransferRun(run: TransferRun, nowMs: number): TransferStep {
  const { method } = run.transfer;
  const announced = run.target === 'Partial';
  const common = { run, progress: noProgress(method, 'attaching', nowMs), announced, rewound: false, rounds: 0, bytesPerPoint: null };
  // An earlier run may have put the files in place already.
  return method === 'snapshot' && !announced ? copy(common) : attach(common);
}

export function stepTransfer(state: TransferState, message: TransferRunMessage): TransferStep {
  return decide(TRANSFER_TABLE, state, message);
}

type Common = Pick<TransferState, 'run' | 'progress' | 'announced' | 'rewound' | 'rounds' | 'bytesPerPoint'>;

function countBytes(state: Copying, { nowMs, sent, total }: MessageOf<'fileSent'>): TransferStep {
  return shown(state, counted(state.progress, total, sent, 'bytes', nowMs));
}

function copy(state: Common): TransferStep {
  return enter({ ...common(state), kind: 'Copying' }, 'copying files', { kind: 'sendFiles' });
}

/** Files that were brought are a success: earlier failures do not count. */
function attachWithFiles(state: Copying): TransferStep {
  return attach({ ...well(state), announced: false });
}

function attach(state: Common): TransferStep {
  const { run } = state;
  // A delta that was announced was possible once: an earlier run of it was cut short.
  const mayReset = run.transfer.method !== 'wal_delta';
  return enter({ ...common(state), kind: 'Attaching' }, 'attaching', { kind: 'attach', mayReset });
}

function takeAttached(state: Attaching, { attached: { how } }: MessageOf<'attached'>): TransferStep {
  if (how === 'refused') return restart(state, 'stream_records', 'its log does not continue from what the target has');
  // After a reset everything has to be looked at anew.
  const next = how === 'reset' ? { ...common(state), rounds: 0 } : { ...common(state), rewound: state.rewound || how === 'rewound' };
  if (state.announced) return compare(next);
  const { collection, transfer, uid } = state.run;
  const change = { collection, uid, shardId: transfer.shardId, peerId: transfer.to, from: state.run.target, to: 'Partial' } as const;
  const operation = { kind: 'setReplicaStates', changes: [{ ...change, term: state.run.term }] } as const;
  return enter({ ...common(next), kind: 'Announcing' }, 'announcing', { kind: 'propose', operation });
}

function compareAnnounced(state: Common): TransferStep {
  return compare({ ...state, announced: true });
}

function compare(state: Common): TransferStep {
  return enter({ ...common(state), kind: 'Comparing' }, 'comparing', { kind: 'compare' });
}

function takeCompared(state: Comparing, { compared, nowMs }: MessageOf<'compared'>): TransferStep {
  if (compared.buckets.length === 0) return enter({ ...common(state), kind: 'Requiring' }, 'catching up', { kind: 'require' });
  const { method } = state.run.transfer;
  if (method === 'wal_delta' && !state.rewound)
    return restart(state, 'stream_records', `${compared.buckets.length} buckets differ after the delta`);
  if (state.rounds >= ROUNDS_MAX)
    return fail(state, { code: 'internal', detail: `${compared.buckets.length} buckets still differ after they were sent` }, ATTACH);
  const total = compared.points.reduce((sum, points) => sum + points, 0);
  const progress = { ...state.progress, total, sent: 0, unit: 'points', sendingSinceMs: nowMs } as const;
  return fill({ ...common(state), progress, kind: 'Filling', differences: compared, next: 0 });
}

function fill(state: Filling): TransferStep {
  const { buckets } = nextBatch(state.differences, state.next, state.bytesPerPoint);
  return enter({ ...state, next: state.next + buckets.length }, 'filling', { kind: 'fill', buckets });
}

function takeFilled(before: Filling, { filled: { bytes, points }, nowMs }: MessageOf<'filled'>): TransferStep {
  const state = well(before);
  const { progress } = state;
  const counts = counted({ ...progress, bytes: progress.bytes + bytes }, progress.total, progress.sent + points, 'points', nowMs);
  const bytesPerPoint = points === 0 ? state.bytesPerPoint : bytes / points;
  const next = { ...state, progress: counts, bytesPerPoint };
  return next.next < next.differences.buckets.length ? fill(next) : compare({ ...next, rounds: next.rounds + 1 });
}

/** Transfer-M9 */
function pauseOrFinish(state: Common): TransferStep {
  if (!state.run.handsOver) return finish(state);
  return enter({ ...common(state), kind: 'Pausing' }, 'finishing', { kind: 'pause' });
}

function finish(state: Common): TransferStep {
  const { collection, term, transfer } = state.run;
  const operation = { kind: 'finishTransfer', collection, transfer: keyOf(transfer), term } as const;
  return enter({ ...common(state), kind: 'Finishing' }, 'finishing', { kind: 'propose', operation });
}

function restart(state: Common, method: TransferMethod, reason: string): TransferStep {
  const { collection, term, transfer } = state.run;
  const operation = { kind: 'restartTransfer', collection, transfer: keyOf(transfer), method, term } as const;
  const text = `goes on with ${method}: ${reason}`;
  const next = { ...common(state), kind: 'Restarting', method } as const;
  return enter(next, 'falling back', { kind: 'log', level: 'info', text }, { kind: 'propose', operation });
}

function abort(state: Common, reason: string): TransferStep {
  const { collection, term, transfer } = state.run;
  const operation = { kind: 'abortTransfer', collection, transfer: keyOf(transfer), reason, term } as const;
  return enter({ ...common(state), kind: 'Aborting', reason }, 'aborting', { kind: 'propose', operation });
}

function becomeDone(state: Finishing | Restarting | Aborting): TransferStep {
  return enter({ ...common(state), kind: 'Done' }, 'done');
}

const ATTACH: Retried = { kind: 'attach' };

/** Files are there once the target is announced, and it would take no others. */
function failCopying(state: Copying, message: MessageOf<'failed'>): TransferStep {
  const known = withAnnounced(state, message);
  const { detail, reason } = message.error;
  // The same files would take as long once more.
  if (reason === 'checkpointLost' && !known.announced) return restart(known, 'stream_records', detail);
  return fail(known, message.error, known.announced ? ATTACH : { kind: 'copy' });
}

function failAttaching(state: Common, message: MessageOf<'failed'>): TransferStep {
  return fail(withAnnounced(state, message), message.error, ATTACH);
}

/** Transfer-M9: the leader leads on meanwhile. */
function failFinishing(state: Finishing, message: MessageOf<'failed'>): TransferStep {
  const resumed: TransferEffect[] = state.run.handsOver ? [{ kind: 'resume' }] : [];
  return fail(withAnnounced(state, message), message.error, { kind: 'finish' }, resumed);
}

function failRestarting(state: Restarting, message: MessageOf<'failed'>): TransferStep {
  const { error } = message;
  return fail(withAnnounced(state, message), error, { kind: 'restart', method: state.method, reason: error.detail });
}

function failAborting(state: Aborting, message: MessageOf<'failed'>): TransferStep {
  return fail(withAnnounced(state, message), message.error, { kind: 'abort', reason: state.reason });
}

function withAnnounced(state: Common, { announced }: MessageOf<'failed'>): Common {
  return announced && !state.announced ? { ...state, announced } : state;
}

/** A pause, and then `retried`; the transfer is aborted when it failed too often. */
function fail(state: Common, error: ErrorFacts, retried: Retried, resumed: readonly TransferEffect[] = []): TransferStep {
  const failures = state.progress.failures + 1;
  const progress: TransferProgress = { ...state.progress, failures, cause: error.detail };
  const again = { ...common(state), progress };
  if (failures >= FAILURES_MAX && isHopeless(retried, error)) return abort(again, `${failures} tries failed: ${error.detail}`);
  const text = `failed ${failures} ${failures === 1 ? 'time' : 'times'}: ${error.detail}`;
  return enter(
    { ...again, kind: 'Waiting', retried },
    'waiting',
    ...resumed,
    { kind: 'log', level: failures === 1 ? 'info' : 'warn', text },
    { kind: 'retryLater', attempt: failures },
  );
}

/** A cluster that cannot agree on anything for a while does not make a transfer worthless. */
function isHopeless({ kind }: Retried, { code }: ErrorFacts): boolean {
  if (kind === 'abort' || kind === 'restart') return false;
  return kind !== 'finish' || (code !== 'unavailable' && code !== 'timeout' && code !== 'busy');
}

function tryAgain(state: Waiting): TransferStep {
  return decideInRow(RETRIES, state, state.retried);
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

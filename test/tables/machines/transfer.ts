/** Sample messages of one run of a transfer, and of the supervisor of a node's transfers. */

import type { TransfersMessage } from '../../../actors/transfers/messages.js';
import type { TransferRunMessage } from '../../../actors/transfers/run/messages.js';
import type { TransferState } from '../../../actors/transfers/run/state.js';
import { FAILURES_MAX, startTransferRun, stepTransfer } from '../../../actors/transfers/run/step.js';
import type { TransfersState } from '../../../actors/transfers/state.js';
import { startTransfers, stepTransfers } from '../../../actors/transfers/step.js';
import type { TransferRun } from '../../../cluster/transfer/runs.js';
import type { ErrorFacts } from '../../../protocols/errors.js';
import type { ReplicaState, TransferMethod } from '../../../protocols/model/cluster.js';
import { stateOf, transferOf } from '../../cluster/transfer/support.js';
import type { Machine } from '../walk.js';

const nowMs = 1000;
const AWAY: ErrorFacts = { code: 'unavailable', detail: 'the peer is away' };

function begun(method: TransferMethod, target: ReplicaState, handsOver: boolean): TransferState {
  const run: TransferRun = { collection: 'c', uid: 5, term: 3, transfer: transferOf({ method }), target, handsOver };
  const { state } = startTransferRun(run, nowMs);
  // The next failure is the last one.
  return { ...state, progress: { ...state.progress, failures: FAILURES_MAX - 2 } };
}

const MESSAGES: readonly TransferRunMessage[] = [
  { kind: 'fileSent', sent: 10, total: 10, nowMs },
  { kind: 'filesInstalled', nowMs },
  { kind: 'attached', attached: { how: 'refused', entries: 0 }, nowMs },
  { kind: 'attached', attached: { how: 'delta', entries: 0 }, nowMs },
  { kind: 'compared', compared: { buckets: [1], points: [1], total: 10 }, nowMs },
  { kind: 'compared', compared: { buckets: [], points: [], total: 10 }, nowMs },
  { kind: 'filled', filled: { changed: 1, points: 1, bytes: 100 }, nowMs },
  { kind: 'required', nowMs },
  { kind: 'paused', nowMs },
  { kind: 'agreed', nowMs },
  { kind: 'failed', error: AWAY, announced: false, nowMs },
  { kind: 'retry', nowMs },
];

export const TRANSFER: Machine<TransferState, TransferRunMessage> = {
  step: stepTransfer,
  starts: [begun('snapshot', 'PartialSnapshot', false), begun('wal_delta', 'Recovery', false), begun('stream_records', 'Partial', true)],
  inputs: () => MESSAGES,
};

const HAND_OVER = { collection: 'c', uid: 5, shardId: 0, from: 2, to: 3, term: 1 };
const COMPARISON = { name: 'c/0/2', collection: 'c', uid: 5, shardId: 0, peerId: 2 };
const AGREED = stateOf([{ 1: 'Active', 2: 'Partial' }], [{}]);
const SIGHT = {
  agreed: AGREED,
  self: 1,
  leads: false,
  reachable: new Set([1, 2]),
  full: new Set<number>(),
  givingBack: [],
  asked: new Set<string>(),
};

const SUPERVISOR_MESSAGES: readonly TransfersMessage[] = [
  { kind: 'tick' },
  { kind: 'saw', sight: SIGHT },
  { kind: 'proposed' },
  { kind: 'comparisonEnded', comparison: COMPARISON, differences: 0, repaired: 0, error: null },
  { kind: 'handedOver', handOver: HAND_OVER, why: 'spread', error: null },
  { kind: 'gaveBack', lead: { collection: 'c', uid: 5, shardId: 0, from: 1, to: 2, term: 4, since: 1 }, error: null },
  { kind: 'childGaveUp', name: 'c', error: AWAY },
];

export const TRANSFERS: Machine<TransfersState, TransfersMessage> = {
  step: stepTransfers,
  starts: [startTransfers({ limits: { incoming: 1, outgoing: 1 }, comparePeriodTicks: 0, restTicks: 0 }).state],
  inputs: ({ ticks }) => (ticks < 2 ? SUPERVISOR_MESSAGES : []),
};

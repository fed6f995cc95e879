import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TransferEffect, TransferRunMessage } from '../../../../actors/transfers/run/messages.js';
import type { TransferState } from '../../../../actors/transfers/run/state.js';
import { FAILURES_MAX, startTransferRun, stepTransfer, TRANSFER_TABLE } from '../../../../actors/transfers/run/step.js';
import type { TransferRun } from '../../../../cluster/transfer/runs.js';
import type { ReplicaState, TransferMethod } from '../../../../protocols/model/cluster.js';
import { transferOf } from '../../../cluster/transfer/support.js';

function runOf(method: TransferMethod, target: ReplicaState, handsOver: boolean): TransferRun {
  return { collection: 'cities', uid: 5, term: 3, transfer: transferOf({ method, from: 3, sync: false }), target, handsOver };
}

/** A run and all that it caused so far, in words. */
class Story {
  readonly lines: string[] = [];
  state: TransferState;

  constructor(method: TransferMethod, target: ReplicaState, handsOver = false) {
    const { effects, state } = startTransferRun(runOf(method, target, handsOver), 1000);
    this.state = state;
    this.#note(effects);
  }

  hear(...messages: TransferRunMessage[]): this {
    for (const message of messages) {
      const { effects, state } = stepTransfer(this.state, message);
      this.state = state;
      this.#note(effects);
    }
    return this;
  }

  #note(effects: readonly TransferEffect[]): void {
    for (const effect of effects) if (effect.kind !== 'show' && effect.kind !== 'log') this.lines.push(worded(effect));
  }
}

function worded(effect: TransferEffect): string {
  switch (effect.kind) {
    case 'attach':
      return `attach${effect.mayReset ? '' : ' without reset'}`;
    case 'fill':
      return `fill ${effect.buckets.join(' ')}`;
    case 'propose': {
      const { operation } = effect;
      if (operation.kind === 'setReplicaStates') {
        const [change] = operation.changes;
        return `propose ${change?.from} → ${change?.to} in term ${change?.term}`;
      }
      const method = operation.kind === 'restartTransfer' ? ` ${operation.method}` : '';
      return `propose ${operation.kind}${method} in term ${'term' in operation ? operation.term : '-'}`;
    }
    case 'retryLater':
      return `retry ${effect.attempt}`;
    default:
      return effect.kind;
  }
}

const attached = (how: 'delta' | 'rewound' | 'reset' | 'refused'): TransferRunMessage => ({
  kind: 'attached',
  attached: { how, entries: 0 },
  nowMs: 2000,
});
const compared = (...points: number[]): TransferRunMessage => ({
  kind: 'compared',
  compared: { buckets: points.map((_, bucket) => bucket), points, total: 1000 },
  nowMs: 3000,
});
const filled = (points: number): TransferRunMessage => ({
  kind: 'filled',
  filled: { changed: points, points, bytes: points * 100 },
  nowMs: 4000,
});
const failed = (code: 'unavailable' | 'internal' = 'unavailable', announced = false): TransferRunMessage => ({
  kind: 'failed',
  error: { code, detail: 'the peer is away' },
  announced,
  nowMs: 5000,
});
const REQUIRED: TransferRunMessage = { kind: 'required', nowMs: 6000 };
const AGREED: TransferRunMessage = { kind: 'agreed', nowMs: 7000 };
const RETRY: TransferRunMessage = { kind: 'retry', nowMs: 8000 };
const PAUSED: TransferRunMessage = { kind: 'paused', nowMs: 6500 };
const INSTALLED: TransferRunMessage = { kind: 'filesInstalled', nowMs: 2000 };

test('records: the log begins anew, buckets that differ are sent, and nothing is finished before the digests are equal', () => {
  const story = new Story('stream_records', 'Partial').hear(attached('reset'), compared(300, 300), filled(300), filled(300), compared());
  story.hear(REQUIRED, AGREED);
  assert.deepEqual(story.lines, ['attach', 'compare', 'fill 0', 'fill 1', 'compare', 'require', 'propose finishTransfer in term 3']);
  assert.equal(story.state.kind, 'Done');
});

test('a snapshot is installed, announced and then treated as what records have brought', () => {
  const story = new Story('snapshot', 'PartialSnapshot').hear({ kind: 'fileSent', sent: 5, total: 10, nowMs: 1500 }, INSTALLED);
  story.hear(attached('delta'), AGREED, compared(), REQUIRED, AGREED);
  assert.deepEqual(story.lines, [
    'sendFiles',
    'attach',
    'propose PartialSnapshot → Partial in term 3',
    'compare',
    'require',
    'propose finishTransfer in term 3',
  ]);
});

test('files that an earlier run has installed are not sent again', () => {
  assert.deepEqual(new Story('snapshot', 'Partial').lines, ['attach']);
});

test('a target that was announced by an earlier run or try gets no files any more, and is not announced again', () => {
  const copying = new Story('snapshot', 'PartialSnapshot').hear(failed('unavailable', true), RETRY, attached('delta'), compared());
  assert.deepEqual(copying.lines, ['sendFiles', 'retry 1', 'attach', 'compare', 'require']);
  const announcing = new Story('wal_delta', 'Recovery').hear(attached('delta'), failed('unavailable', true), RETRY, attached('delta'));
  assert.deepEqual(announcing.lines.slice(2), ['retry 1', 'attach without reset', 'compare']);
});

test('a delta never resets the log of its target', () => {
  const story = new Story('wal_delta', 'Recovery').hear(attached('delta'), AGREED, compared(), REQUIRED);
  assert.deepEqual(story.lines, [
    'attach without reset',
    'propose Recovery → Partial in term 3',
    'compare',
    'require',
    'propose finishTransfer in term 3',
  ]);
});

test('a copy of files whose log could not be kept goes on with another method at once', () => {
  const lost = { code: 'unavailable', detail: 'too much was written', reason: 'checkpointLost' } as const;
  const story = new Story('snapshot', 'PartialSnapshot').hear({ kind: 'failed', error: lost, announced: false, nowMs: 2000 }, AGREED);
  assert.deepEqual(story.lines, ['sendFiles', 'propose restartTransfer stream_records in term 3']);
});

test('a delta that cannot be had goes on with records', () => {
  const story = new Story('wal_delta', 'Recovery').hear(attached('refused'), AGREED);
  assert.deepEqual(story.lines, ['attach without reset', 'propose restartTransfer stream_records in term 3']);
  assert.equal(story.state.kind, 'Done');
});

test('a replica whose filling was cut short by a crash has the log and not the points: its delta is not believed', () => {
  const story = new Story('wal_delta', 'Recovery').hear(attached('delta'), AGREED, compared(7));
  assert.equal(story.lines.at(-1), 'propose restartTransfer stream_records in term 3');
});

test('a delta to a replica that had operations of its own sends what these had changed', () => {
  const story = new Story('wal_delta', 'Recovery').hear(attached('rewound'), AGREED, failed(), RETRY, attached('delta'), compared(7));
  story.hear(filled(7), compared(), REQUIRED);
  assert.deepEqual(story.lines.slice(3), [
    'retry 1',
    'attach without reset',
    'compare',
    'fill 0',
    'compare',
    'require',
    story.lines.at(-1),
  ]);
  assert.equal(story.lines.at(-1), 'propose finishTransfer in term 3');
});

test('whatever fails is tried again from the attaching on', () => {
  const story = new Story('stream_records', 'Partial').hear(attached('reset'), compared(300, 300), failed(), RETRY);
  assert.deepEqual(story.lines, ['attach', 'compare', 'fill 0', 'retry 1', 'attach']);
});

test('an end whose agreement is not known is proposed again, and nothing is attached meanwhile', () => {
  const story = new Story('stream_records', 'Partial').hear(attached('delta'), compared(), REQUIRED);
  for (let times = 0; times < FAILURES_MAX + 5; times += 1) story.hear(failed(), RETRY);
  assert.equal(story.lines.filter((line) => line === 'attach').length, 1);
  assert.equal(story.lines.at(-1), 'propose finishTransfer in term 3');
});

test('a leader whose own replica goes pauses before the end is agreed on, and leads on while it is not', () => {
  const story = new Story('stream_records', 'Partial', true).hear(attached('delta'), compared(), REQUIRED);
  assert.deepEqual(story.lines, ['attach', 'compare', 'require', 'pause']);
  story.hear(PAUSED, failed(), RETRY, PAUSED, AGREED);
  const end = 'propose finishTransfer in term 3';
  assert.deepEqual(story.lines.slice(4), [end, 'resume', 'retry 1', 'pause', end]);
  assert.equal(story.state.kind, 'Done');
});

test('a transfer that brings nothing, try after try, is aborted', () => {
  const story = new Story('stream_records', 'Partial');
  for (let times = 1; times < FAILURES_MAX; times += 1) story.hear(failed(), RETRY);
  assert.equal(story.state.kind, 'Attaching');
  story.hear(failed());
  assert.equal(story.lines.at(-1), 'propose abortTransfer in term 3');
  story.hear(failed(), RETRY);
  assert.equal(story.lines.at(-1), 'propose abortTransfer in term 3');
});

test('points that arrive make earlier failures count no more', () => {
  const story = new Story('stream_records', 'Partial');
  for (let times = 1; times < 3 * FAILURES_MAX; times += 1) {
    story.hear(attached('reset'), compared(300, 300), filled(300), failed(), RETRY);
  }
  assert.equal(story.state.kind, 'Attaching');
});

test('buckets that differ again and again after they were sent are a failure, not a loop', () => {
  const story = new Story('stream_records', 'Partial').hear(attached('reset'));
  for (let times = 0; times < 8; times += 1) story.hear(compared(1), filled(1));
  story.hear(compared(1));
  assert.equal(story.state.kind, 'Waiting');
});

test('answers to what a state did not ask are ignored', () => {
  for (const [kind, moves] of Object.entries(TRANSFER_TABLE)) {
    const heard = Object.entries(moves).filter(([, move]) => move.name !== 'ignore');
    assert.ok(heard.length <= 3, kind);
  }
  const story = new Story('stream_records', 'Partial').hear(compared(), REQUIRED, AGREED, RETRY);
  assert.deepEqual(story.lines, ['attach']);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SnapshotsEffect, SnapshotsMessage, SnapshotWork } from '../../../actors/snapshots/messages.js';
import { idleSnapshots, type SnapshotsState } from '../../../actors/snapshots/state.js';
import { stepSnapshots } from '../../../actors/snapshots/step.js';

/** The state after messages, and the numbers of the works that were admitted, in order. */
function after(...messages: readonly SnapshotsMessage[]): { state: SnapshotsState; admitted: readonly number[] } {
  let state: SnapshotsState = idleSnapshots();
  const effects: SnapshotsEffect[] = [];
  for (const message of messages) {
    const step = stepSnapshots(state, message);
    state = step.state;
    effects.push(...step.effects);
  }
  return { state, admitted: effects.map(({ id }) => id) };
}

const begin = (kind: SnapshotWork['kind'], collection: string | null): SnapshotsMessage => ({
  kind: 'begin',
  work: { kind, collection },
  replyTo: 7,
});
const ended = (id: number, error: string | null = null): SnapshotsMessage => ({ kind: 'ended', id, error });

test('works on one collection run one after the other, in the order in which they came', () => {
  const asked = [begin('create', 'a'), begin('restore', 'a'), begin('create', 'a')];
  assert.deepEqual(after(...asked).admitted, [1]);
  assert.deepEqual(after(...asked, ended(1)).admitted, [1, 2]);
  assert.deepEqual(after(...asked, ended(1), ended(2)).admitted, [1, 2, 3]);
});

test('two works on two collections run side by side, and a third one waits for either', () => {
  const asked = [begin('create', 'a'), begin('create', 'b'), begin('create', 'c')];
  assert.deepEqual(after(...asked).admitted, [1, 2]);
  assert.deepEqual(after(...asked, ended(2)).admitted, [1, 2, 3]);
});

test('a work on all collections runs alone, and those behind it wait for it', () => {
  const asked = [begin('create', 'a'), begin('create', null), begin('create', 'b')];
  assert.deepEqual(after(...asked).admitted, [1]);
  assert.deepEqual(after(...asked, ended(1)).admitted, [1, 2]);
  assert.deepEqual(after(...asked, ended(1), ended(2)).admitted, [1, 2, 3]);
});

test('a work that waits for its collection lets those on others go first', () => {
  assert.deepEqual(after(begin('create', 'a'), begin('create', 'a'), begin('create', 'b')).admitted, [1, 3]);
});

test('what has ended is counted by kind, and a failure keeps its message', () => {
  const { state } = after(
    begin('create', 'a'),
    ended(1),
    begin('restore', 'a'),
    ended(2),
    begin('create', 'a'),
    ended(3, 'the disk is full'),
  );
  assert.deepEqual(state, idleSnapshots({ created: 1, failed: 1, lastError: 'the disk is full', restored: 1 }));
});

test('the progress of a work is shown while it runs, and the end of an unknown one changes nothing', () => {
  const { state } = after(begin('create', 'a'), { kind: 'progress', id: 1, doneBytes: 5, totalBytes: 10 });
  assert.deepEqual(state.kind === 'Working' && state.running, [{ kind: 'create', collection: 'a', id: 1, doneBytes: 5, totalBytes: 10 }]);
  assert.equal(stepSnapshots(state, ended(9)).state, state);
});

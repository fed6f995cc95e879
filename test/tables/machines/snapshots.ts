/** Sample messages of the actor of snapshots. */

import type { SnapshotsMessage } from '../../../actors/snapshots/messages.js';
import { idleSnapshots, type SnapshotsState } from '../../../actors/snapshots/state.js';
import { stepSnapshots } from '../../../actors/snapshots/step.js';
import type { Machine } from '../walk.js';

function inputs(state: SnapshotsState): SnapshotsMessage[] {
  const id = state.kind === 'Working' ? (state.running[0]?.id ?? 0) : 0;
  return [
    { kind: 'begin', work: { kind: 'create', collection: 'a' }, replyTo: 1 },
    { kind: 'progress', id, doneBytes: 1, totalBytes: 2 },
    { kind: 'ended', id, error: null },
  ];
}

export const SNAPSHOTS: Machine<SnapshotsState, SnapshotsMessage> = {
  step: stepSnapshots,
  starts: [idleSnapshots()],
  inputs,
};

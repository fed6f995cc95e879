/** The step of the actor of snapshots: who may begin. */

import { decide, ignore, type Of, type Table } from '../../protocols/machine.js';
import { become, type Step } from '../runtime/behaviour.js';
import type { SnapshotsEffect, SnapshotsMessage, SnapshotWork } from './messages.js';
import {
  type EndedWorks,
  type IdleSnapshots,
  idleSnapshots,
  type SnapshotsState,
  type WaitingWork,
  WORKS_MAX,
  type WorkingSnapshots,
  workingSnapshots,
} from './state.js';

type SnapshotsStep = Step<SnapshotsState, SnapshotsEffect>;

export const SNAPSHOTS_TABLE: Table<SnapshotsState, SnapshotsMessage, SnapshotsStep> = {
  Idle: { begin: beginFirst, progress: ignore, ended: ignore },
  Working: { begin: beginOrWait, progress: showProgress, ended: endWork },
};

export function stepSnapshots(state: SnapshotsState, message: SnapshotsMessage): SnapshotsStep {
  return decide(SNAPSHOTS_TABLE, state, message);
}

function beginFirst({ ended }: IdleSnapshots, message: Of<SnapshotsMessage, 'begin'>): SnapshotsStep {
  return beginOrWait(workingSnapshots(ended, [], []), message);
}

function beginOrWait({ ended, running, waiting }: WorkingSnapshots, { replyTo, work }: Of<SnapshotsMessage, 'begin'>): SnapshotsStep {
  const { created, failed, restored } = ended;
  // Every work that was asked for is counted in one of these, so that no other one has had the number.
  const id = created + restored + failed + running.length + waiting.length + 1;
  return admit(ended, running, [...waiting, { ...work, id, replyTo }]);
}

function showProgress(state: WorkingSnapshots, { doneBytes, id, totalBytes }: Of<SnapshotsMessage, 'progress'>): SnapshotsStep {
  const running = state.running.map((work) => (work.id === id ? { ...work, doneBytes, totalBytes } : work));
  return become(workingSnapshots(state.ended, running, state.waiting));
}

function endWork(state: WorkingSnapshots, { error, id }: Of<SnapshotsMessage, 'ended'>): SnapshotsStep {
  const work = state.running.find((one) => one.id === id);
  if (work === undefined) return become(state);
  const running = state.running.filter((one) => one !== work);
  return admit(countedIn(state.ended, work, error), running, state.waiting);
}

function countedIn(ended: EndedWorks, { kind }: SnapshotWork, error: string | null): EndedWorks {
  if (error !== null) return { ...ended, failed: ended.failed + 1, lastError: error };
  return kind === 'create' ? { ...ended, created: ended.created + 1 } : { ...ended, restored: ended.restored + 1 };
}

/** Lets the works begin whose turn it is (Turn-S1, Turn-S2). */
function admit(ended: EndedWorks, before: WorkingSnapshots['running'], asked: WorkingSnapshots['waiting']): SnapshotsStep {
  const running = [...before];
  const waiting: WaitingWork[] = [];
  const effects: SnapshotsEffect[] = [];
  for (const work of asked) {
    if (running.length === WORKS_MAX || [...running, ...waiting].some((other) => excludes(other, work))) {
      waiting.push(work);
      continue;
    }
    const { collection, id, kind, replyTo } = work;
    running.push({ collection, id, kind, doneBytes: 0, totalBytes: 0 });
    effects.push({ kind: 'admit', id, replyTo });
  }
  return { state: running.length === 0 ? idleSnapshots(ended) : workingSnapshots(ended, running, waiting), effects };
}

function excludes(one: SnapshotWork, other: SnapshotWork): boolean {
  return one.collection === null || other.collection === null || one.collection === other.collection;
}

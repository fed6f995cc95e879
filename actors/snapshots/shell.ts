/** The actor of snapshots: gives works their turns, and shows how far each has come. */

import { type Behaviour, become } from '../runtime/behaviour.js';
import type { SnapshotsEffect, SnapshotsMessage } from './messages.js';
import { idleSnapshots, type RunningWork, type SnapshotsState } from './state.js';
import { stepSnapshots } from './step.js';

export function snapshotsBehaviour(): Behaviour<null, SnapshotsState, SnapshotsMessage, SnapshotsEffect> {
  return {
    kind: 'snapshots',
    start: () => become<SnapshotsState, SnapshotsEffect>(idleSnapshots()),
    step: stepSnapshots,
    perform: ({ id, replyTo }, context) => context.reply(replyTo, id),
    summarize,
    facts: (_, state) => factsOf(state),
  };
}

function factsOf(state: SnapshotsState): Readonly<Record<string, string | number>> {
  const { lastError, ...counts } = state.ended;
  const works = state.kind === 'Idle' ? {} : { ...Object.fromEntries(state.running.map(shownWork)), waiting: state.waiting.length };
  return { ...works, ...counts, ...(lastError === null ? {} : { lastError }) };
}

function shownWork(work: RunningWork): [string, string] {
  return [`work ${work.id}`, describeWork(work)];
}

function describeWork({ collection, doneBytes, kind, totalBytes }: RunningWork): string {
  const of = collection ?? 'all collections';
  return totalBytes === 0 ? `${kind} ${of}` : `${kind} ${of}: ${doneBytes} of ${totalBytes} bytes`;
}

function summarize(message: SnapshotsMessage): string {
  switch (message.kind) {
    case 'begin':
      return `${message.work.kind} ${message.work.collection ?? 'all collections'}`;
    case 'progress':
      return `work ${message.id}: ${message.doneBytes} of ${message.totalBytes} bytes`;
    case 'ended':
      return `work ${message.id}${message.error === null ? '' : `: ${message.error}`}`;
  }
}

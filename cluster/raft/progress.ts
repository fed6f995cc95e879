/** What the leader thinks of a follower, from one answer to the next. Probing finds where the logs agree; replicating sends ahead of answers. */

import type { Snapshot } from '../../protocols/model/consensus.js';
import type { Progress } from './state.js';

/** Of a follower that nothing is known of; next: the entry that it is offered first. */
export function unknownProgress(next: number): Progress {
  return { matchIndex: 0, nextIndex: next, mode: { kind: 'Probe', waiting: false }, round: 0, recentlyActive: true, snapshotWanted: false };
}

/** From `next` on, but never what is known to agree. */
export function probing(progress: Progress, next: number): Progress {
  return { ...progress, nextIndex: Math.max(next, progress.matchIndex + 1), mode: { kind: 'Probe', waiting: false } };
}

export function replicating(progress: Progress): Progress {
  return { ...progress, nextIndex: progress.matchIndex + 1, mode: { kind: 'Replicate', inFlight: [] } };
}

export function receivingSnapshot(progress: Progress, snapshot: Snapshot, forced: boolean): Progress {
  return { ...progress, snapshotWanted: false, mode: { kind: 'Snapshot', snapshot, offset: 0, forced, ticksWaiting: 0 } };
}

/** Its log agrees up to `index`. */
export function matched(progress: Progress, index: number): Progress {
  const { mode } = progress;
  const news = index > progress.matchIndex;
  const known: Progress = news ? { ...progress, matchIndex: index } : progress;
  switch (mode.kind) {
    case 'Probe':
      // A late answer to an earlier leader's question of the same log says nothing about this probe.
      return news || index >= progress.nextIndex - 1 ? replicating(known) : known;
    case 'Snapshot':
      return !mode.forced && index >= mode.snapshot.index ? replicating(known) : known;
    case 'Replicate': {
      const inFlight = mode.inFlight.filter((last) => last > index);
      const moved = inFlight.length !== mode.inFlight.length;
      if (!moved && !news) return known;
      return {
        ...known,
        nextIndex: Math.max(known.nextIndex, known.matchIndex + 1),
        mode: moved ? { kind: 'Replicate', inFlight } : mode,
      };
    }
  }
}

/** Whether another `append` may go. */
export function mayAppend(progress: Progress, appendsInFlightMax: number): boolean {
  switch (progress.mode.kind) {
    case 'Probe':
      return !progress.mode.waiting;
    case 'Replicate':
      return progress.mode.inFlight.length < appendsInFlightMax;
    case 'Snapshot':
      return false;
  }
}

/** An `append` with `count` entries went; last: index of the last one. */
export function appended(progress: Progress, count: number, last: number): Progress {
  const { mode } = progress;
  if (mode.kind === 'Probe') return { ...progress, mode: { kind: 'Probe', waiting: true } };
  if (mode.kind !== 'Replicate' || count === 0) return progress;
  return { ...progress, nextIndex: last + 1, mode: { kind: 'Replicate', inFlight: [...mode.inFlight, last] } };
}

/** The leader's knowledge of a follower. Probing finds where the logs agree; replicating sends entries before earlier ones are answered. */

import type { Snapshot } from '../../protocols/model/consensus.js';
import type { Progress } from './state.js';

/** Initial progress. next: the first entry to probe. */
export function unknownProgress(next: number): Progress {
  return { matchIndex: 0, nextIndex: next, mode: { kind: 'Probe', waiting: false }, round: 0, recentlyActive: true, snapshotWanted: false };
}

/** Probes from `next` on, but never entries that are known to agree. */
export function probing(progress: Progress, next: number): Progress {
  return { ...progress, nextIndex: Math.max(next, progress.matchIndex + 1), mode: { kind: 'Probe', waiting: false } };
}

export function replicating(progress: Progress): Progress {
  return { ...progress, nextIndex: progress.matchIndex + 1, mode: { kind: 'Replicate', inFlight: [] } };
}

export function receivingSnapshot(progress: Progress, snapshot: Snapshot, forced: boolean): Progress {
  return { ...progress, snapshotWanted: false, mode: { kind: 'Snapshot', snapshot, offset: 0, forced, ticksWaiting: 0 } };
}

/** The progress of a follower whose log agrees up to `index`. */
export function matched(progress: Progress, index: number): Progress {
  const { mode } = progress;
  const news = index > progress.matchIndex;
  const known: Progress = news ? { ...progress, matchIndex: index } : progress;
  switch (mode.kind) {
    case 'Probe':
      // A late answer to an earlier leader says nothing about this probe.
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

/** Whether another `append` may be sent. */
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

/** The progress after an `append` with `count` entries was sent. last: index of the last one. */
export function appended(progress: Progress, count: number, last: number): Progress {
  const { mode } = progress;
  if (mode.kind === 'Probe') return { ...progress, mode: { kind: 'Probe', waiting: true } };
  if (mode.kind !== 'Replicate' || count === 0) return progress;
  return { ...progress, nextIndex: last + 1, mode: { kind: 'Replicate', inFlight: [...mode.inFlight, last] } };
}

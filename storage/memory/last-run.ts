/** How the process before this one has ended, by the mark that it left in the data folder. Pure; the mark is kept by `ops/run-mark.ts`. */

/** A run that has not ended in order: an orderly end takes the mark away. */
export interface RunMark {
  /** Runs in a row before it that were ended for memory. */
  readonly kills: number;
  /** What the cgroup said when it began: see `oomKills`. */
  readonly oomKills: number | null;
  readonly limitBytes: number;
  /** The most that it has used or planned to use. */
  readonly peakBytes: number;
  /** All collections had been opened. */
  readonly wasReady: boolean;
}

export interface LastRun {
  /** Runs in a row that were ended for memory, since the last orderly end. */
  readonly kills: number;
  /** The last of them, before it was ready. */
  readonly whileStarting: boolean;
}

/** The kernel tells in the cgroup's counter; where there is none, or a new one, a run is taken as killed that was this close to its limit. */
const CLOSE_SHARE = 0.8;
const CAUTION_MAX = 8;

/** mark: null after an orderly end. oomKills: what the cgroup says now. */
export function judgeLastRun(mark: RunMark | null, oomKills: number | null): LastRun {
  if (mark === null) return { kills: 0, whileStarting: false };
  const isCounted = oomKills !== null && mark.oomKills !== null && oomKills > mark.oomKills;
  const wasKilled = isCounted || mark.peakBytes >= mark.limitBytes * CLOSE_SHARE;
  return { kills: mark.kills + (wasKilled ? 1 : 0), whileStarting: wasKilled && !mark.wasReady };
}

/** By how much more than estimated builds are taken to need: twice as much after each run that was killed. */
export function cautionAfter({ kills }: LastRun): number {
  return Math.min(CAUTION_MAX, 2 ** kills);
}

/** The mark that a text holds; null for any other text. */
export function parseRunMark(text: string): RunMark | null {
  try {
    const mark = JSON.parse(text) as Partial<RunMark> | null;
    const numbers = [mark?.kills, mark?.limitBytes, mark?.peakBytes, mark?.oomKills ?? 0];
    return numbers.every((value) => typeof value === 'number') && typeof mark?.wasReady === 'boolean' ? (mark as RunMark) : null;
  } catch {
    return null;
  }
}

/**
 * How long threads have waited for a CPU: a thread that gave no sign of life meanwhile is not stuck. With thirty threads on two CPUs, one that
 * parses a body of 30 MB was silent for 50 s and had a CPU for 0.5 s of these.
 */

import { readSystemFile } from '../memory/system-file.js';

/** However long it has waited for a CPU, a thread gets so many times the time that others get, and no more. */
export const STARVED_TIMES_MAX = 10;

/** Milliseconds that a thread of this process has waited for a CPU since it began. thread: its number in the system. 0 where that is not told. */
export function cpuWaitMs(thread: number): number {
  // Nanoseconds with a CPU, nanoseconds of waiting for one, and how often it got one.
  const text = thread === 0 ? '' : readSystemFile(`/proc/self/task/${thread}/schedstat`);
  const nanoseconds = Number(text.split(' ')[1]);
  return Number.isFinite(nanoseconds) ? nanoseconds / 1e6 : 0;
}

interface Sight {
  readonly deadlineMs: number;
  readonly seenMs: number;
  readonly waitedMs: number;
}

/** How much more time threads get to end what is past its deadline: what they have waited for a CPU since it was first asked about. */
export class MoreTime {
  private readonly sights = new Map<number, Sight>();

  /** waitedMs: what the thread of an index has waited for a CPU so far. mostMs: the most that a thread gets. */
  constructor(
    private readonly waitedMs: (index: number) => number,
    private readonly mostMs: number,
  ) {}

  /** Milliseconds beyond what every thread gets after this deadline. Asked for from the deadline on. */
  get(index: number, deadlineMs: number, nowMs: number): number {
    let sight = this.sights.get(index);
    if (sight?.deadlineMs !== deadlineMs) {
      sight = { deadlineMs, seenMs: nowMs, waitedMs: this.waitedMs(index) };
      this.sights.set(index, sight);
    }
    return Math.min(this.mostMs, sight.seenMs - deadlineMs + this.waitedMs(index) - sight.waitedMs);
  }
}

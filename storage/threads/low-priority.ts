/** Threads that work in the background have the CPUs that the others leave. */

import os from 'node:os';

/** Whether a priority belongs to a thread. Elsewhere it would be that of the whole process. */
export const THREADS_HAVE_PRIORITIES = process.platform === 'linux';

/**
 * niceness: beyond that of the process, whoever has started it at which. Threads that it starts inherit it. Where priorities are the
 * process's, nothing is done.
 */
export function lowerPriority(niceness: number): void {
  if (!THREADS_HAVE_PRIORITIES || niceness === 0) return;
  try {
    os.setPriority(0, Math.min(os.constants.priority.PRIORITY_LOW, os.getPriority(process.pid) + niceness));
  } catch {
    // A container may forbid it: the thread then runs at the normal priority.
  }
}

/** A thread that wakes up waits for so long at most behind one that gives way. A call takes 0.4 µs, as measured. */
const GIVE_WAY_MS = 0.1;
/** What a thread that rests leaves to others of each 0.6 ms: so long that the system brings one here that waits for another CPU. */
const REST_MS = 0.5;
/** It looks so often whether others are about, and believes for so long that they are. */
const LOOK_MS = 2;
const CROWDED_MS = 10;

/** How a thread lets others go first. */
export interface WaysToGive {
  /** Lets go first who waits for this CPU. */
  readonly yieldCpu: () => void;
  /** Leaves the CPU for so long, in milliseconds. */
  readonly rest: (ms: number) => void;
  /** Whether others want more than this CPU. */
  readonly isCrowded: () => boolean;
}

/**
 * What a thread calls every few microseconds of its work, to let others go first now and then. A low priority alone has them wait for the
 * system's next tick, 1 to 4 ms, where they have had more than their share; and while a thread runs, its CPU is not one that the system brings others to,
 * even if two of them share the next. nowMs: of a clock that is never set, with fractions.
 */
export function givingWay({ isCrowded, rest, yieldCpu }: WaysToGive, nowMs: () => number = () => performance.now()): () => void {
  let dueMs = nowMs() + GIVE_WAY_MS;
  let lookMs = Number.NEGATIVE_INFINITY;
  let crowdedUntilMs = Number.NEGATIVE_INFINITY;
  return () => {
    const now = nowMs();
    if (now < dueMs) return;
    if (now >= lookMs) {
      lookMs = now + LOOK_MS;
      if (isCrowded()) crowdedUntilMs = now + CROWDED_MS;
    }
    if (now < crowdedUntilMs) rest(REST_MS);
    else yieldCpu();
    dueMs = nowMs() + GIVE_WAY_MS;
  };
}

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

/**
 * What a thread calls every few microseconds of its work, to let others that want its CPU go first now and then. A low priority alone has them wait for the
 * system's next tick, 1 to 4 ms, where they have had more than their share. call: that of the system; nowMs: of a clock that is never set, with fractions.
 */
export function givingWay(call: () => void, nowMs: () => number = () => performance.now()): () => void {
  let dueMs = nowMs() + GIVE_WAY_MS;
  return () => {
    if (nowMs() < dueMs) return;
    call();
    dueMs = nowMs() + GIVE_WAY_MS;
  };
}

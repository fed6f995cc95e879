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

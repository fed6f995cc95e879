/** Threads that work in the background have the CPUs that the others leave. */

import os from 'node:os';

/**
 * niceness: beyond that of the process, whoever has started it at which. On Linux a priority belongs to a thread, and threads that it starts
 * inherit it. Elsewhere it would slow the whole process: nothing is done.
 */
export function lowerPriority(niceness: number): void {
  if (process.platform !== 'linux' || niceness === 0) return;
  try {
    os.setPriority(0, Math.min(os.constants.priority.PRIORITY_LOW, os.getPriority(process.pid) + niceness));
  } catch {
    // A container may forbid it: the thread then runs at the normal priority.
  }
}

/**
 * Counts what the work at hand costs. A thread works on one thing at a time, synchronously, so there is one meter for
 * each; while nothing is measured, counting is a look at a variable.
 */

import type { HardwareUsage } from '../../protocols/model/usage.js';

let current: HardwareUsage | null = null;

/** Whether somebody wants to know: for counts that take some work themselves. */
export function isMeasured(): boolean {
  return current !== null;
}

/** Adds to what is measured. */
export function spend(what: keyof HardwareUsage, amount: number): void {
  if (current !== null) current[what] += amount;
}

/** Runs some work whose cost is added to `usage`; null: it is not measured. */
export function measured<T>(usage: HardwareUsage | null, run: () => T): T {
  if (usage === null) return run();
  const outer = current;
  current = usage;
  try {
    return run();
  } finally {
    current = outer;
  }
}

let reads = 0;

/** Vectors or codes were read by position. */
export function countRead(): void {
  reads++;
}

/** Such reads of this thread since the last call. */
export function takeReads(): number {
  const count = reads;
  reads = 0;
  return count;
}

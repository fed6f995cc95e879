/** Seeded property tests: the seed of a run is printed, and `SEED=…` repeats it. */

import type { Parameters } from 'fast-check';

const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31);
let printed = false;

/** Options for `fc.assert`. */
export function seeded<T>(runs: number): Parameters<T> {
  if (!printed) console.log(`# property tests: SEED=${seed}`);
  printed = true;
  return { seed, numRuns: runs };
}

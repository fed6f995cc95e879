/** Seeded property tests: the seed of a run is printed, and `TROUPE_SEED=…` repeats it. */

import type { Parameters } from 'fast-check';
import { testSeed } from '../seed.js';

const seed = testSeed();
let printed = false;

/** Options for `fc.assert`. */
export function seeded<T>(runs: number): Parameters<T> {
  if (!printed) console.log(`# property tests: TROUPE_SEED=${seed}`);
  printed = true;
  return { seed, numRuns: runs };
}

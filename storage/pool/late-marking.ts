/**
 * Heaps that V8 does not mark before they have grown. It begins with a bound of about the heap's own 10 to 20 MB, so a thread that writes would
 * mark everything again after every few megabytes (see `ops/README.md`, «The runtime»).
 */

import v8 from 'node:v8';
import { IN_BUNDLE } from '../threads/entries.js';

/** Megabytes of a heap until it is marked for the first time, as in `launch.sh` for the main thread. */
const UNMARKED_MB = 64;

/**
 * What starts a thread, whose heap is not marked at first. The option is one of the whole process; the thread's program takes it back in its first
 * line (`ops/build-bundle.mjs`). Outside of the bundle nothing is changed: the process may be another program's.
 */
export function withLateMarking<Started>(start: () => Started): Started {
  if (!IN_BUNDLE) return start();
  v8.setFlagsFromString(`--initial-old-space-size=${UNMARKED_MB}`);
  try {
    return start();
  } catch (error) {
    v8.setFlagsFromString('--initial-old-space-size=0');
    throw error;
  }
}

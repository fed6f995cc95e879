/**
 * Heaps that V8 does not mark before they have grown. It begins with a bound of about the heap's own 10 to 20 MB, so a thread that writes would
 * mark everything again after every few megabytes (see `ops/README.md`, «The runtime»).
 */

import v8 from 'node:v8';
import type { Worker } from 'node:worker_threads';
import { blockThread } from '../threads/clock.js';
import { IN_BUNDLE } from '../threads/entries.js';

/** Megabytes of a heap until it is marked for the first time, as in `launch.sh` for the main thread. */
const UNMARKED_MB = 64;
/** A new thread makes its heap within a third of a millisecond, as measured. On a busy machine it may come to its CPU later: then it is marked as any other. */
const WAIT_MS = 0.25;
const WAITS_MAX = 20;
/** What Node.js says of a limit that it was not given, until the thread is about to make its heap. */
const NOT_SET = -1;

/**
 * What starts a thread, whose heap is not marked at first. The option is one of the whole process, and while it is set V8 takes no compiled code that was
 * kept without it, in any thread: so it is taken back as soon as the heap is made. Outside of the bundle nothing is changed: the process may be another program's.
 */
export function withLateMarking(start: () => Worker): Worker {
  if (!IN_BUNDLE) return start();
  v8.setFlagsFromString(`--initial-old-space-size=${UNMARKED_MB}`);
  try {
    const worker = start();
    untilHeapIsMade(worker);
    return worker;
  } finally {
    v8.setFlagsFromString('--initial-old-space-size=0');
  }
}

function untilHeapIsMade(worker: Worker): void {
  for (let waits = 0; waits < WAITS_MAX; waits++) {
    const isAboutTo = worker.resourceLimits?.codeRangeSizeMb !== NOT_SET;
    blockThread(WAIT_MS);
    if (isAboutTo) return;
  }
}

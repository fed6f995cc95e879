/**
 * A thread's sign of life: a counter in shared memory that moves with each piece of a long work, and with each question of the main thread
 * that the thread's event loop gets to. In the main thread, and in threads that are not watched, it is nothing.
 */

import { readlinkSync } from 'node:fs';
import path from 'node:path';
import { type MessagePort, workerData } from 'node:worker_threads';

/** What a watched thread starts with, as `pulse` of its data. */
export interface PulseData {
  /** Int32Array [2] in shared memory: the signs of life so far, and the thread's number in the system, 0 where that is not told. */
  readonly counter: Int32Array;
  /** The main thread's questions come by it. */
  readonly port: MessagePort;
}

let counter: Int32Array | null = null;

/** Called in loops that may go on for seconds. Costs a nanosecond or so. */
export function beat(): void {
  if (counter !== null) counter[0] = ((counter[0] as number) + 1) | 0;
}

/** For a thread that gets its data by a message; others begin by themselves. */
export function beginPulse(pulse: PulseData): void {
  ({ counter } = pulse);
  counter[1] = systemThread();
  pulse.port.on('message', beat);
  pulse.port.unref();
}

function systemThread(): number {
  try {
    return Number(path.basename(readlinkSync('/proc/thread-self')));
  } catch {
    return 0;
  }
}

const given = (workerData as { readonly pulse?: PulseData } | null)?.pulse;
if (given !== undefined) beginPulse(given);

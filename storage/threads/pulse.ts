/**
 * A thread's sign of life: a counter in shared memory that moves with each piece of a long work, and with each question of the main thread
 * that the thread's event loop gets to. In the main thread, and in threads that are not watched, it is nothing.
 */

import { type MessagePort, workerData } from 'node:worker_threads';

/** What a watched thread starts with, as `pulse` of its data. */
export interface PulseData {
  /** Int32Array [1] in shared memory. */
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
  pulse.port.on('message', beat);
  pulse.port.unref();
}

const given = (workerData as { readonly pulse?: PulseData } | null)?.pulse;
if (given !== undefined) beginPulse(given);

/**
 * The clock of deadlines, pauses and quiet times. All threads of a process count alike, and the system's clock can be set in either direction
 * without any effect here. What is shown as a date is read from the system's clock (`test/tidy.test.ts` has the list), and nothing else is.
 */

import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';

const KEY = 'troupe.clockStart';

/** The system's time when `process.hrtime` was 0, as the main thread saw it at its start. */
function startOfClock(): number {
  const known = getEnvironmentData(KEY) as unknown;
  if (typeof known === 'number') return known;
  const start = Date.now() - monotonicMs();
  setEnvironmentData(KEY, start);
  return start;
}

function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1000 + nanoseconds / 1e6;
}

/** `performance.now()` costs less than `process.hrtime()`, and counts from the start of its thread. */
const offsetMs = startOfClock() + monotonicMs() - performance.now();

/** Milliseconds, whole ones. Begins at the system's time when the process starts, and is never set. */
export function steadyNowMs(): number {
  return Math.floor(offsetMs + performance.now());
}

const never = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

/** Has this thread sleep, also for a part of a millisecond: nothing else of it runs meanwhile. */
export function blockThread(ms: number): void {
  Atomics.wait(never, 0, 0, ms);
}

/** As `steadyNowMs`, in microseconds: spans of a trace begin and end by it. */
export function traceNowUs(): number {
  return (offsetMs + performance.now()) * 1000;
}

/** The system's date, in milliseconds: what entries of a log are given, and nothing is decided by. */
export function dateMs(): number {
  return Date.now();
}

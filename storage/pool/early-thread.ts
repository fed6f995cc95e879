/** Threads that begin before the pool is there: while the main thread loads its program, another CPU can load theirs. */

import { type TransferListItem, Worker } from 'node:worker_threads';
import { requireThreadAddresses } from '../disk/machine.js';
// Before the first thread starts, so that all of them count alike.
import '../threads/clock.js';
import { withLateMarking } from './late-marking.js';

export interface EarlyThread {
  readonly worker: Worker;
  /** What its program has thrown. */
  readonly error: Error | null;
}

interface Begun extends EarlyThread {
  readonly entry: string;
  readonly name: string;
  readonly heapMegabytes: number;
  error: Error | null;
  hasEnded: boolean;
}

const begun = new Set<Begun>();

/**
 * Options of Node for worker threads; undefined: those of the process. Only those of a program given as text have to be
 * left out, since workers would run files as such; others cannot be repeated (V8's are for the whole process).
 */
export const WORKER_ARGUMENTS: string[] | undefined = process.execArgv.some((argument) => argument.startsWith('--input-type'))
  ? []
  : undefined;

/**
 * Young garbage of readers and writers is small and short-lived; V8's default of 48 MB a thread only fills memory
 * (measured after 60k × 784 and 30,000 searches: 70 MB less with 6 MB a thread, at the same CPU per query).
 */
const SMALL_YOUNG_GENERATION = { maxYoungGenerationSizeMb: 6 };

/**
 * Starts a thread. data: what it begins with; null: it gets that later, as its first message. heapMegabytes: the most that its heap may have.
 * Errors: `storage` if there are no addresses for it, and those of Node.js where the system gives no thread.
 */
export function startThread(entry: URL, name: string, data: unknown, heapMegabytes: number, transfer: TransferListItem[] = []): Worker {
  requireThreadAddresses(name);
  return new Worker(entry, {
    workerData: data,
    transferList: transfer,
    name,
    ...(WORKER_ARGUMENTS === undefined ? {} : { execArgv: WORKER_ARGUMENTS }),
    resourceLimits: { ...SMALL_YOUNG_GENERATION, maxOldGenerationSizeMb: heapMegabytes },
  });
}

/**
 * Begins a thread that a pool of this process will want. It loads its program and waits for its data. Nobody has to take it: it ends with the
 * process. One that cannot begin now is started by the pool, which tells why. isWriter: its heap is to be a writer's (`late-marking.ts`).
 */
export function beginThread(entry: URL, name: string, heapMegabytes: number, isWriter = false): void {
  const start = (): Worker => startThread(entry, name, null, heapMegabytes);
  let worker: Worker;
  try {
    worker = isWriter ? withLateMarking(start) : start();
  } catch {
    return;
  }
  worker.unref();
  const thread: Begun = { worker, entry: entry.href, name, heapMegabytes, error: null, hasEnded: false };
  begun.add(thread);
  worker.on('error', (cause) => {
    thread.error = cause instanceof Error ? cause : new Error(String(cause));
  });
  worker.on('exit', () => {
    thread.hasEnded = true;
  });
}

/**
 * The thread of this name that has begun, which is the caller's from now on; null if there is none, or it has ended, or its heap may become
 * larger than the caller wants: it began before the settings were read. data: what it begins with.
 */
export function takeThread(
  entry: URL,
  name: string,
  data: unknown,
  heapMegabytesMax: number,
  transfer: TransferListItem[] = [],
): EarlyThread | null {
  for (const thread of begun) {
    if (thread.entry !== entry.href || thread.name !== name) continue;
    begun.delete(thread);
    if (thread.hasEnded) return null;
    if (thread.heapMegabytes > heapMegabytesMax) {
      void thread.worker.terminate();
      return null;
    }
    thread.worker.ref();
    thread.worker.postMessage(data, transfer);
    return thread;
  }
  return null;
}

/** Threads that make graphs together with a builder. They begin when the first large graph is made, and end with the build. */

import type { Worker } from 'node:worker_threads';
import { TroupeError } from '../../protocols/errors.js';
import type { MakerCrew, MakerStep, SharedMaking, StepCounts } from '../../vectors/maker-thread.js';
import { startThread } from '../pool/early-thread.js';
import { threadEntry } from '../threads/entries.js';

export type ToHelper =
  /** The graph that is made from now on. number: which of its threads this is. */
  | { readonly kind: 'begin'; readonly making: SharedMaking; readonly number: number }
  | { readonly kind: 'step'; readonly step: MakerStep; readonly counts: StepCounts };

/** Once, as its program is loaded; then whenever it has done what it took of a step. */
export type FromHelper = 'ready' | 'done';

/** Of a helper: what it keeps of a graph is in shared memory. */
const HEAP_MB = 256;

interface Helper {
  readonly worker: Worker;
  /** Rejected when the thread has ended. */
  readonly ended: Promise<never>;
}

/** With its stack and its program, generously. */
const HELPER_BYTES = 64 << 20;

export class GraphCrew implements MakerCrew {
  private constructor(private readonly helpers: readonly Helper[]) {}

  /**
   * most: threads of it. There are fewer, or none, where there is no memory for so many, or the system gives no more threads. entry: worker entry other than the
   * built one.
   */
  static async start(most: number, entry: URL = threadEntry('graph-helper')): Promise<GraphCrew> {
    const count = Math.min(most, Math.floor(process.availableMemory() / HELPER_BYTES));
    const begun = Array.from({ length: count }, (_, at) => begin(entry, `builder-helper-${at + 1}`));
    const helpers = await Promise.all(begun);
    return new GraphCrew(helpers.filter((helper) => helper !== null));
  }

  get size(): number {
    return this.helpers.length;
  }

  begin(making: SharedMaking): void {
    for (const [at, { worker }] of this.helpers.entries()) tell(worker, { kind: 'begin', making, number: at + 1 });
  }

  async work(step: MakerStep, counts: StepCounts): Promise<void> {
    await Promise.all(
      this.helpers.map(async (helper) => {
        const done = told(helper);
        tell(helper.worker, { kind: 'step', step, counts });
        await Promise.race([done, helper.ended]);
      }),
    );
  }

  async close(): Promise<void> {
    await Promise.all(this.helpers.map(({ worker }) => worker.terminate()));
  }
}

/** A thread that runs; null: it cannot. */
async function begin(entry: URL, name: string): Promise<Helper | null> {
  try {
    const helper = watched(startThread(entry, name, null, HEAP_MB));
    await Promise.race([told(helper), helper.ended]);
    return helper;
  } catch {
    return null;
  }
}

function watched(worker: Worker): Helper {
  const ended = new Promise<never>((_, reject) => {
    worker.once('error', (cause) => reject(new TroupeError('internal', `a thread of the build failed: ${String(cause)}`, { cause })));
    worker.once('exit', () => reject(new TroupeError('internal', 'a thread of the build has ended')));
  });
  // It may end between two steps.
  ended.catch(() => {});
  return { worker, ended };
}

/** Resolves with the next message of a helper, which sends no other meanwhile. */
function told({ worker }: Helper): Promise<FromHelper> {
  return new Promise((resolve) => {
    worker.once('message', resolve);
  });
}

function tell(worker: Worker, message: ToHelper): void {
  worker.postMessage(message);
}

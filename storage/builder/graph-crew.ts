/** Threads that make graphs together with a builder. They begin when the first large graph is made, and end with the build. */

import { Worker } from 'node:worker_threads';
import { TroupeError } from '../../protocols/errors.js';
import type { MakerCrew, MakerStep, SharedMaking, StepCounts } from '../../vectors/maker-thread.js';
import { requireThreadAddresses } from '../disk/machine.js';
import { threadEntry } from '../threads/entries.js';

export type ToHelper =
  /** The graph that is made from now on. number: which of its threads this is. */
  | { readonly kind: 'begin'; readonly making: SharedMaking; readonly number: number }
  | { readonly kind: 'step'; readonly step: MakerStep; readonly counts: StepCounts };

/** With the step that it was told last. */
export type FromHelper = 'done';

/** Of a helper: what it keeps of a graph is in shared memory. */
const HEAP_MB = { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 256 };

interface Helper {
  readonly worker: Worker;
  /** Rejected when the thread has ended. */
  readonly ended: Promise<never>;
}

export class GraphCrew implements MakerCrew {
  readonly #helpers: Helper[] = [];

  /** most: threads of it. There are fewer where the process has no addresses for so many. entry: worker entry other than the built one. */
  constructor(most: number, entry: URL = threadEntry('graph-helper')) {
    for (let number = 1; number <= most; number++) {
      const name = `builder-helper-${number}`;
      try {
        requireThreadAddresses(name);
      } catch {
        return;
      }
      this.#helpers.push(started(entry, name));
    }
  }

  get size(): number {
    return this.#helpers.length;
  }

  begin(making: SharedMaking): void {
    for (const [at, { worker }] of this.#helpers.entries()) tell(worker, { kind: 'begin', making, number: at + 1 });
  }

  async work(step: MakerStep, counts: StepCounts): Promise<void> {
    await Promise.all(
      this.#helpers.map(async ({ ended, worker }) => {
        const done = new Promise<void>((resolve) => {
          worker.once('message', () => resolve());
        });
        tell(worker, { kind: 'step', step, counts });
        await Promise.race([done, ended]);
      }),
    );
  }

  async close(): Promise<void> {
    await Promise.all(this.#helpers.map(({ worker }) => worker.terminate()));
  }
}

function started(entry: URL, name: string): Helper {
  const worker = new Worker(entry, { name, resourceLimits: HEAP_MB });
  const ended = new Promise<never>((_, reject) => {
    worker.once('error', (cause) => reject(new TroupeError('internal', `a thread of the build failed: ${String(cause)}`, { cause })));
    worker.once('exit', () => reject(new TroupeError('internal', 'a thread of the build has ended')));
  });
  // It may end between two steps.
  ended.catch(() => {});
  return { worker, ended };
}

function tell(worker: Worker, message: ToHelper): void {
  worker.postMessage(message);
}

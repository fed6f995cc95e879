/**
 * Makes what grows with the number of collections, in portions (Work-W1, Work-W2).
 *
 * - **Report-P1** A report that waits to be begun is made once for all that ask for it meanwhile, and it is begun when the one before has ended. So
 *   however many ask, and whether or not they stay, there is one of each kind under way at a time. It tells nothing that is older than its
 *   question: one that is under way already is shared with nobody.
 */

import type { LongWork, LongWorks } from '../../actors/runtime/long-works.js';
import { TextBytes } from './text-bytes.js';

/** Its text; the chunks belong to all that asked for it. */
type Chunks = Promise<readonly Buffer[]>;

export class Reports {
  /** By key: not begun yet. */
  readonly #waiting = new Map<string, Chunks>();
  /** By key: begun. */
  readonly #running = new Map<string, Chunks>();

  constructor(readonly works: LongWorks) {}

  /** The text in UTF-8. key: of all reports that have the same content; null: it is shared with nobody. Rejects with what `write` throws. */
  text(key: string | null, write: (out: TextBytes) => LongWork): Chunks {
    if (key === null) return this.works.run(written(write));
    const waiting = this.#waiting.get(key);
    if (waiting !== undefined) return waiting;
    const made = this.#make(key, write);
    this.#waiting.set(key, made);
    return made;
  }

  async #make(key: string, write: (out: TextBytes) => LongWork): Chunks {
    // Its failure is told to those who asked for it.
    await this.#running.get(key)?.catch(() => null);
    try {
      return await this.works.run(this.#steps(key, write));
    } finally {
      this.#running.delete(key);
    }
  }

  *#steps(key: string, write: (out: TextBytes) => LongWork): LongWork<readonly Buffer[]> {
    this.#running.set(key, this.#waiting.get(key) as Chunks);
    this.#waiting.delete(key);
    return yield* written(write);
  }
}

function* written(write: (out: TextBytes) => LongWork): LongWork<readonly Buffer[]> {
  const out = new TextBytes();
  yield* write(out);
  return out.chunks();
}

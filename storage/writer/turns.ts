/** Which replica of a home worker has the next turn, and how long it works then. */

import type { IsOver } from '../replica/slices.js';

/** Of a turn that only fills a transaction: a commit of the others takes longer than this. */
export const PORTION_MS = 0.5;
/**
 * Of a transaction, from its first portion to its commit, with the turns of others in between. A commit holds the others up, so there are few:
 * where others write all the time, fewer than one beside a hundred of their writes. More is lost in a crash then.
 */
export const SLICE_MS = 1000;

export function overAfter(ms: number): IsOver {
  const end = performance.now() + ms;
  return () => performance.now() >= end;
}

/**
 * The order of turns. Those that somebody waits for come in the order in which they are asked for. A portion of a long work lets those before it
 * that were asked for up to its own turn, once: so whoever comes within a portion has not to wait for the next one, too, and the long work goes on
 * however many come.
 */
export class Turns {
  /** Turns asked for that somebody waits for. */
  private asked = 0;

  /**
   * next: runs a function in the next round of the event loop, in the order of the calls. takeMessages: takes what has come meanwhile, so that a
   * group gets as large as the load asks for.
   */
  constructor(
    private readonly next: (run: () => void) => void,
    private readonly takeMessages: () => void,
  ) {}

  /** A turn that somebody waits for. */
  soon(run: () => void): void {
    this.asked++;
    this.next(() => {
      this.takeMessages();
      run();
    });
  }

  /** A turn of a long work. */
  between(run: () => void): void {
    const { asked } = this;
    this.next(() => {
      this.takeMessages();
      if (this.asked === asked) run();
      else this.next(run);
    });
  }
}

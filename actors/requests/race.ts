/** One question to several who could answer it: the first answer counts. */

import type { Timers } from '../runtime/ports.js';

export interface Race {
  /** Asked from the beginning. 1 or more. */
  readonly atOnce: number;
  /** Until the next one is asked beside those that have not answered. */
  readonly delayMs: number;
  /** Whether somebody else might answer; any other error is the answer. */
  readonly passes: (error: unknown) => boolean;
}

/**
 * runs: begins one after the other; `undefined` when nobody is left. The next is asked when one fails, or after the delay. With
 * nobody left and nothing under way it ends with the first error.
 */
export function race<T>(next: () => Promise<T> | undefined, timers: Timers, { atOnce, delayMs, passes }: Race): Promise<T> {
  return new Promise((resolve, reject) => {
    let running = 0;
    let over = false;
    let stopTimer: () => void = () => {};
    let failure: { readonly error: unknown } | null = null;

    const end = (settle: () => void): void => {
      if (over) return;
      over = true;
      stopTimer();
      settle();
    };

    const begin = (): void => {
      stopTimer();
      if (over) return;
      const run = next();
      if (run === undefined) {
        const { error } = failure ?? { error: new Error('nobody was there to be asked') };
        if (running === 0) end(() => reject(error));
        return;
      }
      running++;
      stopTimer = timers.after(delayMs, begin);
      run.then(
        (value) => end(() => resolve(value)),
        (error: unknown) => {
          running--;
          failure ??= { error };
          if (passes(error)) begin();
          else end(() => reject(error));
        },
      );
    };

    for (let count = 0; count < atOnce; count++) begin();
  });
}

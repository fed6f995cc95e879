/** Asks one question of several peers: the first answer counts. */

import type { Timers } from '../runtime/ports.js';

export interface Race {
  /** Number of peers that are asked at the beginning; 1 or more. */
  readonly atOnce: number;
  /** Milliseconds until the next peer is asked in addition to those that have not answered. */
  readonly delayMs: number;
  /** Whether another peer might answer after this error. Any other error is the result. */
  readonly passes: (error: unknown) => boolean;
}

/**
 * The first answer. next: asks the next peer; `undefined` if none is left. It is called when a peer fails, or after the delay. With no peer
 * left and no question under way, the result is the first error.
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

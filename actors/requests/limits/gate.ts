/** A gate that limits how many calls run at a time; others wait in the order in which they came, each until its deadline. */

import { TroupeError } from '../../../protocols/errors.js';
import type { Clock, Timers } from '../../runtime/ports.js';

export interface Gate {
  /** Calls `run` when its turn comes. Errors: `busy` if too many wait; `timeout` if its turn does not come in time; those of `run`. */
  enter<Value>(deadlineMs: number, run: () => Promise<Value>): Promise<Value>;
  readonly waiting: number;
}

/** Most waiting calls for each place in the gate. */
const WAITING_MAX = 1024;
const BUSY_RETRY_MS = 1000;

/** A gate. atOnce: number of calls that run at a time; null for no limit. */
export function openGate(atOnce: number | null, clock: Clock, timers: Timers): Gate {
  let inside = 0;
  const waiting = new Set<() => void>();

  function leave(): void {
    const [next] = waiting;
    if (next === undefined) inside -= 1;
    else {
      waiting.delete(next);
      next();
    }
  }

  function turn(most: number, deadlineMs: number): Promise<void> {
    if (inside < most) {
      inside += 1;
      return Promise.resolve();
    }
    if (waiting.size >= WAITING_MAX * most) {
      const refused = new TroupeError('busy', `${waiting.size} updates are queued: retry later`, { retryAfterMs: BUSY_RETRY_MS });
      return Promise.reject(refused);
    }
    return new Promise((resolve, reject) => {
      const cancel = timers.after(Math.max(1, deadlineMs - clock.nowMs()), () => {
        if (waiting.delete(admit))
          reject(
            new TroupeError('timeout', 'the update was queued until its timeout; nothing was changed: retry, or raise `timeout`', {
              outcome: 'none',
            }),
          );
      });
      const admit = () => {
        cancel();
        resolve();
      };
      waiting.add(admit);
    });
  }

  return {
    get waiting() {
      return waiting.size;
    },
    async enter(deadlineMs, run) {
      if (atOnce === null) return run();
      await turn(atOnce, deadlineMs);
      try {
        return await run();
      } finally {
        leave();
      }
    },
  };
}

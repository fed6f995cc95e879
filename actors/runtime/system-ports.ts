/** The real clock, timers, randomness and mailboxes. */

import { steadyNowMs } from '../../storage/threads/clock.js';
import { openNactMailboxes } from './nact.js';
import type { Clock, Log, MonotonicClock, Random, RuntimePorts, Timers } from './ports.js';

export const systemClock: MonotonicClock = { nowMs: steadyNowMs, dateMs: () => Date.now(), monotonicMs: () => performance.now() };

export const systemTimers: Timers = {
  after(delayMs, run) {
    // Node takes delays beyond 2^31 - 1 for 1 ms.
    const handle = setTimeout(run, Math.min(delayMs, 0x7fff_ffff));
    return () => clearTimeout(handle);
  },
};

export const systemRandom: Random = { next: () => Math.random() };

export function systemPorts(log: Log, { dateMs, nowMs }: Clock = systemClock): RuntimePorts {
  const clock = { ...systemClock, dateMs, nowMs };
  return { clock, timers: systemTimers, random: systemRandom, log, mailboxes: openNactMailboxes() };
}

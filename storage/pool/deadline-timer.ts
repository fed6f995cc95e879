/** One timer for the deadlines of all requests: most are answered long before theirs. */

import { steadyNowMs } from '../threads/clock.js';

/** Longest delay `setTimeout` takes. */
const TIMER_MAX_MS = 0x7fff_ffff;

export class DeadlineTimer {
  private timer: NodeJS.Timeout | null = null;
  private timerAtMs = Number.POSITIVE_INFINITY;

  /** expire: gives up what is due at `nowMs` and returns when to look again, infinity for not at all. */
  constructor(private readonly expire: (nowMs: number) => number) {}

  /** Sees to it that `expire` runs at `deadlineMs` (`steadyNowMs()`) at the latest. */
  watch(deadlineMs: number): void {
    if (deadlineMs >= this.timerAtMs) return;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timerAtMs = deadlineMs;
    this.timer = setTimeout(() => this.onDeadline(), Math.min(TIMER_MAX_MS, Math.max(0, deadlineMs - steadyNowMs())));
    this.timer.unref();
  }

  stop(): void {
    if (this.timer !== null) clearTimeout(this.timer);
  }

  private onDeadline(): void {
    this.timer = null;
    this.timerAtMs = Number.POSITIVE_INFINITY;
    const next = this.expire(steadyNowMs());
    if (next < Number.POSITIVE_INFINITY) this.watch(next);
  }
}

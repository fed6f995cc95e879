/** Whether quick reads are about, which a heavy one would stand before in this thread. */

/** So long after the last quick read others are expected. */
const COMPANY_MS = 200;

export class Company {
  private lastQuickMs = Number.NEGATIVE_INFINITY;

  isThere(nowMs: number): boolean {
    return nowMs - this.lastQuickMs <= COMPANY_MS;
  }

  /** A read is over. Times in milliseconds of a clock that never goes back. */
  note(isQuick: boolean, startedMs: number, endedMs: number): void {
    if (isQuick) this.lastQuickMs = endedMs;
    // Quick ones that came meanwhile are still waiting.
    else this.lastQuickMs += endedMs - startedMs;
  }
}

/** Whether quick reads are about: in this thread, where a heavy one would stand before them, and in any, whose CPUs it would take. */

import { readSystemFile } from '../memory/system-file.js';

/** So long after the last quick read others are expected. */
const COMPANY_MS = 200;
/** «0.20 0.18 0.12 1/80 11206»: threads of the whole machine that run or wait for a CPU come before the slash. */
const LOAD_FILE = '/proc/loadavg';
const RUNNABLE = /^\S+ \S+ \S+ (\d+)\//;

/** Of the mean of what quick reads take, each new one counts so much. */
const MEAN_SHARE = 1 / 16;

export class Company {
  private lastQuickMs = Number.NEGATIVE_INFINITY;
  private meanMs = 0;

  /** quickReads: Int32Array [1], counts those of all readers. */
  constructor(private readonly quickReads: Int32Array) {}

  /** Nanoseconds that quick reads took on average if they are about; null: they are not. */
  quickNs(nowMs: number): number | null {
    return nowMs - this.lastQuickMs <= COMPANY_MS ? this.meanMs * 1e6 : null;
  }

  /** A read is over. Times in milliseconds of a clock that never goes back. */
  note(isQuick: boolean, startedMs: number, endedMs: number): void {
    if (isQuick) {
      Atomics.add(this.quickReads, 0, 1);
      this.lastQuickMs = endedMs;
      this.meanMs += MEAN_SHARE * (endedMs - startedMs - this.meanMs);
    }
    // Quick ones that came meanwhile are still waiting.
    else this.lastQuickMs += endedMs - startedMs;
  }
}

/**
 * What a thread that works on a heavy read asks now and then: whether quick reads have come since it asked last, and threads want all CPUs of the machine.
 * False where the system does not tell. cpus: of the machine; 0: it does not tell. readLoad: the text of `/proc/loadavg`.
 */
export function crowdAround(quickReads: Int32Array, cpus: number, readLoad: () => string = () => readSystemFile(LOAD_FILE)): () => boolean {
  let seen = Atomics.load(quickReads, 0);
  return () => {
    const count = Atomics.load(quickReads, 0);
    const haveCome = count !== seen;
    seen = count;
    return haveCome && cpus > 0 && Number(RUNNABLE.exec(readLoad())?.[1] ?? 0) >= cpus;
  };
}

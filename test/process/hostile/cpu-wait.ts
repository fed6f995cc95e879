/**
 * How long threads of a node were ready to run and had no CPU, as other processes had it: what a busy machine makes of an answer is not the node's
 * doing. Linux tells it (`/proc/<pid>/task/<tid>/schedstat`); elsewhere it is 0.
 */

import { cpuSecondsAlone } from '../../../ops/bench/common/measure.js';
import { procEntries, procText } from '../../../ops/bench/common/proc-files.js';

interface Sight {
  readonly atMs: number;
  /** Milliseconds by thread. */
  readonly waits: ReadonlyMap<string, number>;
  /** Seconds of CPU time that all processes had so far, and those that belong to the run. */
  readonly allSeconds: number;
  readonly ownSeconds: number;
}

/** So long ago nothing is asked for: longer than any request of the run has. */
const KEPT_MS = 120_000;
/** Of `/proc/stat`: user, nice, system, irq, softirq, and what other machines had of the same processors. */
const BUSY_FIELDS = [1, 2, 3, 6, 7, 8];
const TICKS_PER_SECOND = 100;

export class CpuWait {
  #sights: Sight[] = [];
  readonly #first: Sight;

  /** beside: other processes that belong to the run. */
  constructor(
    private readonly pid: number,
    private readonly beside: readonly number[],
  ) {
    this.#first = this.#look();
  }

  /** Called several times a second. */
  look(): void {
    const sight = this.#look();
    this.#sights.push(sight);
    if (this.#sights.length > 2 * (KEPT_MS / 100)) this.#sights = this.#sights.filter(({ atMs }) => atMs >= sight.atMs - KEPT_MS);
  }

  /**
   * Milliseconds since then (`performance.now()`) that an answer may have lost: those of the thread that waited longest, in the share that other
   * processes had of the CPU time.
   */
  sinceMs(sinceMs: number): number {
    const before = this.#sights.findLast(({ atMs }) => atMs <= sinceMs) ?? this.#first;
    const now = this.#look();
    const waited = [...now.waits].map(([thread, waitMs]) => waitMs - (before.waits.get(thread) ?? 0));
    return Math.max(0, ...waited) * shareOfOthers(before, now);
  }

  /** The share of all CPU time of the run that other processes had. */
  shareOfOthers(): number {
    return shareOfOthers(this.#first, this.#look());
  }

  #look(): Sight {
    const fields = procText('/proc/stat').split('\n')[0]?.split(/\s+/) ?? [];
    const ticks = BUSY_FIELDS.reduce((sum, at) => sum + Number(fields[at] ?? 0), 0);
    const own = [this.pid, process.pid, ...this.beside].map((pid) => cpuSecondsAlone(pid) ?? 0);
    return {
      atMs: performance.now(),
      waits: waitsOf(this.pid),
      allSeconds: ticks / TICKS_PER_SECOND,
      ownSeconds: own.reduce((sum, seconds) => sum + seconds, 0),
    };
  }
}

function shareOfOthers(before: Sight, now: Sight): number {
  const all = now.allSeconds - before.allSeconds;
  return all <= 0 ? 0 : Math.min(1, Math.max(0, 1 - (now.ownSeconds - before.ownSeconds) / all));
}

/** By thread. */
function waitsOf(pid: number): Map<string, number> {
  const folder = `/proc/${pid}/task`;
  const waits = new Map<string, number>();
  for (const thread of procEntries(folder)) {
    const [, waitedNs] = procText(`${folder}/${thread}/schedstat`).split(' ');
    if (waitedNs !== undefined) waits.set(thread, Number(waitedNs) / 1e6);
  }
  return waits;
}

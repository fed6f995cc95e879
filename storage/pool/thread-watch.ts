/**
 * Watches whether a thread that has something to do is alive. The main thread looks every second; while calls wait and the thread's counter
 * has not moved since the last look, the look counts as silent, and the thread is asked for a sign. Looks are counted and not time: when the
 * whole process was stopped, that is one look. Seconds in which the thread waited for a CPU are taken off.
 */

import { MessageChannel, type MessagePort } from 'node:worker_threads';
import type { PulseData } from '../threads/pulse.js';
import { cpuWaitMs, STARVED_TIMES_MAX } from './cpu-wait.js';

/** Numbers of silent looks in a row. */
export interface WatchLimits {
  /** From here on the thread does not count as up, and the log names it. */
  readonly silent: number;
  /** The thread is terminated; where that works, another one takes its place. */
  readonly terminated: number;
  /** The thread cannot be terminated (it is in native code, which may hold a lock for ever): only the end of the process helps. */
  readonly ended: number;
}

export const LOOK_EVERY_MS = 1000;
export const SILENCE_MS = 60_000;

/** The limits of writers and builders that may be silent for so long: a commit waits for the disk, and a builder has the lowest priority. */
export function watchLimits(silenceMs: number): WatchLimits {
  const terminated = Math.ceil(silenceMs / LOOK_EVERY_MS);
  return { silent: Math.max(1, Math.floor(terminated / 6)), terminated, ended: Math.ceil((terminated * 5) / 4) };
}

/** Readers neither wait for the disk to take something nor let others go first. */
export function readerWatchLimits(silenceMs: number): WatchLimits {
  return { ...watchLimits(silenceMs / 2), silent: watchLimits(silenceMs).silent };
}

/** What a look has found. */
export type WatchFinding = 'fine' | 'silent' | 'terminate' | 'end';

/** A thread that does not answer. */
export interface Silence {
  /** What waits for it longest. */
  readonly call: string;
  /** Those in which it waited for a CPU are left out. */
  readonly looks: number;
}

export class ThreadWatch {
  /** For the data that the thread starts with; `port` is transferred. */
  readonly data: PulseData;
  private readonly port: MessagePort;
  private seen = 0;
  private wasAsked = false;
  /** Silent ones in a row. */
  private allLooks = 0;
  /** The same without those in which it waited for a CPU. */
  private looks = 0;
  /** What it had waited for a CPU at its last sign of life. */
  private waitedBeforeMs = 0;
  private call = '';

  /** waitOf: how long a thread has waited for a CPU, by its number in the system. */
  constructor(
    private readonly limits: WatchLimits,
    private readonly waitOf: (thread: number) => number = cpuWaitMs,
  ) {
    const { port1, port2 } = new MessageChannel();
    this.port = port1;
    port1.unref();
    this.data = { counter: new Int32Array(new SharedArrayBuffer(8)), port: port2 };
  }

  /** call: what has waited longest for the thread; null: nothing does. */
  look(call: string | null): WatchFinding {
    const count = Atomics.load(this.data.counter, 0);
    // A thread that was not asked at the last look had no reason to move.
    const isSilent = call !== null && this.wasAsked && count === this.seen;
    const before = isSilent ? this.looks : 0;
    this.allLooks = isSilent ? this.allLooks + 1 : 0;
    if (call !== null && !isSilent) this.waitedBeforeMs = this.waitedMs();
    this.looks = isSilent ? Math.max(before, servedLooks(this.allLooks, this.waitedMs() - this.waitedBeforeMs)) : 0;
    this.seen = count;
    this.wasAsked = call !== null;
    if (call === null) return 'fine';
    this.call = call;
    this.port.postMessage(null);
    return this.looks > before ? findingOf(this.looks, this.limits) : 'fine';
  }

  /** Milliseconds that the thread has waited for a CPU so far; 0 where that is not told. */
  waitedMs(): number {
    return this.waitOf(Atomics.load(this.data.counter, 1));
  }

  /** Null: as far as is known it answers. */
  get silence(): Silence | null {
    return this.looks >= this.limits.silent ? { call: this.call, looks: this.looks } : null;
  }

  close(): void {
    this.port.close();
  }
}

/** Of so many looks, those in which the thread had a CPU or did not want one. */
function servedLooks(looks: number, waitedMs: number): number {
  return Math.max(Math.ceil(looks - waitedMs / LOOK_EVERY_MS), Math.floor(looks / STARVED_TIMES_MAX));
}

/** Each finding comes with one look only. */
function findingOf(looks: number, { ended, silent, terminated }: WatchLimits): WatchFinding {
  switch (looks) {
    case silent:
      return 'silent';
    case terminated:
      return 'terminate';
    case ended:
      return 'end';
    default:
      return 'fine';
  }
}

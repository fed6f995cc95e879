/**
 * The budget of a node's builds: threads, and memory for what they make, are granted in the order they are asked for; a build for which there is no
 * memory waits, and lets smaller ones go first. Field indexes take no part of it,
 * as someone waits for them and they are quick: one of them may run at a time beside the others.
 */

import { type HeldRoom, MemoryRoom } from '../context/memory-room.js';

export type BuildLane = 'segment' | 'fieldIndex';

export interface BuildTicket {
  /** Gives back what was granted, or withdraws the request. */
  release(): void;
}

/** What a build needs. */
export interface BuildNeed {
  readonly lane: BuildLane;
  readonly threads: number;
  /** Of memory, beside that of its sources. */
  readonly bytes: number;
}

export interface BuildEvents {
  /** Hears, once, how many threads it got, at least one. It may be called at once. */
  granted(threads: number): void;
  /**
   * It has to wait for memory. Called once while other builds run, which give some back, and once while none does. leftBytes: what a build may need that
   * would not have to wait; null: others run.
   */
  waits(reason: string, leftBytes: number | null): void;
}

interface Request {
  readonly need: BuildNeed;
  readonly on: BuildEvents;
  held: HeldRoom | null;
  /** What it was told. */
  waits: 'for others' | 'alone' | null;
  /** 0 while it waits. */
  granted: number;
  released: boolean;
}

/** Field indexes built at a time. */
const FIELD_INDEX_THREADS = 1;
/** Memory becomes free without anybody telling it here. */
const LOOK_AGAIN_MS = 1000;

export class BuildBudget {
  readonly #free: Record<BuildLane, number>;
  readonly #waiting: Record<BuildLane, Request[]> = { segment: [], fieldIndex: [] };

  #isLooking = false;

  /** after: calls back after some milliseconds. */
  constructor(
    readonly threadsMax: number,
    private readonly room = new MemoryRoom(null),
    private readonly after: (delayMs: number, run: () => void) => void = () => {},
  ) {
    this.#free = { segment: threadsMax, fieldIndex: FIELD_INDEX_THREADS };
  }

  /** Threads in use and requests that wait. */
  usage(): { threads: number; threadsMax: number; waiting: number } {
    return { threads: this.threadsMax - this.#free.segment, threadsMax: this.threadsMax, waiting: this.#waiting.segment.length };
  }

  /** Asks for up to as many threads, and for the memory. */
  request(need: BuildNeed, on: BuildEvents): BuildTicket {
    const request: Request = { need, on, held: null, waits: null, granted: 0, released: false };
    this.#waiting[need.lane].push(request);
    this.#grant(need.lane);
    return { release: () => this.#release(request) };
  }

  #grant(lane: BuildLane): void {
    const waiting = this.#waiting[lane];
    for (const request of [...waiting]) {
      if (this.#free[lane] <= 0) return;
      if (request.released) continue;
      request.held = this.room.hold(request.need.bytes);
      if (request.held === null) {
        this.#wait(request);
        continue;
      }
      waiting.splice(waiting.indexOf(request), 1);
      request.granted = Math.max(1, Math.min(request.need.threads, this.#free[lane]));
      this.#free[lane] -= request.granted;
      request.on.granted(request.granted);
    }
  }

  #wait(request: Request): void {
    this.#tellWaiting(request);
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.after(LOOK_AGAIN_MS, () => {
      this.#isLooking = false;
      this.#grant('segment');
      this.#grant('fieldIndex');
    });
  }

  #tellWaiting(request: Request): void {
    const isAlone = this.#free.segment === this.threadsMax;
    if (request.waits === 'alone' || (request.waits !== null && !isAlone)) return;
    request.waits = isAlone ? 'alone' : 'for others';
    request.on.waits(this.room.describe(request.need.bytes), isAlone ? this.room.leftBytes : null);
  }

  #release(request: Request): void {
    if (request.released) return;
    request.released = true;
    const { lane } = request.need;
    request.held?.release();
    if (request.granted === 0) this.#waiting[lane].splice(this.#waiting[lane].indexOf(request), 1);
    else this.#free[lane] += request.granted;
    this.#grant(lane);
  }
}

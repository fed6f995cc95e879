/**
 * The CPU budget of a node's builds: threads are granted in the order they are asked for. Field indexes take no part of it,
 * as someone waits for them and they are quick: one of them may run at a time beside the others.
 */

export type BuildLane = 'segment' | 'fieldIndex';

export interface BuildTicket {
  /** Gives back what was granted, or withdraws the request. */
  release(): void;
}

interface Request {
  readonly threads: number;
  readonly lane: BuildLane;
  readonly onGranted: (threads: number) => void;
  /** 0 while it waits. */
  granted: number;
  released: boolean;
}

/** Field indexes built at a time. */
const FIELD_INDEX_THREADS = 1;

export class BuildBudget {
  readonly #free: Record<BuildLane, number>;
  readonly #waiting: Record<BuildLane, Request[]> = { segment: [], fieldIndex: [] };

  constructor(readonly threadsMax: number) {
    this.#free = { segment: threadsMax, fieldIndex: FIELD_INDEX_THREADS };
  }

  /** Threads in use and requests that wait. */
  usage(): { threads: number; threadsMax: number; waiting: number } {
    return { threads: this.threadsMax - this.#free.segment, threadsMax: this.threadsMax, waiting: this.#waiting.segment.length };
  }

  /** Asks for up to `threads`; `onGranted` hears, once, how many it got, at least one. It may be called at once. */
  request(lane: BuildLane, threads: number, onGranted: (threads: number) => void): BuildTicket {
    const request: Request = { threads, lane, onGranted, granted: 0, released: false };
    this.#waiting[lane].push(request);
    this.#grant(lane);
    return { release: () => this.#release(request) };
  }

  #grant(lane: BuildLane): void {
    const waiting = this.#waiting[lane];
    while (waiting.length > 0 && this.#free[lane] > 0) {
      const request = waiting.shift() as Request;
      request.granted = Math.max(1, Math.min(request.threads, this.#free[lane]));
      this.#free[lane] -= request.granted;
      request.onGranted(request.granted);
    }
  }

  #release(request: Request): void {
    if (request.released) return;
    request.released = true;
    if (request.granted === 0) this.#waiting[request.lane].splice(this.#waiting[request.lane].indexOf(request), 1);
    else this.#free[request.lane] += request.granted;
    this.#grant(request.lane);
  }
}

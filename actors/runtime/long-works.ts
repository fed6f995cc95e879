/**
 * Long works of the main thread, a portion at a time.
 *
 * - **Work-W1** Between two looks of the event loop at its sockets and timers there is one turn of one work, however many works there are.
 * - **Work-W2** A turn ends with the first step after `TURN_MS`. So a work says where it may pause after each small piece, such as a collection.
 */

/** Work that may pause at each `yield`. Other things happen meanwhile, so it cannot rely on what it has read before. */
export type LongWork<Result = void> = Generator<undefined, Result, undefined>;

export interface TurnPorts {
  /** Milliseconds of a clock that never goes back. */
  readonly monotonicMs: () => number;
  /** Runs `run` when the event loop has looked at its sockets and timers (`setImmediate`). */
  readonly later: (run: () => void) => void;
}

interface Work {
  readonly steps: LongWork<unknown>;
  readonly done: (result: unknown) => void;
  readonly failed: (error: unknown) => void;
}

/** Milliseconds. Requests wait so much longer beside a long work; a look of the event loop takes some 0.05 ms. */
const TURN_MS = 3;

/** The works of one thread, each with one turn after the other. */
export class LongWorks {
  readonly #works: Work[] = [];
  #isTurnComing = false;

  constructor(private readonly ports: TurnPorts) {}

  /** The result of a work. It begins in a later turn of the event loop. Rejects with what a step throws. */
  run<Result>(steps: LongWork<Result>): Promise<Result> {
    return new Promise((done, failed) => {
      this.#works.push({ steps, done: done as (result: unknown) => void, failed });
      this.#waitForTurn();
    });
  }

  #waitForTurn(): void {
    if (this.#isTurnComing) return;
    this.#isTurnComing = true;
    this.ports.later(() => this.#turn());
  }

  #turn(): void {
    this.#isTurnComing = false;
    const work = this.#works.shift();
    if (work === undefined) return;
    if (!this.#isOver(work)) this.#works.push(work);
    if (this.#works.length > 0) this.#waitForTurn();
  }

  /** Takes steps until the turn ends. Whether the work is over. */
  #isOver({ done, failed, steps }: Work): boolean {
    const { monotonicMs } = this.ports;
    const endMs = monotonicMs() + TURN_MS;
    try {
      do {
        const step = steps.next();
        if (step.done === true) {
          done(step.value);
          return true;
        }
      } while (monotonicMs() < endMs);
      return false;
    } catch (error) {
      failed(error);
      return true;
    }
  }
}

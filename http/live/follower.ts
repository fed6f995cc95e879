/**
 * One client that follows a node live: what is there when it comes, group after group as it takes them, then what changes. A client that takes
 * too little is cut off: it comes back with the id of its last event.
 */

import { Readable } from 'node:stream';
import type { Topic } from '../../actors/live/topics.js';

/** What may wait for a client. */
const WAITING_BYTES_MAX = 256 << 10;

export interface FollowerOptions {
  readonly topics: ReadonlySet<Topic>;
  /** What the client gets before any change, made piece by piece as it takes them. */
  readonly beginning: Iterator<Buffer>;
  /** Whether the answer ends after that. */
  readonly endsThen: boolean;
  /** Told of what waits whenever that grows. False: there is no memory for so much. */
  readonly hold: (bytes: number) => boolean;
  /** Called once, with whether it was cut off for taking too little. */
  readonly onEnd: (isCut: boolean) => void;
}

export class Follower extends Readable {
  /** Null: all of it is taken. */
  #beginning: Iterator<Buffer> | null;
  /** Changes that came meanwhile. */
  #held: Buffer[] = [];
  #heldBytes = 0;
  #isCut = false;
  #scheduled = false;

  constructor(private readonly options: FollowerOptions) {
    super({ highWaterMark: WAITING_BYTES_MAX / 4 });
    this.#beginning = options.beginning;
  }

  /** topic: null for what is for all. */
  tell(topic: Topic | null, event: Buffer): void {
    if (this.destroyed || (topic !== null && !this.options.topics.has(topic))) return;
    if (this.#beginning !== null) {
      this.#held.push(event);
      this.#heldBytes += event.length;
    } else this.push(event);
    const waits = this.#heldBytes + this.readableLength;
    if (waits <= WAITING_BYTES_MAX && this.options.hold(waits)) return;
    this.#isCut = true;
    this.destroy();
  }

  /** The answer ends after what waits. */
  end(): void {
    if (this.#beginning !== null) this.destroy();
    else this.push(null);
  }

  override _read(): void {
    if (this.#beginning === null || this.#scheduled) return;
    // Requests come between two pieces.
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      if (!this.destroyed) this.#next();
    });
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#beginning = null;
    this.#held = [];
    this.options.hold(0);
    this.options.onEnd(this.#isCut);
    done(error);
  }

  #next(): void {
    const next = this.#beginning?.next();
    if (next === undefined) return;
    if (next.done !== true) {
      this.push(next.value);
      return;
    }
    this.#beginning = null;
    for (const event of this.#held) this.push(event);
    this.#held = [];
    this.#heldBytes = 0;
    if (this.options.endsThen) this.push(null);
  }
}

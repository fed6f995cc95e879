/** The flight recorder: an actor's last messages, for the one who asks what it went through. */

export interface Recorded {
  readonly timeMs: number;
  /** Tag of the message. */
  readonly message: string;
  readonly summary: string;
  /** State after it. */
  readonly state: string;
}

/** A ring of the last `capacity` records. */
export class FlightRecorder {
  readonly #ring: Recorded[] = [];
  #next = 0;

  constructor(readonly capacity: number) {}

  add(record: Recorded): void {
    if (this.#ring.length < this.capacity) this.#ring.push(record);
    else this.#ring[this.#next] = record;
    this.#next = (this.#next + 1) % this.capacity;
  }

  /** Oldest first. */
  records(): readonly Recorded[] {
    if (this.#ring.length < this.capacity) return [...this.#ring];
    return [...this.#ring.slice(this.#next), ...this.#ring.slice(0, this.#next)];
  }
}

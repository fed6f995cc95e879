/** Streams of numbers for one seed: each subject draws from its own, so that one more draw here changes nothing there. */

import { type RandomNumbers, seededRandom } from '../../ops/random.js';

export class Stream {
  readonly #random: RandomNumbers;

  constructor(seed: number, subject: string) {
    let mixed = Math.imul(seed ^ 0x5bd1e995, 0x9e3779b1);
    for (let at = 0; at < subject.length; at++) mixed = Math.imul(mixed ^ subject.charCodeAt(at), 0x01000193);
    this.#random = seededRandom(mixed);
  }

  /** Uniform in [0, 1). */
  unit(): number {
    return this.#random.unit();
  }

  /** Uniform integer in low..high. */
  integer(low: number, high: number): number {
    return low + this.#random.integer(high - low + 1);
  }

  /** Uniform in [low, high). */
  between(low: number, high: number): number {
    return low + (high - low) * this.#random.unit();
  }

  chance(probability: number): boolean {
    return this.#random.unit() < probability;
  }

  pick<Value>(values: readonly Value[]): Value {
    return values[this.#random.integer(values.length)] as Value;
  }

  /** Another order of the same values. */
  shuffled<Value>(values: readonly Value[]): Value[] {
    const order = [...values];
    for (let at = order.length - 1; at > 0; at--) {
      const other = this.#random.integer(at + 1);
      [order[at], order[other]] = [order[other] as Value, order[at] as Value];
    }
    return order;
  }
}

/**
 * A random rotation that is cheap to carry out: twice random signs and Walsh-Hadamard transforms, with a random
 * permutation in between. It spreads what a vector has over all components, which then are as good as normally
 * distributed, whatever the data. Source: TurboQuant (Zandieh et al., 2025); fast rotations: Ailon and Chazelle, 2006.
 *
 * A transform needs a power of two: a vector is cut into such blocks, largest first, and the permutations mix them.
 */

import { randomOf, randomOrder } from '../seeded.js';

const ROUNDS = 2;

/** Codes on disk were made with this seed: another one would need another format. */
const SEED = 0x7f4a_7c15;

export class Rotation {
  private readonly signs: Float32Array[] = [];
  private readonly orders: Uint32Array[] = [];
  private readonly blocks: number[];
  private readonly spare: Float32Array;

  /** The same rotation for the same `dim`, in every process. */
  constructor(private readonly dim: number) {
    const random = randomOf(SEED ^ dim);
    this.blocks = powersOf(dim);
    this.spare = new Float32Array(dim);
    for (let round = 0; round < ROUNDS; round++) {
      this.orders.push(randomOrder(dim, random));
      this.signs.push(Float32Array.from({ length: dim }, () => (random() < 0.5 ? -1 : 1)));
    }
  }

  /** Turns `values` (Float32Array [dim]) in place. */
  apply(values: Float32Array): void {
    const { spare, dim } = this;
    for (let round = 0; round < ROUNDS; round++) {
      const order = this.orders[round] as Uint32Array;
      const signs = this.signs[round] as Float32Array;
      for (let i = 0; i < dim; i++) spare[i] = (values[order[i] as number] as number) * (signs[i] as number);
      let from = 0;
      for (const size of this.blocks) {
        transform(spare, from, size);
        from += size;
      }
      values.set(spare);
    }
  }
}

/** Walsh-Hadamard transform of values[from, from + size), scaled to keep lengths. size: a power of two. */
function transform(values: Float32Array, from: number, size: number): void {
  for (let half = 1; half < size; half *= 2) {
    for (let start = from; start < from + size; start += 2 * half) {
      for (let i = start; i < start + half; i++) {
        const a = values[i] as number;
        const b = values[i + half] as number;
        values[i] = a + b;
        values[i + half] = a - b;
      }
    }
  }
  const scale = 1 / Math.sqrt(size);
  for (let i = from; i < from + size; i++) values[i] = (values[i] as number) * scale;
}

/** The powers of two that add up to `dim`, largest first. */
function powersOf(dim: number): number[] {
  const powers: number[] = [];
  for (let power = 2 ** 16; power >= 1; power /= 2) if ((dim & power) !== 0) powers.push(power);
  return powers;
}

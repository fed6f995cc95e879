/**
 * The points that clients ask for, by number. Where the collection has shard keys, each key has a share of them, and ids come again
 * under every key: another point each time.
 */

import type { ShardKey } from '../../protocols/model/cluster.js';

export const POINTS = 'points';
const COUNT = 12;

export class PointNames {
  /** 1..COUNT. */
  readonly all: readonly number[] = Array.from({ length: COUNT }, (_, at) => at + 1);
  readonly #share: number;

  /** keys: none where the collection has automatic sharding. */
  constructor(readonly keys: readonly ShardKey[]) {
    this.#share = keys.length === 0 ? COUNT : COUNT / keys.length;
  }

  idOf(point: number): number {
    return ((point - 1) % this.#share) + 1;
  }

  keyOf(point: number): ShardKey | null {
    return this.keys[Math.floor((point - 1) / this.#share)] ?? null;
  }

  /** Points of some keys; null: of all. */
  under(keys: readonly ShardKey[] | null): readonly number[] {
    return keys === null ? this.all : this.all.filter((point) => keys.includes(this.keyOf(point) as ShardKey));
  }
}

/** The cost of each collection since the start: the sum of its measured requests. */

import { addUsage, type HardwareUsage, noUsage } from '../../protocols/model/usage.js';
import type { RawRequest } from '../../storage/threads/messages.js';
import type { CollectionEntry } from '../context/view.js';
import type { EnginePort } from '../runtime/ports.js';

export class CollectionUsages {
  readonly #sums = new WeakMap<CollectionEntry, HardwareUsage>();

  /** Adds the cost of an answered request, if it was measured. */
  add(entry: CollectionEntry, { usage }: RawRequest): void {
    if (usage === undefined) return;
    const sum = this.#sums.get(entry) ?? noUsage();
    addUsage(sum, usage);
    this.#sums.set(entry, sum);
  }

  /** The cost by collection, including work of writes after their answer; each is made when it is read. */
  *byName(
    collections: ReadonlyMap<string, CollectionEntry>,
    pool: Pick<EnginePort, 'stats'>,
  ): Generator<[collection: string, usage: HardwareUsage]> {
    for (const [name, entry] of collections) {
      const known = this.#sums.get(entry);
      if (known === undefined) continue;
      const sum = { ...known };
      for (const { key } of entry.replicas.values()) {
        const later = pool.stats(key)?.unansweredUsage;
        if (later !== undefined) addUsage(sum, later);
      }
      yield [name, sum];
    }
  }
}

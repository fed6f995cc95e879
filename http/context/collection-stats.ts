/**
 * Counts and durations of answered requests by collection, for `per_collection` of `GET /metrics` and `GET /telemetry`. Each thread with a
 * door counts what it answers; readers tell the main thread twice a second, so the figures are half a second old at most.
 */

import { Durations } from '../../actors/context/durations.js';
import type { NodeApi } from '../../actors/requests/node-api.js';

/** Answers of one endpoint and status for one collection. */
interface Counted {
  readonly collection: string;
  /** The endpoint's place among those of its door. */
  readonly endpoint: number;
  readonly status: number;
  readonly durations: Durations;
}

/** What one thread has counted since it last told. It goes through a message, where `Durations` lose their methods. */
export type CollectionBatch = readonly Counted[];

/** Each series costs memory here and at whoever collects them: what further collections count goes together under `OTHERS`. */
const COLLECTIONS_MAX = 1000;
/** No collection can have this name. */
export const OTHERS = '<others>';
/** How long a reader counts before it tells. */
export const TELL_COUNTS_MS = 500;

export class CollectionStats {
  readonly #collections = new Map<string, Map<number, Counted>>();

  /**
   * Counts an answer. isGood: the collection, or an alias, is there for all that the answer tells; others are counted for names that are
   * known already, so that nobody fills the memory with names that no collection has.
   */
  record(collection: string, endpoint: number, status: number, milliseconds: number, dateMs: number, isGood: boolean): void {
    this.#countedOf(collection, endpoint, status, isGood)?.durations.add(milliseconds, dateMs);
  }

  /** Adds what a reader has counted. */
  add(batch: CollectionBatch): void {
    for (const { collection, durations, endpoint, status } of batch)
      this.#countedOf(collection, endpoint, status, true)?.durations.merge(durations);
  }

  /** What was counted since the last call. */
  take(): CollectionBatch {
    const all = [...this.#collections.values()].flatMap((counted) => [...counted.values()]);
    this.#collections.clear();
    return all;
  }

  get isEmpty(): boolean {
    return this.#collections.size === 0;
  }

  /** By collection, in the order in which they were first asked for. nameOf: the collection of a name or alias; null: there is none any more. */
  counts(nameOf: (name: string) => string | null): Map<string, readonly Omit<Counted, 'collection'>[]> {
    const sums = new Map<string, Map<number, Counted>>();
    for (const [name, counted] of this.#collections) {
      const collection = name === OTHERS ? OTHERS : nameOf(name);
      if (collection === null) this.#collections.delete(name);
      else for (const [key, one] of counted) countedIn(sums, collection, key, one).durations.merge(one.durations);
    }
    return new Map([...sums].map(([collection, counted]) => [collection, [...counted.values()]]));
  }

  #countedOf(name: string, endpoint: number, status: number, isGood: boolean): Counted | null {
    const isKnown = this.#collections.has(name);
    if (!isKnown && !isGood) return null;
    const collection = isKnown || this.#collections.size < COLLECTIONS_MAX ? name : OTHERS;
    return countedIn(this.#collections, collection, keyOf(endpoint, status), { endpoint, status });
  }
}

/** For `counts`: requests that named an alias are counted with its collection. */
export function collectionNames(node: Pick<NodeApi, 'aliases' | 'listCollections'>): (name: string) => string | null {
  const collections = new Set(node.listCollections());
  const aliases = new Map(node.aliases(null).map(({ alias_name, collection_name }) => [alias_name, collection_name]));
  return (name) => (collections.has(name) ? name : (aliases.get(name) ?? null));
}

/** Statuses are below 1,000. */
function keyOf(endpoint: number, status: number): number {
  return endpoint * 1000 + status;
}

function countedIn(
  collections: Map<string, Map<number, Counted>>,
  collection: string,
  key: number,
  { endpoint, status }: Pick<Counted, 'endpoint' | 'status'>,
): Counted {
  let ofOne = collections.get(collection);
  if (ofOne === undefined) {
    ofOne = new Map();
    collections.set(collection, ofOne);
  }
  let counted = ofOne.get(key);
  if (counted === undefined) {
    counted = { collection, endpoint, status, durations: new Durations() };
    ofOne.set(key, counted);
  }
  return counted;
}

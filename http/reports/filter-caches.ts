/** What readers keep of the filters of each collection, as they tell of it. */

import type { CacheUse } from '../../storage/reader/cache-uses.js';

export interface CacheFigures {
  /** That all readers hold now. */
  readonly bytes: number;
  /** Since the start: filters of which a reader knew the rows from before, and of which not. Each counts once for each segment. */
  readonly hits: number;
  readonly misses: number;
}

export const NO_CACHE_FIGURES: CacheFigures = { bytes: 0, hits: 0, misses: 0 };

/** Names that are looked at for each one that a reader tells of: collections that are gone are forgotten sooner than new ones come. */
const LOOKED_AT = 2;

export class FilterCaches {
  /** Bytes by reader and collection. */
  readonly #held = new Map<number, Map<string, number>>();
  readonly #asked = new Map<string, { hits: number; misses: number }>();
  /** Goes round the names, of which each note looks at a few. */
  #round: Iterator<string> = this.#asked.keys();

  /** exists: whether there is a collection of this name. */
  constructor(private readonly exists: (collection: string) => boolean) {}

  /** uses: null if the reader is gone with all that it held. */
  note(reader: number, uses: readonly CacheUse[] | null): void {
    if (uses === null) {
      this.#held.delete(reader);
      return;
    }
    const held = this.#held.get(reader) ?? new Map<string, number>();
    this.#held.set(reader, held);
    for (const { bytes, collection, hits, misses } of uses) {
      const all = (held.get(collection) ?? 0) + bytes;
      if (all === 0) held.delete(collection);
      else held.set(collection, all);
      const asked = this.#asked.get(collection) ?? { hits: 0, misses: 0 };
      this.#asked.set(collection, { hits: asked.hits + hits, misses: asked.misses + misses });
      this.#maybeForget(collection);
      for (let looked = 0; looked < LOOKED_AT; looked++) this.#maybeForgetNext();
    }
  }

  #maybeForget(collection: string): void {
    if (!this.exists(collection)) this.#asked.delete(collection);
  }

  #maybeForgetNext(): void {
    const next = this.#round.next();
    if (next.done === true) this.#round = this.#asked.keys();
    else this.#maybeForget(next.value);
  }

  of(collection: string): CacheFigures {
    const asked = this.#asked.get(collection);
    if (asked === undefined) return NO_CACHE_FIGURES;
    let bytes = 0;
    for (const held of this.#held.values()) bytes += held.get(collection) ?? 0;
    return { bytes, ...asked };
  }
}

/** What a reader's cache of filters holds of each collection, and how often it knew a filter: counted here, and told to the main thread together. */

import type { CacheListener } from '../../query/filter/cache.js';

/** Of one collection, since the last time that was told. */
export interface CacheUse {
  readonly collection: string;
  /** What the cache holds of it more, or less. */
  readonly bytes: number;
  /** Filters of which the cache knew rows, and of which it knew none: each counts once for each segment. */
  readonly hits: number;
  readonly misses: number;
}

const TELL_MS = 500;

export class CacheUses implements CacheListener {
  readonly #uses = new Map<string, { -readonly [Name in keyof CacheUse]: CacheUse[Name] }>();

  constructor(
    /** Called some time after the first use, with all of them. */
    private readonly tell: (uses: readonly CacheUse[]) => void,
    /** Runs `run` some time later. */
    private readonly later: (run: () => void) => void = (run) => void setTimeout(run, TELL_MS).unref(),
  ) {}

  grew(collection: string, bytes: number): void {
    this.#of(collection).bytes += bytes;
  }

  asked(collection: string, known: boolean): void {
    const use = this.#of(collection);
    if (known) use.hits += 1;
    else use.misses += 1;
  }

  #of(collection: string) {
    let use = this.#uses.get(collection);
    if (use === undefined) {
      use = { collection, bytes: 0, hits: 0, misses: 0 };
      if (this.#uses.size === 0) this.later(() => this.#tellAll());
      this.#uses.set(collection, use);
    }
    return use;
  }

  #tellAll(): void {
    const uses = [...this.#uses.values()];
    this.#uses.clear();
    this.tell(uses);
  }
}

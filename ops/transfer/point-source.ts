/** Where points come from: a file, or a collection of a server. */

/** Points of one shard key that follow each other in their source. */
export interface PointSlice {
  /** As the API takes them. */
  readonly points: readonly object[];
  /** Null without one. */
  readonly shardKey: unknown;
  /** Where to go on when these points are written: a JSON value that the source understands. */
  readonly cursor: unknown;
}

export interface PointSource {
  /** Number of points; null where nobody knows it before the end. */
  readonly total: number | null;
  /** cursor: of the last slice that was written; null from the start. size: points of a slice, at most. */
  slices(cursor: unknown, size: number): AsyncIterable<PointSlice>;
}

/** The items, with the next one under way while one is worked on. */
export async function* readAhead<Item>(items: AsyncIterable<Item>): AsyncGenerator<Item> {
  const iterator = items[Symbol.asyncIterator]();
  const start = (): Promise<IteratorResult<Item>> => {
    const next = iterator.next();
    // It is told when its turn comes.
    next.catch(() => {});
    return next;
  };
  let next = start();
  try {
    for (;;) {
      const { done, value } = await next;
      if (done === true) return;
      next = start();
      yield value;
    }
  } finally {
    await iterator.return?.();
  }
}

/** Points from a source into a collection, several requests at a time. */

import { type PointSource, readAhead } from './point-source.js';

export interface CopyOptions {
  /** Points of a request. */
  readonly batch: number;
  /** Requests at a time. */
  readonly parallel: number;
  readonly write: (points: readonly object[], shardKey: unknown) => Promise<void>;
  /** Told in the order of the source, when a slice and all before it are written. */
  readonly onWritten: (slice: { readonly points: readonly object[]; readonly cursor: unknown }) => void;
}

/** Resolves when all points are written. Errors: those of the source and of `write`; what was written before was told. */
export async function copyPoints(source: PointSource, cursor: unknown, options: CopyOptions): Promise<void> {
  const { batch, onWritten, parallel, write } = options;
  const underWay: { readonly written: Promise<void>; readonly tell: () => void }[] = [];
  const first = async (): Promise<void> => {
    const { tell, written } = underWay.shift() as (typeof underWay)[number];
    await written;
    tell();
  };
  for await (const slice of readAhead(source.slices(cursor, batch))) {
    const written = write(slice.points, slice.shardKey);
    // It is told when its turn comes.
    written.catch(() => {});
    underWay.push({ written, tell: () => onWritten(slice) });
    if (underWay.length >= parallel) await first();
  }
  while (underWay.length > 0) await first();
}

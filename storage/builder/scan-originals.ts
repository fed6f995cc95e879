/** The rows nearest to queries by the originals of a new segment, wherever these are. */

import type { Admission, Kernels } from '../../vectors/kernel-api.js';
import type { VectorLayout } from '../segment/layout.js';
import { originalsMatrix } from './draft-matrices.js';
import type { OriginalsOnCall } from './originals-on-call.js';

/** What is scanned, with which scratch slot. */
export interface Scanning {
  readonly kernels: Kernels;
  readonly slot: number;
  readonly vector: VectorLayout;
  /** Rows of the segment. */
  readonly rows: number;
  readonly admission: Admission;
  readonly onCall: OriginalsOnCall | null;
}

/** Best first; of equal scores the smaller row. */
export interface Nearest {
  readonly rows: readonly number[];
  readonly scores: readonly number[];
}

/** The best k rows for each query. Originals on call are brought once for all queries. */
export function scanOriginals({ kernels, slot, vector, ...scanned }: Scanning, queries: readonly Float32Array[], k: number): Nearest[] {
  const matrix = originalsMatrix(vector);
  const { admission, onCall, rows } = scanned;
  const scan = (query: Float32Array, from: number, count: number): Nearest => {
    kernels.setQuery(slot, matrix, query);
    const found = kernels.scan(slot, matrix, from, from + count, admission, k);
    return { rows: [...found.rows.subarray(0, found.count)], scores: [...found.scores.subarray(0, found.count)] };
  };
  if (onCall === null || onCall.kept) return queries.map((query) => scan(query, 0, rows));
  let best: Nearest[] = queries.map(() => ({ rows: [], scores: [] }));
  for (const { from, count } of onCall.parts()) best = queries.map((query, n) => merged(best[n] as Nearest, scan(query, from, count), k));
  return best;
}

/** The best k of two. Rows of the second are greater. */
function merged(first: Nearest, second: Nearest, k: number): Nearest {
  const rows = [...first.rows, ...second.rows];
  const scores = [...first.scores, ...second.scores];
  // Sorting is stable, so that smaller rows stay in front.
  const order = rows
    .map((_, n) => n)
    .sort((a, b) => (scores[b] as number) - (scores[a] as number))
    .slice(0, k);
  return { rows: order.map((n) => rows[n] as number), scores: order.map((n) => scores[n] as number) };
}

/** Nearest points by multivectors: MaxSim of all rows that count, exactly. */

import { shownScore } from '../../../query/shown-score.js';
import { KernelExpired } from '../../../vectors/kernel-api.js';
import { maxSimilarity } from '../../../vectors/max-similarity.js';
import { TopRows } from '../../../vectors/top-rows.js';
import { spend } from '../../disk/meter.js';
import { raggedOf } from '../../segment/ragged.js';
import { timeLimitReached } from '../../threads/deadline.js';
import { admittedBits } from '../snapshot/admitted.js';
import { liveRows } from '../snapshot/live-rows.js';
import { hasVector, type SegmentView, type VectorReader } from '../snapshot/snapshot-view.js';
import type { DenseSpace } from '../snapshot/vector-space.js';
import { type Hit, hitOf } from './hit.js';
import type { NearestSearch } from './search.js';

/** The k best of a segment. query: Float32Array [vectors, dim], as the rows are compared with it. */
export function nearestMulti(view: SegmentView, space: DenseSpace, search: NearestSearch, query: Float32Array, k: number): Hit[] {
  const vector = view.reader.vector(space.name);
  if (vector === undefined || view.rows === 0) return [];
  view.reader.deadline.check();
  const bits = admittedBits(view, vector, search.filter);
  const rows = liveRows(view, bits);
  if (rows.length === 0) return [];
  const scores = scoreRows(view, vector, space, query, rows);
  const { own } = search;
  const top = new TopRows(Math.min(k, rows.length));
  rows.forEach((row, at) => {
    if (!(own?.row === row && own.view === view)) top.add(row, scores[at] as number);
  });
  const ranked = top.ranked();
  return Array.from({ length: ranked.count }, (_, i) =>
    hitOf(view, ranked.rows[i] as number, shownScore(space.distance, ranked.scores[i] as number)),
  );
}

/** The shown score of each of these rows; NaN for rows without the vector. */
export function scoreMultiRows(view: SegmentView, space: DenseSpace, query: Float32Array, rows: Uint32Array): Float32Array {
  const shown = new Float32Array(rows.length).fill(Number.NaN);
  const vector = view.reader.vector(space.name);
  if (vector === undefined) return shown;
  const present = rows.filter((row) => hasVector(vector, row));
  if (present.length === 0) return shown;
  const scores = scoreRows(view, vector, space, query, present);
  let next = 0;
  rows.forEach((row, at) => {
    if (hasVector(vector, row)) shown[at] = shownScore(space.distance, scores[next++] as number);
  });
  return shown;
}

/** MaxSim of each row, higher is better. rows: each has the vector. The scores may be a view on scratch. */
function scoreRows(view: SegmentView, vector: VectorReader, space: DenseSpace, query: Float32Array, rows: Uint32Array): Float32Array {
  const { params } = space;
  if (params.datatype === 'uint8' && params.distance === 'Cosine') return byteCosines(view, space, query, rows);
  const { kernels, slot, handle } = view.reader;
  const { original } = vector;
  if (original === null) throw new Error(`the vectors of '${space.name}' are not in memory`);
  new Uint32Array(handle.memory.buffer, slot + handle.layout.scratch.rows, rows.length).set(rows);
  try {
    return kernels.maxSim(slot, original, raggedOf(vector.layout).offsets, rows.length, query);
  } catch (error) {
    if (error instanceof KernelExpired) throw timeLimitReached();
    throw error;
  }
}

/** Bytes are stored as given, so their lengths have to be divided out: a plain loop, as it is rare. */
function byteCosines(view: SegmentView, { name, params }: DenseSpace, query: Float32Array, rows: Uint32Array): Float32Array {
  return Float32Array.from(rows, (row) => {
    // A query may have thousands of vectors, and so may a row.
    view.reader.deadline.check();
    const value = view.vectorOf(name, row);
    if (value?.kind !== 'multi') return Number.NEGATIVE_INFINITY;
    spend('cpu', (query.length / params.size) * value.values.length);
    return maxSimilarity(params.distance, query, value.values, params.size);
  });
}

/** How distances grow with rank in a segment's graph, learnt by searches for some of its own rows when a thread walks it first. */

import type { Distance } from '../../../protocols/model/collection.js';
import type { Kernels, Matrix } from '../../../vectors/kernel-api.js';
import { decodeCodes } from '../../../vectors/quantize.js';
import { type DistanceProfile, distanceProfile, PROFILE_RANKS } from '../../../vectors/walk-end.js';
import { hasVector, type SegmentView, type VectorReader } from '../snapshot/snapshot-view.js';

/** Some 5 ms of work. */
const SAMPLE_ROWS = 32;
/** Fewer rows have no profile: the farthest ranks would be a good part of all rows. */
const ROWS_MIN = PROFILE_RANKS * 8;

const known = new WeakMap<VectorReader, DistanceProfile | null>();

/**
 * The profile of the graph over all of the vector's rows; null where scores tell no distances, or too few rows are there. The same in each
 * thread, whatever it deletes later. The slot's query and lists are used.
 * matrix: what walks score. Errors: `KernelExpired`.
 */
export function walkProfile(view: SegmentView, vector: VectorReader, matrix: Matrix, distance: Distance): DistanceProfile | null {
  if (view.rows < ROWS_MIN || distance === 'Dot' || matrix.element === 'levels' || matrix.element === 'product') return null;
  let profile = known.get(vector);
  if (profile === undefined) {
    const { kernels, slot } = view.reader;
    profile = distanceProfile(matrix.metric, searchesFrom(view, vector, matrix, kernels, slot));
    known.set(vector, profile);
    // No part of the read that happens to come first.
    view.reader.takeWork();
    view.reader.takeScoredBytes();
  }
  return profile;
}

function searchesFrom(view: SegmentView, vector: VectorReader, matrix: Matrix, kernels: Kernels, slot: number): Float32Array[] {
  const { graph } = vector;
  if (graph === null) return [];
  const admission = { deletedAt: view.handle.layout.deletedAt, seq: 0, bits: 0 };
  const lists: Float32Array[] = [];
  for (let sample = 0; sample < SAMPLE_ROWS; sample++) {
    const row = Math.floor(((sample + 0.5) * view.rows) / SAMPLE_ROWS);
    if (!hasVector(vector, row)) continue;
    kernels.setQuery(slot, matrix, queryOf(view, vector, matrix, row));
    // Its own row, and so many others.
    const count = PROFILE_RANKS + 1;
    const ranked = kernels.walk(slot, matrix, graph, admission, { ef: count, k: count, rows: view.rows, narrow: false });
    lists.push(ranked.scores.subarray(0, ranked.count).filter((_, rank) => ranked.rows[rank] !== row));
  }
  return lists;
}

/** What the walked row stands for. */
function queryOf(
  view: SegmentView,
  { layout }: VectorReader,
  { element, offset, stride, dim, scale, origin }: Matrix,
  row: number,
): Float32Array {
  if (element !== 'code') return view.denseOf(layout.name, row) as Float32Array;
  const codes = new Uint8Array(view.handle.memory.buffer, offset + row * stride, dim);
  return decodeCodes(codes, { scale: scale ?? 1, origin: origin ?? 0 });
}

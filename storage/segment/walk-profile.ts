/**
 * How distances grow with rank in a segment's graph, learnt by searches for some of its own rows: by the build of the segment, which keeps it with the
 * graph, or by each thread that first walks one of an earlier release.
 */

import type { Distance } from '../../protocols/model/collection.js';
import type { Graph, Kernels, Matrix } from '../../vectors/kernel-api.js';
import { decodeCodes } from '../../vectors/quantize.js';
import { type DistanceProfile, distanceProfile, PROFILE_RANKS } from '../../vectors/walk-end.js';

/** Some 5 ms of work; 20 to 45 ms of a thread whose code has just started. */
const SAMPLE_ROWS = 32;
/** Fewer rows have no profile: the farthest ranks would be a good part of all rows. */
const ROWS_MIN = PROFILE_RANKS * 8;

/** Whose profile it is. */
export interface ProfileSubject {
  readonly memory: WebAssembly.Memory;
  readonly rows: number;
  /** Of the layout. All rows are live for these searches, so that each thread learns the same, whatever was deleted. */
  readonly deletedAt: number;
  readonly graph: Graph;
  /** What walks score. */
  readonly matrix: Matrix;
  hasVector(row: number): boolean;
  /** A row's original: Float32Array [dim]. Asked for where `matrix` is no 8-bit codes. */
  original(row: number): Float32Array;
}

/** Whether walks on this matrix have a profile at all: scores tell distances, and rows are enough. rows: of the segment. */
export function hasProfile(rows: number, { element }: Matrix, distance: Distance): boolean {
  return rows >= ROWS_MIN && distance !== 'Dot' && element !== 'levels' && element !== 'product';
}

/** The profile; null where distances are too small to tell. The slot's query and lists are used. Errors: `KernelExpired`. */
export function learnProfile(subject: ProfileSubject, kernels: Kernels, slot: number): DistanceProfile | null {
  const { deletedAt, graph, matrix, rows } = subject;
  const admission = { deletedAt, seq: 0, bits: 0 };
  const lists: Float32Array[] = [];
  for (let sample = 0; sample < SAMPLE_ROWS; sample++) {
    const row = Math.floor(((sample + 0.5) * rows) / SAMPLE_ROWS);
    if (!subject.hasVector(row)) continue;
    kernels.setQuery(slot, matrix, queryOf(subject, row));
    // Its own row, and so many others.
    const count = PROFILE_RANKS + 1;
    const ranked = kernels.walk(slot, matrix, graph, admission, { ef: count, k: count, rows, narrow: false });
    lists.push(ranked.scores.subarray(0, ranked.count).filter((_, rank) => ranked.rows[rank] !== row));
  }
  return distanceProfile(matrix.metric, lists);
}

/** What the walked row stands for. */
function queryOf({ matrix, memory, original }: ProfileSubject, row: number): Float32Array {
  const { element, offset, stride, dim, scale, origin } = matrix;
  if (element !== 'code') return original(row);
  const codes = new Uint8Array(memory.buffer, offset + row * stride, dim);
  return decodeCodes(codes, { scale: scale ?? 1, origin: origin ?? 0 });
}

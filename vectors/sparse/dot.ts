/** Dot products of sparse vectors, and the weight of a term by how rare it is. */

import type { SparseVector } from '../../protocols/model/vector.js';

/** Rows of sparse vectors one after another: row r has the items offsets[r] <= item < offsets[r + 1]. */
export interface SparseRows {
  /** u32 [rows + 1]. */
  readonly offsets: Uint32Array;
  /** u32 [items], ascending within a row. */
  readonly indices: Uint32Array;
  /** f32 [items]. */
  readonly values: Float32Array;
}

/** A sparse query as it is scored: zero weights are left out. */
export interface SparseQuery {
  /** u32 [count], ascending, distinct. */
  readonly indices: Uint32Array;
  /** f64 [count]: values, times idf where the vector asks for it. */
  readonly weights: Float64Array;
}

/** The query of a vector's values as they are. */
export function sparseQuery({ indices, values }: SparseVector, idf: ((index: number) => number) | null = null): SparseQuery {
  const kept: number[] = [];
  const weights: number[] = [];
  values.forEach((value, at) => {
    const index = indices[at] as number;
    const weight = idf === null ? value : value * idf(index);
    if (weight === 0) return;
    kept.push(index);
    weights.push(weight);
  });
  return { indices: Uint32Array.from(kept), weights: Float64Array.from(weights) };
}

/**
 * Weight of a term that `points` of all have.
 * all: points with a vector that is not empty. Source: scenario search-sparse, steps idf-*: ln(1 + (N - n + 0.5) / (n + 0.5)).
 */
export function inverseFrequency(all: number, points: number): number {
  return Math.log(1 + (Math.max(all, points) - points + 0.5) / (points + 0.5));
}

/**
 * Scores rows with one query. Products are summed in doubles in the order of the indices, everywhere: so a row has the
 * same score, to the bit, with an index and without.
 */
export class RowScorer {
  /** Open addressing: place of an index in the query plus one, 0 for none. An eighth full at most, so that most probes end at once. */
  private readonly places: Int32Array;
  private readonly mask: number;

  constructor(
    private readonly query: SparseQuery,
    private readonly rows: SparseRows,
  ) {
    let size = 16;
    while (size < query.indices.length * 8) size *= 2;
    this.mask = size - 1;
    this.places = new Int32Array(size);
    query.indices.forEach((index, place) => {
      let slot = hashOf(index) & this.mask;
      while (this.places[slot] !== 0) slot = (slot + 1) & this.mask;
      this.places[slot] = place + 1;
    });
  }

  /** The row's score, in doubles; 0 without a common index. */
  score(row: number): number {
    const { places, mask } = this;
    const { offsets, indices, values } = this.rows;
    const { indices: wanted, weights } = this.query;
    const end = offsets[row + 1] as number;
    let sum = 0;
    for (let item = offsets[row] as number; item < end; item++) {
      const index = indices[item] as number;
      let slot = hashOf(index) & mask;
      let place = places[slot] as number;
      while (place !== 0) {
        if (wanted[place - 1] === index) {
          sum += (weights[place - 1] as number) * (values[item] as number);
          break;
        }
        slot = (slot + 1) & mask;
        place = places[slot] as number;
      }
    }
    return sum;
  }
}

function hashOf(index: number): number {
  const mixed = Math.imul(index, 0x9e37_79b1);
  return mixed ^ (mixed >>> 15);
}

/** The exact answers to some queries over rows that come in portions and are not kept. */

import { TopRows } from '../../../vectors/top-rows.js';
import { normalized } from '../common/prepared.js';

export class NearestRows {
  private readonly best: TopRows[];
  private readonly units: Float32Array;

  /** queries: Float32Array [count, dim]. By cosine. */
  constructor(
    private readonly queries: Float32Array,
    private readonly dim: number,
    private readonly limit: number,
  ) {
    this.best = Array.from({ length: queries.length / dim }, () => new TopRows(limit));
    this.units = normalized(queries, dim);
  }

  /** vectors: Float32Array [rows, dim], of the rows from `first` on. */
  offer(vectors: Float32Array, first: number): void {
    const { best, dim, units } = this;
    for (let at = 0, row = first; at < vectors.length; at += dim, row++) {
      let squares = 0;
      for (let d = 0; d < dim; d++) squares += (vectors[at + d] as number) ** 2;
      const norm = Math.sqrt(squares);
      for (let query = 0, from = 0; from < units.length; query++, from += dim) {
        let sum = 0;
        for (let d = 0; d < dim; d++) sum += (units[from + d] as number) * (vectors[at + d] as number);
        const top = best[query] as TopRows;
        if (sum / norm > top.bound) top.add(row, sum / norm);
      }
    }
  }

  query(query: number): Float32Array {
    return this.queries.subarray(query * this.dim, (query + 1) * this.dim);
  }

  /** Part of a query's nearest rows that are among `ids`. */
  partFound(query: number, ids: readonly number[]): number {
    const nearest = new Set((this.best[query] as TopRows).ranked().rows);
    return ids.filter((id) => nearest.has(id)).length / Math.min(this.limit, nearest.size);
  }
}

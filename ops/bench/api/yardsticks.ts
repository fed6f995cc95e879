/** What the same work costs in one process and plain JavaScript: the yardsticks that have no library. */

import type { MultiLike, SparseRow, TextLike } from './data.js';

export interface Yardstick {
  readonly cpuMsPerQuery: number;
  /** Best first, by query. */
  readonly ids: readonly (readonly number[])[];
}

/** Sparse dot products: lists of postings in memory, a float per document to add up in, then the best k. */
export function sparseByPostings({ documents, queries }: TextLike, k: number): Yardstick {
  const lists = new Map<number, { rows: number[]; weights: number[] }>();
  documents.forEach(({ indices, values }, row) => {
    indices.forEach((index, i) => {
      let list = lists.get(index);
      if (list === undefined) {
        list = { rows: [], weights: [] };
        lists.set(index, list);
      }
      list.rows.push(row);
      list.weights.push(values[i] as number);
    });
  });
  const postings = new Map(
    [...lists].map(([index, list]) => [index, { rows: Uint32Array.from(list.rows), weights: Float32Array.from(list.weights) }]),
  );
  const scores = new Float32Array(documents.length);
  const run = ({ indices, values }: SparseRow): number[] => {
    scores.fill(0);
    indices.forEach((index, i) => {
      const list = postings.get(index);
      if (list === undefined) return;
      const weight = values[i] as number;
      for (let at = 0; at < list.rows.length; at++) {
        const row = list.rows[at] as number;
        scores[row] = (scores[row] as number) + weight * (list.weights[at] as number);
      }
    });
    return bestOf(scores, k);
  };
  return timed(queries, run);
}

/** MaxSim by dot product over all points. */
export function multiByScan({ documents, queries, count, queryCount, tokens, queryTokens, dim }: MultiLike, k: number): Yardstick {
  const scores = new Float32Array(count);
  const run = (query: Float32Array): number[] => {
    for (let point = 0; point < count; point++) {
      let sum = 0;
      for (let q = 0; q < queryTokens; q++) {
        let best = Number.NEGATIVE_INFINITY;
        for (let t = 0; t < tokens; t++) {
          const at = (point * tokens + t) * dim;
          let dot = 0;
          for (let d = 0; d < dim; d++) dot += (query[q * dim + d] as number) * (documents[at + d] as number);
          if (dot > best) best = dot;
        }
        sum += best;
      }
      scores[point] = sum;
    }
    return bestOf(scores, k);
  };
  const length = queryTokens * dim;
  return timed(
    Array.from({ length: queryCount }, (_, i) => queries.subarray(i * length, (i + 1) * length)),
    run,
  );
}

function timed<Query>(queries: readonly Query[], run: (query: Query) => number[]): Yardstick {
  const ids = queries.map(run);
  const before = process.cpuUsage();
  for (const query of queries) run(query);
  const used = process.cpuUsage(before);
  return { cpuMsPerQuery: (used.user + used.system) / 1000 / queries.length, ids };
}

function bestOf(scores: Float32Array, k: number): number[] {
  const best: number[] = [];
  let bound = 0;
  for (let row = 0; row < scores.length; row++) {
    const score = scores[row] as number;
    if (best.length === k && score <= bound) continue;
    let at = best.length;
    while (at > 0 && (scores[best[at - 1] as number] as number) < score) at--;
    best.splice(at, 0, row);
    if (best.length > k) best.pop();
    if (best.length === k) bound = scores[best[k - 1] as number] as number;
  }
  return best;
}

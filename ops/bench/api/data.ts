/** Made data for the parts of the API that images say nothing about: sparse vectors like those of texts, and multivectors. */

import { type RandomNumbers, seededRandom } from '../../random.js';

export interface SparseRow {
  /** Ascending. */
  readonly indices: number[];
  readonly values: number[];
}

export interface TextLike {
  readonly documents: readonly SparseRow[];
  readonly queries: readonly SparseRow[];
  /** Float32Array [documents, dim] and [queries, dim]: dense vectors of the same points. */
  readonly dense: Float32Array;
  readonly denseQueries: Float32Array;
  readonly dim: number;
}

const VOCABULARY = 30_000;
const DOCUMENT_TERMS = 40;
const QUERY_TERMS = 8;

/** Documents of about 40 terms whose frequencies follow Zipf's law, queries of 8. */
export function makeTextLike(count: number, queryCount: number, dim: number, seed: number): TextLike {
  const random = seededRandom(seed);
  const cumulative = new Float64Array(VOCABULARY);
  let sum = 0;
  for (let rank = 0; rank < VOCABULARY; rank++) {
    sum += 1 / (rank + 10);
    cumulative[rank] = sum;
  }
  const term = (): number => {
    const wanted = random.unit() * sum;
    let low = 0;
    let high = VOCABULARY - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((cumulative[middle] as number) < wanted) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  const row = (terms: number): SparseRow => {
    const weights = new Map<number, number>();
    for (let i = 0; i < terms; i++) {
      const index = term();
      weights.set(index, (weights.get(index) ?? 0.5) + Math.round(random.unit() * 100) / 100);
    }
    const indices = [...weights.keys()].sort((a, b) => a - b);
    return { indices, values: indices.map((index) => Math.round((weights.get(index) as number) * 100) / 100) };
  };
  return {
    documents: Array.from({ length: count }, () => row(DOCUMENT_TERMS / 2 + random.integer(DOCUMENT_TERMS))),
    queries: Array.from({ length: queryCount }, () => row(QUERY_TERMS)),
    dense: normals(count * dim, random),
    denseQueries: normals(queryCount * dim, random),
    dim,
  };
}

export interface MultiLike {
  /** Float32Array [count, tokens, dim]. */
  readonly documents: Float32Array;
  readonly queries: Float32Array;
  readonly count: number;
  readonly queryCount: number;
  readonly tokens: number;
  readonly queryTokens: number;
  readonly dim: number;
}

/** Points of `tokens` vectors each, from clusters. */
export function makeMultiLike(
  count: number,
  queryCount: number,
  tokens: number,
  queryTokens: number,
  dim: number,
  seed: number,
): MultiLike {
  const random = seededRandom(seed);
  const centers = normals(200 * dim, random);
  const rows = (vectors: number): Float32Array => {
    const values = new Float32Array(vectors * dim);
    for (let i = 0; i < vectors; i++) {
      const center = random.integer(200) * dim;
      for (let d = 0; d < dim; d++) values[i * dim + d] = Math.round(((centers[center + d] as number) + random.normal()) * 1000) / 1000;
    }
    return values;
  };
  return { documents: rows(count * tokens), queries: rows(queryCount * queryTokens), count, queryCount, tokens, queryTokens, dim };
}

function normals(length: number, random: RandomNumbers): Float32Array {
  return Float32Array.from({ length }, () => Math.round(random.normal() * 1000) / 1000);
}

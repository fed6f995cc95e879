/** What a large collection is made of: points that are made while they are uploaded, and queries whose exact answers are known. */

import { type RandomNumbers, seededRandom } from '../../random.js';
import { syntheticRows } from '../common/dataset.js';
import { NearestRows } from './nearest-rows.js';

export interface LargeRows {
  /** Of the collection's vector. */
  readonly params: object;
  /** Who knows the exact answers. */
  readonly truth: string;
  /** The next points, from the id `first` on: a vector of each, or its token vectors. */
  next(count: number, first: number): readonly (Float32Array | readonly Float32Array[])[];
  /** As in a request. */
  query(query: number): unknown;
  /** All points are there. ask: the ids of an exact search. */
  learn(ask: (query: number) => Promise<readonly number[]>): Promise<void>;
  /** Part of a query's nearest points that are among `ids`. */
  partFound(query: number, ids: readonly number[]): number;
}

/** Synthetic vectors, whose exact answers the client keeps. */
export function denseRows(dim: number, seed: number, queries: number, limit: number): LargeRows {
  const more = syntheticRows(dim, seededRandom(seed));
  const nearest = new NearestRows(more(queries), dim, limit);
  return {
    params: { size: dim, distance: 'Cosine' },
    truth: 'a scan of all vectors by the client',
    next: (count, first) => {
      const vectors = more(count);
      nearest.offer(vectors, first);
      return Array.from({ length: count }, (_, at) => vectors.subarray(at * dim, (at + 1) * dim));
    },
    query: (query) => [...nearest.query(query)],
    learn: async () => {},
    partFound: (query, ids) => nearest.partFound(query, ids),
  };
}

const WORDS = 5000;
const TOPICS = 2000;
const TOPIC_WORDS = 40;
const TOPIC_SHIFT = 0.5;
const NOISE = 0.6;
const QUERY_TOKENS = 8;

/**
 * Points of `tokens` vectors each: words of a topic, shifted as the topic is, with noise. Queries are eight vectors of a topic. To compare all is for the node itself, which
 * is asked for exact searches.
 */
export function tokenRows(dim: number, tokens: number, seed: number, queries: number): LargeRows {
  const random = seededRandom(seed);
  const words = unitVectors(WORDS, dim, random);
  const topics = Array.from({ length: TOPICS }, () => ({
    shift: unitVectors(1, dim, random)[0] as Float32Array,
    words: Array.from({ length: TOPIC_WORDS }, () => Math.floor(random.unit() * random.unit() * WORDS)),
  }));
  const text = (count: number): Float32Array[] => {
    const topic = topics[random.integer(TOPICS)] as (typeof topics)[number];
    return Array.from({ length: count }, () => {
      const word = words[topic.words[random.integer(TOPIC_WORDS)] as number] as Float32Array;
      return word.map((x, d) => x + TOPIC_SHIFT * (topic.shift[d] as number) + (NOISE / Math.sqrt(dim)) * random.normal());
    });
  };
  const asked = Array.from({ length: queries }, () => text(QUERY_TOKENS).map((vector) => [...vector]));
  const exact: ReadonlySet<number>[] = [];
  return {
    params: { size: dim, distance: 'Cosine', multivector_config: { comparator: 'max_sim' } },
    truth: 'exact searches of the node',
    next: (count) => Array.from({ length: count }, () => text(tokens)),
    query: (query) => asked[query],
    learn: async (ask) => {
      for (let query = 0; query < queries; query++) exact.push(new Set(await ask(query)));
    },
    partFound: (query, ids) => {
      const nearest = exact[query] ?? new Set();
      return ids.filter((id) => nearest.has(id)).length / nearest.size;
    },
  };
}

function unitVectors(count: number, dim: number, random: RandomNumbers): Float32Array[] {
  return Array.from({ length: count }, () => {
    const vector = Float32Array.from({ length: dim }, () => random.normal());
    const norm = Math.hypot(...vector);
    return vector.map((x) => x / norm);
  });
}

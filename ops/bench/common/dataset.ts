/** The data sets of the benchmark: vectors, queries, payloads, and filters of known selectivity. */

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { type RandomNumbers, seededRandom } from '../../random.js';

export interface Dataset {
  readonly name: string;
  readonly description: string;
  readonly distance: 'Euclid' | 'Cosine';
  readonly dim: number;
  readonly count: number;
  /** Float32Array [count, dim]. */
  readonly vectors: Float32Array;
  /** Float32Array [queryCount, dim]. */
  readonly queries: Float32Array;
  readonly queryCount: number;
  readonly payloads: readonly BenchPayload[];
  readonly filters: readonly BenchFilter[];
}

export interface BenchPayload {
  readonly category: string;
  readonly bucket: number;
  readonly price: number;
}

export interface BenchFilter {
  readonly name: string;
  /** As the API takes it. */
  readonly filter: unknown;
  readonly matches: (payload: BenchPayload) => boolean;
}

/** Payload fields with the type of their index. */
export const PAYLOAD_FIELDS = { category: 'keyword', bucket: 'integer', price: 'float' } as const;

const CATEGORIES = 100;
const BUCKETS = 1000;

/** Independent of the vectors: 0.1 % by integer, 1 % by keyword, 10 % and 50 % by float range. */
const FILTERS: readonly BenchFilter[] = [
  {
    name: '0.1 %',
    filter: { must: [{ key: 'bucket', match: { value: 77 } }] },
    matches: (payload) => payload.bucket === 77,
  },
  {
    name: '1 %',
    filter: { must: [{ key: 'category', match: { value: 'c42' } }] },
    matches: (payload) => payload.category === 'c42',
  },
  {
    name: '10 %',
    filter: { must: [{ key: 'price', range: { gte: 0.3, lt: 0.4 } }] },
    matches: (payload) => payload.price >= 0.3 && payload.price < 0.4,
  },
  {
    name: '50 %',
    filter: { must: [{ key: 'price', range: { lt: 0.5 } }] },
    matches: (payload) => payload.price < 0.5,
  },
];

/** MNIST from `folder`: 60,000 images of 28 × 28 and 1,000 queries; undefined when the files are not there. */
export function loadMnist(folder: string, seed: number, countMax: number): Dataset | undefined {
  const base = join(folder, 'mnist-base-60000x784.u8.gz');
  const queries = join(folder, 'mnist-query-1000x784.u8.gz');
  if (!existsSync(base) || !existsSync(queries)) return undefined;
  return imagesFrom('mnist', 'MNIST, handwritten digits', base, queries, seed, countMax);
}

/** The sample of MNIST that the project carries: 4,000 images and 200 queries. */
export function loadSample(folder: string, seed: number, countMax: number): Dataset {
  return imagesFrom(
    'mnist-sample',
    'sample of MNIST, handwritten digits',
    join(folder, 'digits-4000x784.u8.gz'),
    join(folder, 'queries-200x784.u8.gz'),
    seed,
    countMax,
  );
}

function imagesFrom(name: string, title: string, baseFile: string, queryFile: string, seed: number, countMax: number): Dataset {
  const dim = 784;
  const base = gunzipSync(readFileSync(baseFile));
  const vectors = Float32Array.from(base.subarray(0, countMax * dim));
  const queries = Float32Array.from(gunzipSync(readFileSync(queryFile)));
  const count = vectors.length / dim;
  return {
    name,
    description: `${title}, ${count.toLocaleString('en')} × ${dim}, Euclid`,
    distance: 'Euclid',
    dim,
    count,
    vectors,
    queries,
    queryCount: queries.length / dim,
    payloads: makePayloads(count, seededRandom(seed)),
    filters: FILTERS,
  };
}

const LATENT_DIM = 32;
const CLUSTERS = 1000;
const CLUSTER_SPREAD = 0.8;
const NOISE = 0.1;
/** Digits after the point, as embeddings are often stored; keeps the text of an upload short. */
const DECIMALS = 1e5;

/**
 * Clustered vectors, seeded: clusters in a space of few dimensions, spread by a random projection over all of them, with
 * a little noise on top. That is how embeddings lie: many coordinates, few directions that matter.
 */
export function makeSynthetic(count: number, dim: number, queryCount: number, seed: number): Dataset {
  const random = seededRandom(seed);
  const more = syntheticRows(dim, random);
  const vectors = more(count);
  const queries = more(queryCount);
  return {
    name: 'synthetic',
    description: `synthetic, ${count.toLocaleString('en')} × ${dim} in ${CLUSTERS.toLocaleString('en')} clusters, Cosine`,
    distance: 'Cosine',
    dim,
    count,
    vectors,
    queries,
    queryCount,
    payloads: makePayloads(count, random),
    filters: FILTERS,
  };
}

/** The vectors of `makeSynthetic`, so many at a time, for sets that are larger than memory. Float32Array [count, dim]. */
export function syntheticRows(dim: number, random: RandomNumbers): (count: number) => Float32Array {
  const projection = Float64Array.from({ length: LATENT_DIM * dim }, () => random.normal() / Math.sqrt(LATENT_DIM));
  const centers = Float64Array.from({ length: CLUSTERS * LATENT_DIM }, () => random.normal());
  return (count) => clustered(count, dim, projection, centers, random);
}

function clustered(count: number, dim: number, projection: Float64Array, centers: Float64Array, random: RandomNumbers): Float32Array {
  const rows = new Float32Array(count * dim);
  const latent = new Float64Array(LATENT_DIM);
  const row = new Float64Array(dim);
  for (let i = 0; i < count; i++) {
    const center = random.integer(CLUSTERS) * LATENT_DIM;
    for (let j = 0; j < LATENT_DIM; j++) latent[j] = (centers[center + j] as number) + CLUSTER_SPREAD * random.normal();
    row.fill(0);
    for (let j = 0; j < LATENT_DIM; j++) {
      const weight = latent[j] as number;
      for (let d = 0; d < dim; d++) row[d] = (row[d] as number) + weight * (projection[j * dim + d] as number);
    }
    for (let d = 0; d < dim; d++) rows[i * dim + d] = Math.round(((row[d] as number) + NOISE * random.normal()) * DECIMALS) / DECIMALS;
  }
  return rows;
}

function makePayloads(count: number, random: RandomNumbers): BenchPayload[] {
  return Array.from({ length: count }, () => ({
    category: `c${random.integer(CATEGORIES)}`,
    bucket: random.integer(BUCKETS),
    price: Math.round(random.unit() * DECIMALS) / DECIMALS,
  }));
}

/** Text of a vector as a client would send it: the shortest decimals that a float32 is read back from exactly. */
export function rowText(vectors: Float32Array, dim: number, row: number): string {
  const parts = new Array<number>(dim);
  for (let d = 0; d < dim; d++) parts[d] = Math.round((vectors[row * dim + d] as number) * DECIMALS) / DECIMALS;
  return `[${parts.join(',')}]`;
}

/** What measurements send and compare with: a data set's requests, its files for the baseline, the recall of answers. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { type Dataset, rowText } from './dataset.js';
import type { BaselineData, Truth } from './jobs.js';
import { upsertMessage } from './protobuf.js';
import { grpcRequest, jsonRequest } from './requests.js';

export const UPLOAD_BATCH = 256;

/** `PUT` requests for all points, in batches of `UPLOAD_BATCH`. */
export function* uploadRequests(dataset: Dataset, collection: string, count = dataset.count): Generator<Buffer> {
  const path = `/collections/${collection}/points?wait=true`;
  for (let from = 0; from < count; from += UPLOAD_BATCH) {
    const points: string[] = [];
    for (let row = from; row < Math.min(count, from + UPLOAD_BATCH); row++) {
      const payload = JSON.stringify(dataset.payloads[row]);
      points.push(`{"id":${row},"vector":${rowText(dataset.vectors, dataset.dim, row)},"payload":${payload}}`);
    }
    yield jsonRequest('PUT', path, `{"points":[${points.join(',')}]}`);
  }
}

/** The same as gRPC calls. */
export function* grpcUploadRequests({ count, dim, payloads, vectors }: Dataset, collection: string): Generator<Buffer> {
  for (let from = 0; from < count; from += UPLOAD_BATCH) {
    const rows = Array.from({ length: Math.min(UPLOAD_BATCH, count - from) }, (_, i) => from + i);
    const points = rows.map((id) => ({
      id,
      vector: vectors.subarray(id * dim, (id + 1) * dim),
      payload: { ...payloads[id] } as Record<string, string | number>,
    }));
    yield grpcRequest('Upsert', upsertMessage(collection, points));
  }
}

/** A search for each query. rest: what the bodies hold beside it. */
export function searchRequests(
  { dim, queries, queryCount }: Pick<Dataset, 'dim' | 'queries' | 'queryCount'>,
  collection: string,
  rest: string,
): Buffer[] {
  return Array.from({ length: queryCount }, (_, row) =>
    jsonRequest('POST', `/collections/${collection}/points/query`, `{"query":${rowText(queries, dim, row)},${rest}}`),
  );
}

/** Vectors and queries as files in `folder`, for `baseline.ts`. */
export function writeBaselineData(dataset: Dataset, folder: string): BaselineData {
  mkdirSync(folder, { recursive: true });
  const vectorsFile = join(folder, 'vectors.f32');
  const queriesFile = join(folder, 'queries.f32');
  const cosine = dataset.distance === 'Cosine';
  writeFileSync(vectorsFile, bytesOf(cosine ? normalized(dataset.vectors, dataset.dim) : dataset.vectors));
  writeFileSync(queriesFile, bytesOf(cosine ? normalized(dataset.queries, dataset.dim) : dataset.queries));
  // On normalized vectors the inner product orders as the cosine does, and is the cheaper of the two for the baseline.
  return { vectorsFile, queriesFile, dim: dataset.dim, metric: cosine ? 'ip' : 'l2sq', threads: availableParallelism() };
}

function bytesOf(values: Float32Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

/** Each row with length 1. */
export function normalized(values: Float32Array, dim: number): Float32Array {
  const copy = values.slice();
  for (let at = 0; at < copy.length; at += dim) {
    const norm = Math.hypot(...copy.subarray(at, at + dim)) || 1;
    for (let d = 0; d < dim; d++) copy[at + d] = (copy[at + d] as number) / norm;
  }
  return copy;
}

/** Part of the exact answers that were found, over all queries. */
export function recallOf(truth: Truth, found: readonly (readonly number[])[]): number {
  let hits = 0;
  found.forEach((ids, query) => {
    const wanted = new Set(truth.rows.subarray(query * truth.k, (query + 1) * truth.k));
    for (const id of ids) if (wanted.has(id)) hits++;
  });
  return hits / (found.length * truth.k);
}

/** Ids of an answer to a query; none for no answer. */
export function idsOf(body: string | undefined): number[] {
  if (body === undefined) return [];
  return (JSON.parse(body) as { result: { points: { id: number }[] } }).result.points.map((point) => point.id);
}

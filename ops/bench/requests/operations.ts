/** The small operations whose fixed cost is measured: the same reads over both doors, and the two uploads. */

import { type Dataset, rowText } from '../common/dataset.js';
import type { LoadJob } from '../common/jobs.js';
import { countMessage, facetMessage, getMessage, queryMessage, scrollMessage, upsertMessage } from '../common/protobuf.js';
import { grpcRequest, jsonRequest } from '../common/requests.js';

export interface Operation {
  readonly name: string;
  readonly protocol: LoadJob['protocol'];
  readonly requests: readonly Buffer[];
}

/** Requests of each operation that differ: enough that no answer repeats at once. */
const DIFFERENT = 200;
const LIMIT = 10;
const EF = 64;
const KEY = 'category';

/** Reads of a collection that holds the data set, points numbered by row. */
export function readOperations(collection: string, dataset: Dataset): Operation[] {
  const at = Array.from({ length: DIFFERENT }, (_, i) => Math.floor((i * (dataset.count - LIMIT)) / DIFFERENT));
  const query = (i: number): Float32Array => {
    const row = i % dataset.queryCount;
    return dataset.queries.subarray(row * dataset.dim, (row + 1) * dataset.dim);
  };
  const category = (i: number): string => `c${i % 100}`;
  const ids = (from: number): number[] => Array.from({ length: LIMIT }, (_, i) => from + i);
  const path = `/collections/${collection}`;
  const get = (url: string): Buffer => Buffer.from(`GET ${url} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`, 'latin1');
  const post = (url: string, body: object): Buffer => jsonRequest('POST', path + url, JSON.stringify(body));
  const rest = (name: string, request: (from: number, i: number) => Buffer): Operation => ({
    name,
    protocol: 'rest',
    requests: at.map(request),
  });
  const grpc = (name: string, method: string, message: (from: number, i: number) => Buffer): Operation => ({
    name,
    protocol: 'grpc',
    requests: at.map((from, i) => grpcRequest(method, message(from, i))),
  });
  return [
    { name: 'healthz', protocol: 'rest', requests: [get('/healthz')] },
    rest('point by id', (from) => get(`${path}/points/${from}`)),
    rest('10 points with vectors', (from) => post('/points', { ids: ids(from), with_payload: true, with_vector: true })),
    rest('count of one match', (_, i) => post('/points/count', { filter: { must: [{ key: KEY, match: { value: category(i) } }] } })),
    rest('facet', () => post('/facet', { key: KEY, limit: LIMIT })),
    rest('scroll', (from) => post('/points/scroll', { offset: from, limit: LIMIT })),
    rest('search', (_, i) =>
      jsonRequest(
        'POST',
        `${path}/points/query`,
        `{"query":${rowText(dataset.queries, dataset.dim, i % dataset.queryCount)},"limit":${LIMIT},"params":{"hnsw_ef":${EF}}}`,
      ),
    ),
    grpc('point by id', 'Get', (from) => getMessage(collection, [from], true)),
    grpc('10 points with vectors', 'Get', (from) => getMessage(collection, ids(from), true)),
    grpc('count of one match', 'Count', (_, i) => countMessage(collection, KEY, category(i))),
    grpc('facet', 'Facet', () => facetMessage(collection, KEY, LIMIT)),
    grpc('scroll', 'Scroll', (from) => scrollMessage(collection, from, LIMIT)),
    grpc('search', 'Query', (_, i) => queryMessage(collection, query(i), LIMIT, EF)),
  ];
}

/** Points in one request of an upload. */
const BATCH = 250;

/** Uploads of rows `from` to `to` with `wait=true`, over one of the doors. */
export function upload(protocol: Operation['protocol'], collection: string, dataset: Dataset, from: number, to: number): Operation {
  const requests: Buffer[] = [];
  for (let start = from; start < to; start += BATCH) {
    const rows = Array.from({ length: Math.min(BATCH, to - start) }, (_, i) => start + i);
    requests.push(protocol === 'rest' ? restUpload(collection, dataset, rows) : grpcUpload(collection, dataset, rows));
  }
  return { name: 'upload', protocol, requests };
}

function restUpload(collection: string, dataset: Dataset, rows: readonly number[]): Buffer {
  const points = rows.map(
    (row) => `{"id":${row},"vector":${rowText(dataset.vectors, dataset.dim, row)},"payload":${JSON.stringify(dataset.payloads[row])}}`,
  );
  return jsonRequest('PUT', `/collections/${collection}/points?wait=true`, `{"points":[${points.join(',')}]}`);
}

function grpcUpload(collection: string, dataset: Dataset, rows: readonly number[]): Buffer {
  const points = rows.map((id) => ({
    id,
    vector: dataset.vectors.subarray(id * dataset.dim, (id + 1) * dataset.dim),
    payload: { ...(dataset.payloads[id] as object) },
  }));
  return grpcRequest('Upsert', upsertMessage(collection, points));
}

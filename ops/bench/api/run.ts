/**
 * The parts of the API beside plain nearest-neighbour searches: gRPC, quantized search, sparse vectors, multivectors,
 * hybrid queries, facets, scrolling and groups. Each is measured next to something that does comparable work in the same run.
 */

import { join } from 'node:path';
import { type RunningNode, startNodeProcess } from '../../node-process.js';
import { RestClient } from '../../rest-client.js';
import { type Dataset, makeSynthetic, PAYLOAD_FIELDS, rowText } from '../common/dataset.js';
import { type Helper, startHelper } from '../common/helper.js';
import type { LoadResult, ToLoad } from '../common/jobs.js';
import { cpuSeconds } from '../common/measure.js';
import { grpcUploadRequests } from '../common/prepared.js';
import { queryMessage } from '../common/protobuf.js';
import { grpcRequest, jsonRequest, writeRequests } from '../common/requests.js';
import { type MultiLike, makeMultiLike, makeTextLike, type SparseRow, type TextLike } from './data.js';
import { multiByScan, sparseByPostings } from './yardsticks.js';

export interface ApiRow {
  readonly part: string;
  readonly what: string;
  /** Requests, or points where `what` says so, per second. */
  readonly perSecond: number;
  /** CPU of the whole node per request, or per thousand points of an upload. */
  readonly cpuMs: number | null;
  readonly p50: number;
  readonly p99: number;
  readonly recall: number | null;
  /** The yardstick and this row's figure divided by it: of CPU, or of points per second for uploads. */
  readonly yardstick: string;
  readonly ratio: number | null;
}

export interface ApiSettings {
  readonly seconds: number;
  readonly seed: number;
  /** Documents of the sparse part, points of the multivector part. */
  readonly texts: number;
  readonly multis: number;
  /** Points of the upload of floats. */
  readonly floats: number;
}

interface Context {
  readonly node: RunningNode;
  readonly client: RestClient;
  readonly load: Helper<ToLoad>;
  readonly folder: string;
  readonly dataset: Dataset;
  readonly settings: ApiSettings;
  readonly rows: ApiRow[];
}

interface Timed {
  readonly result: LoadResult;
  /** Milliseconds per request. */
  readonly cpuMs: number | null;
}

const BATCH = 256;
const CONNECTIONS = 4;
const LIMIT = 10;
const EF = 64;

export async function measureApi(dataset: Dataset, settings: ApiSettings, folder: string): Promise<ApiRow[]> {
  const node = await startNodeProcess({ folder });
  const context: Context = {
    node,
    client: new RestClient(node.port),
    load: startHelper('load'),
    folder,
    dataset,
    settings,
    rows: [],
  };
  try {
    await measureUploads(context);
    await measureDoors(context);
    await measureReads(context);
    await measureQuantization(context);
    await measureTexts(context);
    await measureMultivectors(context);
    return context.rows;
  } catch (error) {
    process.stderr.write(`${node.log().slice(-4000)}\n`);
    throw error;
  } finally {
    context.client.close();
    context.load.end();
    await node.end('SIGTERM');
  }
}

// ------------------------------------------------------------------ the two doors

/** Pixels are whole numbers of few digits, so JSON has little to parse; components of embeddings have five and more. */
async function measureUploads(context: Context): Promise<void> {
  const { dataset, settings } = context;
  await measureUpload(context, dataset, 'pixels');
  await measureUpload(context, makeSynthetic(settings.floats, dataset.dim, 1, settings.seed), 'floats');
}

async function measureUpload(context: Context, dataset: Dataset, kind: string): Promise<void> {
  const batches = Math.ceil(dataset.count / BATCH);
  // The first upload warms the node's compiler; the others count, the faster one of each kind.
  const figures: Record<string, Timed[]> = { rest: [], grpc: [] };
  for (const round of [0, 1, 2]) {
    for (const protocol of ['rest', 'grpc'] as const) {
      const name = `${protocol}_${round}`;
      await createDigits(context, name, 0, dataset);
      const requests = protocol === 'rest' ? restUpload(dataset, name) : grpcUploadRequests(dataset, name);
      const timed = await run(context, requests, { protocol, requests: batches });
      if (round > 0) (figures[protocol] as Timed[]).push(timed);
      await context.client.result('DELETE', `/collections/${name}`);
    }
  }
  const [rest, grpc] = [fastest(figures.rest), fastest(figures.grpc)];
  for (const [what, timed] of [
    ['REST', rest],
    ['gRPC', grpc],
  ] as const) {
    const perSecond = dataset.count / timed.result.seconds;
    const base = dataset.count / rest.result.seconds;
    add(context, {
      part: 'upload',
      what: `${what}, ${dataset.dim} ${kind}, batches of ${BATCH}, points/s`,
      perSecond,
      cpuMs: timed.cpuMs === null ? null : (timed.cpuMs * batches * 1000) / dataset.count,
      p50: timed.result.p50,
      p99: timed.result.p99,
      recall: null,
      yardstick: what === 'gRPC' ? 'REST, points/s' : '',
      ratio: what === 'gRPC' ? perSecond / base : null,
    });
  }
}

function fastest(timed: readonly Timed[] = []): Timed {
  return timed.reduce((best, one) => (one.result.seconds < best.result.seconds ? one : best));
}

async function measureDoors(context: Context): Promise<void> {
  const { dataset } = context;
  await createDigits(context, 'digits', 10_000, dataset);
  await run(context, restUpload(dataset, 'digits'), { requests: Math.ceil(dataset.count / BATCH) });
  await untilIndexed(context, 'digits', dataset.count);
  const rest = await search(context, 'search', 'REST, ef 64', digitQueries(dataset, 'digits', { hnsw_ef: EF }), null);
  const calls = Array.from({ length: dataset.queryCount }, (_, row) =>
    grpcRequest('Query', queryMessage('digits', dataset.queries.subarray(row * dataset.dim, (row + 1) * dataset.dim), LIMIT, EF)),
  );
  await run(context, calls, { protocol: 'grpc', requests: calls.length });
  const timed = await run(context, calls, { protocol: 'grpc' });
  addTimed(context, 'search', 'gRPC, ef 64', timed, null, { name: 'REST', cpuMs: rest.cpuMs });
}

// ------------------------------------------------------------------ reads of payloads

async function measureReads(context: Context): Promise<void> {
  await measureGroups(context);
  await measureFacets(context);
  await measureScrolls(context);
}

async function measureGroups(context: Context): Promise<void> {
  const { dataset } = context;
  const plain = await search(context, 'groups', 'query, limit 30', digitQueries(dataset, 'digits', { hnsw_ef: EF }, { limit: 30 }), null);
  await search(
    context,
    'groups',
    '10 groups of 3 by keyword',
    digitQueries(dataset, 'digits', { hnsw_ef: EF }, { group_by: 'category', group_size: 3, limit: 10 }, 'query/groups'),
    null,
    { name: 'query, limit 30', cpuMs: plain.cpuMs },
  );
}

async function measureFacets(context: Context): Promise<void> {
  const path = '/collections/digits';
  const range = { must: [{ key: 'price', range: { lt: 0.5 } }] };
  const count = await search(
    context,
    'facet',
    'count, filter of 50 %',
    [jsonRequest('POST', `${path}/points/count`, JSON.stringify({ filter: range }))],
    null,
  );
  const besides = { name: 'count', cpuMs: count.cpuMs };
  await search(
    context,
    'facet',
    '100 keywords, no filter',
    [jsonRequest('POST', `${path}/facet`, JSON.stringify({ key: 'category', limit: 100 }))],
    null,
    besides,
  );
  await search(
    context,
    'facet',
    '100 keywords, filter of 50 %',
    [jsonRequest('POST', `${path}/facet`, JSON.stringify({ key: 'category', limit: 100, filter: range }))],
    null,
    besides,
  );
}

async function measureScrolls(context: Context): Promise<void> {
  const { dataset } = context;
  const path = '/collections/digits';
  const pages = Array.from({ length: 200 }, (_, i) => Math.floor((i * dataset.count) / 200));
  const retrieved = await search(
    context,
    'scroll',
    '100 points by id, with payload',
    pages.map((from) =>
      jsonRequest('POST', `${path}/points`, JSON.stringify({ ids: Array.from({ length: 100 }, (_, i) => from + i), with_payload: true })),
    ),
    null,
  );
  const beside = { name: 'by id', cpuMs: retrieved.cpuMs };
  await search(
    context,
    'scroll',
    'pages of 100, with payload',
    pages.map((offset) => jsonRequest('POST', `${path}/points/scroll`, JSON.stringify({ limit: 100, offset }))),
    null,
    beside,
  );
  await search(
    context,
    'scroll',
    'pages of 100 in the order of a float',
    pages.map((_, i) =>
      jsonRequest('POST', `${path}/points/scroll`, JSON.stringify({ limit: 100, order_by: { key: 'price', start_from: i / 200 } })),
    ),
    null,
    beside,
  );
}

// ------------------------------------------------------------------ quantization

const QUANTIZATIONS: readonly { readonly name: string; readonly config: object }[] = [
  { name: 'scalar int8', config: { scalar: { type: 'int8', quantile: 0.99 } } },
  { name: 'product x16', config: { product: { compression: 'x16' } } },
  { name: 'binary', config: { binary: {} } },
  { name: 'turbo, 4 bits', config: { turbo: { bits: 'bits4' } } },
];

async function measureQuantization(context: Context): Promise<void> {
  const { dataset } = context;
  const truth = await idsOf(context, digitQueries(dataset, 'digits', { exact: true }));
  const params = { hnsw_ef: EF, quantization: { rescore: true, oversampling: 2 } };
  const plain = await search(context, 'quantization', 'none, ef 64', digitQueries(dataset, 'digits', { hnsw_ef: EF }), truth);
  for (const { name, config } of QUANTIZATIONS) {
    await context.client.result('PATCH', '/collections/digits', { quantization_config: config });
    await untilIndexed(context, 'digits', dataset.count);
    const besides = { name: 'none', cpuMs: plain.cpuMs };
    await search(context, 'quantization', `${name}, ef 64, oversampling 2`, digitQueries(dataset, 'digits', params), truth, besides);
    const raw = { hnsw_ef: EF, quantization: { rescore: false } };
    await search(context, 'quantization', `${name}, ef 64, not rescored`, digitQueries(dataset, 'digits', raw), truth, besides);
  }
}

// ------------------------------------------------------------------ sparse and hybrid

async function measureTexts(context: Context): Promise<void> {
  const { client, settings } = context;
  const texts = makeTextLike(settings.texts, 300, 64, settings.seed);
  const name = 'texts';
  await client.result('PUT', `/collections/${name}`, {
    vectors: { dense: { size: texts.dim, distance: 'Cosine' } },
    sparse_vectors: { terms: {} },
  });
  await run(context, textUpload(texts, name), { requests: Math.ceil(settings.texts / BATCH) });
  await untilIndexed(context, name, settings.texts);
  const yardstick = sparseByPostings(texts, LIMIT);
  const path = `/collections/${name}/points/query`;
  const bodies = (body: (row: number) => object): Buffer[] =>
    texts.queries.map((_, row) => jsonRequest('POST', path, JSON.stringify({ limit: LIMIT, ...body(row) })));
  const denseOf = (row: number): number[] => [...texts.denseQueries.subarray(row * texts.dim, (row + 1) * texts.dim)];
  const sparse = await search(
    context,
    'sparse',
    `${settings.texts} documents of 40 terms, queries of 8`,
    bodies((row) => ({ query: texts.queries[row], using: 'terms' })),
    yardstick.ids,
    {
      name: 'postings in plain JavaScript, in process',
      cpuMs: yardstick.cpuMsPerQuery,
    },
  );
  const dense = await search(
    context,
    'hybrid',
    'dense alone, ef 64',
    bodies((row) => ({ query: denseOf(row), using: 'dense', params: { hnsw_ef: EF } })),
    null,
  );
  const sum = sparse.cpuMs === null || dense.cpuMs === null ? null : sparse.cpuMs + dense.cpuMs;
  await search(
    context,
    'hybrid',
    'dense and sparse, 20 each, rrf',
    bodies((row) => ({
      prefetch: [
        { query: denseOf(row), using: 'dense', limit: 20, params: { hnsw_ef: EF } },
        { query: texts.queries[row] as SparseRow, using: 'terms', limit: 20 },
      ],
      query: { fusion: 'rrf' },
    })),
    null,
    { name: 'dense and sparse alone, added', cpuMs: sum },
  );
}

function* textUpload(texts: TextLike, collection: string): Generator<Buffer> {
  for (let from = 0; from < texts.documents.length; from += BATCH) {
    const points = texts.documents.slice(from, from + BATCH).map((terms, i) => ({
      id: from + i,
      vector: {
        terms,
        dense: [...texts.dense.subarray((from + i) * texts.dim, (from + i + 1) * texts.dim)].map(
          (value) => Math.round(value * 1000) / 1000,
        ),
      },
    }));
    yield jsonRequest('PUT', `/collections/${collection}/points?wait=true`, JSON.stringify({ points }));
  }
}

// ------------------------------------------------------------------ multivectors

async function measureMultivectors(context: Context): Promise<void> {
  const { client, settings } = context;
  const multi = makeMultiLike(settings.multis, 100, 16, 8, 64, settings.seed);
  const name = 'multi';
  await client.result('PUT', `/collections/${name}`, {
    vectors: { size: multi.dim, distance: 'Dot', multivector_config: { comparator: 'max_sim' } },
  });
  await run(context, multiUpload(multi, name), { requests: Math.ceil(multi.count / BATCH) });
  await untilIndexed(context, name, multi.count);
  const yardstick = multiByScan(multi, LIMIT);
  const besides = { name: 'scan in plain JavaScript, in process', cpuMs: yardstick.cpuMsPerQuery };
  for (const params of [{ exact: true }, { hnsw_ef: 128 }]) {
    const requests = Array.from({ length: multi.queryCount }, (_, row) =>
      jsonRequest(
        'POST',
        `/collections/${name}/points/query`,
        JSON.stringify({ query: tokensOf(multi.queries, row, multi.queryTokens, multi.dim), limit: LIMIT, params }),
      ),
    );
    await search(
      context,
      'multivector',
      `${multi.count} × ${multi.tokens} vectors of ${multi.dim}, queries of ${multi.queryTokens}, ${JSON.stringify(params)}`,
      requests,
      yardstick.ids,
      besides,
    );
  }
}

function* multiUpload(multi: MultiLike, collection: string): Generator<Buffer> {
  for (let from = 0; from < multi.count; from += BATCH) {
    const points = Array.from({ length: Math.min(BATCH, multi.count - from) }, (_, i) => ({
      id: from + i,
      vector: tokensOf(multi.documents, from + i, multi.tokens, multi.dim),
    }));
    yield jsonRequest('PUT', `/collections/${collection}/points?wait=true`, JSON.stringify({ points }));
  }
}

function tokensOf(values: Float32Array, row: number, tokens: number, dim: number): number[][] {
  return Array.from({ length: tokens }, (_, token) =>
    Array.from(values.subarray((row * tokens + token) * dim, (row * tokens + token + 1) * dim), (value) => Math.round(value * 1000) / 1000),
  );
}

// ------------------------------------------------------------------ digits

async function createDigits({ client }: Context, name: string, indexingThreshold: number, dataset: Dataset): Promise<void> {
  await client.result('PUT', `/collections/${name}`, {
    vectors: { size: dataset.dim, distance: dataset.distance },
    optimizers_config: { indexing_threshold: indexingThreshold },
  });
  for (const [field, type] of Object.entries(PAYLOAD_FIELDS)) {
    await client.result('PUT', `/collections/${name}/index?wait=true`, { field_name: field, field_schema: type });
  }
}

function* restUpload(dataset: Dataset, collection: string): Generator<Buffer> {
  for (let from = 0; from < dataset.count; from += BATCH) {
    const points: string[] = [];
    for (let row = from; row < Math.min(dataset.count, from + BATCH); row++) {
      points.push(
        `{"id":${row},"vector":${rowText(dataset.vectors, dataset.dim, row)},"payload":${JSON.stringify(dataset.payloads[row])}}`,
      );
    }
    yield jsonRequest('PUT', `/collections/${collection}/points?wait=true`, `{"points":[${points.join(',')}]}`);
  }
}

function digitQueries(dataset: Dataset, collection: string, params: object, more: object = {}, route = 'query'): Buffer[] {
  const rest = JSON.stringify({ limit: LIMIT, params, ...more }).slice(1);
  return Array.from({ length: dataset.queryCount }, (_, row) =>
    jsonRequest('POST', `/collections/${collection}/points/${route}`, `{"query":${rowText(dataset.queries, dataset.dim, row)},${rest}`),
  );
}

// ------------------------------------------------------------------ running

/** Sends every request once, counting recall, then again for some seconds. truth: ids by request. */
async function search(
  context: Context,
  part: string,
  what: string,
  requests: readonly Buffer[],
  truth: readonly (readonly number[])[] | null,
  beside: { readonly name: string; readonly cpuMs: number | null } | null = null,
): Promise<Timed> {
  const warm = await run(context, requests, { requests: requests.length, keepBodies: truth !== null });
  const timed = await run(context, requests, {});
  addTimed(context, part, what, timed, truth === null ? null : recallOf(truth, warm.result.bodies.map(pointIds)), beside);
  return timed;
}

function addTimed(
  context: Context,
  part: string,
  what: string,
  { result, cpuMs }: Timed,
  recall: number | null,
  beside: { readonly name: string; readonly cpuMs: number | null } | null,
): void {
  const ratio = beside === null || beside.cpuMs === null || cpuMs === null ? null : cpuMs / beside.cpuMs;
  const { p50, p99 } = result;
  add(context, { part, what, perSecond: result.requests / result.seconds, cpuMs, p50, p99, recall, yardstick: beside?.name ?? '', ratio });
}

function add({ rows }: Context, row: ApiRow): void {
  rows.push(row);
  const recall = row.recall === null ? '' : `, recall ${row.recall.toFixed(4)}`;
  const ratio = row.ratio === null ? '' : `, × ${row.ratio.toFixed(2)} of ${row.yardstick}`;
  process.stderr.write(`${row.part}: ${row.what}: ${row.perSecond.toFixed(0)}/s, CPU ${row.cpuMs?.toFixed(3)} ms${recall}${ratio}\n`);
}

async function idsOf(context: Context, requests: readonly Buffer[]): Promise<number[][]> {
  const { result } = await run(context, requests, { requests: requests.length, keepBodies: true });
  return result.bodies.map(pointIds);
}

async function run(
  { load, node, folder, settings }: Context,
  requests: Iterable<Buffer>,
  options: { protocol?: 'rest' | 'grpc'; requests?: number; keepBodies?: boolean },
): Promise<Timed> {
  const requestsFile = join(folder, 'api.requests');
  writeRequests(requestsFile, requests);
  const before = cpuSeconds(node.pid);
  const result = await load.run<LoadResult>({
    kind: 'load',
    ports: [options.protocol === 'grpc' ? node.grpcPort : node.port],
    protocol: options.protocol ?? 'rest',
    requestsFile,
    connections: CONNECTIONS,
    requests: options.requests ?? Number.POSITIVE_INFINITY,
    requestsMin: options.requests ?? 1,
    seconds: options.requests === undefined ? settings.seconds : Number.POSITIVE_INFINITY,
    keepBodies: options.keepBodies ?? false,
  });
  const after = cpuSeconds(node.pid);
  if (result.errors > 0) throw new Error(`${result.errors} of ${result.requests} requests failed; the first: ${result.firstError}`);
  return { result, cpuMs: before === null || after === null ? null : ((after - before) * 1000) / result.requests };
}

const POLL_MS = 100;
const STABLE_POLLS = 5;
const INDEX_POLLS_MAX = 18_000;

/** Waits until the collection is green and stays so, with all of its points there. */
async function untilIndexed({ client }: Context, collection: string, points: number): Promise<void> {
  let stable = 0;
  for (let poll = 0; stable < STABLE_POLLS; poll++) {
    const info = await client.result<{ status: string; points_count: number }>('GET', `/collections/${collection}`);
    stable = info.status === 'green' && info.points_count === points ? stable + 1 : 0;
    if (poll > INDEX_POLLS_MAX) throw new Error(`${collection} is not indexed: ${JSON.stringify(info)}`);
    await new Promise((done) => setTimeout(done, POLL_MS));
  }
}

function pointIds(body: string | undefined): number[] {
  if (body === undefined) return [];
  return (JSON.parse(body) as { result: { points: { id: number }[] } }).result.points.map(({ id }) => id);
}

function recallOf(truth: readonly (readonly number[])[], found: readonly (readonly number[])[]): number {
  let wanted = 0;
  let hits = 0;
  truth.forEach((ids, query) => {
    const got = new Set(found[query]);
    wanted += ids.length;
    for (const id of ids) if (got.has(id)) hits++;
  });
  return hits / wanted;
}

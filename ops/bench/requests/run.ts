/**
 * The fixed cost of a request: small operations over both doors, cold and warm, with one connection and with four, and
 * uploads. The built server of another checkout may take its turns beside this one: both run at the same time and are
 * asked in turn, for short slices, so that what the machine does meanwhile meets both.
 */

import { RestClient } from '../../rest-client.js';
import { type Dataset, PAYLOAD_FIELDS } from '../common/dataset.js';
import { startHelper } from '../common/helper.js';
import { memory } from '../common/measure.js';
import { startBareSocket } from './bare-socket.js';
import { type CrowdRow, measureCrowd } from './crowd.js';
import { type Operation, readOperations, upload } from './operations.js';
import { measureReaders, type ReadersRow } from './readers.js';
import {
  type Bench,
  type Contender,
  type RequestRow,
  type RequestSettings,
  restart,
  rowOf,
  runSlice,
  type Slice,
  sliceFigures,
  startContenders,
  turns,
} from './slices.js';
import { measureWakeUp, type WakeUp } from './wake-up.js';

export interface RequestReport {
  readonly wakeUps: readonly WakeUp[];
  readonly starts: readonly { readonly side: string; readonly readyMs: number; readonly idleMegabytes: number | null }[];
  readonly rows: readonly RequestRow[];
  readonly crowd: readonly CrowdRow[];
  readonly readers: readonly ReadersRow[];
}

/** Where the points are that requests ask for. */
export const COLLECTION = 'requests';
const COLD_REQUESTS = 1000;
const BARE_SOCKET = 'a bare socket that answers anything alike (the floor of healthz)';
const UPLOAD_CONNECTIONS = 4;
const INDEXING_THRESHOLD_KB = 1000;
/** More than there are CPUs: a build takes no more than those. */
const BUILD_THREADS = 64;

export async function measureRequests(dataset: Dataset, settings: RequestSettings, folder: string): Promise<RequestReport> {
  const wakeUps = [await measureWakeUp(1), await measureWakeUp(UPLOAD_CONNECTIONS)];
  const bench: Bench = { sides: await startContenders(folder, settings.beside), load: startHelper('load'), folder, settings };
  try {
    const starts = bench.sides.map(({ name, node }) => ({
      side: name,
      readyMs: node.readyMs,
      idleMegabytes: memory(node.pid)?.rss ?? null,
    }));
    const rows = [...(await measureUploads(bench, dataset)), ...(await measureReads(bench, dataset))];
    const crowd = await measureCrowd(bench, COLLECTION, dataset);
    const readers = await measureReaders(bench, COLLECTION, dataset);
    return { wakeUps, starts, rows, crowd, readers };
  } finally {
    bench.load.end();
    await Promise.all(bench.sides.map(({ node }) => node.end('SIGTERM')));
  }
}

// ------------------------------------------------------------------ uploads

/** Each side takes the whole data set twice, over one door and over the other, in as many slices as there are rounds. */
async function measureUploads(bench: Bench, dataset: Dataset): Promise<RequestRow[]> {
  const rows: RequestRow[] = [];
  // The reads that follow ask the collection that came last.
  for (const protocol of ['grpc', 'rest'] as const) {
    for (const side of bench.sides) await makeCollection(side, dataset);
    const slices = new Map<Contender, Slice[]>(bench.sides.map((side) => [side, []]));
    // The first slice warms the node's compiler and is not counted.
    const parts = bench.settings.rounds + 1;
    const from = (part: number): number => Math.floor((part * dataset.count) / parts);
    for (let part = 0; part < parts; part++) {
      const operation = upload(protocol, COLLECTION, dataset, from(part), from(part + 1));
      const points = from(part + 1) - from(part);
      for (const side of turns(bench.sides, part)) {
        const slice = await runSlice(bench, side, operation, { connections: UPLOAD_CONNECTIONS, requests: operation.requests.length });
        if (part > 0) (slices.get(side) as Slice[]).push({ ...slice, units: points });
      }
    }
    rows.push(rowOf(bench, { name: `upload of ${dataset.dim} floats, per point`, protocol }, UPLOAD_CONNECTIONS, slices));
  }
  return rows;
}

/**
 * Makes the collection anew, with an index of each payload field. Nothing is built before `beginBuilds`: a build that begins while the other side has its turn would count in
 * the next one.
 */
export async function makeCollection({ node }: Contender, dataset: Dataset): Promise<void> {
  const client = new RestClient(node.port);
  await client.call('DELETE', `/collections/${COLLECTION}`);
  await client.result('PUT', `/collections/${COLLECTION}`, {
    vectors: { size: dataset.dim, distance: dataset.distance },
    optimizers_config: { indexing_threshold: INDEXING_THRESHOLD_KB, max_optimization_threads: 0 },
  });
  for (const [field, type] of Object.entries(PAYLOAD_FIELDS)) {
    await client.result('PUT', `/collections/${COLLECTION}/index?wait=true`, { field_name: field, field_schema: type });
  }
  client.close();
}

/** Has what `makeCollection` has made be indexed. */
export async function beginBuilds({ node }: Contender): Promise<void> {
  const client = new RestClient(node.port);
  await client.result('PATCH', `/collections/${COLLECTION}`, { optimizers_config: { max_optimization_threads: BUILD_THREADS } });
  client.close();
}

// ------------------------------------------------------------------ reads

async function measureReads(bench: Bench, dataset: Dataset): Promise<RequestRow[]> {
  const operations = readOperations(COLLECTION, dataset);
  const cold = operations.find(({ name, protocol }) => name === 'search' && protocol === 'rest') as Operation;
  const rows = [await measureCold(bench, cold), ...(await measureBareSocket(bench, operations[0] as Operation))];
  for (const operation of operations) {
    for (const connections of bench.settings.connections) {
      const slices = new Map<Contender, Slice[]>(bench.sides.map((side) => [side, []]));
      for (let round = 0; round <= bench.settings.rounds; round++) {
        for (const side of turns(bench.sides, round)) {
          const slice = await runSlice(bench, side, operation, { connections, seconds: bench.settings.seconds });
          // The first slice warms the node's compiler and is not counted.
          if (round > 0) (slices.get(side) as Slice[]).push(slice);
        }
      }
      rows.push(rowOf(bench, operation, connections, slices));
    }
  }
  return rows;
}

/** What the least request costs on a server that does nothing but answer. */
async function measureBareSocket(bench: Bench, operation: Operation): Promise<RequestRow[]> {
  const bare = await startBareSocket((bench.sides[0] as Contender).node.pid);
  try {
    const rows: RequestRow[] = [];
    for (const connections of bench.settings.connections) {
      const slices: Slice[] = [];
      for (let round = 0; round <= bench.settings.rounds; round++) {
        slices.push(await runSlice(bench, bare, operation, { connections, seconds: bench.settings.seconds }));
      }
      // The first slice warms the compiler and is not counted.
      rows.push({ protocol: 'rest', operation: BARE_SOCKET, connections, here: sliceFigures(slices.slice(1)), beside: null, ratio: null });
    }
    return rows;
  } finally {
    bare.end();
  }
}

/** The first requests after a start with the data in place. */
async function measureCold(bench: Bench, operation: Operation): Promise<RequestRow> {
  const slices = new Map<Contender, Slice[]>();
  for (const side of bench.sides) {
    await beginBuilds(side);
    await untilIndexed(side);
    await restart(side);
  }
  for (const side of bench.sides) {
    slices.set(side, [await runSlice(bench, side, operation, { connections: 1, requests: COLD_REQUESTS })]);
  }
  return rowOf(bench, { ...operation, name: `${operation.name}, the first ${COLD_REQUESTS} after a start` }, 1, slices);
}

const INDEX_POLL_MS = 200;

/** Resolves when its points are indexed. */
export async function untilIndexed({ node }: Contender): Promise<void> {
  const client = new RestClient(node.port);
  for (;;) {
    const info = await client.result<{ status: string; points_count: number; indexed_vectors_count: number }>(
      'GET',
      `/collections/${COLLECTION}`,
    );
    if (info.status === 'green' && info.indexed_vectors_count >= info.points_count / 2) break;
    await new Promise((done) => setTimeout(done, INDEX_POLL_MS));
  }
  client.close();
}

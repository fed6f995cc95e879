/**
 * The fixed cost of a request: small operations over both doors, cold and warm, with one connection and with four, and
 * uploads. The built server of another checkout may take its turns beside this one: both run at the same time and are
 * asked in turn, for short slices, so that what the machine does meanwhile meets both.
 */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type RunningNode, startNodeProcess } from '../../node-process.js';
import { RestClient } from '../../rest-client.js';
import { type Dataset, PAYLOAD_FIELDS } from '../common/dataset.js';
import { type Helper, startHelper } from '../common/helper.js';
import type { LoadResult, ToLoad } from '../common/jobs.js';
import { memory } from '../common/measure.js';
import { writeRequests } from '../common/requests.js';
import { readThreads, type TreeUse, treeUse } from '../common/threads.js';
import { type Operation, readOperations, upload } from './operations.js';
import { measureWakeUp, type WakeUp } from './wake-up.js';

export interface RequestSettings {
  /** Of each slice. */
  readonly seconds: number;
  /** Slices of each operation for each side. */
  readonly rounds: number;
  readonly connections: readonly number[];
  /** Folder of a built checkout whose server is measured in turn with this one; null: none. */
  readonly beside: string | null;
}

/** Medians over the slices of one side. */
export interface Figures {
  readonly perSecond: number;
  /** Microseconds of CPU per request, or per point of an upload: of all threads, and of the main thread alone. */
  readonly cpuUs: number;
  readonly mainUs: number;
  /** Times that a thread was woken, per request or point. */
  readonly wakeUps: number;
  readonly p50: number;
  readonly p99: number;
}

export interface RequestRow {
  readonly protocol: Operation['protocol'];
  readonly operation: string;
  readonly connections: number;
  readonly here: Figures;
  readonly beside: Figures | null;
  /** Median over the pairs of slices of CPU here divided by CPU beside. */
  readonly ratio: number | null;
}

export interface RequestReport {
  readonly wakeUps: readonly WakeUp[];
  readonly starts: readonly { readonly side: string; readonly readyMs: number; readonly idleMegabytes: number | null }[];
  readonly rows: readonly RequestRow[];
}

interface Side {
  readonly name: string;
  readonly folder: string;
  readonly program: string | undefined;
  node: RunningNode;
}

interface Slice {
  readonly result: LoadResult;
  readonly use: TreeUse;
  /** Requests, or points of an upload. */
  readonly units: number;
}

interface Bench {
  readonly sides: readonly Side[];
  readonly load: Helper<ToLoad>;
  readonly folder: string;
  readonly settings: RequestSettings;
}

const COLLECTION = 'requests';
const COLD_REQUESTS = 1000;
const UPLOAD_CONNECTIONS = 4;
const INDEXING_THRESHOLD_KB = 1000;

export async function measureRequests(dataset: Dataset, settings: RequestSettings, folder: string): Promise<RequestReport> {
  const wakeUps = [await measureWakeUp(1), await measureWakeUp(UPLOAD_CONNECTIONS)];
  const bench: Bench = { sides: await startSides(folder, settings.beside), load: startHelper('load'), folder, settings };
  try {
    const starts = bench.sides.map(({ name, node }) => ({
      side: name,
      readyMs: node.readyMs,
      idleMegabytes: memory(node.pid)?.rss ?? null,
    }));
    const rows = [...(await measureUploads(bench, dataset)), ...(await measureReads(bench, dataset))];
    return { wakeUps, starts, rows };
  } finally {
    bench.load.end();
    await Promise.all(bench.sides.map(({ node }) => node.end('SIGTERM')));
  }
}

async function startSides(folder: string, beside: string | null): Promise<Side[]> {
  const sides: Side[] = [];
  const programs: [string, string | undefined][] = [['this', undefined]];
  if (beside !== null) programs.push(['beside', join(beside, 'dist', 'ops', 'main.js')]);
  for (const [name, program] of programs) {
    const own = join(folder, name);
    mkdirSync(own);
    sides.push({ name, folder: own, program, node: await startNodeProcess({ folder: own, program }) });
  }
  return sides;
}

// ------------------------------------------------------------------ uploads

/** Each side takes the whole data set twice, over one door and over the other, in as many slices as there are rounds. */
async function measureUploads(bench: Bench, dataset: Dataset): Promise<RequestRow[]> {
  const rows: RequestRow[] = [];
  // The reads that follow ask the collection that came last.
  for (const protocol of ['grpc', 'rest'] as const) {
    for (const side of bench.sides) await createCollection(side, dataset);
    const slices = new Map<Side, Slice[]>(bench.sides.map((side) => [side, []]));
    // The first slice warms the node's compiler and is not counted.
    const parts = bench.settings.rounds + 1;
    const from = (part: number): number => Math.floor((part * dataset.count) / parts);
    for (let part = 0; part < parts; part++) {
      const operation = upload(protocol, COLLECTION, dataset, from(part), from(part + 1));
      const points = from(part + 1) - from(part);
      for (const side of turns(bench.sides, part)) {
        const slice = await run(bench, side, operation, { connections: UPLOAD_CONNECTIONS, requests: operation.requests.length });
        if (part > 0) (slices.get(side) as Slice[]).push({ ...slice, units: points });
      }
    }
    rows.push(rowOf(bench, { name: `upload of ${dataset.dim} floats, per point`, protocol }, UPLOAD_CONNECTIONS, slices));
  }
  return rows;
}

async function createCollection({ node }: Side, dataset: Dataset): Promise<void> {
  const client = new RestClient(node.port);
  await client.call('DELETE', `/collections/${COLLECTION}`);
  await client.result('PUT', `/collections/${COLLECTION}`, {
    vectors: { size: dataset.dim, distance: dataset.distance },
    optimizers_config: { indexing_threshold: INDEXING_THRESHOLD_KB },
  });
  for (const [field, type] of Object.entries(PAYLOAD_FIELDS)) {
    await client.result('PUT', `/collections/${COLLECTION}/index?wait=true`, { field_name: field, field_schema: type });
  }
  client.close();
}

// ------------------------------------------------------------------ reads

async function measureReads(bench: Bench, dataset: Dataset): Promise<RequestRow[]> {
  const operations = readOperations(COLLECTION, dataset);
  const cold = operations.find(({ name, protocol }) => name === 'search' && protocol === 'rest') as Operation;
  const rows = [await measureCold(bench, cold)];
  for (const operation of operations) {
    for (const connections of bench.settings.connections) {
      const slices = new Map<Side, Slice[]>(bench.sides.map((side) => [side, []]));
      for (let round = 0; round <= bench.settings.rounds; round++) {
        for (const side of turns(bench.sides, round)) {
          const slice = await run(bench, side, operation, { connections, seconds: bench.settings.seconds });
          // The first slice warms the node's compiler and is not counted.
          if (round > 0) (slices.get(side) as Slice[]).push(slice);
        }
      }
      rows.push(rowOf(bench, operation, connections, slices));
    }
  }
  return rows;
}

/** The first requests after a start with the data in place. */
async function measureCold(bench: Bench, operation: Operation): Promise<RequestRow> {
  const slices = new Map<Side, Slice[]>();
  for (const side of bench.sides) {
    await untilIndexed(side);
    await side.node.end('SIGTERM');
    side.node = await startNodeProcess({ folder: side.folder, program: side.program });
  }
  for (const side of bench.sides) {
    slices.set(side, [await run(bench, side, operation, { connections: 1, requests: COLD_REQUESTS })]);
  }
  return rowOf(bench, { ...operation, name: `${operation.name}, the first ${COLD_REQUESTS} after a start` }, 1, slices);
}

const INDEX_POLL_MS = 200;

async function untilIndexed({ node }: Side): Promise<void> {
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

// ------------------------------------------------------------------ slices

async function run(
  { load, folder }: Bench,
  { node }: Side,
  { name, protocol, requests }: Operation,
  limits: { connections: number; requests?: number; seconds?: number },
): Promise<Slice> {
  const requestsFile = join(folder, 'slice.requests');
  writeRequests(requestsFile, requests);
  const before = readThreads(node.pid);
  const result = await load.run<LoadResult>({
    kind: 'load',
    ports: [protocol === 'grpc' ? node.grpcPort : node.port],
    protocol,
    requestsFile,
    connections: limits.connections,
    requests: limits.requests ?? Number.POSITIVE_INFINITY,
    seconds: limits.seconds ?? Number.POSITIVE_INFINITY,
    requestsMin: 1,
    keepBodies: false,
  });
  if (result.errors > 0)
    throw new Error(`${name}: ${result.errors} of ${result.requests} requests failed; the first: ${result.firstError}`);
  return { result, use: treeUse(before, readThreads(node.pid)), units: result.requests };
}

/** The side that goes first changes from round to round. */
function turns(sides: readonly Side[], round: number): readonly Side[] {
  return round % 2 === 0 ? sides : [...sides].reverse();
}

function rowOf(
  { sides }: Bench,
  { name, protocol }: Pick<Operation, 'name' | 'protocol'>,
  connections: number,
  slices: ReadonlyMap<Side, readonly Slice[]>,
): RequestRow {
  const [here, beside] = sides.map((side) => slices.get(side) as readonly Slice[]);
  const cpuUs = ({ use, units }: Slice): number => use.cpuUs / units;
  return {
    protocol,
    operation: name,
    connections,
    here: figuresOf(here as readonly Slice[]),
    beside: beside === undefined ? null : figuresOf(beside),
    ratio: beside === undefined ? null : median((here as readonly Slice[]).map((slice, at) => cpuUs(slice) / cpuUs(beside[at] as Slice))),
  };
}

function figuresOf(slices: readonly Slice[]): Figures {
  return {
    perSecond: median(slices.map(({ result, units }) => units / result.seconds)),
    cpuUs: median(slices.map(({ use, units }) => use.cpuUs / units)),
    mainUs: median(slices.map(({ use, units }) => use.mainUs / units)),
    wakeUps: median(slices.map(({ use, units }) => use.sleeps / units)),
    p50: median(slices.map(({ result }) => result.p50)),
    p99: median(slices.map(({ result }) => result.p99)),
  };
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[sorted.length >> 1] ?? Number.NaN;
}

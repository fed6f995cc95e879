/**
 * A stream of points at a steady pace into one collection, which is built meanwhile and searched all the while: what the builds of a collection that
 * grows cost in all, and what its writes and searches notice of them. The built server of another checkout may take the same stream afterwards.
 */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type RunningNode, startNodeProcess } from '../../node-process.js';
import { seededRandom } from '../../random.js';
import { RestClient } from '../../rest-client.js';
import { syntheticRows } from '../common/dataset.js';
import { type Helper, startHelper } from '../common/helper.js';
import type { LoadResult, ToLoad } from '../common/jobs.js';
import { cpuSeconds, peakMegabytes } from '../common/measure.js';
import { searchRequests } from '../common/prepared.js';
import { upsertMessage } from '../common/protobuf.js';
import { grpcRequest, writeRequests } from '../common/requests.js';
import { BUILT_QUIET_MS, untilBuilt } from '../common/until-built.js';
import type { Waits } from '../common/waits.js';
import { programIn } from '../requests/slices.js';
import { BuildCpu } from './build-cpu.js';
import { type StreamSent, sendOnTime } from './send.js';

export interface StreamSettings {
  /** Of the stream. */
  readonly seconds: number;
  readonly pointsPerSecond: number;
  readonly seed: number;
  /** Milliseconds from the end of the last build until the searches at rest. */
  readonly restMs: number;
  /** Of the searches at rest. */
  readonly restSeconds: number;
  /** Folder of a built checkout whose server takes the same stream after this one; null: none. */
  readonly beside: string | null;
}

/** CPU seconds of the node. */
export interface StreamCpu {
  readonly all: number;
  /** Of it threads of builds; null where the system does not tell. */
  readonly builds: number | null;
}

export interface StreamFigures {
  readonly side: string;
  readonly points: number;
  readonly sent: StreamSent;
  /** From the end of the stream until all is indexed. */
  readonly indexSeconds: number;
  /** During the stream, and from its end until all is indexed. */
  readonly streamCpu: StreamCpu;
  readonly indexCpu: StreamCpu;
  /** When all is indexed. */
  readonly segments: number;
  /** Most megabytes until then; null where the system does not tell. */
  readonly peakMegabytes: number | null;
  /** During the stream, and once all is indexed and at rest. */
  readonly searches: Waits;
  readonly searchesAtRest: Waits;
}

export const STREAM_DIM = 128;
export const STREAM_BATCH = 100;
export const SEARCHES_PER_SECOND = 20;
/** A connection stays with one reader: with two, both readers of a small machine are asked. */
const SEARCH_CONNECTIONS = 2;
const COLLECTION = 'stream';
const QUERIES = 200;
const LIMIT = 10;
const POLL_MS = 200;
/** Every so many batches are told of. */
const BATCHES_TOLD = 500;

export async function measureStream(settings: StreamSettings, folder: string, say: (line: string) => void): Promise<StreamFigures[]> {
  const { beside } = settings;
  const figures = [await measureSide('this', undefined, settings, folder, say)];
  if (beside !== null) figures.push(await measureSide('beside', programIn(beside), settings, folder, say));
  return figures;
}

async function measureSide(
  side: string,
  program: string | undefined,
  settings: StreamSettings,
  folder: string,
  say: (line: string) => void,
): Promise<StreamFigures> {
  const own = join(folder, side);
  mkdirSync(own);
  const node = await startNodeProcess({ folder: own, program });
  const client = new RestClient(node.port);
  const searcher = startHelper<ToLoad>('load');
  const builds = new BuildCpu(node.pid);
  const cpu = (): StreamCpu => ({ all: cpuSeconds(node.pid) ?? Number.NaN, builds: builds.seconds() });
  try {
    await client.result('PUT', `/collections/${COLLECTION}`, { vectors: { size: STREAM_DIM, distance: 'Cosine' } });
    const more = syntheticRows(STREAM_DIM, seededRandom(settings.seed));
    const searches = join(folder, 'searches.requests');
    const queries = { dim: STREAM_DIM, queries: more(QUERIES), queryCount: QUERIES };
    writeRequests(searches, searchRequests(queries, COLLECTION, `"limit":${LIMIT}`));

    const cpuBefore = cpu();
    const batches = Math.ceil((settings.pointsPerSecond * settings.seconds) / STREAM_BATCH);
    const schedule = { batches, batchesPerSecond: settings.pointsPerSecond / STREAM_BATCH };
    const requestOf = (batch: number): Buffer => {
      if (batch % BATCHES_TOLD === 0) say(`${side}: ${batch * STREAM_BATCH} of ${batches * STREAM_BATCH} points`);
      return upsertRequest(batch * STREAM_BATCH, more(STREAM_BATCH));
    };
    const [searched, sent] = await Promise.all([
      search(searcher, node, searches, Number.POSITIVE_INFINITY),
      sendOnTime(node.grpcPort, schedule, requestOf).finally(() => searcher.post({ kind: 'stop' })),
    ]);
    const cpuSent = cpu();
    const sentMs = performance.now();
    say(`${side}: all is sent`);
    await untilBuilt(client, COLLECTION, { pollMs: POLL_MS, quietMs: BUILT_QUIET_MS });
    const indexSeconds = (performance.now() - sentMs - BUILT_QUIET_MS) / 1000;
    const cpuIndexed = cpu();
    builds.end();
    const peak = peakMegabytes(node.pid);
    const { segments_count: segments } = await client.result<{ segments_count: number }>('GET', `/collections/${COLLECTION}`);
    say(`${side}: all is indexed`);
    await sleep(settings.restMs);
    return {
      side,
      points: batches * STREAM_BATCH,
      sent,
      indexSeconds,
      streamCpu: cpuBetween(cpuBefore, cpuSent),
      indexCpu: cpuBetween(cpuSent, cpuIndexed),
      segments,
      peakMegabytes: peak,
      searches: searched,
      searchesAtRest: await search(searcher, node, searches, settings.restSeconds),
    };
  } finally {
    builds.end();
    searcher.end();
    client.close();
    await node.end('SIGTERM');
  }
}

/** Points numbered from `first` on. vectors: Float32Array [count, STREAM_DIM]. */
function upsertRequest(first: number, vectors: Float32Array): Buffer {
  const points = Array.from({ length: vectors.length / STREAM_DIM }, (_, at) => ({
    id: first + at,
    vector: vectors.subarray(at * STREAM_DIM, (at + 1) * STREAM_DIM),
    payload: {},
  }));
  return grpcRequest('Upsert', upsertMessage(COLLECTION, points));
}

/** Searches at a steady pace for so many seconds, or until the helper is told to stop. Rejects when one has failed. */
async function search(searcher: Helper<ToLoad>, { port }: RunningNode, requestsFile: string, seconds: number): Promise<Waits> {
  const { errors, firstError, max, p50, p99, requests } = await searcher.run<LoadResult>({
    kind: 'load',
    ports: [port],
    protocol: 'rest',
    requestsFile,
    connections: SEARCH_CONNECTIONS,
    requests: Number.POSITIVE_INFINITY,
    seconds,
    requestsMin: 1,
    keepBodies: false,
    perSecond: SEARCHES_PER_SECOND,
  });
  if (errors > 0) throw new Error(`${errors} of ${requests} searches failed; the first: ${firstError}`);
  return { count: requests, p50, p99, max };
}

function cpuBetween(before: StreamCpu, after: StreamCpu): StreamCpu {
  return { all: after.all - before.all, builds: after.builds === null ? null : after.builds - (before.builds ?? 0) };
}

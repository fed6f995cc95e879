/**
 * One large collection on one node: how long it takes to be uploaded and indexed, what it needs of CPU, memory and disk, what searches find and cost,
 * and how soon it answers after a restart. Vectors are made while they are uploaded, so they need no memory here, and the exact answers with them.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { type RunningNode, startNodeProcess } from '../../node-process.js';
import { RestClient } from '../../rest-client.js';
import { openGrpc } from '../common/grpc-lane.js';
import { answerOn, type Lane } from '../common/lane.js';
import { cpuSeconds, diskMegabytes, type FileReads, fileReads, memory, peakMegabytes } from '../common/measure.js';
import type { MeasuredRow } from '../common/measured-row.js';
import { upsertMessage } from '../common/protobuf.js';
import { quantile } from '../common/quantile.js';
import { grpcRequest } from '../common/requests.js';
import { timed } from '../common/timed.js';
import { BUILT_QUIET_MS, untilBuilt } from '../common/until-built.js';
import { denseRows, type LargeRows, tokenRows } from './rows.js';

export interface LargeSettings {
  readonly count: number;
  readonly dim: number;
  /** Vectors of each point; 1: plain ones. */
  readonly tokens: number;
  readonly seed: number;
  readonly efs: readonly number[];
  /** Codes and originals on disk, in lists. */
  readonly onDisk: boolean;
  /** Rest before memory is read. */
  readonly restMs: number;
}

export interface LargeSearch {
  readonly ef: number;
  readonly recall: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Of the node, for a search. */
  readonly cpuMs: number;
  /** Of a search, less what a request reads that needs no file. */
  readonly reads: FileReads;
}

export interface LargeReport {
  readonly rows: readonly MeasuredRow[];
  readonly searches: readonly LargeSearch[];
  /** What recall is next to. */
  readonly truth: string;
}

const COLLECTION = 'large';
const BATCH = 1000;
/** A line is told for every so many points. */
const TOLD_POINTS = 100_000;
const LANES = 2;
const QUERIES = 100;
const LIMIT = 10;
/** How often each query is asked for a measurement. */
const ROUNDS = 3;
const POLL_MS = 200;
/** What a node without memory for a write answers, and until it is sent again. */
const OUT_OF_MEMORY = 'grpc-status 8: Out of memory';
const REFUSED_MS = 1000;
/** Every so many looks at the build are told of. */
const LOOKS_TOLD = 100;

export async function measureLarge(settings: LargeSettings, folder: string, say: (line: string) => void): Promise<LargeReport> {
  const { dim, onDisk, restMs, seed, tokens } = settings;
  const data = tokens === 1 ? denseRows(dim, seed, QUERIES, LIMIT) : tokenRows(dim, tokens, seed, QUERIES);
  const rows: MeasuredRow[] = [];
  const add = (what: string, unit: string, value: number): void => {
    rows.push({ what, unit, value });
    say(`${what}: ${value.toFixed(1)} ${unit}`);
  };
  let node = await startNodeProcess({ folder });
  let client = new RestClient(node.port);
  await client.result('PUT', `/collections/${COLLECTION}`, {
    vectors: { ...data.params, ...(onDisk ? { on_disk: true, hnsw_config: { on_disk: true } } : {}) },
  });
  const started = performance.now();
  await upload(settings, data, node, say);
  add('uploaded', 's', (performance.now() - started) / 1000);
  let looks = 0;
  const look = (told: string): void => {
    if (looks++ % LOOKS_TOLD === 0) say(told);
  };
  await untilBuilt(client, COLLECTION, { pollMs: POLL_MS, quietMs: BUILT_QUIET_MS, look });
  add('first point sent until indexed', 's', (performance.now() - started - BUILT_QUIET_MS) / 1000);
  add('CPU until then', 's', cpuSeconds(node.pid) ?? Number.NaN);
  add('most memory until then', 'MB', peakMegabytes(node.pid) ?? Number.NaN);
  add('segments', '', await segmentsOf(client));
  await sleep(restMs);
  tellMemory(node, 'at rest', add);
  add('disk', 'MB', diskMegabytes(`${folder}/storage`));
  const searches: LargeSearch[] = [];
  await data.learn(async (query) => await search(client, data, query, { exact: true }));
  for (const ef of settings.efs) {
    const found = await measureSearches(client, node, data, ef);
    searches.push(found);
    say(
      `ef ${ef}: ${found.reads.calls.toFixed(1)} reads, ${(found.reads.bytes / 1000).toFixed(0)} kB, from disk ${(found.reads.diskBytes / 1000).toFixed(0)} kB, recall ${found.recall.toFixed(3)}, p50 ${found.p50Ms.toFixed(2)}, p99 ${found.p99Ms.toFixed(2)} ms, CPU ${found.cpuMs.toFixed(2)} ms`,
    );
  }
  tellMemory(node, 'after searches', add);
  const before = await answersOf(client, data, settings.efs[0] as number);
  client.close();
  add('stop', 's', (await timed(() => node.end('SIGTERM'))) / 1000);

  const restarted = performance.now();
  node = await startNodeProcess({ folder, readyTimeoutMs: 600_000 });
  client = new RestClient(node.port);
  add('restart until ready', 's', node.readyMs / 1000);
  const [first] = await answersOf(client, data, settings.efs[0] as number, 1);
  add('restart until the first answer', 's', (performance.now() - restarted) / 1000);
  add('the first answer is the same', 'of 1', JSON.stringify(first) === JSON.stringify(before[0]) ? 1 : 0);
  await sleep(restMs);
  tellMemory(node, 'after a restart', add);
  const after = await answersOf(client, data, settings.efs[0] as number);
  add(
    'same answers as before the restart',
    `of ${QUERIES}`,
    after.filter((ids, query) => JSON.stringify(ids) === JSON.stringify(before[query])).length,
  );
  client.close();
  await node.end('SIGTERM');
  return { rows, searches, truth: data.truth };
}

/** Sends all points over some connections. */
async function upload({ count, tokens }: LargeSettings, data: LargeRows, node: RunningNode, say: (line: string) => void): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    const connection = await openGrpc(node.grpcPort);
    while (next < count) {
      const from = next;
      const size = Math.min(Math.ceil(BATCH / tokens), count - from);
      next += size;
      const points = data.next(size, from).map((vector, at) => ({ id: from + at, vector, payload: {} }));
      const request = grpcRequest('Upsert', upsertMessage(COLLECTION, points));
      while (!(await sent(connection, request))) await sleep(REFUSED_MS);
      if (Math.floor((from + size) / TOLD_POINTS) > Math.floor(from / TOLD_POINTS))
        say(`${from + size} of ${count} points, ${memory(node.pid)?.rss.toFixed(0)} MB`);
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

/** False: the node has no memory for more points before it has built what it has. Errors: every other refusal. */
async function sent(lane: Lane, request: Buffer): Promise<boolean> {
  const { bytes, good } = await answerOn(lane, request);
  const text = good ? '' : bytes.toString('latin1').slice(0, 500);
  if (!good && !text.startsWith(OUT_OF_MEMORY)) throw new Error(text);
  return good;
}

async function segmentsOf(client: RestClient): Promise<number> {
  return (await client.result<{ segments_count: number }>('GET', `/collections/${COLLECTION}`)).segments_count;
}

function tellMemory(node: RunningNode, when: string, add: (what: string, unit: string, value: number) => void): void {
  const { anonymous = Number.NaN, file = Number.NaN, shared = Number.NaN } = memory(node.pid) ?? {};
  add(`memory ${when}, but for pages of files`, 'MB', anonymous + shared);
  add(`pages of files ${when}`, 'MB', file);
}

async function measureSearches(client: RestClient, node: RunningNode, data: LargeRows, ef: number): Promise<LargeSearch> {
  await answersOf(client, data, ef);
  const times: number[] = [];
  let recall = 0;
  const told = await readsOf(node, async () => {
    for (let request = 0; request < ROUNDS * QUERIES; request++) await client.call('GET', '/healthz');
  });
  const cpu = cpuSeconds(node.pid) ?? Number.NaN;
  const read = await readsOf(node, async () => {
    for (let round = 0; round < ROUNDS; round++)
      for (let query = 0; query < QUERIES; query++) {
        let ids: number[] = [];
        times.push(
          await timed(async () => {
            ids = await search(client, data, query, { hnsw_ef: ef });
          }),
        );
        recall += data.partFound(query, ids);
      }
  });
  const sorted = Float64Array.from(times).sort();
  const cpuMs = (1000 * ((cpuSeconds(node.pid) ?? Number.NaN) - cpu)) / times.length;
  const reads = readsBetween(told, read, times.length);
  return { ef, recall: recall / times.length, p50Ms: quantile(sorted, 0.5), p99Ms: quantile(sorted, 0.99), cpuMs, reads };
}

async function readsOf(node: RunningNode, work: () => Promise<void>): Promise<FileReads> {
  const before = fileReads(node.pid);
  await work();
  return readsBetween(before, fileReads(node.pid), 1);
}

/** What `after` has more than `before`, for each of `parts`. */
function readsBetween(before: FileReads, after: FileReads, parts: number): FileReads {
  return {
    calls: (after.calls - before.calls) / parts,
    bytes: (after.bytes - before.bytes) / parts,
    diskBytes: (after.diskBytes - before.diskBytes) / parts,
  };
}

async function answersOf(client: RestClient, data: LargeRows, ef: number, count = QUERIES): Promise<number[][]> {
  const answers: number[][] = [];
  for (let query = 0; query < count; query++) answers.push(await search(client, data, query, { hnsw_ef: ef }));
  return answers;
}

async function search(client: RestClient, data: LargeRows, query: number, params: object): Promise<number[]> {
  const body = { query: data.query(query), limit: LIMIT, params };
  const { points } = await client.result<{ points: { id: number }[] }>('POST', `/collections/${COLLECTION}/points/query?timeout=60`, body);
  return points.map(({ id }) => id);
}

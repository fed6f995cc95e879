/**
 * A snapshot of one large collection: made, downloaded, uploaded and restored, restored from a URL and from a file, beside a light load on another
 * collection of the same node. A restore has ended when the collection is green, has as many indexed vectors, and has answered all queries.
 */

import { createReadStream, createWriteStream, mkdirSync, statSync } from 'node:fs';
import { type ClientRequest, request } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { type RunningNode, startNodeProcess } from '../../node-process.js';
import { RestClient } from '../../rest-client.js';
import { type Dataset, PAYLOAD_FIELDS } from '../common/dataset.js';
import { type Helper, startHelper } from '../common/helper.js';
import type { LoadJob, LoadResult, ToLoad } from '../common/jobs.js';
import { cpuSeconds } from '../common/measure.js';
import { grpcUploadRequests, idsOf, searchRequests, UPLOAD_BATCH } from '../common/prepared.js';
import { writeRequests } from '../common/requests.js';
import { untilBuilt } from '../common/until-built.js';
import type { Probed, ToProbe } from './probe-jobs.js';

export interface SnapshotsSettings {
  readonly dataset: Dataset;
  readonly folder: string;
  /** Milliseconds of the measurement of an idle node. */
  readonly idleMs: number;
  readonly nodeArguments: readonly string[];
}

export interface SnapshotsRow {
  readonly what: string;
  readonly seconds: number;
  readonly cpuSeconds: number;
  /** Of the archive; null for what does not go through one. */
  readonly megabytesPerSecond: number | null;
  /** Anonymous and shared memory, and all that is resident: just before, and the most while it went on. */
  readonly before: PeakOfMemory;
  readonly peak: PeakOfMemory;
  readonly probed: Probed;
  /** Of a restore: the part of the queries whose answers are those of the first collection. */
  readonly sameAnswers: number | null;
}

interface PeakOfMemory {
  readonly anonymous: number;
  readonly resident: number;
}

export interface SnapshotsMeasured {
  readonly archiveMegabytes: number;
  readonly rows: readonly SnapshotsRow[];
}

const UPLOAD_CONNECTIONS = 4;
const EF = 64;
const LIMIT = 10;
const SMALL_DIM = 32;
const SMALL = 'small';
const SOURCE = 'source';
const POLL_MS = 50;
const INDEX_POLL_MS = 500;
/** A green collection stays so for this long before its index counts as done. */
const QUIET_MS = 2000;
const IN_BETWEEN_MS = 2500;

interface Measuring extends SnapshotsSettings {
  readonly node: RunningNode;
  readonly client: RestClient;
  readonly load: Helper<ToLoad>;
  readonly probe: Helper<ToProbe>;
  readonly searchFile: (collection: string) => string;
  readonly rows: SnapshotsRow[];
}

export async function measureSnapshots(settings: SnapshotsSettings): Promise<SnapshotsMeasured> {
  const { dataset, folder, idleMs, nodeArguments } = settings;
  mkdirSync(join(folder, 'node'));
  const node = await startNodeProcess({ folder: join(folder, 'node'), nodeArguments });
  const client = new RestClient(node.port);
  const load = startHelper<ToLoad>('load');
  const probe = startHelper<ToProbe>('probe');
  const rows: SnapshotsRow[] = [];
  const searchFile = (collection: string): string => {
    const file = join(folder, `${collection}.requests`);
    writeRequests(file, searchRequests(dataset, collection, `"limit":${LIMIT},"params":{"hnsw_ef":${EF}}`));
    return file;
  };
  const measuring: Measuring = { ...settings, node, client, load, probe, searchFile, rows };
  try {
    const uploadFile = join(folder, 'upload.requests');
    writeRequests(uploadFile, grpcUploadRequests(dataset, SOURCE));
    await createCollections(measuring);
    await probe.run({ kind: 'begin', job: { port: node.port, pid: node.pid, collection: SMALL, dim: SMALL_DIM } });
    await sleep(IN_BETWEEN_MS);
    await phase(measuring, 'idle, empty', null, () => sleep(idleMs));
    const indexed = await phase(measuring, 'upload over gRPC and index', null, async () => {
      await upload(measuring, uploadFile);
      return untilBuilt(client, SOURCE, { pollMs: INDEX_POLL_MS, quietMs: QUIET_MS });
    });
    const expected = await answers(measuring, SOURCE);
    await phase(measuring, 'idle', null, () => sleep(idleMs));
    const made = await phase(measuring, 'create', null, () =>
      client.result<{ name: string; size: number }>('POST', `/collections/${SOURCE}/snapshots`),
    );
    const archiveMegabytes = made.size / 1e6;
    rows[rows.length - 1] = withSpeed(rows.at(-1) as SnapshotsRow, archiveMegabytes);
    const archive = join(folder, 'downloaded.snapshot');
    const path = `/collections/${SOURCE}/snapshots/${made.name}`;
    await phase(measuring, 'download', archiveMegabytes, () => download(node.port, path, archive));
    const stored = `file://${join(folder, 'node', 'snapshots', SOURCE, made.name)}`;
    const restores: [string, string, () => Promise<unknown>][] = [
      ['upload and restore', 'uploaded', () => uploadArchive(node.port, 'uploaded', archive)],
      ['restore from a URL (of the node itself)', 'fetched', () => recover(client, 'fetched', `${node.url}${path}`)],
      ['restore from a file', 'filed', () => recover(client, 'filed', stored)],
      ['restore from a file over what is there', 'filed', () => recover(client, 'filed', stored)],
    ];
    for (const [what, collection, restore] of restores) {
      const found = await phase(measuring, what, archiveMegabytes, async () => {
        await restore();
        await untilAnswering(client, collection, indexed);
        return answers(measuring, collection);
      });
      const same = found.filter((ids, at) => ids.join() === expected[at]?.join()).length / expected.length;
      rows[rows.length - 1] = { ...(rows.at(-1) as SnapshotsRow), sameAnswers: same };
      if (collection !== 'filed') await client.result('DELETE', `/collections/${collection}`);
    }
    await phase(measuring, 'delete the snapshot', null, () => client.result('DELETE', path));
    return { archiveMegabytes, rows };
  } finally {
    probe.end();
    load.end();
    client.close();
    await node.end('SIGTERM');
  }
}

async function createCollections({ client, dataset }: Measuring): Promise<void> {
  await client.result('PUT', `/collections/${SMALL}`, { vectors: { size: SMALL_DIM, distance: 'Dot' } });
  await client.result('PUT', `/collections/${SOURCE}`, { vectors: { size: dataset.dim, distance: dataset.distance } });
  for (const [field, type] of Object.entries(PAYLOAD_FIELDS).slice(0, 2))
    await client.result('PUT', `/collections/${SOURCE}/index?wait=true`, { field_name: field, field_schema: type });
}

/** Adds a row for what is done meanwhile. */
async function phase<Value>(
  { node, probe, rows }: Measuring,
  what: string,
  megabytes: number | null,
  run: () => Promise<Value>,
): Promise<Value> {
  if (rows.length > 0) await sleep(IN_BETWEEN_MS);
  const before = await probe.run<Probed>({ kind: 'take' });
  // A first look at the memory, whose last peak says little of now.
  await sleep(250);
  const idle = await probe.run<Probed>({ kind: 'take' });
  const cpuBefore = cpuSeconds(node.pid) ?? 0;
  const started = performance.now();
  const value = await run();
  const seconds = (performance.now() - started) / 1000;
  const cpu = (cpuSeconds(node.pid) ?? 0) - cpuBefore;
  const probed = await probe.run<Probed>({ kind: 'take' });
  const row: SnapshotsRow = {
    what,
    seconds,
    cpuSeconds: cpu,
    megabytesPerSecond: null,
    before: memoryOf(idle.peakResidentMegabytes === 0 ? before : idle),
    peak: memoryOf(probed),
    probed,
    sameAnswers: null,
  };
  rows.push(megabytes === null ? row : withSpeed(row, megabytes));
  const { main, ownLateMs, searches, writes } = probed;
  const ms = (value: number): string => value.toFixed(1);
  process.stderr.write(
    `${what}: ${seconds.toFixed(2)} s, CPU ${cpu.toFixed(2)} s, anonymous ${row.before.anonymous.toFixed(0)} → ${row.peak.anonymous.toFixed(0)}, resident ${row.before.resident.toFixed(0)} → ${row.peak.resident.toFixed(0)} MB; p50/p99/max ms: writes ${[writes.p50, writes.p99, writes.max].map(ms).join('/')}, searches ${[searches.p50, searches.p99, searches.max].map(ms).join('/')}, main ${[main.p50, main.p99, main.max].map(ms).join('/')}; probe late ${ms(ownLateMs)}\n`,
  );
  return value;
}

function memoryOf({ peakAnonymousMegabytes, peakResidentMegabytes }: Probed): PeakOfMemory {
  return { anonymous: peakAnonymousMegabytes, resident: peakResidentMegabytes };
}

function withSpeed(row: SnapshotsRow, megabytes: number): SnapshotsRow {
  return { ...row, megabytesPerSecond: megabytes / row.seconds };
}

async function upload({ dataset, load, node }: Measuring, requestsFile: string): Promise<void> {
  const requests = Math.ceil(dataset.count / UPLOAD_BATCH);
  const result = await load.run<LoadResult>({
    ...job(requestsFile, requests, UPLOAD_CONNECTIONS),
    ports: [node.grpcPort],
    protocol: 'grpc',
  });
  if (result.errors > 0) throw new Error(`${result.errors} uploads failed; the first: ${result.firstError}`);
  process.stderr.write(`uploaded in ${result.seconds.toFixed(1)} s\n`);
}

/** Ids of the answers to all queries. */
async function answers({ dataset, load, node, searchFile }: Measuring, collection: string): Promise<number[][]> {
  const result = await load.run<LoadResult>({
    ...job(searchFile(collection), dataset.queryCount, 1),
    ports: [node.port],
    protocol: 'rest',
    keepBodies: true,
  });
  if (result.errors > 0) throw new Error(`${result.errors} searches failed; the first: ${result.firstError}`);
  return result.bodies.map(idsOf);
}

function job(requestsFile: string, requests: number, connections: number): Omit<LoadJob, 'ports' | 'protocol'> {
  return {
    kind: 'load',
    requestsFile,
    connections,
    requests,
    requestsMin: requests,
    seconds: Number.POSITIVE_INFINITY,
    keepBodies: false,
  };
}

interface Shown {
  readonly status: string;
  readonly indexed_vectors_count: number;
}

async function untilAnswering(client: RestClient, collection: string, indexed: number): Promise<void> {
  for (;;) {
    const { indexed_vectors_count, status } = await client.result<Shown>('GET', `/collections/${collection}`);
    if (status === 'green' && indexed_vectors_count === indexed) return;
    await sleep(POLL_MS);
  }
}

function recover(client: RestClient, collection: string, location: string): Promise<unknown> {
  return client.result('PUT', `/collections/${collection}/snapshots/recover?wait=true`, { location, priority: 'snapshot' });
}

function download(port: number, path: string, file: string): Promise<void> {
  return new Promise((done, refuse) => {
    const call = request({ host: '127.0.0.1', port, path }, (answer) => {
      if (answer.statusCode !== 200) refuse(new Error(`GET ${path}: ${answer.statusCode}`));
      pipeline(answer, createWriteStream(file, { highWaterMark: 1 << 20 })).then(done, refuse);
    });
    call.once('error', refuse);
    call.end();
  });
}

const BOUNDARY = 'troupe-bench-boundary';

/** Sends the archive as a client's form does. */
async function uploadArchive(port: number, collection: string, file: string): Promise<void> {
  const head = `--${BOUNDARY}\r\ncontent-disposition: form-data; name="snapshot"; filename="a.snapshot"\r\ncontent-type: application/octet-stream\r\n\r\n`;
  const tail = `\r\n--${BOUNDARY}--\r\n`;
  const path = `/collections/${collection}/snapshots/upload?wait=true&priority=snapshot`;
  const headers = {
    'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
    'content-length': head.length + statSync(file).size + tail.length,
  };
  const call = request({ host: '127.0.0.1', port, path, method: 'POST', headers });
  const answered = answerOf(call);
  call.write(head);
  await Promise.all([answered, send(call, file, tail)]);
}

async function send(call: ClientRequest, file: string, tail: string): Promise<void> {
  await pipeline(createReadStream(file, { highWaterMark: 1 << 20 }), call, { end: false });
  call.end(tail);
}

function answerOf(call: ClientRequest): Promise<void> {
  return new Promise((done, refuse) => {
    call.once('error', refuse);
    call.once('response', (answer) => {
      const parts: Buffer[] = [];
      answer.on('data', (part: Buffer) => parts.push(part));
      answer.once('error', refuse);
      answer.once('end', () =>
        answer.statusCode === 200
          ? done()
          : refuse(new Error(`${answer.statusCode} ${Buffer.concat(parts).toString('utf8').slice(0, 500)}`)),
      );
    });
  });
}

import { join } from 'node:path';
import { type RunningNode, startNodeProcess } from '../../node-process.js';
import { RestClient } from '../../rest-client.js';
import { type BenchFilter, type Dataset, PAYLOAD_FIELDS } from '../common/dataset.js';
import { type Helper, startHelper } from '../common/helper.js';
import type { BaselineBuild, BaselineData, BaselineSearch, LoadJob, LoadResult, ToBaseline, ToLoad, Truth } from '../common/jobs.js';
import { cpuSeconds, diskMegabytes, type Machine, type Memory, memory } from '../common/measure.js';
import { idsOf, recallOf, searchRequests, UPLOAD_BATCH, uploadRequests, writeBaselineData } from '../common/prepared.js';
import { queryMessage } from '../common/protobuf.js';
import { grpcRequest, writeRequests } from '../common/requests.js';

export interface BenchSettings {
  readonly efs: readonly number[];
  readonly connections: readonly number[];
  readonly seconds: number;
  readonly limit: number;
  readonly seed: number;
  readonly profileFolder: string | null;
}

export interface Report {
  readonly dataset: string;
  readonly description: string;
  readonly command: string;
  readonly date: string;
  readonly machine: Machine;
  readonly seed: number;
  readonly rawMegabytes: number;
  readonly upload: UploadReport;
  readonly build: IndexBuild;
  readonly memoryIndexed: Memory | null;
  readonly memorySearched: Memory | null;
  readonly diskMegabytes: number;
  readonly searches: readonly SearchReport[];
  readonly baseline: { readonly build: BaselineBuild; readonly searches: readonly (Omit<BaselineSearch, 'rows'> & { recall: number })[] };
  readonly duringBuild: DuringBuildReport;
  readonly restart: { readonly readyMs: number; readonly firstAnswerMs: number; readonly memory: Memory | null };
}

export interface UploadReport {
  readonly pointsPerSecond: number;
  readonly seconds: number;
  /** From the first request until the collection is green and indexed. */
  readonly secondsUntilIndexed: number;
  readonly cpuSeconds: number | null;
}

/** The index built in one go, with no writes beside it: comparable with the baseline's build. */
export interface IndexBuild {
  readonly seconds: number;
  readonly cpuSeconds: number | null;
}

export type Protocol = LoadJob['protocol'];

export interface SearchReport {
  readonly protocol: Protocol;
  readonly filter: string;
  readonly matching: number;
  readonly ef: number;
  readonly connections: number;
  readonly recall: number;
  readonly queriesPerSecond: number;
  /** CPU of the whole node. */
  readonly cpuMsPerQuery: number | null;
  /** The baseline's CPU per query at the same recall; null where it was not measured at such a recall, or with a filter. */
  readonly baselineCpuMs: number | null;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

export interface DuringBuildReport {
  readonly ef: number;
  readonly connections: number;
  readonly idle: { readonly p50: number; readonly p99: number; readonly queriesPerSecond: number };
  readonly building: { readonly p50: number; readonly p99: number; readonly queriesPerSecond: number };
}

interface Context {
  readonly dataset: Dataset;
  readonly settings: BenchSettings;
  readonly folder: string;
  readonly load: Helper<ToLoad>;
  readonly baseline: Helper<ToBaseline>;
  readonly data: BaselineData;
}

const MAIN = 'bench';
const SECOND = 'bench_second';
const UPLOAD_CONNECTIONS = 4;
const CONNECTIVITY = 16;
const EF_CONSTRUCT = 100;
const BASELINE_EFS = [10, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512];
const INDEXING_THRESHOLD_KB = 10_000;
const DURING_BUILD_EF = 64;
const DURING_BUILD_CONNECTIONS = 4;

export async function measure(
  dataset: Dataset,
  settings: BenchSettings,
  folder: string,
  facts: { readonly command: string; readonly machine: Machine; readonly date: string },
): Promise<Report> {
  const { machine } = facts;
  say(`${dataset.description}; seed ${settings.seed}; ${facts.command}`);
  say(`${machine.cpu}, ${machine.cpus} CPUs, ${machine.memoryGigabytes} GB, ${machine.system}, Node ${machine.node}`);

  const data = writeBaselineData(dataset, folder);
  const context: Context = { dataset, settings, folder, data, load: startHelper('load'), baseline: startHelper('baseline') };
  const nodeOptions = {
    folder,
    nodeArguments: settings.profileFolder === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${settings.profileFolder}`],
  };
  let node = await startNodeProcess(nodeOptions);
  const uploadFile = join(folder, 'upload.requests');
  try {
    const uploaded = await measureUpload(context, node, uploadFile);
    const baseline = await measureBaseline(context);
    const searches = await measureSearches(context, node, baseline);
    const memorySearched = memory(node.pid);

    await node.end('SIGTERM');
    node = await startNodeProcess(nodeOptions);
    const restart = await firstAnswer(context, node);
    say(`restart: ready after ${restart.readyMs.toFixed(0)} ms, first answer after ${restart.firstAnswerMs.toFixed(0)} ms`);

    writeRequests(uploadFile, uploadRequests(dataset, SECOND));
    const { build, duringBuild } = await measureBuild(context, node, uploadFile);
    return {
      dataset: dataset.name,
      description: dataset.description,
      ...facts,
      seed: settings.seed,
      rawMegabytes: (dataset.count * dataset.dim * 4) / 1e6,
      ...uploaded,
      build,
      memorySearched,
      searches,
      baseline,
      duringBuild,
      restart,
    };
  } catch (error) {
    process.stderr.write(`${node.log().slice(-4000)}\n`);
    throw error;
  } finally {
    await node.end('SIGTERM');
    context.load.end();
    context.baseline.end();
  }
}

// ------------------------------------------------------------------ upload and build

/** The upload, and what the node takes of memory and disk once everything is indexed. */
async function measureUpload(
  context: Context,
  node: RunningNode,
  uploadFile: string,
): Promise<Pick<Report, 'upload' | 'memoryIndexed' | 'diskMegabytes'>> {
  const { dataset, folder } = context;
  writeRequests(uploadFile, uploadRequests(dataset, MAIN));
  const upload = await uploadAll(context, node, MAIN, uploadFile, INDEXING_THRESHOLD_KB);
  say(
    `uploaded ${dataset.count} points: ${upload.pointsPerSecond.toFixed(0)} points/s, indexed after ${upload.secondsUntilIndexed.toFixed(1)} s`,
  );
  const memoryIndexed = memory(node.pid);
  const disk = diskMegabytes(join(folder, 'storage'));
  say(`memory ${memoryIndexed?.rss.toFixed(0)} MB, disk ${disk.toFixed(0)} MB`);
  return { upload, memoryIndexed, diskMegabytes: disk };
}

async function uploadAll(
  context: Context,
  node: RunningNode,
  collection: string,
  file: string,
  thresholdKb: number,
): Promise<UploadReport> {
  const { dataset } = context;
  const client = new RestClient(node.port);
  await client.result('PUT', `/collections/${collection}`, {
    vectors: { size: dataset.dim, distance: dataset.distance },
    hnsw_config: { m: CONNECTIVITY, ef_construct: EF_CONSTRUCT },
    optimizers_config: { indexing_threshold: thresholdKb },
  });
  for (const [field, type] of Object.entries(PAYLOAD_FIELDS)) {
    await client.result('PUT', `/collections/${collection}/index?wait=true`, { field_name: field, field_schema: type });
  }
  const cpuBefore = cpuSeconds(node.pid);
  const started = performance.now();
  const batches = Math.ceil(dataset.count / UPLOAD_BATCH);
  const result = await runLoad(context, node, file, { connections: UPLOAD_CONNECTIONS, requests: batches, requestsMin: batches });
  if (thresholdKb > 0) await indexed(client, collection, dataset);
  const report = {
    pointsPerSecond: dataset.count / result.seconds,
    seconds: result.seconds,
    secondsUntilIndexed: (performance.now() - started) / 1000,
    cpuSeconds: difference(cpuSeconds(node.pid), cpuBefore),
  };
  client.close();
  return report;
}

interface CollectionInfo {
  readonly status: string;
  readonly optimizer_status: unknown;
  readonly points_count: number;
  readonly indexed_vectors_count: number;
}

const STABLE_POLLS = 5;
const POLL_MS = 100;
const INDEX_MINUTES_MAX = 30;

/** Waits until the collection stays green and no more than one unindexed rest below the threshold is left. */
async function indexed(client: RestClient, collection: string, dataset: Dataset): Promise<void> {
  const restMax = (INDEXING_THRESHOLD_KB * 1024) / (dataset.dim * 4);
  const deadline = performance.now() + INDEX_MINUTES_MAX * 60_000;
  let stable = 0;
  while (stable < STABLE_POLLS) {
    const info = await client.result<CollectionInfo>('GET', `/collections/${collection}`);
    const good = info.status === 'green' && info.optimizer_status === 'ok' && info.points_count - info.indexed_vectors_count <= restMax;
    stable = good ? stable + 1 : 0;
    if (performance.now() > deadline) throw new Error(`not indexed after ${INDEX_MINUTES_MAX} minutes: ${JSON.stringify(info)}`);
    await new Promise((done) => setTimeout(done, POLL_MS));
  }
}

/** A second collection gets its points with indexing off; then it is switched on, and the first one is searched meanwhile. */
async function measureBuild(
  context: Context,
  node: RunningNode,
  uploadFile: string,
): Promise<{ build: IndexBuild; duringBuild: DuringBuildReport }> {
  const { dataset, settings } = context;
  await uploadAll(context, node, SECOND, uploadFile, 0);
  const client = new RestClient(node.port);
  const file = searchFile(context, MAIN, DURING_BUILD_EF, null);
  const connections = DURING_BUILD_CONNECTIONS;
  await runLoad(context, node, file, { connections, requests: dataset.queryCount });
  const idle = await runLoad(context, node, file, { connections, seconds: Math.max(2, settings.seconds) });

  // Alone, for the CPU of a build that nothing runs beside.
  const enable = { optimizers_config: { indexing_threshold: INDEXING_THRESHOLD_KB } };
  const cpuBefore = cpuSeconds(node.pid);
  const started = performance.now();
  await client.result('PATCH', `/collections/${SECOND}`, enable);
  await indexed(client, SECOND, dataset);
  const build = {
    seconds: (performance.now() - started - STABLE_POLLS * POLL_MS) / 1000,
    cpuSeconds: difference(cpuSeconds(node.pid), cpuBefore),
  };
  say(`build alone: ${build.seconds.toFixed(1)} s, ${build.cpuSeconds?.toFixed(1)} CPU s`);

  // Once more beside searches.
  await client.result('DELETE', `/collections/${SECOND}`);
  await uploadAll(context, node, SECOND, uploadFile, 0);
  const running = runLoad(context, node, file, { connections });
  await client.result('PATCH', `/collections/${SECOND}`, enable);
  await indexed(client, SECOND, dataset);
  context.load.post({ kind: 'stop' });
  const building = await running;
  say(`searches at ef ${DURING_BUILD_EF}: p99 ${idle.p99.toFixed(2)} ms idle, ${building.p99.toFixed(2)} ms beside a build`);
  client.close();
  return { build, duringBuild: { ef: DURING_BUILD_EF, connections, idle: shown(idle), building: shown(building) } };
}

function shown(result: LoadResult): { p50: number; p99: number; queriesPerSecond: number } {
  return { p50: result.p50, p99: result.p99, queriesPerSecond: result.requests / result.seconds };
}

// ------------------------------------------------------------------ searches

async function measureSearches(context: Context, node: RunningNode, baseline: Report['baseline']): Promise<SearchReport[]> {
  const { dataset, settings } = context;
  const reports: SearchReport[] = [];
  // The compiler of Node needs some thousand queries before the code is as fast as it gets.
  await runLoad(context, node, searchFile(context, MAIN, DURING_BUILD_EF, null), { connections: 4, seconds: settings.seconds });
  for (const filter of [null, ...dataset.filters]) {
    const rows = filter === null ? null : matchingRows(dataset, filter);
    const truth = await context.baseline.run<Truth>({ kind: 'truth', data: context.data, rows, k: settings.limit });
    for (const ef of settings.efs) {
      const file = searchFile(context, MAIN, ef, filter);
      const warm = await runLoad(context, node, file, { connections: 4, requests: dataset.queryCount, keepBodies: true });
      const recall = recallOf(truth, warm.bodies.map(idsOf));
      const found: FoundAt = {
        filter: filter === null ? 'none' : filter.name,
        matching: rows === null ? dataset.count : rows.length,
        ef,
        recall,
        baselineCpuMs: filter === null ? atRecall(baseline.searches, recall) : null,
      };
      reports.push(...(await timeSearches(context, node, { protocol: 'rest', file, found })));
      if (filter !== null) continue;
      const calls = grpcSearchFile(context, MAIN, ef);
      await runLoad(context, node, calls, { protocol: 'grpc', connections: 4, requests: dataset.queryCount });
      reports.push(...(await timeSearches(context, node, { protocol: 'grpc', file: calls, found })));
    }
  }
  return reports;
}

type FoundAt = Pick<SearchReport, 'filter' | 'matching' | 'ef' | 'recall' | 'baselineCpuMs'>;

/** The searches of a file with each number of connections. */
async function timeSearches(
  context: Context,
  node: RunningNode,
  { protocol, file, found }: { readonly protocol: Protocol; readonly file: string; readonly found: FoundAt },
): Promise<SearchReport[]> {
  const { settings } = context;
  const reports: SearchReport[] = [];
  for (const connections of settings.connections) {
    const cpuBefore = cpuSeconds(node.pid);
    const result = await runLoad(context, node, file, { protocol, connections, seconds: settings.seconds });
    const cpu = difference(cpuSeconds(node.pid), cpuBefore);
    const report: SearchReport = {
      ...found,
      protocol,
      connections,
      queriesPerSecond: result.requests / result.seconds,
      cpuMsPerQuery: cpu === null ? null : (cpu * 1000) / result.requests,
      p50: result.p50,
      p95: result.p95,
      p99: result.p99,
    };
    reports.push(report);
    say(searchLine(report));
  }
  return reports;
}

function searchLine(report: SearchReport): string {
  const baseline = report.baselineCpuMs === null ? '' : `, baseline ${report.baselineCpuMs.toFixed(3)} ms`;
  return (
    `${report.protocol}, filter ${report.filter}, ef ${report.ef}, ${report.connections} connections: recall ${report.recall.toFixed(4)}, ` +
    `${report.queriesPerSecond.toFixed(0)}/s, CPU ${report.cpuMsPerQuery?.toFixed(3)} ms${baseline}, ` +
    `p50 ${report.p50.toFixed(2)} p95 ${report.p95.toFixed(2)} p99 ${report.p99.toFixed(2)} ms`
  );
}

function searchFile(context: Context, collection: string, ef: number, filter: BenchFilter | null): string {
  const { dataset, settings } = context;
  const file = join(context.folder, 'search.requests');
  const rest = filter === null ? '' : `,"filter":${JSON.stringify(filter.filter)}`;
  const body = `"limit":${settings.limit},"params":{"hnsw_ef":${ef}}${rest}`;
  writeRequests(file, searchRequests(dataset, collection, body));
  return file;
}

/** The same searches without a filter as calls of gRPC: they find the same points. */
function grpcSearchFile({ dataset, folder, settings }: Context, collection: string, ef: number): string {
  const file = join(folder, 'search.calls');
  const calls = Array.from({ length: dataset.queryCount }, (_, row) => {
    const query = dataset.queries.subarray(row * dataset.dim, (row + 1) * dataset.dim);
    return grpcRequest('Query', queryMessage(collection, query, settings.limit, ef));
  });
  writeRequests(file, calls);
  return file;
}

async function firstAnswer(context: Context, node: RunningNode): Promise<Report['restart']> {
  const started = performance.now();
  const file = searchFile(context, MAIN, DURING_BUILD_EF, null);
  await runLoad(context, node, file, { connections: 1, requests: 1 });
  const firstAnswerMs = node.readyMs + (performance.now() - started);
  await runLoad(context, node, file, { connections: 4, requests: context.dataset.queryCount });
  return { readyMs: node.readyMs, firstAnswerMs, memory: memory(node.pid) };
}

async function runLoad(
  context: Context,
  node: RunningNode,
  requestsFile: string,
  options: { protocol?: Protocol; connections: number; requests?: number; requestsMin?: number; seconds?: number; keepBodies?: boolean },
): Promise<LoadResult> {
  const result = await context.load.run<LoadResult>({
    kind: 'load',
    ports: [options.protocol === 'grpc' ? node.grpcPort : node.port],
    protocol: options.protocol ?? 'rest',
    requestsFile,
    connections: options.connections,
    requests: options.requests ?? Number.POSITIVE_INFINITY,
    requestsMin: options.requestsMin ?? 1,
    seconds: options.seconds ?? Number.POSITIVE_INFINITY,
    keepBodies: options.keepBodies ?? false,
  });
  if (result.errors > 0) throw new Error(`${result.errors} of ${result.requests} requests failed; the first: ${result.firstError}`);
  return result;
}

// ------------------------------------------------------------------ baseline and recall

async function measureBaseline(context: Context): Promise<Report['baseline']> {
  const { baseline, data, settings } = context;
  const indexFile = join(context.folder, 'baseline.usearch');
  const build = await baseline.run<BaselineBuild>({
    kind: 'build',
    data,
    connectivity: CONNECTIVITY,
    expansionAdd: EF_CONSTRUCT,
    indexFile,
  });
  say(`baseline: built in ${build.seconds.toFixed(1)} s, ${build.cpuSeconds.toFixed(1)} CPU s`);
  const truth = await baseline.run<Truth>({ kind: 'truth', data, rows: null, k: settings.limit });
  const searches: (Omit<BaselineSearch, 'rows'> & { recall: number })[] = [];
  for (const ef of BASELINE_EFS) {
    const { rows, ...search } = await baseline.run<BaselineSearch>({
      kind: 'search',
      data,
      connectivity: CONNECTIVITY,
      indexFile,
      ef,
      k: settings.limit,
      seconds: Math.min(2, settings.seconds),
    });
    const found = Array.from({ length: rows.length / settings.limit }, (_, i) => [
      ...rows.subarray(i * settings.limit, (i + 1) * settings.limit),
    ]);
    const recall = recallOf(truth, found);
    searches.push({ ...search, recall });
    say(`baseline: ef ${ef}, recall ${recall.toFixed(4)}, CPU ${search.cpuMsPerQuery.toFixed(3)} ms`);
  }
  return { build, searches };
}

function matchingRows(dataset: Dataset, filter: BenchFilter): Uint32Array {
  return Uint32Array.from(dataset.payloads.flatMap((payload, row) => (filter.matches(payload) ? [row] : [])));
}

/** The baseline's CPU per query at a recall, between its measured points by straight line; null outside of them. */
function atRecall(searches: Report['baseline']['searches'], recall: number): number | null {
  for (let i = 0; i + 1 < searches.length; i++) {
    const low = searches[i];
    const high = searches[i + 1];
    if (low === undefined || high === undefined || recall < low.recall || recall > high.recall) continue;
    const part = high.recall === low.recall ? 0 : (recall - low.recall) / (high.recall - low.recall);
    return low.cpuMsPerQuery + part * (high.cpuMsPerQuery - low.cpuMsPerQuery);
  }
  return null;
}

function difference(after: number | null, before: number | null): number | null {
  return after === null || before === null ? null : after - before;
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

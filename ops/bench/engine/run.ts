/**
 * What the engine needs for a collection, from the first point sent until it has been searched and started again: time, CPU, memory, disk. The built server of
 * another checkout does the same after each data set.
 */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type RunningNode, startNodeProcess } from '../../node-process.js';
import { RestClient } from '../../rest-client.js';
import { type BenchFilter, type Dataset, PAYLOAD_FIELDS } from '../common/dataset.js';
import { type Helper, startHelper } from '../common/helper.js';
import type { LoadResult, ToBaseline, ToLoad, Truth } from '../common/jobs.js';
import { cpuSeconds, diskMegabytes, type Memory, memory, peakMegabytes, resetPeak } from '../common/measure.js';
import { idsOf, recallOf, searchRequests, UPLOAD_BATCH, uploadRequests, writeBaselineData } from '../common/prepared.js';
import { writeRequests } from '../common/requests.js';
import { untilBuilt } from '../common/until-built.js';
import { programIn } from '../requests/slices.js';

export interface EngineBench {
  readonly efs: readonly number[];
  /** Of each measurement of searches. */
  readonly seconds: number;
  /** Milliseconds without requests before memory is read. */
  readonly restMs: number;
  /** Folder of a built checkout whose server does the same; null: none. */
  readonly beside: string | null;
}

export interface EngineSearch {
  readonly ef: number;
  readonly recall: number;
  /** Of the whole node, less that of a search of a collection with one point. */
  readonly cpuMs: number;
}

export interface EngineFigures {
  readonly side: string;
  readonly dataset: string;
  readonly indexedSeconds: number;
  readonly indexedCpu: number;
  /** Megabytes from here on. Most until all is indexed. */
  readonly peak: number | null;
  readonly atRest: Memory | null;
  readonly searched: Memory | null;
  readonly restarted: Memory | null;
  readonly disk: number;
  /** CPU milliseconds of a search of one point. */
  readonly fixedCpuMs: number;
  readonly searches: readonly EngineSearch[];
  /** At `FILTER_EF`. */
  readonly filtered: readonly (EngineSearch & { readonly filter: string })[];
}

export const FILTER_EF = 64;
const COLLECTION = 'engine';
const SMALL = 'one_point';
const CONNECTIONS = 4;
const LIMIT = 10;
const UNTIL_BUILT = { pollMs: 200, quietMs: 3000 };

export async function measureEngine(
  datasets: readonly Dataset[],
  settings: EngineBench,
  folder: string,
  say: (line: string) => void,
): Promise<EngineFigures[]> {
  const figures: EngineFigures[] = [];
  const helpers = { load: startHelper<ToLoad>('load'), baseline: startHelper<ToBaseline>('baseline') };
  try {
    for (const dataset of datasets) {
      for (const [side, program] of sidesOf(settings.beside)) {
        const own = join(folder, `${dataset.name}-${dataset.dim}-${side}`);
        mkdirSync(own);
        say(`${side}: ${dataset.description}`);
        figures.push(await new EngineRun(dataset, settings, own, program, helpers).measure(side));
      }
    }
  } finally {
    helpers.load.end();
    helpers.baseline.end();
  }
  return figures;
}

function sidesOf(beside: string | null): [string, string | undefined][] {
  return beside === null
    ? [['this', undefined]]
    : [
        ['this', undefined],
        ['beside', programIn(beside)],
      ];
}

interface Helpers {
  readonly load: Helper<ToLoad>;
  readonly baseline: Helper<ToBaseline>;
}

/** One side with one data set. */
class EngineRun {
  private readonly requests: string;

  constructor(
    private readonly dataset: Dataset,
    private readonly settings: EngineBench,
    private readonly folder: string,
    private readonly program: string | undefined,
    private readonly helpers: Helpers,
  ) {
    this.requests = join(folder, 'next.requests');
  }

  async measure(side: string): Promise<EngineFigures> {
    const storage = join(this.folder, 'node');
    mkdirSync(storage);
    const start = () => startNodeProcess({ folder: storage, program: this.program });
    let node = await start();
    try {
      const built = await this.build(node);
      const atRest = await this.restOf(node);
      const disk = diskMegabytes(storage);
      const fixedCpuMs = await this.cpuOf(node, this.searchFile(SMALL, this.settings.efs[0] as number, null));
      const searches: EngineSearch[] = [];
      for (const ef of this.settings.efs) searches.push(await this.search(node, ef, null, fixedCpuMs));
      const filtered = [];
      for (const filter of this.dataset.filters) {
        filtered.push({ filter: filter.name, ...(await this.search(node, FILTER_EF, filter, fixedCpuMs)) });
      }
      const searched = await this.restOf(node);
      await node.end('SIGTERM');
      node = await start();
      await this.load(node, { file: this.searchFile(COLLECTION, FILTER_EF, null), requests: this.dataset.queryCount });
      const restarted = await this.restOf(node);
      return { side, dataset: this.dataset.description, ...built, atRest, searched, restarted, disk, fixedCpuMs, searches, filtered };
    } finally {
      await node.end('SIGTERM');
    }
  }

  private async build(node: RunningNode): Promise<Pick<EngineFigures, 'indexedSeconds' | 'indexedCpu' | 'peak'>> {
    const { count, dim, distance } = this.dataset;
    const client = new RestClient(node.port);
    for (const name of [SMALL, COLLECTION]) await client.result('PUT', `/collections/${name}`, { vectors: { size: dim, distance } });
    await client.result('PUT', `/collections/${SMALL}/points?wait=true`, { points: [{ id: 1, vector: new Array(dim).fill(1) }] });
    for (const [field_name, field_schema] of Object.entries(PAYLOAD_FIELDS)) {
      await client.result('PUT', `/collections/${COLLECTION}/index?wait=true`, { field_name, field_schema });
    }
    writeRequests(this.requests, uploadRequests(this.dataset, COLLECTION));
    resetPeak(node.pid);
    const cpuBefore = cpuSeconds(node.pid) ?? Number.NaN;
    const started = performance.now();
    await this.load(node, { file: this.requests, requests: Math.ceil(count / UPLOAD_BATCH) });
    await untilBuilt(client, COLLECTION, UNTIL_BUILT);
    const indexedSeconds = (performance.now() - started - UNTIL_BUILT.quietMs) / 1000;
    client.close();
    return { indexedSeconds, indexedCpu: (cpuSeconds(node.pid) ?? Number.NaN) - cpuBefore, peak: peakMegabytes(node.pid) };
  }

  private async search(node: RunningNode, ef: number, filter: BenchFilter | null, fixedCpuMs: number): Promise<EngineSearch> {
    const data = writeBaselineData(this.dataset, this.folder);
    const rows =
      filter === null ? null : Uint32Array.from(this.dataset.payloads.flatMap((payload, row) => (filter.matches(payload) ? [row] : [])));
    const truth = await this.helpers.baseline.run<Truth>({ kind: 'truth', data, rows, k: LIMIT });
    const file = this.searchFile(COLLECTION, ef, filter);
    const { bodies } = await this.load(node, { file, requests: this.dataset.queryCount, keepBodies: true });
    const cpuMs = await this.cpuOf(node, file);
    return { ef, recall: recallOf(truth, bodies.map(idsOf)), cpuMs: cpuMs - fixedCpuMs };
  }

  /** CPU milliseconds of the whole node for each of the searches in a file. */
  private async cpuOf(node: RunningNode, file: string): Promise<number> {
    await this.load(node, { file, seconds: this.settings.seconds / 2 });
    const before = cpuSeconds(node.pid) ?? Number.NaN;
    const { requests } = await this.load(node, { file, seconds: this.settings.seconds });
    return (1000 * ((cpuSeconds(node.pid) ?? Number.NaN) - before)) / requests;
  }

  private searchFile(collection: string, ef: number, filter: BenchFilter | null): string {
    const rest = filter === null ? '' : `,"filter":${JSON.stringify(filter.filter)}`;
    writeRequests(this.requests, searchRequests(this.dataset, collection, `"limit":${LIMIT},"params":{"hnsw_ef":${ef}}${rest}`));
    return this.requests;
  }

  private async load(
    { port }: RunningNode,
    {
      file,
      keepBodies = false,
      requests,
      seconds = Number.POSITIVE_INFINITY,
    }: { file: string; requests?: number; seconds?: number; keepBodies?: boolean },
  ): Promise<LoadResult> {
    const result = await this.helpers.load.run<LoadResult>({
      kind: 'load',
      ports: [port],
      protocol: 'rest',
      requestsFile: file,
      connections: CONNECTIONS,
      requests: requests ?? Number.POSITIVE_INFINITY,
      requestsMin: requests ?? 1,
      seconds,
      keepBodies,
    });
    if (result.errors > 0) throw new Error(`${result.errors} of ${result.requests} requests failed; the first: ${result.firstError}`);
    return result;
  }

  private async restOf(node: RunningNode): Promise<Memory | null> {
    await sleep(this.settings.restMs);
    return memory(node.pid);
  }
}

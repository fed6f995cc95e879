/**
 * What the engine needs for a collection, from the first point sent until it has been searched and started again: time, CPU, memory, disk. The built server of
 * another checkout builds the same after this one, and takes the same searches in turn with it.
 */

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunningNode } from '../../node-process.js';
import { RestClient } from '../../rest-client.js';
import { type BenchFilter, type Dataset, PAYLOAD_FIELDS } from '../common/dataset.js';
import { exactAnswers, measureEachSet, type SetHelpers } from '../common/each-set.js';
import type { BaselineData, LoadResult } from '../common/jobs.js';
import { cpuSeconds, diskMegabytes, type Memory, memory, peakMegabytes, resetPeak } from '../common/measure.js';
import { idsOf, recallOf, searchRequests, UPLOAD_BATCH, uploadRequests, writeBaselineData } from '../common/prepared.js';
import { writeRequests } from '../common/requests.js';
import { BUILT_QUIET_MS, untilBuilt } from '../common/until-built.js';
import { type Contender, median, restart, startContenders } from '../requests/slices.js';

export interface EngineBench {
  readonly efs: readonly number[];
  /** Of all slices of a measurement of searches. */
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
  /** A search of so many points that are too few for a graph, all of which it finds the best of: CPU as of `EngineSearch`. */
  readonly ungraphed: { readonly points: number; readonly cpuMs: number };
}

export const FILTER_EF = 64;
const COLLECTION = 'engine';
const SMALL = 'one_point';
const UNGRAPHED = 'ungraphed';
/** Less than the default `indexing_threshold`. */
const UNGRAPHED_BYTES = 9_000_000;
const CONNECTIONS = 4;
const LIMIT = 10;
/** Of a measurement of searches, in turn with the other side. */
const SLICES = 5;
/** Searches of each side before the first measurement: what they need is compiled by then, so that the fixed CPU is that of later ones. */
const WARM_SECONDS = 8;
const UNTIL_BUILT = { pollMs: 200, quietMs: BUILT_QUIET_MS };

export async function measureEngine(
  datasets: readonly Dataset[],
  settings: EngineBench,
  folder: string,
  say: (line: string) => void,
): Promise<EngineFigures[]> {
  return measureEachSet(datasets, folder, (dataset, own, helpers) => new EngineRun(dataset, settings, own, helpers, say).measure());
}

type Restarted = Pick<EngineFigures, 'searched' | 'restarted'>;
type Built = Pick<EngineFigures, 'indexedSeconds' | 'indexedCpu' | 'peak' | 'atRest' | 'disk'>;

/** All sides with one data set. */
class EngineRun {
  private readonly requests: string;
  private readonly data: BaselineData;

  constructor(
    private readonly dataset: Dataset,
    private readonly settings: EngineBench,
    private readonly folder: string,
    private readonly helpers: SetHelpers,
    private readonly say: (line: string) => void,
  ) {
    this.requests = join(folder, 'next.requests');
    this.data = writeBaselineData(dataset, folder);
  }

  async measure(): Promise<EngineFigures[]> {
    const sides = await startContenders(this.folder, this.settings.beside);
    try {
      const built: Built[] = [];
      for (const side of sides) {
        this.say(`${side.name}: ${this.dataset.description}`);
        built.push(await this.build(side));
      }
      const warm = this.searchFile(COLLECTION, this.settings.efs[0] as number, null);
      for (const { node } of sides) await this.load(node, { file: warm, seconds: WARM_SECONDS });
      const fixedCpuMs = await this.cpuInTurns(sides, this.searchFile(SMALL, this.settings.efs[0] as number, null));
      const searches: EngineSearch[][] = [];
      for (const ef of this.settings.efs) searches.push(await this.search(sides, ef, null, fixedCpuMs));
      const filtered: EngineSearch[][] = [];
      for (const filter of this.dataset.filters) filtered.push(await this.search(sides, FILTER_EF, filter, fixedCpuMs));
      const restarted: Restarted[] = [];
      for (const side of sides) restarted.push(await this.restart(side));
      const ungraphed = await this.searchUngraphed(sides, fixedCpuMs);
      return sides.map((side, n) => ({
        side: side.name,
        dataset: this.dataset.description,
        ...(built[n] as Built),
        fixedCpuMs: fixedCpuMs[n] as number,
        searches: searches.map((found) => found[n] as EngineSearch),
        filtered: filtered.map((found, at) => ({ filter: this.dataset.filters[at]?.name ?? '', ...(found[n] as EngineSearch) })),
        ...(restarted[n] as Restarted),
        ungraphed: ungraphed[n] as EngineFigures['ungraphed'],
      }));
    } finally {
      for (const { node } of sides) await node.end('SIGTERM');
    }
  }

  private async build({ folder, node }: Contender): Promise<Built> {
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
    const indexedCpu = (cpuSeconds(node.pid) ?? Number.NaN) - cpuBefore;
    const peak = peakMegabytes(node.pid);
    return { indexedSeconds, indexedCpu, peak, atRest: await this.memoryAtRest(node), disk: diskMegabytes(folder) };
  }

  /** What each side finds, and how much CPU it takes. */
  private async search(
    sides: readonly Contender[],
    ef: number,
    filter: BenchFilter | null,
    fixedCpuMs: readonly number[],
  ): Promise<EngineSearch[]> {
    const { queryCount } = this.dataset;
    const truth = await exactAnswers(this.dataset, this.data, filter?.name ?? null, LIMIT, this.helpers.baseline);
    const file = this.searchFile(COLLECTION, ef, filter);
    const recalls: number[] = [];
    for (const { node } of sides) {
      const { bodies } = await this.load(node, { file, requests: queryCount, keepBodies: true });
      recalls.push(recallOf(truth, bodies.map(idsOf)));
    }
    const cpuMs = await this.cpuInTurns(sides, file);
    return sides.map((_, n) => ({ ef, recall: recalls[n] as number, cpuMs: (cpuMs[n] as number) - (fixedCpuMs[n] as number) }));
  }

  /** CPU milliseconds of each side's whole node for a search of a file: medians of slices. */
  private async cpuInTurns(sides: readonly Contender[], file: string): Promise<number[]> {
    const seconds = this.settings.seconds / SLICES;
    for (const { node } of sides) await this.load(node, { file, seconds });
    const slices = sides.map((): number[] => []);
    for (let slice = 0; slice < SLICES; slice++) {
      for (const [n, { node }] of sides.entries()) {
        const before = cpuSeconds(node.pid) ?? Number.NaN;
        const { requests } = await this.load(node, { file, seconds });
        slices[n]?.push((1000 * ((cpuSeconds(node.pid) ?? Number.NaN) - before)) / requests);
      }
    }
    return slices.map(median);
  }

  /** Memory after all searches, and after a restart and some more. */
  private async restart(side: Contender): Promise<Restarted> {
    const searched = await this.memoryAtRest(side.node);
    await restart(side);
    await this.load(side.node, { file: this.searchFile(COLLECTION, FILTER_EF, null), requests: this.dataset.queryCount });
    return { searched, restarted: await this.memoryAtRest(side.node) };
  }

  /** After all else, as it takes memory and disk, too. */
  private async searchUngraphed(sides: readonly Contender[], fixedCpuMs: readonly number[]): Promise<EngineFigures['ungraphed'][]> {
    const { count, dim, distance } = this.dataset;
    const points = Math.min(count, Math.floor(UNGRAPHED_BYTES / (4 * dim)));
    for (const { node } of sides) {
      const client = new RestClient(node.port);
      await client.result('PUT', `/collections/${UNGRAPHED}`, { vectors: { size: dim, distance } });
      client.close();
      writeRequests(this.requests, uploadRequests(this.dataset, UNGRAPHED, points));
      await this.load(node, { file: this.requests, requests: Math.ceil(points / UPLOAD_BATCH) });
    }
    const cpuMs = await this.cpuInTurns(sides, this.searchFile(UNGRAPHED, FILTER_EF, null));
    return sides.map((_, n) => ({ points, cpuMs: (cpuMs[n] as number) - (fixedCpuMs[n] as number) }));
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

  private async memoryAtRest(node: RunningNode): Promise<Memory | null> {
    await sleep(this.settings.restMs);
    return memory(node.pid);
  }
}

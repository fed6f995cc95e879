/**
 * Uploads and searches on three nodes next to one: what copies of writes cost, and reads over several nodes next to local ones; with another checkout's server
 * in turn with this one, if that is asked for.
 */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Dataset } from '../common/dataset.js';
import type { Helper } from '../common/helper.js';
import type { LoadResult, ToBaseline, ToLoad, Truth } from '../common/jobs.js';
import { searchRequests, UPLOAD_BATCH, uploadRequests, writeBaselineData } from '../common/prepared.js';
import { jsonRequest, writeRequests } from '../common/requests.js';
import { median, programIn, turns } from '../requests/slices.js';
import { cpuOf, createFleetCollection, type Fleet, runLoad, searchRecall, startAlone, startFleet, untilQuiet } from './fleet.js';

/** Medians of slices; an upload is one. */
export interface ThroughputFigures {
  readonly perSecond: number;
  /** Of all nodes together, per point or request. */
  readonly cpuMs: number;
  readonly p50: number;
  readonly p99: number;
  /** Of searches. */
  readonly recall?: number;
}

export interface ThroughputRow extends ThroughputFigures {
  readonly nodes: string;
  readonly what: string;
  readonly connections: number;
  /** CPU of one node, in the same run; null for that one. */
  readonly cpuOfOneMs: number | null;
  /** Of the other checkout's server; absent: there is none. */
  readonly beside?: ThroughputFigures;
  /** Median over pairs of slices of CPU here divided by CPU there. */
  readonly ratio?: number;
}

export interface ThroughputSettings {
  readonly dataset: Dataset;
  readonly seconds: number;
  readonly folder: string;
  readonly load: Helper<ToLoad>;
  readonly baseline: Helper<ToBaseline>;
  readonly nodeArguments: readonly string[];
  /** Folder of a built checkout whose server is measured in turn with this one; null: none. */
  readonly beside: string | null;
  readonly say: (text: string) => void;
}

const SHARDS = 6;
const UPLOAD_CONNECTIONS = 6;
const CONNECTIONS = [1, 6, 18];
/** Slices of each measurement but uploads. */
const ROUNDS = 5;
/** Of each node, before anything is counted: the compiler of Node needs them. */
const WARM_REQUESTS = 1500;
const EF = 64;
const K = 10;
const COLLECTION = 'bench';

interface Arrangement {
  readonly name: string;
  readonly nodes: number;
  readonly copies: number;
}

/** Three copies on three nodes: every node has all, and reads of it are local ones, through all that a cluster adds. */
const ARRANGEMENTS: readonly Arrangement[] = [
  { name: '1 node', nodes: 1, copies: 1 },
  { name: '3 nodes, 1 copy', nodes: 3, copies: 1 },
  { name: '3 nodes, 2 copies', nodes: 3, copies: 2 },
  { name: '3 nodes, 3 copies (local reads)', nodes: 3, copies: 3 },
];

export async function measureThroughput(settings: ThroughputSettings): Promise<ThroughputRow[]> {
  const rows: ThroughputRow[] = [];
  const { baseline, dataset, folder } = settings;
  const truth = await baseline.run<Truth>({ kind: 'truth', data: writeBaselineData(dataset, folder), rows: null, k: K });
  const files = {
    upload: join(folder, 'upload.requests'),
    search: join(folder, 'search.requests'),
    retrieve: join(folder, 'retrieve.requests'),
  };
  writeRequests(files.upload, uploadRequests(dataset, COLLECTION));
  writeRequests(files.search, searchRequests(dataset, COLLECTION, `"limit":${K},"params":{"hnsw_ef":${EF}}`));
  writeRequests(files.retrieve, retrieveRequests(dataset.count));
  for (const arrangement of ARRANGEMENTS) {
    const fleets: Fleet[] = [];
    try {
      for (const [n, program] of programsOf(settings.beside).entries())
        fleets.push(await begin(arrangement, join(folder, `${arrangement.nodes}-${arrangement.copies}-${n}`), settings, program));
      await measureFleets(settings, fleets, arrangement, files, truth, rows);
    } finally {
      for (const fleet of fleets) await fleet.close();
    }
  }
  return rows;
}

/** Of each side; undefined: the server of this checkout. */
function programsOf(beside: string | null): (string | undefined)[] {
  return beside === null ? [undefined] : [undefined, programIn(beside)];
}

function begin({ nodes }: Arrangement, place: string, { nodeArguments }: ThroughputSettings, program?: string): Promise<Fleet> {
  mkdirSync(place);
  return nodes === 1 ? startAlone(place, nodeArguments, program) : startFleet(nodes, place, nodeArguments, program);
}

/** The requests of each kind, in files. */
interface RequestFiles {
  readonly upload: string;
  readonly search: string;
  readonly retrieve: string;
}

async function measureFleets(
  settings: ThroughputSettings,
  fleets: readonly Fleet[],
  arrangement: Arrangement,
  files: RequestFiles,
  truth: Truth,
  rows: ThroughputRow[],
): Promise<void> {
  const { load, say, seconds } = settings;
  const add = (what: string, connections: number, slices: readonly (readonly ThroughputFigures[])[]): void => {
    const one = rows.find((row) => row.nodes === ARRANGEMENTS[0]?.name && row.what === what && row.connections === connections);
    const row = { nodes: arrangement.name, what, connections, cpuOfOneMs: one?.cpuMs ?? null, ...compared(slices) };
    rows.push(row);
    say(lineOf(row));
  };
  const uploads: ThroughputFigures[][] = [];
  const indexings: ThroughputFigures[][] = [];
  for (const fleet of fleets) {
    const { indexed, uploaded } = await upload(settings, fleet, arrangement.copies, files.upload);
    uploads.push([uploaded]);
    indexings.push([indexed]);
  }
  add(`upload, batches of ${UPLOAD_BATCH}, wait=true (points)`, UPLOAD_CONNECTIONS, uploads);
  add('upload until all is indexed (points)', UPLOAD_CONNECTIONS, indexings);

  const recalls: number[] = [];
  for (const { nodes } of fleets) recalls.push(await searchRecall(load, nodes, files.search, truth, 6));
  for (const [what, file, found] of [
    [`search, ${K} nearest, ef ${EF}`, files.search, recalls],
    ['one point by id', files.retrieve, null],
  ] as const) {
    for (const { nodes } of fleets)
      await runLoad(load, nodes, file, { connections: 6, seconds: Math.max(2, seconds), requestsMin: WARM_REQUESTS * nodes.length });
    for (const connections of CONNECTIONS) add(what, connections, await askInTurn(settings, fleets, file, connections, found));
  }
}

/** Until all points are there, and until all is indexed. */
async function upload(
  { dataset, load }: ThroughputSettings,
  fleet: Fleet,
  copies: number,
  file: string,
): Promise<{ readonly uploaded: ThroughputFigures; readonly indexed: ThroughputFigures }> {
  await createFleetCollection(fleet, COLLECTION, dataset, SHARDS, copies);
  const batches = Math.ceil(dataset.count / UPLOAD_BATCH);
  const before = cpuOf(fleet);
  const result = await runLoad(load, fleet.nodes, file, { connections: UPLOAD_CONNECTIONS, requests: batches, requestsMin: batches });
  const uploaded = figuresOf(result, dataset.count, cpuOf(fleet) - before);
  await untilQuiet(fleet, COLLECTION);
  return { uploaded, indexed: { ...figuresOf(result, dataset.count, cpuOf(fleet) - before), p50: 0, p99: 0 } };
}

/** The slices of each side. recalls: of each side, where they are of searches. */
async function askInTurn(
  { load, seconds }: ThroughputSettings,
  fleets: readonly Fleet[],
  file: string,
  connections: number,
  recalls: readonly number[] | null,
): Promise<ThroughputFigures[][]> {
  const slices = fleets.map((): ThroughputFigures[] => []);
  for (let round = 0; round < ROUNDS; round++)
    for (const n of turns([...fleets.keys()], round)) {
      const fleet = fleets[n] as Fleet;
      const before = cpuOf(fleet);
      const result = await runLoad(load, fleet.nodes, file, { connections, seconds: seconds / ROUNDS });
      const figures = figuresOf(result, result.requests, cpuOf(fleet) - before);
      slices[n]?.push(recalls === null ? figures : { ...figures, recall: recalls[n] as number });
    }
  return slices;
}

function figuresOf({ p50, p99, seconds }: LoadResult, count: number, cpuSeconds: number): ThroughputFigures {
  return { perSecond: count / seconds, cpuMs: (cpuSeconds * 1000) / count, p50, p99 };
}

/** Figures of the first side, beside those of the second one if there is one. */
function compared([here = [], beside]: readonly (readonly ThroughputFigures[])[]): Omit<
  ThroughputRow,
  'nodes' | 'what' | 'connections' | 'cpuOfOneMs'
> {
  if (beside === undefined) return mediansOf(here);
  const ratios = here.map(({ cpuMs }, at) => cpuMs / (beside[at] as ThroughputFigures).cpuMs);
  return { ...mediansOf(here), beside: mediansOf(beside), ratio: median(ratios) };
}

function mediansOf(slices: readonly ThroughputFigures[]): ThroughputFigures {
  const recall = slices[0]?.recall;
  return {
    perSecond: median(slices.map(({ perSecond }) => perSecond)),
    cpuMs: median(slices.map(({ cpuMs }) => cpuMs)),
    p50: median(slices.map(({ p50 }) => p50)),
    p99: median(slices.map(({ p99 }) => p99)),
    ...(recall === undefined ? {} : { recall }),
  };
}

function lineOf({ beside, connections, cpuMs, nodes, p99, perSecond, ratio, what }: ThroughputRow): string {
  const other = beside === undefined ? '' : `, × ${ratio?.toFixed(2)} of ${beside.cpuMs.toFixed(3)}`;
  return `${nodes}: ${what}, ${connections} connections: ${perSecond.toFixed(0)}/s, CPU ${cpuMs.toFixed(3)} ms${other}, p99 ${p99.toFixed(1)} ms`;
}

const RETRIEVED = 1000;

/** Single points: next to nothing to do beside the way to them. */
function retrieveRequests(count: number): Buffer[] {
  return Array.from({ length: RETRIEVED }, (_, at) =>
    jsonRequest('POST', `/collections/${COLLECTION}/points`, `{"ids":[${Math.floor((at * count) / RETRIEVED)}],"with_payload":true}`),
  );
}

/** Uploads and searches on three nodes next to one: what copies of writes cost, and reads over several nodes next to local ones. */

import { join } from 'node:path';
import type { Dataset } from '../common/dataset.js';
import type { Helper } from '../common/helper.js';
import type { ToBaseline, ToLoad, Truth } from '../common/jobs.js';
import { searchRequests, UPLOAD_BATCH, uploadRequests, writeBaselineData } from '../common/prepared.js';
import { jsonRequest, writeRequests } from '../common/requests.js';
import { cpuOf, createFleetCollection, type Fleet, runLoad, searchRecall, startAlone, startFleet, untilQuiet } from './fleet.js';

export interface ThroughputRow {
  readonly nodes: string;
  readonly what: string;
  readonly connections: number;
  readonly perSecond: number;
  /** Of all nodes together, per point or request. */
  readonly cpuMs: number;
  /** The same of one node, in the same run; null for that one. */
  readonly cpuOfOneMs: number | null;
  readonly p50: number;
  readonly p99: number;
  /** Of searches. */
  readonly recall?: number;
}

export interface ThroughputSettings {
  readonly dataset: Dataset;
  readonly seconds: number;
  readonly folder: string;
  readonly load: Helper<ToLoad>;
  readonly baseline: Helper<ToBaseline>;
  readonly nodeArguments: readonly string[];
  readonly say: (text: string) => void;
}

const SHARDS = 6;
const UPLOAD_CONNECTIONS = 6;
const CONNECTIONS = [1, 6, 18];
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
    const place = join(folder, `${arrangement.nodes}-${arrangement.copies}`);
    const { nodeArguments } = settings;
    const fleet =
      arrangement.nodes === 1 ? await startAlone(folder, nodeArguments) : await startFleet(arrangement.nodes, place, nodeArguments);
    try {
      await measureFleet(settings, fleet, arrangement, files, truth, rows);
    } finally {
      await fleet.close();
    }
  }
  return rows;
}

async function measureFleet(
  { dataset, load, say, seconds }: ThroughputSettings,
  fleet: Fleet,
  { copies, name }: Arrangement,
  files: { readonly upload: string; readonly search: string; readonly retrieve: string },
  truth: Truth,
  rows: ThroughputRow[],
): Promise<void> {
  await createFleetCollection(fleet, COLLECTION, dataset, SHARDS, copies);
  const add = (
    what: string,
    connections: number,
    count: number,
    cpu: number,
    result: { seconds: number; p50: number; p99: number },
    recall?: number,
  ) => {
    const one = rows.find((row) => row.nodes === ARRANGEMENTS[0]?.name && row.what === what && row.connections === connections);
    const cpuOfOneMs = one?.cpuMs ?? null;
    const { p50, p99 } = result;
    const figures = { perSecond: count / result.seconds, cpuMs: (cpu * 1000) / count, cpuOfOneMs, p50, p99 };
    const row = { nodes: name, what, connections, ...figures, ...(recall === undefined ? {} : { recall }) };
    rows.push(row);
    say(
      `${name}: ${what}, ${connections} connections: ${row.perSecond.toFixed(0)}/s, CPU ${row.cpuMs.toFixed(3)} ms, p99 ${p99.toFixed(1)} ms`,
    );
  };

  const batches = Math.ceil(dataset.count / UPLOAD_BATCH);
  const before = cpuOf(fleet);
  const uploaded = await runLoad(load, fleet.nodes, files.upload, {
    connections: UPLOAD_CONNECTIONS,
    requests: batches,
    requestsMin: batches,
  });
  add(`upload, batches of ${UPLOAD_BATCH}, wait=true (points)`, UPLOAD_CONNECTIONS, dataset.count, cpuOf(fleet) - before, uploaded);
  await untilQuiet(fleet, COLLECTION);
  add('upload until all is indexed (points)', UPLOAD_CONNECTIONS, dataset.count, cpuOf(fleet) - before, { ...uploaded, p50: 0, p99: 0 });

  const recall = await searchRecall(load, fleet.nodes, files.search, truth, 6);
  for (const [what, file, found] of [
    [`search, ${K} nearest, ef ${EF}`, files.search, recall],
    ['one point by id', files.retrieve, undefined],
  ] as const) {
    await runLoad(load, fleet.nodes, file, {
      connections: 6,
      seconds: Math.max(2, seconds),
      requestsMin: WARM_REQUESTS * fleet.nodes.length,
    });
    for (const connections of CONNECTIONS) {
      const cpu = cpuOf(fleet);
      const result = await runLoad(load, fleet.nodes, file, { connections, seconds });
      add(what, connections, result.requests, cpuOf(fleet) - cpu, result, found);
    }
  }
}

const RETRIEVED = 1000;

/** Single points: next to nothing to do beside the way to them. */
function retrieveRequests(count: number): Buffer[] {
  return Array.from({ length: RETRIEVED }, (_, at) =>
    jsonRequest('POST', `/collections/${COLLECTION}/points`, `{"ids":[${Math.floor((at * count) / RETRIEVED)}],"with_payload":true}`),
  );
}

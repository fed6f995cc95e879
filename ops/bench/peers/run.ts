/**
 * Libraries for vector search, each called in a process of its own (`peer.py`), next to a node that is asked over its doors: the same points, payloads and
 * queries, graphs with the same M and ef_construct. All are built one after the other and searched in turn.
 */

import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type RunningNode, startNodeProcess } from '../../node-process.js';
import { RestClient } from '../../rest-client.js';
import type { SearchAtEf } from '../common/at-recall.js';
import { type Dataset, PAYLOAD_FIELDS } from '../common/dataset.js';
import { exactAnswers, measureEachSet, type SetHelpers } from '../common/each-set.js';
import type { Helper } from '../common/helper.js';
import type { LoadJob, LoadResult, ToLoad, Truth } from '../common/jobs.js';
import { cpuSeconds, diskMegabytes, type Memory, memory } from '../common/measure.js';
import { grpcUploadRequests, idsOf, recallOf, searchRequests, UPLOAD_BATCH, writeBaselineData } from '../common/prepared.js';
import { queryMessage } from '../common/protobuf.js';
import { grpcRequest, writeRequests } from '../common/requests.js';
import { BUILT_QUIET_MS, untilBuilt } from '../common/until-built.js';
import { median } from '../requests/slices.js';
import { PeerProcess } from './peer-process.js';
import { writeSet } from './set-files.js';

export interface PeersBench {
  readonly efs: readonly number[];
  /** Of all slices of a measurement of searches. */
  readonly seconds: number;
  /** Milliseconds without requests before memory is read. */
  readonly restMs: number;
  /** A Python that has the packages of `requirements.txt`, and the file of `peer.py`. */
  readonly python: string;
  readonly program: string;
}

export interface PeerSearch extends SearchAtEf {
  readonly ef: number;
}

export interface PeerFigures {
  readonly dataset: string;
  readonly name: string;
  /** From the first point until all indexes are built; null: of the row above. */
  readonly built: { readonly seconds: number; readonly cpuSeconds: number; readonly disk: number } | null;
  /** After all searches: of a node the whole process, of a library what it has more than without points. */
  readonly searched: Memory | null;
  readonly searches: readonly PeerSearch[];
  /** At `PEERS_FILTER_EF`, by the names of filters. Without those that the side cannot take. */
  readonly filtered: readonly (PeerSearch & { readonly filter: string })[];
}

/** As `peer.py` names them. */
const PEERS = ['usearch', 'hnswlib', 'qdrant-edge-py', 'qdrant-edge-py, scalar quantization', 'lancedb', 'chromadb'] as const;
const EMBEDDED = 'Troupe within a program';
const EMBEDDED_PROGRAM = join(dirname(fileURLToPath(import.meta.url)), 'embedded.js');
/** As the README tells programs to be started. */
const EMBEDDED_OPTIONS = ['--disable-warning=ExperimentalWarning', '--max-semi-space-size=2'];
/** A node over both doors, and one within a program: the first. */
const OWN_SIDES = 3;
export const PEERS_FILTER_EF = 64;
const COLLECTION = 'peers';
const CONNECTIONS = 4;
const LIMIT = 10;
const QUERIES = 300;
const SLICES = 5;
/** Searches of a node before the first measurement: what they need is compiled by then. */
const WARM_SECONDS = 8;

interface Side {
  readonly name: string;
  readonly hasFilters: boolean;
  build(): Promise<PeerFigures['built']>;
  /** Ids that each query finds. filter: its name. */
  found(ef: number, filter: string | null): Promise<readonly (readonly number[])[]>;
  /** CPU milliseconds of a search, in so many seconds of searches. */
  cpuMs(ef: number, filter: string | null, seconds: number): Promise<number>;
  memory(): Memory | null;
}

export async function measurePeers(
  datasets: readonly Dataset[],
  settings: PeersBench,
  folder: string,
  say: (line: string) => void,
): Promise<PeerFigures[]> {
  return measureEachSet(datasets, folder, (dataset, own, helpers) =>
    measureSet(withQueries(dataset, QUERIES), settings, own, helpers, say),
  );
}

async function measureSet(
  dataset: Dataset,
  settings: PeersBench,
  folder: string,
  { baseline, load }: SetHelpers,
  say: (line: string) => void,
): Promise<PeerFigures[]> {
  const data = writeBaselineData(dataset, folder);
  writeSet(dataset, data, LIMIT, folder);
  const nodeFolder = join(folder, 'node');
  mkdirSync(nodeFolder);
  const node = await startNodeProcess({ folder: nodeFolder });
  const peers: PeerProcess[] = [];
  try {
    const sides: Side[] = [];
    for (const protocol of ['rest', 'grpc'] as const) sides.push(new NodeSide(dataset, node, nodeFolder, folder, load, protocol));
    peers.push(await PeerProcess.start(EMBEDDED, process.execPath, [...EMBEDDED_OPTIONS, EMBEDDED_PROGRAM, folder], folder));
    for (const name of PEERS) {
      peers.push(await PeerProcess.start(name, settings.python, [settings.program, name, folder], folder));
    }
    sides.push(...peers.map(sideOf));
    const built: PeerFigures['built'][] = [];
    for (const side of sides) {
      say(`${dataset.description}: ${side.name}`);
      built.push(await side.build());
    }
    for (const side of sides.slice(0, OWN_SIDES)) await side.cpuMs(settings.efs[0] as number, null, WARM_SECONDS);
    const measured = new Map<Side, (PeerSearch & { filter: string | null })[]>(sides.map((side) => [side, []]));
    const measure = async (ef: number, filter: string | null) => {
      const truth = await exactAnswers(dataset, data, filter, LIMIT, baseline);
      const asked = filter === null ? sides : sides.filter(({ hasFilters }) => hasFilters);
      for (const search of await searchInTurns(asked, truth, ef, filter, settings.seconds)) measured.get(search.side)?.push(search);
    };
    for (const ef of settings.efs) await measure(ef, null);
    for (const { name } of dataset.filters) await measure(PEERS_FILTER_EF, name);
    await sleep(settings.restMs);
    return sides.map((side, n) => {
      const all = (measured.get(side) ?? []).map(({ cpuMs, ef, filter, recall }) => ({ ef, recall, cpuMs, filter }));
      return {
        dataset: dataset.description,
        name: side.name,
        built: built[n] ?? null,
        searched: side.memory(),
        searches: all.filter(({ filter }) => filter === null),
        filtered: all.flatMap(({ filter, ...search }) => (filter === null ? [] : [{ ...search, filter }])),
      };
    });
  } finally {
    for (const peer of peers) peer.end();
    await node.end('SIGTERM');
  }
}

/** What each side finds, and its CPU: medians of slices in turn. */
async function searchInTurns(
  sides: readonly Side[],
  truth: Truth,
  ef: number,
  filter: string | null,
  seconds: number,
): Promise<(PeerSearch & { side: Side; filter: string | null })[]> {
  const recalls: number[] = [];
  for (const side of sides) recalls.push(recallOf(truth, await side.found(ef, filter)));
  const slices = sides.map((): number[] => []);
  for (let slice = 0; slice < SLICES; slice++)
    for (const [n, side] of sides.entries()) slices[n]?.push(await side.cpuMs(ef, filter, seconds / SLICES));
  return sides.map((side, n) => ({ side, ef, filter, recall: recalls[n] as number, cpuMs: median(slices[n] ?? []) }));
}

function withQueries(dataset: Dataset, count: number): Dataset {
  const queryCount = Math.min(count, dataset.queryCount);
  return { ...dataset, queryCount, queries: dataset.queries.subarray(0, queryCount * dataset.dim) };
}

function sideOf(peer: PeerProcess): Side {
  return {
    name: peer.name,
    hasFilters: peer.hasFilters,
    build: async () => ({ ...(await peer.build()), disk: diskMegabytes(peer.folder) }),
    found: async (ef, filter) => (await peer.search(ef, filter, 0)).found ?? [],
    cpuMs: async (ef, filter, seconds) => {
      const slice = await peer.search(ef, filter, seconds);
      return (1000 * slice.cpuSeconds) / slice.searches;
    },
    memory: () => peer.grown(),
  };
}

/** A node through one of its doors. That of REST builds, and takes filters. */
class NodeSide implements Side {
  readonly name: string;
  readonly hasFilters: boolean;
  private readonly requests: string;

  constructor(
    private readonly dataset: Dataset,
    private readonly node: RunningNode,
    private readonly nodeFolder: string,
    folder: string,
    private readonly load: Helper<ToLoad>,
    private readonly protocol: LoadJob['protocol'],
  ) {
    this.name = `Troupe over ${protocol === 'rest' ? 'REST' : 'gRPC'}`;
    this.hasFilters = protocol === 'rest';
    this.requests = join(folder, `${protocol}.requests`);
  }

  async build(): Promise<PeerFigures['built']> {
    if (this.protocol === 'grpc') return null;
    const { count, dim, distance } = this.dataset;
    const { grpcPort, pid, port } = this.node;
    const client = new RestClient(port);
    await client.result('PUT', `/collections/${COLLECTION}`, { vectors: { size: dim, distance } });
    for (const [field_name, field_schema] of Object.entries(PAYLOAD_FIELDS))
      await client.result('PUT', `/collections/${COLLECTION}/index?wait=true`, { field_name, field_schema });
    writeRequests(this.requests, grpcUploadRequests(this.dataset, COLLECTION));
    const cpuBefore = cpuSeconds(pid) ?? Number.NaN;
    const started = performance.now();
    await this.send({ protocol: 'grpc', ports: [grpcPort], requests: Math.ceil(count / UPLOAD_BATCH) });
    await untilBuilt(client, COLLECTION, { pollMs: 200, quietMs: BUILT_QUIET_MS });
    const seconds = (performance.now() - started - BUILT_QUIET_MS) / 1000;
    client.close();
    return { seconds, cpuSeconds: (cpuSeconds(pid) ?? Number.NaN) - cpuBefore, disk: diskMegabytes(this.nodeFolder) };
  }

  /** Bodies of gRPC are not kept: REST finds the same. */
  async found(ef: number, filter: string | null): Promise<readonly (readonly number[])[]> {
    this.writeSearches('rest', ef, filter);
    const { bodies } = await this.send({
      protocol: 'rest',
      ports: [this.node.port],
      requests: this.dataset.queryCount,
      keepBodies: true,
    });
    return bodies.map(idsOf);
  }

  async cpuMs(ef: number, filter: string | null, seconds: number): Promise<number> {
    const { protocol } = this;
    this.writeSearches(protocol, ef, filter);
    const before = cpuSeconds(this.node.pid) ?? Number.NaN;
    const { requests } = await this.send({ protocol, ports: [protocol === 'rest' ? this.node.port : this.node.grpcPort], seconds });
    return (1000 * ((cpuSeconds(this.node.pid) ?? Number.NaN) - before)) / requests;
  }

  memory(): Memory | null {
    return this.protocol === 'rest' ? memory(this.node.pid) : null;
  }

  private writeSearches(protocol: LoadJob['protocol'], ef: number, filter: string | null): void {
    const { dataset } = this;
    const condition = dataset.filters.find(({ name }) => name === filter)?.filter;
    const rest = `"limit":${LIMIT},"params":{"hnsw_ef":${ef}}${condition === undefined ? '' : `,"filter":${JSON.stringify(condition)}`}`;
    if (protocol === 'rest') writeRequests(this.requests, searchRequests(dataset, COLLECTION, rest));
    else writeRequests(this.requests, grpcSearches(dataset, ef));
  }

  private async send(job: Partial<LoadJob> & Pick<LoadJob, 'protocol' | 'ports'>): Promise<LoadResult> {
    const result = await this.load.run<LoadResult>({
      kind: 'load',
      requestsFile: this.requests,
      connections: CONNECTIONS,
      requests: Number.POSITIVE_INFINITY,
      requestsMin: job.requests ?? 1,
      seconds: Number.POSITIVE_INFINITY,
      keepBodies: false,
      ...job,
    });
    if (result.errors > 0) throw new Error(`${result.errors} of ${result.requests} requests failed; the first: ${result.firstError}`);
    return result;
  }
}

function grpcSearches({ dim, queries, queryCount }: Dataset, ef: number): Buffer[] {
  return Array.from({ length: queryCount }, (_, row) =>
    grpcRequest('Query', queryMessage(COLLECTION, queries.subarray(row * dim, (row + 1) * dim), LIMIT, ef)),
  );
}

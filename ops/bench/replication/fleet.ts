/** Nodes that are measured together: one of its own, or a cluster's on this machine, talking to each other directly. */

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { LocalCluster } from '../../cluster/local-cluster.js';
import { startNodeProcess } from '../../node-process.js';
import { RestClient } from '../../rest-client.js';
import type { Dataset } from '../common/dataset.js';
import { PAYLOAD_FIELDS } from '../common/dataset.js';
import type { Helper } from '../common/helper.js';
import type { LoadJob, LoadResult, ToLoad, Truth } from '../common/jobs.js';
import { cpuSeconds } from '../common/measure.js';
import { idsOf, recallOf } from '../common/prepared.js';
import { BUILT_QUIET_MS } from '../common/until-built.js';

export interface FleetNode {
  readonly port: number;
  readonly pid: number;
  readonly client: RestClient;
}

export interface Fleet {
  readonly nodes: readonly FleetNode[];
  /** Null for a node of its own. */
  readonly cluster: LocalCluster | null;
  close(): Promise<void>;
}

/** program: another server than this checkout's. */
export async function startAlone(folder: string, nodeArguments: readonly string[], program?: string): Promise<Fleet> {
  const node = await startNodeProcess({ folder, nodeArguments, program });
  const client = new RestClient(node.port);
  return {
    nodes: [{ port: node.port, pid: node.pid, client }],
    cluster: null,
    async close() {
      client.close();
      await node.end('SIGTERM');
    },
  };
}

/** As `startAlone`, so many of them. */
export async function startFleet(nodes: number, folder: string, nodeArguments: readonly string[], program?: string): Promise<Fleet> {
  // No proxy between them: it would share the CPUs.
  const cluster = await LocalCluster.start({
    nodes,
    folder: join(folder, 'cluster'),
    nodeArguments,
    program,
    environment: { grpc_proxy: undefined },
  });
  return {
    nodes: cluster.nodes.map(({ port, pid, client }) => ({ port, pid: pid as number, client })),
    cluster,
    close: () => cluster.close(),
  };
}

/** CPU seconds of all nodes together. */
export function cpuOf({ nodes }: Fleet): number {
  return nodes.reduce((sum, { pid }) => sum + (cpuSeconds(pid) ?? 0), 0);
}

/** Kilobytes of vectors that get an index: no more than an eighth of a shard, so that shards of small data sets have them, too. */
function indexingThreshold({ count, dim }: Dataset, shards: number): number {
  return Math.round(Math.min(10_000, Math.max(1000, (count * dim * 4) / 1024 / shards / 8)));
}

export async function createFleetCollection(fleet: Fleet, name: string, dataset: Dataset, shards: number, copies: number): Promise<void> {
  const { client } = fleet.nodes[0] as FleetNode;
  await client.result('PUT', `/collections/${name}`, {
    vectors: { size: dataset.dim, distance: dataset.distance },
    shard_number: shards,
    replication_factor: copies,
    optimizers_config: { indexing_threshold: indexingThreshold(dataset, shards) },
  });
  for (const [field, type] of Object.entries(PAYLOAD_FIELDS)) {
    await client.result('PUT', `/collections/${name}/index?wait=true`, { field_name: field, field_schema: type });
  }
}

const LOOK_MS = 1000;
/** Of one core: nothing is built or merged any more. */
const QUIET_SHARE = 0.15;
const QUIET_MINUTES_MAX = 30;

/** Waits until every node has shown the collection green for a while and none has work left. Resolves with the milliseconds until the work was done. */
export async function untilQuiet(fleet: Fleet, collection: string): Promise<number> {
  const startedMs = performance.now();
  for (let quietFromMs: number | null = null; ; ) {
    const before = cpuOf(fleet);
    await sleep(LOOK_MS);
    const share = (cpuOf(fleet) - before) / (LOOK_MS / 1000);
    const shown = await Promise.all(
      fleet.nodes.map(({ client }) => client.result<{ status: string }>('GET', `/collections/${collection}`).catch(() => null)),
    );
    const passedMs = performance.now() - startedMs;
    const isQuiet = share < QUIET_SHARE * fleet.nodes.length && shown.every((info) => info?.status === 'green');
    quietFromMs = isQuiet ? (quietFromMs ?? passedMs - LOOK_MS) : null;
    if (quietFromMs !== null && passedMs - quietFromMs >= BUILT_QUIET_MS) return quietFromMs;
    if (passedMs > QUIET_MINUTES_MAX * 60_000) throw new Error(`still busy after ${QUIET_MINUTES_MAX} minutes: ${JSON.stringify(shown)}`);
  }
}

/** A load job on these nodes. Rejects when an answer was an error. */
export async function runLoad(
  load: Helper<ToLoad>,
  nodes: readonly FleetNode[],
  requestsFile: string,
  options: Partial<Pick<LoadJob, 'connections' | 'requests' | 'requestsMin' | 'seconds' | 'keepBodies'>>,
): Promise<LoadResult> {
  const result = await load.run<LoadResult>({
    kind: 'load',
    ports: nodes.map(({ port }) => port),
    protocol: 'rest',
    requestsFile,
    connections: 1,
    requests: Number.POSITIVE_INFINITY,
    requestsMin: 1,
    seconds: Number.POSITIVE_INFINITY,
    keepBodies: false,
    ...options,
  });
  if (result.errors > 0) throw new Error(`${result.errors} of ${result.requests} requests failed; the first: ${result.firstError}`);
  return result;
}

/** Recall of the searches of a file, as many as it is known for what they should find. */
export async function searchRecall(
  load: Helper<ToLoad>,
  nodes: readonly FleetNode[],
  searchFile: string,
  truth: Truth,
  connections: number,
): Promise<number> {
  const requests = truth.rows.length / truth.k;
  const { bodies } = await runLoad(load, nodes, searchFile, { connections, requests, keepBodies: true });
  return recallOf(truth, bodies.map(idsOf));
}

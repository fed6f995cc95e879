/** A large shard goes from node to node while it is searched: how long, how much memory, what searches feel, what is found afterwards. */

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Dataset } from '../common/dataset.js';
import type { Helper } from '../common/helper.js';
import type { BaselineData, ToBaseline, ToLoad, Truth } from '../common/jobs.js';
import { memory, peakMegabytes, resetPeak } from '../common/measure.js';
import { searchRequests, UPLOAD_BATCH, uploadRequests, writeBaselineData } from '../common/prepared.js';
import { writeRequests } from '../common/requests.js';
import { createFleetCollection, type Fleet, type FleetNode, runLoad, searchRecall, startFleet, untilQuiet } from './fleet.js';

export interface MoveRow {
  readonly what: string;
  /** Until no transfer is under way and the shard is where it should be. */
  readonly seconds: number;
  /** Until all nodes are green and idle again. */
  readonly secondsUntilQuiet: number;
  /** Megabytes that are resident, mapped files included: the most while it went on, and before. */
  readonly source: PeakMemory;
  readonly target: PeakMemory;
  /** Searches through a third node, milliseconds. */
  readonly idleP99: number;
  readonly p50: number;
  readonly p99: number;
  readonly queriesPerSecond: number;
  readonly recallBefore: number;
  readonly recallAfter: number;
  /** What the cluster did, where that is not what was asked for. */
  readonly note: string;
}

export interface PeakMemory {
  readonly before: number;
  readonly peak: number;
}

export interface MoveSettings {
  readonly dataset: Dataset;
  readonly seconds: number;
  readonly folder: string;
  readonly methods: readonly string[];
  readonly load: Helper<ToLoad>;
  readonly baseline: Helper<ToBaseline>;
  readonly nodeArguments: readonly string[];
  readonly say: (text: string) => void;
}

interface Moving extends MoveSettings {
  readonly fleet: Fleet;
  readonly peers: readonly number[];
  readonly truth: Truth;
  readonly searchFile: string;
}

interface ShownCluster {
  readonly peer_id: number;
  readonly local_shards: readonly { readonly state: string }[];
  readonly remote_shards: readonly { readonly peer_id: number; readonly state: string }[];
  readonly shard_transfers: readonly { readonly method?: string }[];
}

const COLLECTION = 'moved';
const EF = 64;
const SEARCH_CONNECTIONS = 2;
const UPLOAD_CONNECTIONS = 4;
const POLL_MS = 100;
const MINUTES_MAX = 30;
/** Of the points, written while a replica is away. */
const DELTA_SHARE = 0.01;

export async function measureMoves(settings: MoveSettings): Promise<MoveRow[]> {
  const { baseline, dataset, folder, load, methods, say } = settings;
  const data: BaselineData = writeBaselineData(dataset, folder);
  const truth = await baseline.run<Truth>({ kind: 'truth', data, rows: null, k: 10 });
  const [uploadFile, searchFile] = [join(folder, 'upload.requests'), join(folder, 'search.requests')];
  writeRequests(uploadFile, uploadRequests(dataset, COLLECTION));
  writeRequests(searchFile, searchRequests(dataset, COLLECTION, `"limit":10,"params":{"hnsw_ef":${EF}}`));
  const fleet = await startFleet(3, folder, settings.nodeArguments);
  try {
    const peers = await Promise.all(
      fleet.nodes.map(async ({ client }) => (await client.result<{ peer_id: number }>('GET', '/cluster')).peer_id),
    );
    const moving: Moving = { ...settings, fleet, peers, truth, searchFile };
    await createFleetCollection(fleet, COLLECTION, dataset, 1, 1);
    const holder = fleet.nodes[(await holdersOf(moving))[0] as number] as FleetNode;
    const batches = Math.ceil(dataset.count / UPLOAD_BATCH);
    const uploaded = await runLoad(load, [holder], uploadFile, {
      connections: UPLOAD_CONNECTIONS,
      requests: batches,
      requestsMin: batches,
    });
    say(`uploaded in ${uploaded.seconds.toFixed(1)} s; waiting for the index`);
    say(`indexed and idle after ${((await untilQuiet(fleet, COLLECTION)) / 1000).toFixed(1)} s`);
    const rows: MoveRow[] = [];
    for (const method of methods) rows.push(await move(moving, method));
    rows.push(await comeBack(moving, uploadFile));
    return rows;
  } finally {
    await fleet.close();
  }
}

/** Numbers of the nodes with an Active replica, from 0. */
async function holdersOf({ fleet, peers }: Moving): Promise<number[]> {
  const shown = await shownBy(fleet.nodes[0] as FleetNode);
  const replicas = [...shown.local_shards.map(({ state }) => ({ peer_id: shown.peer_id, state })), ...shown.remote_shards];
  return replicas.filter(({ state }) => state === 'Active').map(({ peer_id }) => peers.indexOf(peer_id));
}

function shownBy({ client }: FleetNode): Promise<ShownCluster> {
  return client.result<ShownCluster>('GET', `/collections/${COLLECTION}/cluster`);
}

/** Searched through the node that has nothing to do with it. */
async function move(moving: Moving, method: string): Promise<MoveRow> {
  const { fleet, peers } = moving;
  const source = (await holdersOf(moving))[0] as number;
  const target = (source + 1) % 3;
  const third = fleet.nodes[(source + 2) % 3] as FleetNode;
  const body = { shard_id: 0, from_peer_id: peers[source], to_peer_id: peers[target], method };
  return during(moving, { what: `move, ${method}`, source, target, asked: third, method }, async () => {
    await third.client.result('POST', `/collections/${COLLECTION}/cluster`, { move_shard: body });
    await untilHeldBy(moving, third, [target]);
  });
}

/** The shard gets a second replica, whose node then misses some writes and fetches the delta by itself. */
async function comeBack(moving: Moving, uploadFile: string): Promise<MoveRow> {
  const { dataset, fleet, load, peers } = moving;
  const cluster = fleet.cluster as NonNullable<Fleet['cluster']>;
  const source = (await holdersOf(moving))[0] as number;
  const target = (source + 1) % 3;
  const from = fleet.nodes[source] as FleetNode;
  const third = fleet.nodes[(source + 2) % 3] as FleetNode;
  const body = { shard_id: 0, from_peer_id: peers[source], to_peer_id: peers[target], method: 'snapshot' };
  await from.client.result('POST', `/collections/${COLLECTION}/cluster`, { replicate_shard: body });
  await untilHeldBy(moving, third, [source, target]);
  await untilQuiet(fleet, COLLECTION);
  await cluster.node(target + 1).kill();
  await untilHeldBy(moving, third, [source]);
  const batches = Math.ceil((dataset.count * DELTA_SHARE) / UPLOAD_BATCH);
  await runLoad(load, [from], uploadFile, { connections: UPLOAD_CONNECTIONS, requests: batches, requestsMin: batches });
  cluster.launch(target + 1);
  const pid = cluster.node(target + 1).pid as number;
  const nodes = fleet.nodes.map((node, at) => (at === target ? { ...node, pid } : node));
  const what = `a node comes back that has missed ${(batches * UPLOAD_BATCH).toLocaleString('en')} points, from its process's start`;
  const restarted = { ...moving, fleet: { ...fleet, nodes } };
  return during(restarted, { what, source, target, asked: third, method: 'wal_delta' }, () => untilHeldBy(moving, third, [source, target]));
}

interface Watched {
  readonly what: string;
  readonly source: number;
  readonly target: number;
  /** The node that is searched. */
  readonly asked: FleetNode;
  readonly method: string;
}

async function during(moving: Moving, { asked, method, source, target, what }: Watched, act: () => Promise<void>): Promise<MoveRow> {
  const { fleet, load, say, searchFile, seconds } = moving;
  const goesAtOnce = method === 'wal_delta' && !what.startsWith('move');
  const recallBefore = goesAtOnce ? Number.NaN : await recall(moving, asked);
  const idle = goesAtOnce
    ? null
    : await runLoad(load, [asked], searchFile, { connections: SEARCH_CONNECTIONS, seconds: Math.max(2, seconds) });
  const nodes = [source, target].map((at) => fleet.nodes[at] as FleetNode);
  const before = nodes.map(({ pid }) => memory(pid)?.rss ?? 0);
  for (const { pid } of nodes) resetPeak(pid);
  const searching = runLoad(load, [asked], searchFile, { connections: SEARCH_CONNECTIONS });
  const methods = watchMethods(asked);
  const startedMs = performance.now();
  await act();
  const passed = (performance.now() - startedMs) / 1000;
  load.post({ kind: 'stop' });
  const searched = await searching;
  const peaks = nodes.map(({ pid }) => peakMegabytes(pid) ?? 0);
  const used = methods.end().filter((one) => one !== method);
  const quietMs = await untilQuiet(fleet, COLLECTION);
  const recallAfter = await recall(moving, asked);
  const row: MoveRow = {
    what,
    seconds: passed,
    secondsUntilQuiet: passed + quietMs / 1000,
    source: { before: before[0] as number, peak: peaks[0] as number },
    target: { before: before[1] as number, peak: peaks[1] as number },
    idleP99: idle?.p99 ?? Number.NaN,
    p50: searched.p50,
    p99: searched.p99,
    queriesPerSecond: searched.requests / searched.seconds,
    recallBefore,
    recallAfter,
    note: used.length === 0 ? '' : `went on as ${used.join(', ')}`,
  };
  const memories = `source ${before[0]?.toFixed(0)} → ${peaks[0]?.toFixed(0)} MB, target ${before[1]?.toFixed(0)} → ${peaks[1]?.toFixed(0)} MB`;
  say(
    `${what}: ${passed.toFixed(1)} s, ${memories}, p99 ${row.p99.toFixed(1)} ms, recall ${recallBefore.toFixed(4)} → ${recallAfter.toFixed(4)} ${row.note}`,
  );
  return row;
}

function recall({ load, searchFile, truth }: Moving, asked: FleetNode): Promise<number> {
  return searchRecall(load, [asked], searchFile, truth, SEARCH_CONNECTIONS);
}

/** Notes by which methods transfers go. */
function watchMethods(node: FleetNode): { end(): string[] } {
  const seen = new Set<string>();
  const timer = setInterval(() => {
    shownBy(node).then(
      ({ shard_transfers }) => {
        for (const { method } of shard_transfers) if (method !== undefined) seen.add(method);
      },
      () => {},
    );
  }, POLL_MS);
  return {
    end() {
      clearInterval(timer);
      return [...seen];
    },
  };
}

/** Waits until exactly these nodes have Active replicas, and no transfer is under way. */
async function untilHeldBy({ peers }: Moving, asked: FleetNode, wanted: readonly number[]): Promise<void> {
  const deadline = performance.now() + MINUTES_MAX * 60_000;
  const whole = [...wanted].sort().join();
  for (;;) {
    const shown = await shownBy(asked).catch(() => null);
    const replicas =
      shown === null ? [] : [...shown.local_shards.map(({ state }) => ({ peer_id: shown.peer_id, state })), ...shown.remote_shards];
    const active = replicas.filter(({ state }) => state === 'Active').map(({ peer_id }) => peers.indexOf(peer_id));
    if (shown?.shard_transfers.length === 0 && active.sort().join() === whole) return;
    if (performance.now() > deadline) throw new Error(`not there after ${MINUTES_MAX} minutes: ${JSON.stringify(shown)}`);
    await sleep(POLL_MS);
  }
}

/** A cluster of real processes that keeps points, while its nodes fail one at a time and shards move: nothing acknowledged is lost. */

import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { LocalCluster } from '../../../ops/cluster/local-cluster.js';
import type { LocalNode } from '../../../ops/cluster/local-node.js';
import { seededRandom } from '../../../ops/random.js';
import { differencesOf, untilAgreed } from './agreement.js';
import { type Fault, Faults } from './faults.js';
import { watchSessions } from './lost-sessions.js';
import { collectionCluster, Moves } from './moves.js';
import { POINTS, PointClients, type PointTotals } from './point-clients.js';

export interface PointChaosOptions {
  readonly nodes: number;
  readonly shards: number;
  readonly milliseconds: number;
  readonly clients: number;
  readonly seed: number;
  readonly folder: string;
  readonly faults: readonly Fault[];
  /** The next fault may come before all replicas have recovered from the one before: then shards may have nobody left. */
  readonly overlapping: boolean;
}

export interface PointChaosReport {
  readonly totals: PointTotals;
  readonly faults: Readonly<Record<string, number>>;
  readonly moves: Readonly<Record<string, number>>;
  readonly refusedMoves: number;
  readonly points: number;
  /** How often replicas were brought up to date, by method and outcome. */
  readonly healings: Readonly<Record<string, number>>;
  /** Milliseconds from the last repair until all replicas were Active. */
  readonly healedMs: number;
  /** What must not be; empty when all is well. */
  readonly violations: readonly string[];
}

const HEAL_MS = 120_000;
const POLL_MS = 200;
const COPIES = 2;
const FAILED_SHARE_MAX = 0.001;
const POINTS_MAX = 100_000;

/** The story of the run is at `story.log` in its folder, beside the folders of the nodes. */
export async function runPointChaos(options: PointChaosOptions): Promise<PointChaosReport> {
  const started = performance.now();
  const story = (line: string): void =>
    appendFileSync(join(options.folder, 'story.log'), `${Math.round(performance.now() - started)} ${line}\n`);
  const cluster = await LocalCluster.start({ nodes: options.nodes, folder: options.folder });
  let unwatch = (): void => {};
  try {
    const clients = new PointClients(cluster, seededRandom(options.seed), story, options.shards);
    unwatch = watchSessions(({ message }) => {
      clients.totals.lostSessions += 1;
      story(`a connection of a gRPC client is lost: ${message}`);
    });
    await clients.prepare();
    await healed(cluster);
    const moves = new Moves(cluster, seededRandom(options.seed + 2), story);
    const running = [clients.run(options.clients), moves.run()];
    const onPause = (node: LocalNode) => clients.notePause(node);
    const calm = options.overlapping ? undefined : () => recovered(cluster, options.shards);
    const faults = new Faults(cluster, seededRandom(options.seed + 1), options.faults, story, onPause, calm);
    await faults.run(performance.now() + options.milliseconds);
    const repaired = performance.now();
    moves.stop();
    clients.stop();
    await Promise.all(running);
    await healed(cluster);
    const healedMs = Math.round(performance.now() - repaired);
    story(`--- all replicas are Active after ${healedMs} ms`);
    const methods = await healings(cluster);
    const agreed = await untilAgreed(cluster, HEAL_MS).then(
      () => [],
      (error: Error) => [error.message],
    );
    const { violations, points } = await compareReplicas(cluster, clients);
    const unanswered = options.overlapping ? [] : tooManyFailures(clients.totals);
    const all = [...clients.violations, ...unanswered, ...agreed, ...violations];
    for (const violation of [...unanswered, ...agreed, ...violations]) story(`!!! ${violation}`);
    return {
      totals: clients.totals,
      faults: Object.fromEntries(faults.report.faults),
      moves: moves.begun,
      refusedMoves: moves.refused,
      points,
      healedMs,
      healings: methods,
      violations: all,
    };
  } catch (error) {
    // Told before the nodes end, whatever becomes of that.
    story(`!!! ${(error as Error).stack}`);
    process.stderr.write(`${(error as Error).stack}\n`);
    throw error;
  } finally {
    await cluster.close();
    unwatch();
  }
}

/** With one node away at a time, requests succeed when they are sent again. */
function tooManyFailures({ failed, reads, searches, writes }: PointTotals): string[] {
  const requests = reads + searches + writes;
  return failed > requests * FAILED_SHARE_MAX ? [`${failed} of ${requests} requests have failed`] : [];
}

/** All replicas are Active, and no shard is on its way. */
async function healed(cluster: LocalCluster): Promise<void> {
  const deadline = performance.now() + HEAL_MS;
  for (;;) {
    const state = await collectionCluster(cluster);
    if (state !== null && state.transfers.length === 0 && state.replicas.every((replica) => replica.state === 'Active')) return;
    if (performance.now() > deadline) throw new Error(`shards are not whole after ${HEAL_MS} ms: ${JSON.stringify(state)}`);
    await sleep(POLL_MS);
  }
}

/** Each shard has both of its replicas; a third one may be on its way. */
async function recovered(cluster: LocalCluster, shards: number): Promise<void> {
  const deadline = performance.now() + HEAL_MS;
  for (;;) {
    const state = await collectionCluster(cluster);
    const active = state?.replicas.filter((replica) => replica.state === 'Active') ?? [];
    // A third one of some shard makes up for none of another one.
    if (Array.from({ length: shards }).every((_, at) => active.filter(({ shard }) => shard === at).length >= COPIES)) return;
    if (performance.now() > deadline) throw new Error(`shards have not recovered after ${HEAL_MS} ms: ${JSON.stringify(state)}`);
    await sleep(POLL_MS);
  }
}

/**
 * The points of every replica: each node is given a replica of the shards that it lacks, so that it reads its own alone; those that
 * were there stay as they are.
 */
async function compareReplicas(cluster: LocalCluster, clients: PointClients): Promise<{ violations: string[]; points: number }> {
  await copyEverywhere(cluster);
  const seen: { readonly what: string; readonly points: Readonly<Record<string, unknown>> }[] = [];
  for (const node of cluster.nodes) {
    const all = await allPoints(node);
    const what = `all points of node ${node.number}`;
    clients.checkAll(
      what,
      all.map(({ id, payload }) => ({ id, stamp: payload.stamp })),
    );
    seen.push({ what, points: Object.fromEntries(all.map(({ id, payload, version }) => [id, { ...payload, version }])) });
  }
  const violations = seen.slice(1).flatMap(({ points, what }) => {
    const differences = differencesOf(seen[0]?.points, points).slice(0, 5);
    return differences.map((difference) => `${seen[0]?.what} and ${what} differ: ${difference}`);
  });
  return { violations, points: Object.keys(seen[0]?.points ?? {}).length };
}

async function copyEverywhere(cluster: LocalCluster): Promise<void> {
  const { client } = cluster.nodes[0] as LocalNode;
  const peers = await Promise.all(cluster.nodes.map((node) => cluster.peerIdOf(node)));
  const state = await collectionCluster(cluster);
  const shards = new Set(state?.replicas.map(({ shard }) => shard));
  for (const shard_id of shards) {
    const holders = state?.replicas.filter(({ shard }) => shard === shard_id).map(({ peer }) => peer) ?? [];
    for (const to_peer_id of peers.filter((peer) => !holders.includes(peer)))
      await client.result('POST', `/collections/${POINTS}/cluster?timeout=30`, {
        replicate_shard: { shard_id, from_peer_id: holders[0], to_peer_id },
      });
  }
  await healed(cluster);
  await untilAgreed(cluster, HEAL_MS);
}

/** Transfers by which replicas have recovered, by method, as the nodes that run still know. */
async function healings(cluster: LocalCluster): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { client } of cluster.nodes) {
    const {
      app: { transfers },
    } = await client.result<{ app: { transfers: { ended: { method: string; outcome: string; sync: boolean }[] } } }>('GET', '/telemetry');
    for (const { method, outcome } of transfers.ended.filter(({ sync }) => sync)) {
      const name = `${method} ${outcome}`;
      counts[name] = (counts[name] ?? 0) + 1;
    }
  }
  return counts;
}

interface Found {
  readonly id: number;
  readonly version: number;
  readonly payload: { readonly stamp: number };
}

/** With their versions, of the node's own replicas. */
async function allPoints(node: LocalNode): Promise<readonly Found[]> {
  const body = { query: [0, 0, 0, 0], limit: POINTS_MAX, with_payload: true, params: { exact: true } };
  const deadline = performance.now() + HEAL_MS;
  for (;;) {
    const answer = await node.client.call('POST', `/collections/${POINTS}/points/query?timeout=20`, body);
    if (answer.status === 200) return (answer.body as { result: { points: Found[] } }).result.points;
    if (performance.now() > deadline) throw new Error(`points cannot be read: ${answer.status} ${answer.text}`);
    await sleep(POLL_MS);
  }
}

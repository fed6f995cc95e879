/** A cluster of real processes that keeps points, while its nodes fail one at a time and shards move: nothing acknowledged is lost. */

import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { LocalCluster } from '../../../ops/cluster/local-cluster.js';
import type { LocalNode } from '../../../ops/cluster/local-node.js';
import { seededRandom } from '../../../ops/random.js';
import { differencesOf } from './agreement.js';
import { type Fault, Faults } from './faults.js';
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
}

export interface PointChaosReport {
  readonly totals: PointTotals;
  readonly faults: Readonly<Record<string, number>>;
  readonly moves: Readonly<Record<string, number>>;
  readonly refusedMoves: number;
  readonly points: number;
  /** Milliseconds from the last repair until all replicas were Active. */
  readonly healedMs: number;
  /** What must not be; empty when all is well. */
  readonly violations: readonly string[];
}

const HEAL_MS = 120_000;
const POLL_MS = 200;
const POINTS_MAX = 100_000;

/** The story of the run is at `story.log` in its folder, beside the folders of the nodes. */
export async function runPointChaos(options: PointChaosOptions): Promise<PointChaosReport> {
  const started = performance.now();
  const story = (line: string): void =>
    appendFileSync(join(options.folder, 'story.log'), `${Math.round(performance.now() - started)} ${line}\n`);
  const cluster = await LocalCluster.start({ nodes: options.nodes, folder: options.folder });
  try {
    const clients = new PointClients(cluster, seededRandom(options.seed), story, options.shards);
    await clients.prepare();
    await healed(cluster);
    const moves = new Moves(cluster, seededRandom(options.seed + 2), story);
    const running = [clients.run(options.clients), moves.run()];
    const faults = new Faults(cluster, seededRandom(options.seed + 1), options.faults, story, (node) =>
      clients.pausedMs.set(node.number, performance.now()),
    );
    await faults.run(performance.now() + options.milliseconds);
    const repaired = performance.now();
    moves.stop();
    clients.stop();
    await Promise.all(running);
    await healed(cluster);
    const healedMs = Math.round(performance.now() - repaired);
    story(`--- all replicas are Active after ${healedMs} ms`);
    const { violations, points } = await compareReplicas(cluster, clients, story);
    return {
      totals: clients.totals,
      faults: Object.fromEntries(faults.report.faults),
      moves: moves.begun,
      refusedMoves: moves.refused,
      points,
      healedMs,
      violations: [...clients.violations, ...violations],
    };
  } finally {
    await cluster.close();
  }
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

/** What is left of the points with each node stopped in turn: with two replicas of each shard, all say the same. */
async function compareReplicas(
  cluster: LocalCluster,
  clients: PointClients,
  story: (line: string) => void,
): Promise<{ violations: string[]; points: number }> {
  const seen: { readonly what: string; readonly points: Readonly<Record<string, unknown>> }[] = [];
  for (const { number } of cluster.nodes) {
    await cluster.node(number).stop();
    const asked = cluster.nodes.find(({ state }) => state === 'running') as LocalNode;
    const all = await allPoints(asked);
    const what = `all points without node ${number}`;
    clients.checkAll(
      what,
      all.map(({ id, payload }) => ({ id, stamp: payload.stamp })),
    );
    seen.push({ what, points: Object.fromEntries(all.map(({ id, payload, version }) => [id, { ...payload, version }])) });
    await cluster.start(number);
    await healed(cluster);
  }
  const violations = seen.slice(1).flatMap(({ points, what }) => {
    const differences = differencesOf(seen[0]?.points, points).slice(0, 5);
    return differences.map((difference) => `${seen[0]?.what} and ${what} differ: ${difference}`);
  });
  for (const violation of violations) story(`!!! ${violation}`);
  return { violations, points: Object.keys(seen[0]?.points ?? {}).length };
}

interface Found {
  readonly id: number;
  readonly version: number;
  readonly payload: { readonly stamp: number };
}

/** With their versions, of whichever replicas are there. */
async function allPoints(node: LocalNode): Promise<readonly Found[]> {
  const body = { query: [0, 0, 0, 0], limit: POINTS_MAX, with_payload: true, params: { exact: true } };
  const deadline = performance.now() + HEAL_MS;
  for (;;) {
    const answer = await node.client.call('POST', `/collections/${POINTS}/points/query?consistency=all&timeout=20`, body);
    if (answer.status === 200) return (answer.body as { result: { points: Found[] } }).result.points;
    if (performance.now() > deadline) throw new Error(`points cannot be read: ${answer.status} ${answer.text}`);
    await sleep(POLL_MS);
  }
}

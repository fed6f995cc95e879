/** A cluster of real processes under a stream of changes, while minorities of it fail; what it must keep to is checked. */

import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { LocalCluster } from '../../../ops/cluster/local-cluster.js';
import { seededRandom } from '../../../ops/random.js';
import { lostChanges, untilAgreed } from './agreement.js';
import { Clients, type Totals } from './clients.js';
import { type Fault, Faults } from './faults.js';

export interface ChaosOptions {
  readonly nodes: number;
  readonly milliseconds: number;
  readonly clients: number;
  readonly seed: number;
  readonly folder: string;
  readonly faults: readonly Fault[];
}

export interface ChaosReport {
  readonly totals: Totals;
  readonly faults: Readonly<Record<string, number>>;
  readonly leaderMs: readonly number[];
  readonly collections: number;
  readonly aliases: number;
  readonly commit: number;
  /** Milliseconds from the last repair until all nodes said the same. */
  readonly agreedMs: number;
  /** What must not be; empty when all is well. */
  readonly violations: readonly string[];
}

const AGREE_MS = 30_000;
const STALL_MS = 30_000;

/** The story of the run is at `story.log` in its folder, beside the folders of the nodes. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const started = performance.now();
  const story = (line: string): void =>
    appendFileSync(join(options.folder, 'story.log'), `${Math.round(performance.now() - started)} ${line}\n`);
  const cluster = await LocalCluster.start({ nodes: options.nodes, folder: options.folder });
  try {
    const clients = new Clients(cluster, seededRandom(options.seed), story);
    await clients.prepare();
    const running = clients.run(options.clients);
    const faults = new Faults(cluster, seededRandom(options.seed + 1), options.faults, story, (node) => clients.notePause(node));
    await faults.run(performance.now() + options.milliseconds);
    const repaired = performance.now();
    await goesOn(clients);
    clients.stop();
    await running;
    const state = await untilAgreed(cluster, AGREE_MS);
    const violations = [...clients.violations, ...lostChanges(clients.names, state)];
    for (const violation of violations) story(`!!! ${violation}`);
    return {
      totals: clients.totals,
      faults: Object.fromEntries(faults.report.faults),
      leaderMs: faults.report.leaderMs,
      collections: Object.keys(state.collections).length,
      aliases: Object.keys(state.aliases).length,
      commit: state.commit,
      agreedMs: Math.round(performance.now() - repaired),
      violations,
    };
  } finally {
    await cluster.close();
  }
}

/** Changes are acknowledged again. */
async function goesOn(clients: Clients): Promise<void> {
  const before = clients.totals.acknowledged;
  const deadline = performance.now() + STALL_MS;
  while (clients.totals.acknowledged < before + 5) {
    if (performance.now() > deadline) throw new Error(`no change was acknowledged within ${STALL_MS} ms after the last fault`);
    await sleep(50);
  }
}

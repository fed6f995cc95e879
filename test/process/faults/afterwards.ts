/** Looks at nodes in which nothing fails any more: that they settle, take writes, hold what they must and end in order. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Exit } from '../../../ops/node-process.js';
import { certainCollections, collectionsAt, type Look, probe, wrongData } from './check.js';
import { collectionsOf, type Model, namesOf, type Tally } from './workload.js';
import type { World, WorldNode } from './world.js';

const END_MS = 300_000;
const STUCK_MS = 60_000;
const ENDS_SOON_MS = 5000;
const SETTLED_MS = 600_000;
const PAUSE_MAX_MS = 200;

/** What is wrong with the data of some sets in nodes that run, in words. */
export async function wrongIn(world: World, model: Model, sets: readonly number[], look: Look): Promise<string[]> {
  const findings: string[] = [];
  try {
    const names = sets.flatMap((set) => collectionsOf(namesOf(set)));
    if (look !== 'living') await settled(world, names);
    for (const node of world.nodes) {
      if (look !== 'living') {
        const there = await collectionsAt(node.client);
        await probe(node.client, names.filter((name) => there.has(name)).slice(0, look === 'shown' ? 1 : undefined));
      }
      const at = world.nodes.length === 1 ? '' : `node ${node.number}: `;
      const wrong = await wrongData(node.client, model, sets, look);
      findings.push(...wrong.map((finding) => `${at}${finding}`));
    }
  } catch (error) {
    findings.push((error as Error).message);
  }
  for (const node of world.nodes)
    if (node.exit() !== null) findings.push(`node ${node.number} has ended while nothing failed in it: ${JSON.stringify(node.exit())}`);
  return findings;
}

/** Why a node that runs takes no writes after faults; null when it does, or when it ends. */
export async function stuckAfter(world: World, node: WorldNode, model: Model, set: number): Promise<string | null> {
  const names = certainCollections(model, [set]);
  const deadline = performance.now() + STUCK_MS;
  for (;;) {
    try {
      await within(STUCK_MS / 2, probe(node.client, names));
      await settled(world, names, Math.max(0, deadline - performance.now()));
      return null;
    } catch (error) {
      if (node.exit() !== null) return null;
      if (performance.now() > deadline) return (error as Error).message;
    }
    await sleep(200);
  }
}

/** The exit after SIGTERM; a node that does not end in time is killed, which is a finding. */
export async function endedBySignal(node: WorldNode, tally: Tally): Promise<Exit | null> {
  node.signal('SIGTERM');
  const inTime = (milliseconds: number) => Promise.race([node.exited, sleep(milliseconds, null, { ref: false })]);
  const exit = await inTime(END_MS);
  if (exit !== null) return exit;
  tally.findings.push(`the node does not end within ${END_MS} ms after SIGTERM`);
  node.signal('SIGKILL');
  await node.exited;
  return null;
}

/** How a node ends that may be ending, as one does that breaks a connection; null: it lives on. */
export function endedSoon({ exited }: WorldNode): Promise<Exit | null> {
  return Promise.race([exited, sleep(ENDS_SOON_MS, null, { ref: false })]);
}

/** How all nodes of a world end after SIGTERM. Rejects when one does not. */
export async function ended(world: World): Promise<readonly Exit[]> {
  for (const node of world.nodes) node.signal('SIGTERM');
  const exits = await within(END_MS, Promise.all(world.nodes.map(({ exited }) => exited)));
  await world.close();
  return exits;
}

/** Every node sees all peers and all that they agreed on, and its replicas of some collections are Active. */
export async function settled(world: World, names: readonly string[], timeoutMs = SETTLED_MS): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  /** For each node those that were not yet Active. */
  const waiting = world.nodes.map(() => new Set(names));
  for (let pauseMs = 20; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MAX_MS)) {
    const problem = await unsettled(world, waiting).catch((error: Error) => error.message);
    if (problem === null) return;
    if (performance.now() > deadline) throw new Error(`not settled after ${timeoutMs} ms: ${problem}`);
    await sleep(pauseMs);
  }
}

async function unsettled({ nodes }: World, waiting: readonly Set<string>[]): Promise<string | null> {
  if (nodes.length > 1) {
    const reports = await Promise.all(nodes.map(({ client }) => client.result<ClusterReport>('GET', '/cluster')));
    const without = reports.findIndex(
      ({ peers, raft_info: { is_voter, leader } }) => Object.keys(peers).length < nodes.length || leader === null || !is_voter,
    );
    if (without >= 0) return `node ${without + 1} is no voter of a cluster with a leader`;
    const commits = reports.map(({ raft_info: { commit, pending_operations } }) => `${commit}, and ${pending_operations} wait`);
    if (new Set(commits).size > 1 || reports.some(({ raft_info }) => raft_info.pending_operations > 0))
      return `nodes have agreed until ${commits.join(' and ')}`;
  }
  const problems = await Promise.all(nodes.map((node, at) => notActive(node, nodes.length, waiting[at] as Set<string>)));
  return problems.find((problem) => problem !== null) ?? null;
}

interface ClusterReport {
  readonly peers: object;
  readonly raft_info: {
    readonly leader: unknown;
    readonly is_voter: boolean;
    readonly commit: number;
    readonly pending_operations: number;
  };
}

/** waiting: names of collections that are asked for; those that are Active are taken out of it. */
async function notActive({ client, number }: WorldNode, nodes: number, waiting: Set<string>): Promise<string | null> {
  const { collections } = await client.result<{ collections: { name: string }[] }>('GET', '/collections');
  for (const { name } of collections) {
    if (!waiting.has(name)) continue;
    type Shard = { readonly state: string };
    const { local_shards, remote_shards, shard_transfers } = await client.result<{
      local_shards: Shard[];
      remote_shards: Shard[];
      shard_transfers: unknown[];
    }>('GET', `/collections/${name}/cluster`);
    const states = [...local_shards, ...remote_shards].map(({ state }) => state);
    if (states.length < nodes || shard_transfers.length > 0 || states.some((state) => state !== 'Active'))
      return `at node ${number}, replicas of ${name} are ${states.join(', ')}, with ${shard_transfers.length} transfers`;
    waiting.delete(name);
  }
  return null;
}

async function within<Value>(milliseconds: number, asked: Promise<Value>): Promise<Value> {
  const late = sleep(milliseconds, undefined, { ref: false }).then(() => {
    throw new Error(`nothing within ${milliseconds} ms`);
  });
  return Promise.race([asked, late]);
}

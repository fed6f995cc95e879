/** What being a cluster costs and how soon it heals: idle nodes, changes of collections, lost leaders, nodes that join. */

import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { LocalCluster } from '../../cluster/local-cluster.js';
import type { LocalNode } from '../../cluster/local-node.js';
import { cpuSeconds } from '../common/measure.js';

export interface ClusterSettings {
  /** Changes a node that joins is late by. */
  readonly changes: number;
  /** Leaders that are lost, one after the other. */
  readonly losses: number;
  readonly idleSeconds: number;
  /** Collections made one after the other. */
  readonly collections: number;
}

export interface ClusterRow {
  readonly part: string;
  readonly what: string;
  readonly values: readonly number[];
  readonly unit: string;
  /** The same on a node of its own, or what the figure should stay under. */
  readonly nextTo: string;
}

/** Names that changes of aliases go round. */
const ALIASES = 96;
const CLIENTS = 16;
/** New processes compile their code for some seconds. */
const WARM_MS = 20_000;

export async function measureCluster(settings: ClusterSettings, folder: string): Promise<ClusterRow[]> {
  const rows: ClusterRow[] = [];
  rows.push(...(await measureJoin(settings, join(folder, 'join'))));
  for (const nodes of [3, 5]) rows.push(...(await measureNodes(nodes, settings, join(folder, `${nodes}-nodes`))));
  return rows;
}

/** A node joins a cluster of one that has had many changes. */
async function measureJoin({ changes, collections }: ClusterSettings, folder: string): Promise<ClusterRow[]> {
  const cluster = await LocalCluster.start({ nodes: 1, folder });
  try {
    const first = cluster.node(1);
    const creations = await createCollections(first, collections);
    const perSecond = await changeAliases(first, changes);
    const startedMs = performance.now();
    await cluster.add();
    const joinedMs = performance.now() - startedMs;
    return [
      { part: '1 node', what: 'a collection is created, one after the other', values: creations, unit: 'ms', nextTo: '' },
      { part: '1 node', what: `aliases are changed, ${CLIENTS} callers`, values: [perSecond], unit: 'per second', nextTo: '' },
      {
        part: '1 node',
        what: `a node joins after ${changes.toLocaleString('en')} changes, from the start of its process to its vote`,
        values: [joinedMs],
        unit: 'ms',
        nextTo: 'goal: under 5,000',
      },
    ];
  } finally {
    await cluster.close();
  }
}

async function measureNodes(nodes: number, settings: ClusterSettings, folder: string): Promise<ClusterRow[]> {
  const cluster = await LocalCluster.start({ nodes, folder });
  const part = `${nodes} nodes`;
  try {
    const first = cluster.node(1);
    const creations = await createCollections(first, settings.collections);
    const perSecond = await changeAliases(first, settings.changes / 10);
    await sleep(WARM_MS);
    const idle = await idleShares(cluster, settings.idleSeconds);
    const losses = await loseLeaders(cluster, settings.losses);
    return [
      { part, what: 'a collection with a shard per node is created, all nodes have it', values: creations, unit: 'ms', nextTo: '1 node' },
      { part, what: `aliases are changed, ${CLIENTS} callers`, values: [perSecond], unit: 'per second', nextTo: '1 node' },
      { part, what: 'idle, CPU of each node, the leader first', values: idle, unit: '% of a core', nextTo: 'goal: under 2' },
      { part, what: 'the leader is killed: until a majority follows another one', values: losses, unit: 'ms', nextTo: 'goal: under 2,000' },
    ];
  } finally {
    await cluster.close();
  }
}

async function createCollections(node: LocalNode, count: number): Promise<number[]> {
  const milliseconds: number[] = [];
  for (let at = 0; at < count; at++) {
    const startedMs = performance.now();
    await node.client.result('PUT', `/collections/made-${at}`, { vectors: { size: 4, distance: 'Dot' } });
    milliseconds.push(performance.now() - startedMs);
  }
  return milliseconds;
}

/** Changes per second. */
async function changeAliases(node: LocalNode, count: number): Promise<number> {
  const startedMs = performance.now();
  let left = count;
  await Promise.all(
    Array.from({ length: CLIENTS }, async (_, client) => {
      for (let at = client; left-- > 0; at += CLIENTS) {
        const alias = { alias_name: `alias-${at % ALIASES}` };
        const actions = [{ delete_alias: alias }, { create_alias: { ...alias, collection_name: 'made-0' } }];
        await node.client.result('POST', '/collections/aliases', { actions });
      }
    }),
  );
  return (count * 1000) / (performance.now() - startedMs);
}

/** Percent of a core. */
async function idleShares(cluster: LocalCluster, seconds: number): Promise<number[]> {
  const leader = await cluster.untilLeader();
  const nodes = [leader, ...cluster.nodes.filter((node) => node !== leader)];
  const before = nodes.map(({ pid }) => cpuSeconds(pid as number) ?? 0);
  await sleep(seconds * 1000);
  return nodes.map(({ pid }, at) => (((cpuSeconds(pid as number) ?? 0) - (before[at] as number)) / seconds) * 100);
}

/** Milliseconds from each kill until there is another leader. */
async function loseLeaders(cluster: LocalCluster, count: number): Promise<number[]> {
  const milliseconds: number[] = [];
  for (let at = 0; at < count; at++) {
    const lost = await cluster.untilLeader();
    const startedMs = performance.now();
    await lost.kill();
    await cluster.untilLeader();
    milliseconds.push(performance.now() - startedMs);
    cluster.launch(lost.number);
    await cluster.untilReady(lost.number);
  }
  return milliseconds;
}

/** What each node of a cluster says of the agreed state, in a form that can be compared field by field. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { LocalCluster } from '../../../ops/cluster/local-cluster.js';
import type { LocalNode } from '../../../ops/cluster/local-node.js';
import { KEYED, type Name, PRESENT, type Value } from './clients.js';

export interface AgreedState {
  readonly peers: unknown;
  readonly term: number;
  readonly commit: number;
  readonly leader: number | null;
  /** Alias to collection. */
  readonly aliases: Readonly<Record<string, string>>;
  readonly collections: Readonly<Record<string, { readonly config: unknown; readonly shards: unknown; readonly transfers: unknown }>>;
}

interface ShardsAnswer {
  readonly peer_id: number;
  readonly shard_count: number;
  readonly local_shards: readonly { shard_id: number; shard_key?: unknown; state: string }[];
  readonly remote_shards: readonly { shard_id: number; shard_key?: unknown; peer_id: number; state: string }[];
  readonly shard_transfers: unknown;
}

export async function agreedState(node: LocalNode): Promise<AgreedState> {
  const ask = <T>(path: string) => node.client.result<T>('GET', path);
  const cluster = await node.cluster(10_000);
  if (cluster === null) throw new Error(`node ${node.number} does not answer`);
  const { collections: listed } = await ask<{ collections: { name: string }[] }>('/collections');
  const { aliases } = await ask<{ aliases: { alias_name: string; collection_name: string }[] }>('/aliases');
  const collections: Record<string, { config: unknown; shards: unknown; transfers: unknown }> = {};
  for (const name of listed.map(({ name }) => name).sort()) {
    const [{ config }, shards] = await Promise.all([
      ask<{ config: unknown }>(`/collections/${name}`),
      ask<ShardsAnswer>(`/collections/${name}/cluster`),
    ]);
    collections[name] = { config, shards: replicasOf(shards), transfers: shards.shard_transfers };
  }
  const pairs = aliases
    .map(({ alias_name, collection_name }) => [alias_name, collection_name] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const { term, commit, leader } = cluster.raft_info;
  return { peers: cluster.peers, term, commit, leader, aliases: Object.fromEntries(pairs), collections };
}

function replicasOf({ peer_id, local_shards, remote_shards }: ShardsAnswer): unknown[] {
  const all = [...local_shards.map((shard) => ({ ...shard, peer_id })), ...remote_shards];
  return all
    .map(({ shard_id, shard_key, peer_id: peer, state }) => ({ shard: shard_id, key: shard_key ?? null, peer, state }))
    .sort((a, b) => a.shard - b.shard || a.peer - b.peer);
}

/** Waits until all nodes say the same, and gives it. Rejects with the first differences. */
export async function untilAgreed(cluster: LocalCluster, timeoutMs: number): Promise<AgreedState> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    let problem: string;
    try {
      const states = await Promise.all(cluster.nodes.map(agreedState));
      const differences = states
        .slice(1)
        .flatMap((state, at) => differencesOf(states[0], state).map((text) => `node 1 and ${at + 2}: ${text}`));
      const unfinished = Object.entries((states[0] as AgreedState).collections).filter(([, { shards }]) =>
        /Initializing/.test(JSON.stringify(shards)),
      );
      if (differences.length === 0 && unfinished.length === 0) return states[0] as AgreedState;
      problem = [...differences, ...unfinished.map(([name]) => `${name} is not active`)].slice(0, 10).join('\n');
    } catch (error) {
      problem = (error as Error).message;
    }
    if (performance.now() > deadline) throw new Error(`the nodes do not agree after ${timeoutMs} ms:\n${problem}`);
    await sleep(100);
  }
}

/** Paths at which two values differ, with both. */
export function differencesOf(one: unknown, other: unknown, path = ''): string[] {
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) {
    return one === other ? [] : [`${path}: ${JSON.stringify(one)} and ${JSON.stringify(other)}`];
  }
  const keys = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...keys].flatMap((key) =>
    differencesOf((one as Record<string, unknown>)[key], (other as Record<string, unknown>)[key], `${path}/${key}`),
  );
}

/** Names that are not what they must be: acknowledged changes that got lost, refused ones that were carried out. */
export function lostChanges(names: readonly Name[], state: AgreedState): string[] {
  return names.flatMap(({ kind, name, possible }) => {
    const found = kind === 'alias' ? (state.aliases[name] ?? null) : kind === 'collection' ? thresholdOf(state, name) : keyOf(state, name);
    return possible.includes(found) ? [] : [`${name} is ${found} where only ${possible.join(' or ')} can be`];
  });
}

function keyOf(state: AgreedState, key: string): Value {
  const replicas = state.collections[KEYED]?.shards as { key: unknown }[];
  return replicas.some((replica) => replica.key === key) ? PRESENT : null;
}

function thresholdOf(state: AgreedState, name: string): Value {
  const config = state.collections[name]?.config as { optimizer_config: { indexing_threshold: number } } | undefined;
  return config?.optimizer_config.indexing_threshold ?? null;
}

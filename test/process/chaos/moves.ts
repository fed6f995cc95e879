/**
 * Moves shards of a collection between nodes, one after the other, by each method in turn that can bring one to a new replica. The third,
 * `wal_delta`, is that of replicas that come back.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { LocalCluster } from '../../../ops/cluster/local-cluster.js';
import type { RandomNumbers } from '../../../ops/random.js';
import { POINTS } from './point-clients.js';

const METHODS = ['stream_records', 'snapshot'] as const;
const POLL_MS = 200;
const CALM_MS_MAX = 1500;

export interface Replica {
  readonly shard: number;
  readonly peer: number;
  readonly state: string;
}

export interface CollectionCluster {
  readonly replicas: readonly Replica[];
  readonly transfers: readonly unknown[];
}

interface ClusterAnswer {
  readonly peer_id: number;
  readonly local_shards: readonly { readonly shard_id: number; readonly state: string }[];
  readonly remote_shards: readonly { readonly shard_id: number; readonly peer_id: number; readonly state: string }[];
  readonly shard_transfers: readonly unknown[];
}

/** As any node that answers says; null when none does. */
export async function collectionCluster(cluster: LocalCluster): Promise<CollectionCluster | null> {
  for (const node of cluster.nodes) {
    if (node.state !== 'running') continue;
    const answer = await node.client.result<ClusterAnswer>('GET', `/collections/${POINTS}/cluster`).catch(() => null);
    if (answer === null) continue;
    const own = answer.local_shards.map(({ shard_id, state }) => ({ shard: shard_id, peer: answer.peer_id, state }));
    const others = answer.remote_shards.map(({ peer_id, shard_id, state }) => ({ shard: shard_id, peer: peer_id, state }));
    return { replicas: [...own, ...others], transfers: answer.shard_transfers };
  }
  return null;
}

export class Moves {
  /** By method: begun, and refused (a node is down, a transfer of the shard is there). */
  readonly begun: Record<string, number> = {};
  refused = 0;
  private stopped = false;

  constructor(
    private readonly cluster: LocalCluster,
    private readonly random: RandomNumbers,
    private readonly story: (line: string) => void,
  ) {}

  stop(): void {
    this.stopped = true;
  }

  async run(): Promise<void> {
    for (let round = 0; !this.stopped; ) {
      const method = METHODS[round % METHODS.length] as string;
      if (await this.move(method)) round++;
      await sleep(POLL_MS + this.random.integer(CALM_MS_MAX));
    }
  }

  /** True when the cluster has agreed on it. */
  private async move(method: string): Promise<boolean> {
    const state = await collectionCluster(this.cluster);
    if (state === null || state.transfers.length > 0) return false;
    const peers = [...new Set(state.replicas.map(({ peer }) => peer))];
    const active = state.replicas.filter((replica) => replica.state === 'Active');
    const from = active[this.random.integer(active.length)];
    if (from === undefined) return false;
    const holders = state.replicas.filter(({ shard }) => shard === from.shard).map(({ peer }) => peer);
    const free = peers.filter((peer) => !holders.includes(peer));
    const to = free[this.random.integer(free.length)];
    const node = this.cluster.nodes.find(({ state: process }) => process === 'running');
    if (to === undefined || node === undefined) return false;
    const move_shard = { shard_id: from.shard, from_peer_id: from.peer, to_peer_id: to, method };
    const answer = await node.client.call('POST', `/collections/${POINTS}/cluster?timeout=10`, { move_shard }).catch(() => null);
    this.story(
      `--- move ${JSON.stringify(move_shard)}: ${answer === null ? 'no answer' : `${answer.status} ${answer.text.slice(0, 200)}`}`,
    );
    if (answer?.status !== 200) {
      this.refused += 1;
      return false;
    }
    this.begun[method] = (this.begun[method] ?? 0) + 1;
    return true;
  }
}

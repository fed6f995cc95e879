/** Figures of a collection over all its shards, on all nodes. */

import type { ShardFigures } from '../../cluster/data-messages.js';
import type { CollectionRecord } from '../../cluster/state/state.js';
import { TroupeError } from '../../protocols/errors.js';
import type { ShardId } from '../../protocols/model/cluster.js';
import type { OptimizationsView } from '../../protocols/model/optimizations.js';
import { type CollectionEntry, STATE_ALONE } from '../context/view.js';
import type { EnginePort } from '../runtime/ports.js';
import { nothingSeen } from './consistency.js';
import { askShards } from './readers.js';
import { type ReplicaFacts, type ReportFacts, shardFigures } from './report.js';
import type { Routes } from './routes.js';

/** How long a node may take to tell its figures. After that it is left out, and the collection is yellow. */
export const FIGURES_MS = 2000;

/** Figures of this node's replica of a shard. Errors: `conflict` if this node has none. */
export function replicaFigures(
  entry: CollectionEntry,
  shardId: ShardId,
  engine: Pick<EnginePort, 'stats'>,
  facts: ReportFacts,
): ShardFigures {
  const replica = replicaFacts(entry, engine).find((one) => one.shardId === shardId);
  if (replica !== undefined && entry.config !== null) return shardFigures(entry.config, replica, facts);
  throw new TroupeError('conflict', `shard ${shardId} of collection ${entry.name} is not on this node, or not yet`, {
    reason: 'replicaNotHere',
  });
}

/** This node's replicas of a collection. entry: null while the collection is being made. */
export function replicaFacts(entry: CollectionEntry | null, engine: Pick<EnginePort, 'stats'>): ReplicaFacts[] {
  return [...(entry?.replicas ?? [])].map(([shardId, { key, openedInMs, reason, state }]) => ({
    shardId,
    openedInMs,
    state: STATE_ALONE[state],
    reason,
    stats: engine.stats(key),
    optimizer: entry?.optimizers.get(key) ?? null,
  }));
}

/** Figures of one Active replica of each of these shards. A shard whose replicas don't answer in `limitMs` is left out. */
export async function figuresOf(
  routes: Routes,
  collection: string,
  uid: number,
  shards: readonly ShardId[],
  limitMs = FIGURES_MS,
): Promise<ShardFigures[]> {
  const seen = nothingSeen(collection, uid, routes.random.next());
  const asked = shards.map(async (shardId) => {
    const job = { seen, shards: [shardId], params: {}, deadlineMs: routes.clock.nowMs() + limitMs };
    const answers = await askShards(routes, job, async ({ peer, shards: share }) => {
      const answer = await routes.call(peer, { kind: 'figures', collection, uid, shards: share }, limitMs);
      return answer.kind === 'figures' ? answer.figures : [];
    });
    return answers.flat();
  });
  const told = await Promise.allSettled(asked);
  return told.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
}

/** What the optimizers of the collection's replicas on other nodes do. Nodes that don't answer in `limitMs` are left out. */
export async function optimizationsElsewhere(
  routes: Routes,
  collection: string,
  { shards, uid }: Pick<CollectionRecord, 'shards' | 'uid'>,
  limitMs: number,
): Promise<OptimizationsView[]> {
  const holders = new Set([...shards.values()].flatMap(({ replicas }) => [...replicas.keys()]));
  holders.delete(routes.assignments.peerId);
  const told = await Promise.allSettled([...holders].map((peer) => routes.call(peer, { kind: 'optimizations', collection, uid }, limitMs)));
  return told.flatMap((one) => (one.status === 'fulfilled' && one.value.kind === 'optimizations' ? [one.value.view] : []));
}

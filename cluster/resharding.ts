/**
 * A shard that comes (up) or goes (down) while requests go on, in stages that are agreed on. The ring in force says which shard has
 * which point, as long as nothing is switched the old one. Each shard's leader does its part of a stage, as the agreed state has it.
 *
 * - D1. Reads see of each shard only the points that the ring in force gives to it; so copies are not seen before the switch, and
 *   points that have been copied not after it.
 * - D2. Requests carry the `layout` that they were spread by; a node that knows another one refuses them, and nothing is done.
 * - D3. While switching, shards that give points away take no writes; what they took before is copied then.
 */

import type { PeerId, ShardId } from '../protocols/model/cluster.js';
import type { ReshardingStage } from './operations.js';
import type { ClusterState, CollectionRecord, Resharding, ShardRecord } from './state.js';

/** Records never change: what was made of one is kept. */
const serving = new WeakMap<CollectionRecord, CollectionRecord['shards']>();

/** The shards that have the collection's points: all but one that comes and is not in force yet. */
export function servingShards(record: CollectionRecord): ReadonlyMap<ShardId, ShardRecord> {
  const { resharding, shards } = record;
  if (resharding === null || resharding.direction === 'down' || resharding.stage === 'cleaning') return shards;
  const known = serving.get(record);
  if (known !== undefined) return known;
  const made = new Map([...shards].filter(([shardId]) => shardId !== resharding.shardId));
  serving.set(record, made);
  return made;
}

/** Rings by which points are hidden (D1): shards of the key that is resharded, in force; null: nothing is hidden. */
export function hidingRing(record: CollectionRecord): readonly ShardId[] | null {
  const { resharding } = record;
  if (resharding === null) return null;
  return [...servingShards(record)].flatMap(([shardId, { key }]) => (key === resharding.key ? [shardId] : []));
}

/** The ring that is to be in force when all is copied. */
export function comingRing({ shards }: CollectionRecord, { direction, key, shardId }: Resharding): readonly ShardId[] {
  return [...shards].flatMap(([id, shard]) => (shard.key === key && (direction === 'up' || id !== shardId) ? [id] : []));
}

/** Shards that have something to do in the stage. */
export function busyShards({ shards }: CollectionRecord, { direction, key, shardId, stage }: Resharding): readonly ShardId[] {
  if (direction === 'down' && stage !== 'cleaning') return [shardId];
  return [...shards].flatMap(([id, shard]) => (shard.key === key && id !== shardId ? [id] : []));
}

/** Whether the shard takes no writes now (D3). */
export function holdsWrites(record: CollectionRecord, shardId: ShardId): boolean {
  const { resharding } = record;
  return resharding?.stage === 'switching' && busyShards(record, resharding).includes(shardId);
}

/** What the leader of a shard has to do for a stage. */
export interface ReshardingDuty {
  readonly name: string;
  readonly collection: string;
  readonly uid: number;
  readonly shardId: ShardId;
  /** Of the shard. */
  readonly term: number;
  readonly stage: ReshardingStage;
  readonly startedAt: number;
  readonly layout: number;
}

/** Those of the shards that the peer leads. */
export function reshardingDuties({ collections }: ClusterState, self: PeerId): ReshardingDuty[] {
  const duties: ReshardingDuty[] = [];
  for (const [collection, record] of collections) {
    const { layout, resharding, shards, uid } = record;
    if (resharding === null) continue;
    const { done, stage, startedAt } = resharding;
    for (const shardId of busyShards(record, resharding)) {
      const shard = shards.get(shardId) as ShardRecord;
      if (shard.leader !== self || done.includes(shardId)) continue;
      const name = `${uid}-${startedAt}-${stage}-${shardId}-${shard.term}`;
      duties.push({ name, collection, uid, shardId, term: shard.term, stage, startedAt, layout });
    }
  }
  return duties;
}

/** Peers whose replicas serve the collection's reads, or may do so soon: all but Dead ones. */
export function readingPeers({ shards }: CollectionRecord): readonly PeerId[] {
  const peers = new Set<PeerId>();
  for (const { replicas } of shards.values()) for (const [peer, state] of replicas) if (state !== 'Dead') peers.add(peer);
  return [...peers];
}

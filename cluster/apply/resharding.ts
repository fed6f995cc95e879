/**
 * Resharding: a shard is added (up) or removed (down) while requests go on (Migr-D1 to Migr-D3: `migration.ts`). The ring in force says
 * which shard has which point; it is the old ring until the switch.
 */

import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import type { CollectionRecord, Resharding, ShardRecord } from '../state/state.js';

/** Cache of `servingShards`, by record: records never change. */
const serving = new WeakMap<CollectionRecord, CollectionRecord['shards']>();

/** The shards that have the collection's points: all but a new one that is not in force yet and those of closed keys. */
export function servingShards(record: CollectionRecord): ReadonlyMap<ShardId, ShardRecord> {
  const { closedKeys, shards } = record;
  const coming = comingShard(record);
  if (coming === null && closedKeys.length === 0) return shards;
  const known = serving.get(record);
  if (known !== undefined) return known;
  const made = new Map([...shards].filter(([shardId, shard]) => shardId !== coming && !isClosed(record, shard)));
  serving.set(record, made);
  return made;
}

/** Whether the shard's key is closed: it waits for a copy to fill it. */
export function isClosed({ closedKeys }: CollectionRecord, { key }: ShardRecord): boolean {
  return key !== null && closedKeys.includes(key);
}

/** The new shard that is not in force yet; null if there is none. */
export function comingShard({ resharding }: CollectionRecord): ShardId | null {
  if (resharding === null || resharding.direction === 'down' || resharding.stage === 'cleaning') return null;
  return resharding.shardId;
}

/** The ring by which points are hidden (Migr-D1): shards in force of the key that is resharded; null if nothing is hidden. */
export function hidingRing(record: CollectionRecord): readonly ShardId[] | null {
  const { resharding } = record;
  if (resharding === null) return null;
  return [...servingShards(record)].flatMap(([shardId, { key }]) => (key === resharding.key ? [shardId] : []));
}

/** The ring that will be in force once everything is copied. */
export function comingRing({ shards }: CollectionRecord, { direction, key, shardId }: Resharding): readonly ShardId[] {
  return [...shards].flatMap(([id, shard]) => (shard.key === key && (direction === 'up' || id !== shardId) ? [id] : []));
}

/** The shards that have a task in this stage. */
export function busyShards({ shards }: CollectionRecord, { direction, key, shardId, stage }: Resharding): readonly ShardId[] {
  if (direction === 'down' && stage !== 'cleaning') return [shardId];
  return [...shards].flatMap(([id, shard]) => (shard.key === key && id !== shardId ? [id] : []));
}

/** Peers whose replicas serve the collection's reads, or may do so soon: all but Dead ones. */
export function readingPeers({ shards }: CollectionRecord): readonly PeerId[] {
  const peers = new Set<PeerId>();
  for (const { replicas } of shards.values()) for (const [peer, state] of replicas) if (state !== 'Dead') peers.add(peer);
  return [...peers];
}

/** Where the points of one read, or of a lookup within it, are: which collection, and which of its shards. */

import type { ShardId, ShardKey, ShardKeySelector } from '../../protocols/model/cluster.js';
import type { PointId } from '../../protocols/model/point-id.js';
import { selectShards } from '../sharding/keys.js';
import { ringOf, shardIndexOf } from '../sharding/ring.js';
import type { ShardPoints } from '../threads/portion.js';
import type { GatherPlace } from './access.js';

export interface Source {
  /** Name or alias; null: the collection that is asked. */
  readonly collection: string | null;
  readonly place: GatherPlace;
  /** Null: all of them. */
  readonly shards: readonly ShardId[] | null;
}

/** The source's shards that a selector of keys names. Errors: those of `selectShards`. */
export function chosenShards(source: Source, shardKey: ShardKeySelector | undefined): Source {
  return shardKey === undefined ? source : { ...source, shards: selectShards(source.place.shards, shardKey) };
}

/** Whether a lookup is made in what is asked itself, by whatever name. */
export function isSame(lookup: Source, asked: Source): boolean {
  if (lookup.place.uid !== asked.place.uid) return false;
  return lookup.shards === null || asked.shards === null || asked.shards.includes(lookup.shards[0] as ShardId);
}

/** The key of a point of that shard, as answers show it; nothing where shards have none. */
export function shardKeyShown({ place }: Source, shard: ShardId): { shardKey?: ShardKey } {
  if (place.params.sharding_method !== 'custom') return NO_KEY;
  const key = place.shards.find(({ id }) => id === shard)?.key ?? null;
  return key === null ? NO_KEY : { shardKey: key };
}

const NO_KEY = {};

/** Points and the shards that may have them: null for all of the source's. */
export interface PlacedPoints {
  readonly points: readonly ShardPoints[];
  readonly shards: readonly ShardId[] | null;
}

/** Where distinct points are, if that can be told: with shard keys any shard of a key may have a point of its own with the same id. */
export function placedPoints({ place, shards }: Source, ids: readonly PointId[]): PlacedPoints {
  if (ids.length === 0 || shards !== null || place.params.sharding_method === 'custom' || place.shards.length === 0) {
    return { points: [{ shard: null, ids }], shards };
  }
  const ring = ringOf(place.shards.map(({ id }) => id));
  const byShard = new Map<ShardId, PointId[]>();
  for (const id of ids) {
    const shard = ring.shards[shardIndexOf(ring, id)] as ShardId;
    const known = byShard.get(shard);
    if (known === undefined) byShard.set(shard, [id]);
    else known.push(id);
  }
  const asked = [...byShard.keys()].sort((a, b) => a - b);
  return { points: asked.map((shard) => ({ shard, ids: byShard.get(shard) as PointId[] })), shards: asked };
}

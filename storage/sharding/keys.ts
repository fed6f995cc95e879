/**
 * Which shards of a collection requests are for, by shard keys. A read without keys goes to all shards; so does a write that chooses
 * points by ids or a filter. Points that are written need keys where shards have some. Source: scenario cluster-single-mode.
 */

import { TroupeError } from '../../protocols/errors.js';
import type { KeyedShard, ShardId, ShardKey, ShardKeySelector } from '../../protocols/model/cluster.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { UpdateOperation } from '../../protocols/model/update.js';
import { type Ring, ringOf } from './ring.js';

/**
 * Shards of a read, in their order. selector: undefined or null: all that have points.
 * Errors: `badRequest` for a key that no shard has, `unavailable` for one that waits to be filled.
 */
export function selectShards(shards: readonly KeyedShard[], selector: ShardKeySelector | null | undefined): readonly ShardId[] {
  if (selector === null || selector === undefined) return shards.flatMap(({ closed, id }) => (closed === true ? [] : [id]));
  const keys = new Set(keysOf(shards, selector, 'badRequest'));
  return shards.filter(({ key }) => key !== null && keys.has(key)).map(({ id }) => id);
}

/**
 * The rings that an operation goes to, one for each key: a point is under each of them. A collection that has no shard yet has none.
 * custom: shards have keys of their own, as `sharding_method` says.
 * Errors: `wrongInput` for a key that no shard has, and for points without a key; `unavailable` for a key that waits to be filled.
 */
export function ringsOf(
  shards: readonly KeyedShard[],
  custom: boolean,
  operation: UpdateOperation,
  selector: ShardKeySelector | null,
): readonly Ring[] {
  if (selector === null) {
    if (!custom) return [ringOf(shards.map(({ id }) => id))];
    if ('batch' in operation) throw new TroupeError('wrongInput', 'Shard key not specified');
    const open = shards.filter(({ closed }) => closed !== true);
    return [...new Set(open.map(({ key }) => key))].map((key) => ringOfKey(open, key));
  }
  return keysOf(shards, selector, 'wrongInput').map((key) => ringOfKey(shards, key));
}

function ringOfKey(shards: readonly KeyedShard[], wanted: ShardKey | null): Ring {
  return ringOf(shards.filter(({ key }) => key === wanted).map(({ id }) => id));
}

function keysOf(shards: readonly KeyedShard[], selector: ShardKeySelector, code: 'badRequest' | 'wrongInput'): readonly ShardKey[] {
  const keys = selector.kind === 'keys' ? [...new Set(selector.keys)] : [servingKey(shards, selector)];
  const known = new Set(shards.map(({ key }) => key));
  for (const key of keys) {
    if (!known.has(key)) throw new TroupeError(code, `Shard key ${shownKey(key)} not found`);
    if (shards.some((shard) => shard.key === key && shard.closed === true)) throw notFilled(key);
  }
  return keys;
}

function notFilled(key: ShardKey): TroupeError {
  const detail = `shard key ${shownKey(key)} is not filled yet: it can be asked for when \`replicate_points\` to it is done, or with a \`fallback\``;
  return new TroupeError('unavailable', detail, { retryAfterMs: 1000 });
}

function shownKey(key: ShardKey): string {
  return typeof key === 'string' ? JSON.stringify(key) : String(key);
}

function servingKey(shards: readonly KeyedShard[], { target, fallback }: Extract<ShardKeySelector, { kind: 'fallback' }>): ShardKey {
  const targets = shards.filter(({ key }) => key === target);
  return targets.length > 0 && targets.every(({ active }) => active !== false) ? target : fallback;
}

/** Number of shards of a collection that gives them no keys; 0 of one that does. */
export function unkeyedShards({ params }: CollectionConfig): number {
  return params.sharding_method === 'custom' ? 0 : params.shard_number;
}

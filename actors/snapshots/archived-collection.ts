/** What an archive says of a collection beside its points: `ArchiveCollection.description`. */

import { TroupeError } from '../../protocols/errors.js';
import type { ShardId, ShardKey } from '../../protocols/model/cluster.js';
import { type CollectionConfig, sparseByName, vectorsByName } from '../../protocols/model/collection.js';
import type { JsonValue } from '../../protocols/model/payload.js';
import {
  applyCollectionChange,
  BUILT_IN_DEFAULTS,
  type CollectionDefaults,
  decodeCreateCollection,
  decodeUpdateCollection,
} from '../../protocols/rest/collections.js';
import { isObject, type JsonObject } from '../../protocols/rest/fields.js';

/** A shard key of an archived collection, and all shards that it has in its cluster, ascending: the archive may lack some. */
export interface ArchivedKey {
  readonly key: ShardKey;
  readonly shards: readonly ShardId[];
}

export interface ArchivedCollection {
  readonly config: CollectionConfig;
  /** Empty with automatic sharding and outside of a cluster. */
  readonly keys: readonly ArchivedKey[];
  /** When the last operation of each shard was acknowledged, a date in milliseconds; shards are missing whose log does not know. */
  readonly times: ReadonlyMap<ShardId, number>;
}

export function describeCollection({ config, keys, times }: ArchivedCollection): JsonValue {
  return { config, keys, times: [...times].map(([shard, timeMs]) => ({ shard, timeMs })) } as unknown as JsonValue;
}

/** Shard keys of a collection with the ids of their shards, in the order in which they were made. */
export function keysOfShards(shards: Iterable<readonly [ShardId, { readonly key: ShardKey | null }]>): ArchivedKey[] {
  const keys: { key: ShardKey; shards: ShardId[] }[] = [];
  for (const [id, { key }] of [...shards].sort(([one], [other]) => one - other)) {
    if (key === null) continue;
    const found = keys.find((one) => isSameKey(one.key, key));
    if (found === undefined) keys.push({ key, shards: [id] });
    else found.shards.push(id);
  }
  return keys;
}

/** A key that is a number is another one than the text of its digits. */
export function isSameKey(one: ShardKey | null, other: ShardKey | null): boolean {
  return (typeof one === 'string') === (typeof other === 'string') && one !== null && other !== null && String(one) === String(other);
}

/**
 * What `describeCollection` has put there. An archive comes from anywhere, so its configuration is decoded as a request to create the
 * collection is. Errors: `wrongInput`.
 */
export function archivedCollection(name: string, description: JsonValue): ArchivedCollection {
  try {
    const { config, keys, times } = objectOf(description);
    return { config: configFrom(objectOf(config)), keys: listOf(keys).map(keyFrom), times: timesFrom(times) };
  } catch (error) {
    if (!(error instanceof TroupeError)) throw error;
    throw new TroupeError('wrongInput', `the snapshot has no configuration that collection ${name} could have: ${error.detail}`, {
      cause: error,
    });
  }
}

/** Why points of a collection with the configuration `archived` cannot be those of one with `own`; null: they can. */
export function incompatibility(archived: CollectionConfig, own: CollectionConfig): string | null {
  const before = shapeOf(archived);
  const now = shapeOf(own);
  if (before.vectors !== now.vectors)
    return `the vectors of the snapshot (${before.vectors}) are others than those of the collection (${now.vectors})`;
  if (before.method !== now.method) return `the snapshot has sharding method ${before.method}, the collection ${now.method}`;
  if (before.shards !== now.shards && now.method === 'auto')
    return `the snapshot has ${before.shards} shards, the collection ${now.shards}`;
  return null;
}

/** What the stored form of points depends on. */
function shapeOf({ params }: CollectionConfig): { readonly vectors: string; readonly method: string; readonly shards: number } {
  const dense = [...vectorsByName(params.vectors)].map(([name, vector]) => {
    const { datatype = 'float32', distance, multivector_config: multi, size } = vector;
    return `${name === '' ? 'unnamed' : name}: ${size} ${datatype} ${distance}${multi === undefined ? '' : ' multivector'}`;
  });
  const sparse = [...sparseByName(params).keys()].map((name) => `${name}: sparse`);
  return {
    vectors: [...dense, ...sparse].sort().join(', '),
    method: params.sharding_method ?? 'auto',
    shards: params.shard_number,
  };
}

function configFrom(archived: JsonObject): CollectionConfig {
  const params = objectOf(archived.params);
  const optimizers = objectOf(archived.optimizer_config);
  const { read_fan_out_factor, read_fan_out_delay_ms, ...created } = params;
  const body = {
    ...created,
    hnsw_config: archived.hnsw_config ?? null,
    optimizers_config: optimizers,
    wal_config: archived.wal_config ?? null,
    quantization_config: archived.quantization_config ?? null,
    strict_mode_config: archived.strict_mode_config ?? null,
    metadata: archived.metadata ?? null,
  };
  const config = decodeCreateCollection(body, { ...BUILT_IN_DEFAULTS, optimizers: unsetAs(optimizers) });
  const fanOut = { read_fan_out_factor: read_fan_out_factor ?? null, read_fan_out_delay_ms: read_fan_out_delay_ms ?? null };
  return applyCollectionChange(config, decodeUpdateCollection({ params: fanOut }));
}

/** Null is a value of some settings, where a request that says null asks for the default. */
function unsetAs(archived: JsonObject): CollectionDefaults['optimizers'] {
  const { optimizers } = BUILT_IN_DEFAULTS;
  return archived.indexing_threshold === null ? { ...optimizers, indexing_threshold: null } : optimizers;
}

function keyFrom(value: JsonValue): ArchivedKey {
  const { key, shards } = objectOf(value);
  const isKey = typeof key === 'string' || typeof key === 'bigint' || Number.isSafeInteger(key);
  const ids = listOf(shards);
  if (!isKey || !ids.every((id) => Number.isSafeInteger(id))) throw new TroupeError('wrongInput', 'a shard key of it is none');
  return { key: key as ShardKey, shards: ids as number[] };
}

/** Archives of earlier releases have none. */
function timesFrom(value: JsonValue | undefined): ReadonlyMap<ShardId, number> {
  if (value === undefined) return new Map();
  return new Map(
    listOf(value).map((one) => {
      const { shard, timeMs } = objectOf(one);
      if (!Number.isSafeInteger(shard) || !Number.isFinite(timeMs)) throw new TroupeError('wrongInput', 'a time of its shards is none');
      return [shard as number, timeMs as number];
    }),
  );
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  if (!Array.isArray(value)) throw new TroupeError('wrongInput', 'a part of it is missing or is no list');
  return value;
}

function objectOf(value: JsonValue | undefined): JsonObject {
  if (!isObject(value)) throw new TroupeError('wrongInput', 'a part of it is missing or is no object');
  return value;
}

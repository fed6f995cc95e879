/** Gives the shards of a new shard key the payload indexes of the collection: those that are agreed on, and those that its other shards have. */

import type { CollectionRecord } from '../../cluster/state/state.js';
import { errorFacts, TroupeError } from '../../protocols/errors.js';
import { stringifyJson } from '../../protocols/json.js';
import type { CollectionClusterUpdate, ShardId } from '../../protocols/model/cluster.js';
import type { FieldSchema } from '../../protocols/model/collection.js';
import { figuresOf } from './figures.js';
import type { Agreed, ClusterPoints, PointsParts } from './points.js';
import type { Routes } from './routes.js';

export interface IndexingParts extends Pick<PointsParts, 'find' | 'routes'> {
  readonly points: Pick<ClusterPoints, 'writeShards'>;
}

/**
 * Makes the indexes after a `createShardKey` was agreed on. An index that is dropped at the same time may be left over; dropping it again
 * repairs that.
 */
export async function indexNewShards(
  parts: IndexingParts,
  collection: string,
  operation: CollectionClusterUpdate,
  deadlineMs: number,
): Promise<void> {
  if (operation.kind !== 'createShardKey') return;
  await indexShards(parts, collection, operation, deadlineMs).catch((error) => keyIsThere(operation, error));
}

/** Gives the shard `to` the indexes that `from` has, and removes the others. Errors: as `writeShards`. */
export async function indexAs({ find, points, routes }: IndexingParts, collection: string, from: ShardId, to: ShardId): Promise<void> {
  const found = find(collection);
  const shard = found.record.shards.get(to);
  if (shard === undefined) return;
  const within = onlyWith(found, new Map([[to, shard]]));
  const deadlineMs = routes.clock.nowMs() + INDEX_MS;
  const [wanted, there] = await Promise.all([fieldsOf(routes, found, [from]), fieldsOf(routes, found, [to])]);
  for (const [field_name, schema] of wanted) {
    const known = there.get(field_name);
    if (known !== undefined && stringifyJson(known) === stringifyJson(schema)) continue;
    const body = Buffer.from(stringifyJson({ field_name, field_schema: schema.params ?? schema.type }));
    await points.writeShards(within, 'createFieldIndex', true, { path: {}, query: {}, body, deadlineMs });
  }
  for (const field_name of there.keys()) {
    if (wanted.has(field_name)) continue;
    await points.writeShards(within, 'deleteFieldIndex', true, { path: { field_name }, query: {}, body: null, deadlineMs });
  }
}

/** The collection as if it had only these shards, and as if they took writes. */
function onlyWith(found: Agreed, shards: CollectionRecord['shards']): Agreed {
  return { ...found, record: { ...found.record, shards, resharding: null, closedKeys: [], keyCopy: null } };
}

const INDEX_MS = 600_000;

type Created = Extract<CollectionClusterUpdate, { kind: 'createShardKey' }>;

/** Reports an index that could not be made, and says that the key exists: otherwise the caller would think that it was not made. */
function keyIsThere({ key }: Created, error: unknown): never {
  const { code, detail, retryAfterMs } = errorFacts(error);
  const told = `shard key ${stringifyJson(key)} was created, but its shards may lack payload indexes; create these again: ${detail}`;
  throw new TroupeError(code, told, { cause: error, retryAfterMs, outcome: 'unknown' });
}

async function indexShards(
  { find, points, routes }: IndexingParts,
  collection: string,
  { key }: Created,
  deadlineMs: number,
): Promise<void> {
  // The key may be agreed on without being known on this node yet.
  await routes.barrier(Math.max(1, deadlineMs - routes.clock.nowMs()));
  const found = find(collection);
  const shards = [...found.record.shards];
  const added = new Map(shards.filter(([, shard]) => shard.key === key));
  const others = shards.flatMap(([shardId, shard]) => (shard.key === key ? [] : [shardId]));
  // Shards without a replica that could lead are filled by transfers.
  const led = [...added.values()].every(({ replicas }) =>
    [...replicas.values()].some((state) => state === 'Active' || state === 'Initializing'),
  );
  if (!led) return;
  const within = onlyWith(found, added);
  const ofOthers = others.length === 0 ? [] : await fieldsOf(routes, found, others);
  for (const [field_name, { params, type }] of new Map([...ofOthers, ...found.record.payloadIndexes])) {
    const body = Buffer.from(stringifyJson({ field_name, field_schema: params ?? type }));
    await points.writeShards(within, 'createFieldIndex', true, { path: {}, query: {}, body, deadlineMs });
  }
}

/** The indexes that at least one of the shards has. */
async function fieldsOf(routes: Routes, { name, record }: Agreed, shards: readonly ShardId[]): Promise<Map<string, FieldSchema>> {
  const figures = await figuresOf(routes, name, record.uid, shards);
  if (figures.length === 0) {
    const detail = `no other shard of ${name} tells which payload keys have indexes`;
    throw new TroupeError('unavailable', detail, { retryAfterMs: 1000 });
  }
  return new Map(figures.flatMap(({ fields }) => fields.map(({ field, schema }): [string, FieldSchema] => [field, schema])));
}

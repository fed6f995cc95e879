/** What the simulation's engine tells of points that shards give to each other: the asks of resharding, a few points at a time. */

import type { ShardId } from '../../protocols/model/cluster.js';
import { compareIds, type PointId } from '../../protocols/model/point-id.js';
import type { PointBatch, UpdateOperation } from '../../protocols/model/update.js';
import { pack, unpack } from '../../protocols/pack.js';
import { encodeUpdate } from '../../protocols/update-codec.js';
import { ringOf, shardIndexOf } from '../../storage/sharding/ring.js';
import type { Deletion, GoneAsk, Ids, Leaving, LeavingAsk, OwnedAsk, StrayAsk } from '../../storage/threads/portion.js';
import type { AskedReplica } from './engine-portions.js';
import type { StoredPoint, StoredReplica } from './replica-files.js';

/** So few that writes come between the parts of one pass. */
const PART = 3;

/** The shard of a ring that has the point. */
export function ownerOf(ring: readonly ShardId[], id: PointId): ShardId {
  const places = ringOf(ring);
  return places.shards[shardIndexOf(places, id)] as ShardId;
}

export function leavingPoints({ shard: self, stored }: AskedReplica, { after, filter, from, ring }: LeavingAsk): Leaving {
  if (filter !== null) throw new Error("the simulation's engine has no filters");
  const { ids, next } = partOf(stored, from);
  const leaving = ids.filter((id) => pointOf(stored, id).version > after && ownerOf(ring, id) !== self);
  const parts = [...new Set(leaving.map((id) => ownerOf(ring, id)))].map((shard) => {
    const own = leaving.filter((id) => ownerOf(ring, id) === shard);
    return { shard, points: own.length, operation: encoded({ kind: 'upsert', batch: batchOf(stored, own) }) };
  });
  return { kind: 'leaving', parts, next };
}

export function ownedIds({ stored }: AskedReplica, { from, owner, ring }: OwnedAsk): Ids {
  const { ids, next } = partOf(stored, from);
  const owned = ids.filter((id) => ownerOf(ring, id) === owner);
  return { kind: 'ids', count: owned.length, ids: pack(owned).slice(), next };
}

export function goneIds({ stored }: AskedReplica, { ids }: GoneAsk): Deletion {
  const gone = (unpack(ids) as PointId[]).filter((id) => !stored.points.has(id));
  return deletion(gone, null);
}

export function strayIds({ shard: self, stored }: AskedReplica, { from, ring }: StrayAsk): Deletion {
  const { ids, next } = partOf(stored, from);
  const strays = ids.filter((id) => ownerOf(ring, id) !== self);
  return deletion(strays, next);
}

function partOf({ points }: StoredReplica, from: PointId | null): { readonly ids: PointId[]; readonly next: PointId | null } {
  const ids = [...points.keys()].filter((id) => from === null || compareIds(id, from) >= 0).sort(compareIds);
  return { ids: ids.slice(0, PART), next: ids[PART] ?? null };
}

function batchOf(stored: StoredReplica, ids: readonly PointId[]): PointBatch {
  const payloads = ids.map((id) => pointOf(stored, id).payload);
  const having = ids.flatMap((id, at) => (pointOf(stored, id).vector === null ? [] : [{ id, at }]));
  const rows = having.map(({ id }) => pointOf(stored, id).vector as readonly number[]);
  if (rows.length === 0) return { ids, payloads, vectors: [] };
  const values = Float32Array.from(rows.flat());
  const points = Uint32Array.from(having, ({ at }) => at);
  return { ids, payloads, vectors: [{ kind: 'dense', name: '', points, dim: values.length / rows.length, values }] };
}

function pointOf({ points }: StoredReplica, id: PointId): StoredPoint {
  return points.get(id) as StoredPoint;
}

function deletion(ids: readonly PointId[], next: PointId | null): Deletion {
  const operation = ids.length === 0 ? null : encoded({ kind: 'deletePoints', selector: { kind: 'ids', ids } });
  return { kind: 'deletion', count: ids.length, operation, next };
}

function encoded(operation: UpdateOperation): Uint8Array {
  return encodeUpdate({ operation, chained: false });
}

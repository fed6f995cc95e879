/** Points of a shard that another one is to have: what is copied there, and what is removed. All of one shard, a part at a time. */

import type { ShardId } from '../../../protocols/model/cluster.js';
import type { Filter } from '../../../protocols/model/filter.js';
import type { PointId } from '../../../protocols/model/point-id.js';
import type { BatchColumn, PointBatch, UpdateOperation } from '../../../protocols/model/update.js';
import type { VectorValue } from '../../../protocols/model/vector.js';
import { pack, unpack } from '../../../protocols/pack.js';
import { encodeUpdate } from '../../../protocols/update-codec.js';
import { hasBit } from '../../../query/filter/bits.js';
import { type Ring, ringOf, shardIndexOf } from '../../sharding/ring.js';
import type { Deletion, GoneAsk, Ids, Leaving, LeavingAsk, OwnedAsk, StrayAsk } from '../../threads/portion.js';
import { type FoundRow, findPoint, rowsInOrder } from '../query/points.js';
import { filterBits, payloadOf } from '../snapshot/filter-source.js';
import type { ReplicaSnapshot, SegmentView } from '../snapshot/snapshot-view.js';

/** A part ends after so many rows, points or bytes of vectors and payloads: other reads wait for it. */
const ROWS_MAX = 50_000;
const POINTS_MAX = 1000;
const IDS_MAX = 20_000;
const COUNTED_MAX = 200_000;
const BYTES_MAX = 4 << 20;

export function leavingPoints(snapshots: readonly ReplicaSnapshot[], { after, filter, from, ring: shards }: LeavingAsk): Leaving {
  const { names, self } = placeOf(snapshots);
  const ring = ringOf(shards);
  const parts = new Map<ShardId, Rows>();
  let looked = 0;
  let points = 0;
  let bytes = 0;
  for (const found of rowsInOrder(snapshots, from, filter)) {
    const { row, view } = found;
    if (looked >= ROWS_MAX || points >= POINTS_MAX || bytes >= BYTES_MAX) return leaving(parts, names, view.id(row));
    looked++;
    if (view.version(row) <= after) continue;
    const id = view.id(row);
    const shard = ownerOf(ring, id);
    if (shard === self) continue;
    const part = parts.get(shard) ?? new Rows();
    parts.set(shard, part);
    bytes += part.add(found, id, names);
    points++;
  }
  return leaving(parts, names, null);
}

export function ownedIds(snapshots: readonly ReplicaSnapshot[], { countOnly, filter, from, owner, ring: shards }: OwnedAsk): Ids {
  const ring = ringOf(shards);
  if (countOnly) return ownedCount(snapshots, { filter, from, owner, ring });
  const { ids, next } = idsWhere(snapshots, from, filter, (id) => ownerOf(ring, id) === owner);
  return { kind: 'ids', count: ids.length, ids: pack(ids).slice(), next };
}

function ownedCount(
  snapshots: readonly ReplicaSnapshot[],
  { filter, from, owner, ring }: Pick<OwnedAsk, 'filter' | 'from' | 'owner'> & { readonly ring: Ring },
): Ids {
  let count = 0;
  let looked = 0;
  const answer = (next: PointId | null): Ids => ({ kind: 'ids', count, ids: pack([]).slice(), next });
  for (const { row, view } of rowsInOrder(snapshots, from, filter)) {
    const id = view.id(row);
    if (looked >= COUNTED_MAX) return answer(id);
    looked++;
    if (ownerOf(ring, id) === owner) count++;
  }
  return answer(null);
}

export function goneIds(snapshots: readonly ReplicaSnapshot[], { filter, ids }: GoneAsk): Deletion {
  const passing = new Map<SegmentView, Uint32Array>();
  const passes = ({ row, view }: FoundRow): boolean => {
    if (filter === null) return true;
    const bits = passing.get(view) ?? filterBits(view, filter);
    passing.set(view, bits);
    return hasBit(bits, row);
  };
  const gone = (unpack(ids) as PointId[]).filter((id) => {
    const found = findPoint(snapshots, id);
    return found === undefined || !passes(found);
  });
  return deletion(gone, null);
}

export function strayIds(snapshots: readonly ReplicaSnapshot[], { from, ring: shards }: StrayAsk): Deletion {
  const { self } = placeOf(snapshots);
  const ring = ringOf(shards);
  const { ids, next } = idsWhere(snapshots, from, null, (id) => ownerOf(ring, id) !== self);
  return deletion(ids, next);
}

function idsWhere(
  snapshots: readonly ReplicaSnapshot[],
  from: PointId | null,
  filter: Filter | null,
  passes: (id: PointId) => boolean,
): { readonly ids: PointId[]; readonly next: PointId | null } {
  const ids: PointId[] = [];
  let looked = 0;
  for (const { row, view } of rowsInOrder(snapshots, from, filter)) {
    const id = view.id(row);
    if (looked >= ROWS_MAX || ids.length >= IDS_MAX) return { ids, next: id };
    looked++;
    if (passes(id)) ids.push(id);
  }
  return { ids, next: null };
}

function deletion(ids: readonly PointId[], next: PointId | null): Deletion {
  const operation = ids.length === 0 ? null : encoded({ kind: 'deletePoints', selector: { kind: 'ids', ids } });
  return { kind: 'deletion', count: ids.length, operation, next };
}

function leaving(parts: ReadonlyMap<ShardId, Rows>, names: readonly string[], next: PointId | null): Leaving {
  const encodedParts = [...parts].map(([shard, rows]) => ({
    shard,
    points: rows.count,
    operation: encoded({ kind: 'upsert', batch: rows.batch(names) }),
  }));
  return { kind: 'leaving', parts: encodedParts, next };
}

function encoded(operation: UpdateOperation): Uint8Array {
  return encodeUpdate({ operation, chained: false });
}

function placeOf(snapshots: readonly ReplicaSnapshot[]): { readonly self: ShardId; readonly names: readonly string[] } {
  const { shardId, sparse, vectors } = snapshots[0] as ReplicaSnapshot;
  return { self: shardId, names: [...vectors.keys(), ...sparse.keys()] };
}

function ownerOf(ring: Ring, id: PointId): ShardId {
  return ring.shards[shardIndexOf(ring, id)] as ShardId;
}

/** Points as they are stored: vectors are normalized already. */
class Rows {
  private readonly ids: PointId[] = [];
  private readonly payloads: PointBatch['payloads'][number][] = [];
  private readonly values = new Map<string, { readonly point: number; readonly value: VectorValue }[]>();

  get count(): number {
    return this.ids.length;
  }

  /** About how many bytes they are. */
  add({ row, view }: FoundRow, id: PointId, names: readonly string[]): number {
    const point = this.ids.length;
    let bytes = view.payloadText(row).length;
    this.ids.push(id);
    this.payloads.push(payloadOf(view, row));
    for (const name of names) {
      const value = view.vectorOf(name, row);
      if (value === undefined) continue;
      const known = this.values.get(name) ?? [];
      this.values.set(name, known);
      known.push({ point, value });
      bytes += value.values.length * 4;
    }
    return bytes;
  }

  batch(names: readonly string[]): PointBatch {
    const vectors = names.flatMap((name) => {
      const entries = this.values.get(name) ?? [];
      return entries.length === 0 ? [] : [columnOf(name, entries, this.ids.length)];
    });
    return { ids: this.ids, payloads: this.payloads, vectors };
  }
}

function columnOf(name: string, entries: readonly { readonly point: number; readonly value: VectorValue }[], points: number): BatchColumn {
  const shared = { name, points: entries.length === points ? null : Uint32Array.from(entries, ({ point }) => point) };
  const all = entries.map(({ value }) => value);
  const values = joined(all.map((value) => Float32Array.from(value.values)));
  const [first] = all;
  switch (first?.kind) {
    case 'sparse': {
      const indices = all.map((value) => (value as Extract<VectorValue, { kind: 'sparse' }>).indices);
      const counts = Uint32Array.from(indices, (some) => some.length);
      return { kind: 'sparse', counts, indices: Uint32Array.from(indices.flatMap((some) => [...some])), values, ...shared };
    }
    case 'multi': {
      const { dim } = first;
      return { kind: 'multi', dim, counts: Uint32Array.from(all, (value) => value.values.length / dim), values, ...shared };
    }
    default:
      return { kind: 'dense', dim: first?.values.length ?? 0, values, ...shared };
  }
}

function joined(parts: readonly Float32Array[]): Float32Array {
  const all = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Groups of a query's hits by the values of a payload key, with a point of another collection for each if asked. */

import type { FieldSchema } from '../../../protocols/model/collection.js';
import type { Condition, Filter } from '../../../protocols/model/filter.js';
import { type PointId, pointIdFrom } from '../../../protocols/model/point-id.js';
import type { GroupsRequest, QueryNode, WithLookup } from '../../../protocols/model/query.js';
import { canFacet } from '../../../query/facet.js';
import { bothFilters, withoutPoints } from '../../../query/filter/combine.js';
import { type Group, type GroupValue, gatherGroups, gatherRounds, groupValues, type Narrowing } from '../../../query/group.js';
import type { GroupView, PointView } from '../../answers/result.js';
import type { Hit } from '../nearest/hit.js';
import type { ReadContext } from '../operations.js';
import { payloadOf } from '../snapshot/filter-source.js';
import type { ReplicaSnapshot, SegmentReader, SegmentView } from '../snapshot/snapshot-view.js';
import { PointViews } from './point-view.js';
import { retrieve } from './points.js';
import { betterScores, hitsOf } from './query.js';

/** A hit and the groups that it stands in. */
interface GroupedHit {
  readonly hit: Hit;
  readonly values: readonly GroupValue[];
}

/** The groups in the order of their best hits. Errors: those of the query; `notFound` for a lookup collection that is not there. */
export function queryGroups(context: ReadContext, request: GroupsRequest): GroupView[] {
  const { config, vectors, segments } = context.snapshots[0] as ReplicaSnapshot;
  const { withLookup } = request;
  const lookup = withLookup === null ? null : context.lookup(withLookup.collection);
  const views = new PointViews(config, vectors, request.withPayload, request.withVector);
  const schema = segments[0]?.fields.get(request.groupBy);
  const found = request.prefetch.length > 0 ? prefetchedGroups(context, request) : rankedGroups(context, request, schema);
  const points = lookup === null || withLookup === null ? NO_POINTS : lookupPoints(lookup, withLookup, found);
  return found.map(({ value, hits }) => {
    const group = { id: value, hits: hits.map(({ hit }) => views.scored(hit)) };
    const id = pointIdFrom(value);
    const point = id === undefined ? undefined : points.get(id);
    return point === undefined ? group : { ...group, lookup: point };
  });
}

function rankedGroups(context: ReadContext, request: GroupsRequest, schema: FieldSchema | undefined): Group<GroupedHit>[] {
  const { groupBy, limit, groupSize } = request;
  const run = (narrowing: Narrowing, count: number): GroupedHit[] => {
    const filter = bothFilters(request.filter, narrowingFilter(groupBy, schema, narrowing));
    return grouped(hitsOf(context, { ...request, filter, limit: count, offset: 0 }), groupBy);
  };
  return gatherGroups({ limit, size: groupSize, canNarrow: canNarrow(schema) }, run, ({ values }) => values);
}

function prefetchedGroups(context: ReadContext, request: GroupsRequest): Group<GroupedHit>[] {
  const { groupBy, limit, groupSize } = request;
  const node = withPrefetches(request, groupSize);
  const sign = betterScores(context, node) === 'larger' ? -1 : 1;
  const run = (seen: readonly GroupedHit[], count: number): GroupedHit[] => {
    const filter = withoutPoints(
      node.filter,
      seen.map(({ hit }) => hit.id),
    );
    return grouped(hitsOf(context, { ...node, filter, limit: count, offset: 0 }), groupBy);
  };
  return gatherRounds(
    { limit, size: groupSize },
    run,
    ({ values }) => values,
    (a, b) => sign * (a.hit.score - b.hit.score),
  );
}

/** Prefetches find as many times more as a group has hits, so that the groups can be filled. Source: scenario query-groups, step prefetch. */
export function withPrefetches<Node extends QueryNode>(node: Node, factor: number): Node {
  if (node.prefetch.length === 0) return node;
  const prefetch = node.prefetch.map((one) => ({ ...withPrefetches(one, factor), limit: one.limit * factor }));
  return { ...node, prefetch };
}

/** An order may repeat a point: it stands in its groups once. */
function grouped(hits: readonly Hit[], groupBy: string): GroupedHit[] {
  const seen = new Set<PointId>();
  return hits.map((hit, at) => {
    if (at % CHECK_HITS === 0) hit.view.reader.deadline.check();
    const values = seen.has(hit.id) ? [] : valuesOfRow(hit.view, hit.row, groupBy);
    seen.add(hit.id);
    return { hit, values };
  });
}

/** Payloads read between two checks of the deadline. */
const CHECK_HITS = 1024;
/** Rows of a segment whose values are kept for a key (about 100 bytes each), and keys. */
const KEPT_ROWS_MAX = 65_536;
const KEPT_KEYS_MAX = 4;

/** Values by key and row, as long as a thread has the segment: rows never change (View-V2), and reading a payload takes longer than finding its row. */
const kept = new WeakMap<SegmentReader, Map<string, Map<number, readonly GroupValue[]>>>();

/** The values that a row is grouped by. */
export function valuesOfRow(view: SegmentView, row: number, groupBy: string): readonly GroupValue[] {
  const byRow = keptValues(view.reader, groupBy);
  const known = byRow.get(row);
  if (known !== undefined) return known;
  const values = groupValues(payloadOf(view, row), groupBy);
  if (byRow.size >= KEPT_ROWS_MAX) byRow.clear();
  byRow.set(row, values);
  return values;
}

function keptValues(reader: SegmentReader, groupBy: string): Map<number, readonly GroupValue[]> {
  let byKey = kept.get(reader);
  if (byKey === undefined) {
    byKey = new Map();
    kept.set(reader, byKey);
  }
  let byRow = byKey.get(groupBy);
  if (byRow === undefined) {
    if (byKey.size >= KEPT_KEYS_MAX) byKey.clear();
    byRow = new Map();
    byKey.set(groupBy, byRow);
  }
  return byRow;
}

/** Whether the index of the key answers which rows have some of its values, or others, without reading payloads. */
export function canNarrow(schema: FieldSchema | undefined): boolean {
  return schema !== undefined && schema.type !== 'bool' && canFacet(schema);
}

/** What passes a narrowing; null: everything. */
export function narrowingFilter(key: string, schema: FieldSchema | undefined, narrowing: Narrowing): Filter | null {
  switch (narrowing.kind) {
    case 'all':
      return null;
    case 'any':
      return some({ kind: 'match', key, match: { kind: 'any', values: narrowing.values } });
    case 'except': {
      const others: Condition = { kind: 'match', key, match: { kind: 'except', values: narrowing.values } };
      // Integers are no values of an index of texts, so it would not count them among the others.
      return schema?.type === 'integer' ? some(others) : some(others, { kind: 'range', key, range: {} });
    }
    default:
      return narrowing satisfies never;
  }
}

function some(...should: Condition[]): Filter {
  return { must: [], should, mustNot: [], minShould: null };
}

const NO_POINTS: ReadonlyMap<PointId, PointView> = new Map();

/** The points whose ids the groups' values are. */
function lookupPoints(
  snapshots: readonly ReplicaSnapshot[],
  { withPayload, withVector }: WithLookup,
  groups: readonly { readonly value: GroupValue }[],
): ReadonlyMap<PointId, PointView> {
  const ids = groups.flatMap(({ value }) => pointIdFrom(value) ?? []);
  return new Map(retrieve(snapshots, { ids, withPayload, withVector }).map((point) => [point.id, point]));
}

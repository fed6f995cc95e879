/** What the inputs of queries stand for, where they are points of other nodes. */

import type { PointId } from '../../protocols/model/point-id.js';
import type { QueryNode, Scoring } from '../../protocols/model/query.js';
import type { VectorValue } from '../../protocols/model/vector.js';
import type { ShardPoints, TermSums } from '../threads/portion.js';
import { isExampleQuery } from '../walk/examples.js';
import { givenValue, noSuchPoint, noSuchVector, pointsNamed, queryInputs } from '../walk/inputs.js';
import { spaceFacts } from '../walk/space.js';
import type { InputPlace, ResolvedInputs, ResolvedQuery } from '../walk/walk.js';
import type { GatherContext } from './context.js';
import { shardIdsOf } from './hits.js';
import { isSame, placedPoints, type Source } from './source.js';

/** Errors: `notFound` for the lookup collection, `wrongInput` for an unknown vector name there. */
export function resolveInputs(context: GatherContext, query: Scoring, place: InputPlace): Promise<ResolvedInputs> {
  const known = context.inputs.get(query) ?? askInputs(context, query, place);
  context.inputs.set(query, known);
  return known;
}

async function askInputs(context: GatherContext, query: Scoring, { using, lookupFrom }: InputPlace): Promise<ResolvedInputs> {
  const ids = pointsNamed(query);
  const source =
    lookupFrom === null || ids.length === 0 ? context.source : await context.lookup(lookupFrom.collection, lookupFrom.shardKey);
  const name = lookupFrom?.vector ?? using;
  const stored = ids.length === 0 ? NOTHING_STORED : await storedValues(context, source, name, ids);
  const isOwn = isSame(source, context.source);
  return {
    of: (input) => {
      if (input.kind !== 'point') return { value: givenValue(input), own: null };
      const found = stored.get(input.id);
      if (found === undefined) throw noSuchPoint(input.id);
      if (found.value === null) throw noSuchVector(name);
      return { value: found.value, own: isOwn ? { shard: found.shard, id: input.id } : null };
    },
  };
}

interface StoredValue {
  readonly shard: number;
  readonly value: VectorValue | null;
}

const NOTHING_STORED: ReadonlyMap<PointId, StoredValue> = new Map();

/** Vectors of points by id; of a point in several shards the one of the first. Errors: `wrongInput` for an unknown vector name. */
async function storedValues(
  { portions }: GatherContext,
  source: Source,
  using: string,
  ids: readonly PointId[],
): Promise<ReadonlyMap<PointId, StoredValue>> {
  const { points, shards } = placedPoints(source, ids);
  const answers = await portions.ask(source, { kind: 'values', points, using }, shards);
  const found = new Map<PointId, StoredValue>();
  for (const { shards: of, ids: told, values } of answers) {
    told.forEach((id, at) => {
      const shard = of[at] as number;
      const other = found.get(id);
      if (other === undefined || shard < other.shard) found.set(id, { shard, value: values[at] ?? null });
    });
  }
  return found;
}

/** How rare the indices of a level's values are, asked once for each query. See `sumTerms`. */
export function termsOf(
  context: GatherContext,
  query: Scoring,
  { using }: Pick<QueryNode, 'using'>,
  resolved: ResolvedQuery,
): Promise<TermSums | null> {
  const values = valuesOf(resolved);
  if (values.length === 0) return Promise.resolve(null);
  const known = context.terms.get(query) ?? sumTerms(context, using, values);
  context.terms.set(query, known);
  return known;
}

/** The values that a level compares with. */
function valuesOf(query: ResolvedQuery): readonly VectorValue[] {
  if (query.kind === 'nearest') return [query.value];
  return isExampleQuery(query) ? queryInputs(query).flatMap((input) => (input.kind === 'point' ? [] : [givenValue(input)])) : [];
}

/** Sums over all shards that are asked; null where the indices of values do not count. Errors: `wrongInput` for an unknown vector name. */
export async function sumTerms(context: GatherContext, using: string, values: readonly VectorValue[]): Promise<TermSums | null> {
  const { source, portions } = context;
  if (!spaceFacts(source.place.params, using).idf) return null;
  const wanted = new Set<number>();
  for (const value of values) if (value.kind === 'sparse') for (const index of value.indices) wanted.add(index);
  const indices = Uint32Array.from(wanted).sort();
  if (indices.length === 0) return null;
  const answers = await portions.ask(source, { kind: 'terms', using, indices });
  const rows = new Float64Array(indices.length);
  let filled = 0;
  for (const answer of answers) {
    filled += answer.filled;
    // Aligned with the indices that were asked for.
    answer.rows.forEach((count, at) => {
      (rows[at] as number) += count;
    });
  }
  return { kind: 'terms', indices, rows, filled };
}

/** The vectors of points, of those that have one, in no order. */
export async function valuesOfPoints(
  { portions, source }: GatherContext,
  using: string,
  points: readonly ShardPoints[],
): Promise<readonly { readonly shard: number; readonly id: PointId; readonly value: VectorValue }[]> {
  const answers = await portions.ask(source, { kind: 'values', points, using }, shardIdsOf(points));
  return answers.flatMap(({ shards: of, ids, values }) =>
    ids.flatMap((id, at) => {
      const value = values[at];
      return value == null ? [] : [{ shard: of[at] as number, id, value }];
    }),
  );
}

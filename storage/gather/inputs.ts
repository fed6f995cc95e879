/** What the inputs of queries stand for, as `../inputs.ts` has it, with points that are on other nodes. */

import type { PointId } from '../../protocols/model/point-id.js';
import type { QueryNode, Scoring } from '../../protocols/model/query.js';
import type { VectorInput, VectorValue } from '../../protocols/model/vector.js';
import { givenValue, type InputPlace, inputsOf, noSuchPoint, noSuchVector } from '../reader/query/inputs.js';
import type { ShardPoints, TermSums } from '../threads/portion.js';
import type { GatherContext } from './context.js';
import { shardsOf } from './hits.js';
import { isSame, placedPoints, type Source, spaceFacts } from './source.js';

export interface ResolvedInput {
  readonly value: VectorValue;
  /** The point of the asked collection that the input names. */
  readonly own: { readonly shard: number; readonly id: PointId } | null;
}

/** Values of all inputs of a query. */
export interface ResolvedInputs {
  /** Errors: as `resolveInput`. */
  of(input: VectorInput): ResolvedInput;
}

/** Errors: `notFound` for the lookup collection, `wrongInput` for an unknown vector name there. */
export function resolveInputs(context: GatherContext, query: Scoring, place: InputPlace): Promise<ResolvedInputs> {
  const known = context.inputs.get(query) ?? askInputs(context, query, place);
  context.inputs.set(query, known);
  return known;
}

async function askInputs(context: GatherContext, query: Scoring, { using, lookupFrom }: InputPlace): Promise<ResolvedInputs> {
  const ids = [...new Set(inputsOf(query).flatMap((input) => (input.kind === 'point' ? [input.id] : [])))];
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

/** Ids of this collection's points that a query names: they are no answers to it. */
export async function namedPoints(context: GatherContext, query: Scoring, { lookupFrom }: InputPlace): Promise<PointId[]> {
  const ids = new Set<PointId>();
  for (const input of inputsOf(query)) if (input.kind === 'point') ids.add(input.id);
  if (ids.size === 0 || lookupFrom === null) return [...ids];
  return isSame(await context.lookup(lookupFrom.collection, lookupFrom.shardKey), context.source) ? [...ids] : [];
}

/** Of the indices of these values, over all shards that are asked; null where they do not count. Errors: `wrongInput` for an unknown vector name. */
export function termsOf(
  context: GatherContext,
  query: Scoring,
  { using }: Pick<QueryNode, 'using'>,
  values: readonly VectorValue[],
): Promise<TermSums | null> {
  const known = context.terms.get(query) ?? sumTerms(context, using, values);
  context.terms.set(query, known);
  return known;
}

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
  const answers = await portions.ask(source, { kind: 'values', points, using }, shardsOf(points));
  return answers.flatMap(({ shards: of, ids, values }) =>
    ids.flatMap((id, at) => {
      const value = values[at];
      return value == null ? [] : [{ shard: of[at] as number, id, value }];
    }),
  );
}

/** REST forms of ids, filters, selectors and everything else that many requests share. */

import { TroupeError } from '../errors.js';
import type { JsonValue } from '../model/payload.js';
import { chosen, chosenMember, listOf, type MessageFields, missing, object, only, type RestForms } from './form.js';

/** `match` of REST for each kind of the message `Match`. */
const MATCH_KEYS: Readonly<Record<string, string>> = {
  keyword: 'value',
  integer: 'value',
  boolean: 'value',
  text: 'text',
  keywords: 'any',
  integers: 'any',
  except_integers: 'except',
  except_keywords: 'except',
  phrase: 'phrase',
  text_any: 'text_any',
};

const SECONDS_MIN = -62_135_596_800;
const SECONDS_MAX = 253_402_300_799;

export const COMMON_FORMS: RestForms = {
  PointId: (fields) => chosen(fields, 'the value of a point id'),
  PointsIdsList: listOf('ids'),
  Timestamp: ({ seconds, nanos }) => datetimeText(seconds as number | bigint, nanos as number),

  // Filters
  MinShould: ({ conditions, min_count }) => ({ conditions: conditions ?? [], min_count: min_count as JsonValue }),
  Condition: conditionForm,
  HasIdCondition: (fields) => ({ has_id: fields.has_id ?? [] }),
  FieldCondition: ({ datetime_range, ...fields }) => {
    if (datetime_range !== undefined && fields.range !== undefined)
      throw new TroupeError('malformedBody', 'a condition has both `range` and `datetime_range`: keep one of them');
    return object({ ...fields, range: fields.range ?? datetime_range });
  },
  Match: (fields) => {
    const [kind, value] = chosenMember(fields, 'the value of a match');
    return { [MATCH_KEYS[kind] as string]: value };
  },
  RepeatedStrings: listOf('strings'),
  RepeatedIntegers: listOf('integers'),
  GeoLineString: (fields) => ({ points: fields.points ?? [] }),

  // What an answer carries
  WithPayloadSelector: (fields) => {
    if (fields.include !== undefined) return { include: fields.include };
    if (fields.exclude !== undefined) return { exclude: fields.exclude };
    return fields.enable;
  },
  PayloadIncludeSelector: listOf('fields'),
  PayloadExcludeSelector: listOf('fields'),
  WithVectorsSelector: (fields) => fields.include ?? fields.enable,
  VectorsSelector: listOf('names'),

  // Clusters
  ShardKey: (fields) => chosen(fields, 'the value of a shard key'),
  ShardKeySelector: ({ shard_keys, fallback }) => {
    if (fallback === undefined) return shard_keys;
    return { target: ((shard_keys as JsonValue[] | undefined) ?? [])[0] ?? null, fallback };
  },
  ReadConsistency: ({ type, factor }) => {
    if (factor === 0) throw new TroupeError('malformedBody', '`read_consistency`: the factor must be 1 or larger');
    return type ?? factor;
  },
  WriteOrdering: only('type'),

  // Vectors
  SparseIndices: listOf('data'),
  DenseVector: listOf('data'),
  SparseVector: ({ indices, values }, vectors) => sparseForm(indices, values, vectors),
  MultiDenseVector: listOf('vectors'),
  Vector: vectorForm,
  NamedVectors: (fields) => fields.vectors ?? {},
  Vectors: (fields) => chosen(fields, 'the vector of a point'),
  VectorInput: (fields) => chosen(fields, 'the value of a vector input'),
};

/** The numbers of the list of floats that `[index]` stands for. */
export function floatsOf(list: JsonValue | undefined, vectors: readonly Float32Array[]): number[] {
  const [index] = (list ?? []) as readonly number[];
  return index === undefined ? [] : Array.from(vectors[index] as Float32Array);
}

/** Numbers stay in the value: sparse vectors are sorted before anything is done with them. */
export function sparseForm(indices: JsonValue | undefined, values: JsonValue | undefined, vectors: readonly Float32Array[]): JsonValue {
  return { indices: indices ?? [], values: floatsOf(values, vectors) };
}

function conditionForm(fields: MessageFields): JsonValue {
  const [kind, value] = chosenMember(fields, 'the kind of a condition');
  switch (kind) {
    case 'is_empty':
    case 'is_null':
    case 'nested':
      return { [kind]: value };
    default:
      // A field condition, a filter, `{has_id}` and `{has_vector}` are conditions of REST as they stand.
      return value;
  }
}

/** Old clients send floats with indices, or the floats of several vectors in one list. */
function vectorForm({ data, indices, vectors_count, ...kinds }: MessageFields, vectors: Float32Array[]): JsonValue {
  for (const name in kinds) if (kinds[name] !== undefined) return kinds[name];
  if (indices !== undefined) return sparseForm(indices, data, vectors);
  const list = (data ?? []) as number[];
  if (vectors_count === undefined) return list;
  const values = list[0] === undefined ? new Float32Array(0) : (vectors[list[0]] as Float32Array);
  const count = vectors_count as number;
  if (count === 0 || values.length % count !== 0) {
    throw new TroupeError('malformedBody', `\`vectors_count\`: ${values.length} values cannot be ${count} vectors of one length`);
  }
  const size = values.length / count;
  if (size === 0) throw new TroupeError('malformedBody', '`vectors_count`: the vectors have no values');
  const parts: number[][] = [];
  for (let at = 0; at < values.length; at += size) {
    parts.push([vectors.length]);
    vectors.push(values.subarray(at, at + size));
  }
  return parts;
}

/** RFC 3339 to the microsecond. */
function datetimeText(seconds: number | bigint, nanos: number): string {
  if (typeof seconds === 'bigint' || seconds < SECONDS_MIN || seconds > SECONDS_MAX || nanos < 0 || nanos > 999_999_999) {
    throw missing('a point in time from year 1 to 9999, with nanos from 0 to 999999999,');
  }
  const micros = String(Math.floor(nanos / 1000)).padStart(6, '0');
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}.${micros}Z`;
}

/** Schemas of ids, payloads, vectors and filters. */

import {
  ANYTHING,
  any,
  COUNT,
  described,
  FLAG,
  fields,
  integer,
  leaf,
  list,
  map,
  NUMBER,
  numberWithin,
  ref,
  type Schema,
  TEXT,
  words,
} from './schema.js';

/** Numbers of one vector; in memory a Float32Array does as well. */
const COMPONENTS = leaf<number[] | Float32Array>({ type: 'array', items: { type: 'number', format: 'float' } });
const TEXTS = list(TEXT);
const KEYS = list(ref('Key'));
const KEY = { key: ref('Key') };
const POINT = ref('GeoPoint');
const CONDITIONS = any(ref('Condition'), list(ref('Condition')));
const INFERENCE_OPTIONS = map(ANYTHING);

/** At least one of the four bounds. */
function boundsOf<Bound extends Schema>(bound: Bound) {
  return any(
    fields({ lt: bound }, { lte: bound, gt: bound, gte: bound }),
    fields({ lte: bound }, { lt: bound, gt: bound, gte: bound }),
    fields({ gt: bound }, { lt: bound, lte: bound, gte: bound }),
    fields({ gte: bound }, { lt: bound, lte: bound, gt: bound }),
  );
}

export const COMMON_SCHEMAS = {
  PointId: described(
    'An unsigned 64-bit integer, or a UUID as text.',
    leaf<number | bigint | string>({
      anyOf: [
        { type: 'integer', format: 'uint64', minimum: 0 },
        { type: 'string', format: 'uuid' },
      ],
    }),
  ),
  Payload: described('Any JSON object.', map(ANYTHING)),
  ShardKeySelector: described(
    'Shards to work on, where a collection has keys of its own for them; without any it is all of them. A `target` that does not serve is stood in for by its `fallback`.',
    any(ref('ShardKey'), list(ref('ShardKey')), fields({ target: ref('ShardKey'), fallback: ref('ShardKey') })),
  ),

  DenseVector: described('As many numbers as the vector has dimensions.', COMPONENTS),
  MultiVector: described('Several vectors of one length.', list(COMPONENTS, 1)),
  SparseVector: described(
    'Dimensions that are not zero, each once, and their values in the same order.',
    fields({ indices: list(integer(0, 0xffff_ffff)), values: list(NUMBER) }),
  ),
  Document: described(
    'A text that the node turns into a vector; the model at hand is `bm25`, for sparse vectors. `options`: `language`, `k`, `b`, `avg_len`, and those of text indexes.',
    fields({ text: TEXT, model: TEXT }, { options: INFERENCE_OPTIONS }),
  ),
  Image: described(
    'An image to be turned into a vector by a model.',
    fields({ image: ANYTHING, model: TEXT }, { options: INFERENCE_OPTIONS }),
  ),
  InferenceObject: described(
    'Any value to be turned into a vector by a model.',
    fields({ object: ANYTHING, model: TEXT }, { options: INFERENCE_OPTIONS }),
  ),
  Vector: described(
    'One vector of a point.',
    any(ref('DenseVector'), ref('SparseVector'), ref('MultiVector'), ref('Document'), ref('Image'), ref('InferenceObject')),
  ),
  Vectors: described(
    'The vectors of a point: the unnamed one, or vectors by name.',
    any(ref('DenseVector'), ref('MultiVector'), ref('Document'), ref('Image'), ref('InferenceObject'), map(ref('Vector'))),
  ),
  PayloadSelection: described(
    'Which payload keys to show: all or none, those listed, or all but some.',
    any(FLAG, KEYS, fields({ include: KEYS }), fields({ exclude: KEYS })),
  ),
  VectorSelection: described('Which vectors to show: all or none, or those listed.', any(FLAG, TEXTS)),

  GeoPoint: described('Degrees.', fields({ lon: numberWithin(-180, 180), lat: numberWithin(-90, 90) })),
  GeoRing: described('A closed line: its last point is its first one.', fields({ points: list(POINT, 4) })),
  Filter: described(
    'Holds when all of `must` do, none of `must_not`, at least one of `should` and as many of `min_should` as it asks for.',
    fields(
      {},
      {
        must: CONDITIONS,
        must_not: CONDITIONS,
        should: CONDITIONS,
        min_should: fields({ conditions: list(ref('Condition')), min_count: COUNT }),
      },
    ),
  ),
  Condition: any(
    ref('FieldCondition'),
    fields({ is_empty: fields({ key: ref('Key') }) }),
    fields({ is_null: fields({ key: ref('Key') }) }),
    fields({ has_id: list(ref('PointId')) }),
    fields({ has_vector: TEXT }),
    fields({ nested: fields({ key: ref('Key'), filter: ref('Filter') }) }),
    ref('Filter'),
  ),
  Key: described(
    'Path of a payload key: names with dots between them, `[]` for the items of a list.',
    leaf<string>({ type: 'string', format: 'key' }),
  ),
  FieldCondition: described(
    'What must hold for a payload key.',
    any(
      fields({ ...KEY, match: ref('Match') }),
      fields({ ...KEY, range: any(ref('Range'), ref('DatetimeRange')) }),
      fields({ ...KEY, geo_bounding_box: fields({ top_left: POINT, bottom_right: POINT }) }),
      fields({ ...KEY, geo_radius: described('Metres.', fields({ center: POINT, radius: numberWithin(0) })) }),
      fields({ ...KEY, geo_polygon: fields({ exterior: ref('GeoRing') }, { interiors: list(ref('GeoRing')) }) }),
      fields({ ...KEY, values_count: fields({}, { lt: COUNT, lte: COUNT, gt: COUNT, gte: COUNT }) }),
      fields({ ...KEY, is_empty: FLAG }),
      fields({ ...KEY, is_null: FLAG }),
    ),
  ),
  Match: any(
    fields({ value: any(TEXT, leaf<number>({ type: 'integer', format: 'int64' }), FLAG) }),
    fields({ text: TEXT }),
    fields({ text_any: TEXT }),
    fields({ phrase: TEXT }),
    fields({ any: any(TEXTS, list(leaf<number>({ type: 'integer', format: 'int64' }))) }),
    fields({ except: any(TEXTS, list(leaf<number>({ type: 'integer', format: 'int64' }))) }),
  ),
  Range: boundsOf(NUMBER),
  DatetimeRange: boundsOf(ref('Datetime')),
  Datetime: described('RFC 3339; without a zone it is UTC.', leaf<string>({ type: 'string', format: 'date-time' })),

  UpdateResult: fields({ status: words('acknowledged', 'completed', 'wait_timeout') }, { operation_id: COUNT }),
  Record: described(
    'A point as it is stored.',
    fields(
      { id: ref('PointId') },
      { payload: ref('Payload'), vector: ref('StoredVectors'), shard_key: ref('ShardKey'), order_value: NUMBER },
    ),
  ),
  ScoredPoint: described(
    'A point and how well it fits.',
    fields(
      { id: ref('PointId'), version: COUNT, score: NUMBER },
      { payload: ref('Payload'), vector: ref('StoredVectors'), shard_key: ref('ShardKey'), order_value: NUMBER },
    ),
  ),
  StoredVectors: leaf<number[] | number[][] | { [name: string]: number[] | number[][] | { indices: number[]; values: number[] } }>({
    anyOf: [
      { type: 'array', items: {} },
      { type: 'object', additionalProperties: {} },
    ],
  }),
};

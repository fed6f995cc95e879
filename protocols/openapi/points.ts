/** Schemas of writes to points and of reads by id, filter or value. */

import { any, COUNT, described, EXPLAIN, FLAG, fields, integer, leaf, list, map, NUMBER, ref, TEXT, words } from './schema.js';

const SHARD = { shard_key: ref('ShardKeySelector') };
const UPSERT_OPTIONS = { ...SHARD, update_filter: ref('Filter'), update_mode: words('upsert', 'insert_only', 'update_only') };
const POINTS = { points: list(ref('PointId')) };
const FILTER = { filter: ref('Filter') };
const SET = { payload: ref('Payload') };
const KEYED = { ...SHARD, key: ref('Key') };
const SHOWN = { with_payload: ref('PayloadSelection'), with_vector: ref('VectorSelection') };
const FACET_VALUE = leaf<string | number | boolean>({ anyOf: [{ type: 'string' }, { type: 'integer' }, { type: 'boolean' }] });
const DIRECTION = words('asc', 'desc');

export const POINT_SCHEMAS = {
  Upsert: any(fields({ points: list(ref('Point'), 1) }, UPSERT_OPTIONS), fields({ batch: ref('PointBatch') }, UPSERT_OPTIONS)),
  Point: fields({ id: ref('PointId'), vector: ref('Vectors') }, { payload: ref('Payload') }),
  PointBatch: described(
    'Points by columns: lists of one length.',
    fields(
      { ids: list(ref('PointId'), 1), vectors: any(list(ref('Vectors')), map(list(ref('Vector')))) },
      { payloads: list(leaf<{ [key: string]: unknown } | null>({ type: 'object', additionalProperties: {}, nullable: true })) },
    ),
  ),
  PointsSelector: any(fields(POINTS, SHARD), fields(FILTER, SHARD)),
  UpdateVectors: fields(
    { points: list(fields({ id: ref('PointId'), vector: ref('Vectors') }), 1) },
    { ...SHARD, update_filter: ref('Filter') },
  ),
  DeleteVectors: described(
    'Names of vectors, and of which points.',
    any(fields({ vector: list(TEXT, 1), ...POINTS }, SHARD), fields({ vector: list(TEXT, 1), ...FILTER }, SHARD)),
  ),
  SetPayload: described(
    'With `key` the payload goes to that place.',
    any(fields({ ...SET, ...POINTS }, KEYED), fields({ ...SET, ...FILTER }, KEYED)),
  ),
  DeletePayload: any(fields({ keys: list(ref('Key')), ...POINTS }, SHARD), fields({ keys: list(ref('Key')), ...FILTER }, SHARD)),
  UpdateBatch: fields({
    operations: list(
      any(
        fields({ upsert: ref('Upsert') }),
        fields({ delete: ref('PointsSelector') }),
        fields({ set_payload: ref('SetPayload') }),
        fields({ overwrite_payload: ref('SetPayload') }),
        fields({ delete_payload: ref('DeletePayload') }),
        fields({ clear_payload: ref('PointsSelector') }),
        fields({ update_vectors: ref('UpdateVectors') }),
        fields({ delete_vectors: ref('DeleteVectors') }),
      ),
    ),
  }),

  Retrieve: fields({ ids: list(ref('PointId')) }, { ...EXPLAIN, ...SHARD, ...SHOWN }),
  Scroll: fields(
    {},
    { ...EXPLAIN, ...SHARD, ...SHOWN, offset: ref('PointId'), limit: integer(1), filter: ref('Filter'), order_by: ref('OrderBy') },
  ),
  OrderBy: described(
    'A payload key with an index for ranges, and where to start.',
    any(ref('Key'), fields({ key: ref('Key') }, { direction: DIRECTION, start_from: any(NUMBER, ref('Datetime')) })),
  ),
  Count: fields({}, { ...EXPLAIN, ...SHARD, filter: ref('Filter'), exact: FLAG }),
  Facet: fields({ key: ref('Key') }, { ...EXPLAIN, ...SHARD, limit: integer(1), filter: ref('Filter'), exact: FLAG }),
  Matrix: fields({}, { ...EXPLAIN, ...SHARD, filter: ref('Filter'), sample: integer(2), limit: integer(1), using: TEXT }),

  ScrollResult: fields({ points: list(ref('Record')) }, { next_page_offset: ref('PointId') }),
  CountResult: fields({ count: COUNT }),
  FacetResult: fields({ hits: list(fields({ value: FACET_VALUE, count: COUNT })) }),
  MatrixPairs: fields({ pairs: list(fields({ a: ref('PointId'), b: ref('PointId'), score: NUMBER })) }),
  MatrixOffsets: fields({
    offsets_row: list(COUNT),
    offsets_col: list(COUNT),
    scores: list(NUMBER),
    ids: list(ref('PointId')),
  }),
};

/** Messages that the gRPC door takes, made from the protocol's own descriptions: what mutations start from. */

import { join } from 'node:path';
import protobuf from 'protobufjs';

export interface GrpcSample {
  readonly path: string;
  readonly message: Buffer;
  readonly writes: boolean;
}

const PROTOS = join(import.meta.dirname, '..', '..', '..', '..', 'protocols', 'grpc', 'proto');

const dense = { dense: { data: [0.1, 0.2, 0.3, 0.4] } };
const sparse = { sparse: { indices: [1, 7, 30], values: [0.5, 1.5, 2] } };
const multi = { multi_dense: { vectors: [{ data: [1, 0] }, { data: [0.5, 0.5] }] } };
const vectors = { vectors: { vectors: { dense, terms: sparse, tokens: multi } } };
const payload = {
  n: { integer_value: 7 },
  tag: { string_value: 'a' },
  price: { double_value: 1.5 },
  deep: { struct_value: { fields: { list: { list_value: { values: [{ bool_value: true }, { null_value: 0 }] } } } } },
};
const filter = {
  must: [
    { field: { key: 'n', range: { gte: 1, lt: 50 } } },
    { field: { key: 'when', datetime_range: { gt: { seconds: 1_700_000_000, nanos: 5 } } } },
    { nested: { key: 'items', filter: { must: [{ field: { key: 'name', match: { keyword: 'x' } } }] } } },
  ],
  should: [{ has_id: { has_id: [{ num: 1 }, { uuid: 'c0ffee00-0000-4000-8000-000000000001' }] } }],
  must_not: [{ field: { key: 'at', geo_radius: { center: { lon: 13.4, lat: 52.5 }, radius: 1000 } } }, { is_empty: { key: 'x' } }],
};
const ids = { points: { ids: [{ num: 1 }, { num: 7 }] } };
const nearest = { nearest: dense };
const query = {
  query: nearest,
  using: 'dense',
  limit: 5,
  filter,
  params: { hnsw_ef: 16, quantization: { rescore: true, oversampling: 2 } },
  with_payload: { include: { fields: ['n'] } },
  with_vectors: { enable: true },
};
const formula = {
  expression: { sum: { sum: [{ variable: '$score' }, { mult: { mult: [{ constant: 2 }, { abs: { variable: 'n' } }] } }] } },
  defaults: { n: { integer_value: 1 } },
};

/** Method, message type, message; methods that write are marked. */
const SAMPLES: readonly (readonly [method: string, type: string, message: object, writes?: true])[] = [
  [
    'Upsert',
    'UpsertPoints',
    {
      points: [
        { id: { num: 1 }, payload, vectors },
        { id: { num: 2 }, vectors },
      ],
      wait: true,
    },
    true,
  ],
  ['Delete', 'DeletePoints', { points: ids, wait: true }, true],
  ['Delete', 'DeletePoints', { points: { filter }, wait: true }, true],
  ['UpdateVectors', 'UpdatePointVectors', { points: [{ id: { num: 3 }, vectors }], wait: true }, true],
  ['DeleteVectors', 'DeletePointVectors', { points_selector: ids, vectors: { names: ['terms'] }, wait: true }, true],
  ['SetPayload', 'SetPayloadPoints', { payload, points_selector: ids, key: 'deep', wait: true }, true],
  ['OverwritePayload', 'SetPayloadPoints', { payload, points_selector: { filter }, wait: true }, true],
  ['DeletePayload', 'DeletePayloadPoints', { keys: ['n', 'a[].b'], points_selector: ids, wait: true }, true],
  ['ClearPayload', 'ClearPayloadPoints', { points: ids, wait: true }, true],
  ['CreateFieldIndex', 'CreateFieldIndexCollection', { field_name: 'n', field_type: 1, wait: true }, true],
  ['DeleteFieldIndex', 'DeleteFieldIndexCollection', { field_name: 'n', wait: true }, true],
  [
    'UpdateBatch',
    'UpdateBatchPoints',
    { operations: [{ upsert: { points: [{ id: { num: 4 }, vectors }] } }, { set_payload: { payload, points_selector: ids } }], wait: true },
    true,
  ],
  ['Get', 'GetPoints', { ids: ids.points.ids, with_payload: { enable: true } }],
  ['Search', 'SearchPoints', { vector: [0.1, 0.2, 0.3, 0.4], vector_name: 'dense', limit: 3, filter }],
  ['Scroll', 'ScrollPoints', { limit: 5, filter, offset: { num: 3 } }],
  ['Scroll', 'ScrollPoints', { limit: 5, order_by: { key: 'n', start_from: { integer: 3 } } }],
  ['Count', 'CountPoints', { filter, exact: true }],
  ['Query', 'QueryPoints', query],
  ['Query', 'QueryPoints', { prefetch: [query, { query: { nearest: sparse }, using: 'terms' }], query: { fusion: 0 } }],
  ['Query', 'QueryPoints', { prefetch: [query], query: { formula } }],
  ['Query', 'QueryPoints', { query: { recommend: { positive: [{ id: { num: 1 } }], negative: [dense], strategy: 1 } }, using: 'dense' }],
  ['QueryBatch', 'QueryBatchPoints', { query_points: [query, query] }],
  ['QueryGroups', 'QueryPointGroups', { query: nearest, using: 'dense', group_by: 'tag', group_size: 2 }],
  ['Recommend', 'RecommendPoints', { positive: [{ num: 1 }], using: 'dense', limit: 3 }],
  ['Discover', 'DiscoverPoints', { target: { single: { id: { num: 1 } } }, using: 'dense', limit: 3 }],
  ['Facet', 'FacetCounts', { key: 'tag', filter, limit: 5 }],
  ['SearchMatrixPairs', 'SearchMatrixPoints', { sample: 10, limit: 3, using: 'dense' }],
];

/** Encoded calls of the points service on a collection. */
export function grpcSamples(collection: string): GrpcSample[] {
  const root = new protobuf.Root();
  root.resolvePath = (_origin, target) => (target.startsWith('google/') ? target : join(PROTOS, target));
  root.loadSync('points_service.proto', { keepCase: true });
  return SAMPLES.map(([method, type, message, writes]) => {
    const messageType = root.lookupType(`qdrant.${type}`);
    const encoded = messageType.encode(messageType.fromObject({ collection_name: collection, ...message })).finish();
    return { path: `/qdrant.Points/${method}`, message: Buffer.from(encoded), writes: writes === true };
  });
}

/** Requests about the films that neither door can carry out. */

import type { Args, OperationName } from './doors.js';
import type { Json } from './values.js';

const PLOT = [0.3, -0.5, 0.2, 0.7];

/** With the name of the collection where it is another one. */
export const ERRORS: readonly (readonly [OperationName, Args, string?])[] = [
  // No such collection
  ...(
    [
      ['get_collection', {}],
      ['update_collection', {}],
      ['collection_cluster_info', {}],
      ['list_shard_keys', {}],
      ['get_points', { ids: [1] }],
      ['scroll_points', {}],
      ['count_points', {}],
      ['query_points', {}],
      ['search_points', { vector: PLOT, limit: 1 }],
      ['facet', { key: 'studio' }],
      ['upsert_points', { points: [{ id: 1, vector: {} }] }],
      ['delete_points', { points: [1] }],
      ['set_payload', { points: [1], payload: { a: 1 } }],
      ['create_field_index', { field_name: 'a', field_schema: 'keyword' }],
      ['create_vector_name', { vector_name: 'a', sparse: {} }],
      ['update_aliases', { actions: [{ create_alias: { collection_name: 'none', alias_name: 'a' } }] }],
    ] as [OperationName, Args][]
  ).map(([operation, args]): [OperationName, Args, string] => [operation, args, 'none']),
  ['create_collection', { vectors: { size: 4, distance: 'Dot' } }],
  ['create_collection', { vectors: { size: 0, distance: 'Dot' } }, 'new'],
  ['create_collection', { vectors: { size: 70_000, distance: 'Dot' } }, 'new'],
  ['create_collection', { vectors: { size: 4, distance: 'Dot' } }, 'no/slash'],
  ['create_collection', { vectors: { size: 4, distance: 'Dot' }, shard_number: 0 }, 'new'],
  ['create_collection', { vectors: { size: 4, distance: 'Dot' }, hnsw_config: { ef_construct: 1 } }, 'new'],
  ['create_collection', { vectors: { size: 4, distance: 'Dot' }, quantization_config: { scalar: { type: 'int8', quantile: 7 } } }, 'new'],
  ['create_collection', { vectors: { size: 4, distance: 'Dot' }, optimizers_config: { deleted_threshold: 2 } }, 'new'],
  ['update_collection', { vectors: { none: { on_disk: true } } }],
  ['update_collection', { optimizers_config: { flush_interval_sec: 1, vacuum_min_vector_number: 1 } }],
  ['create_vector_name', { vector_name: 'plot', dense: { size: 4, distance: 'Dot' } }],
  ['update_aliases', { actions: [{ rename_alias: { old_alias_name: 'none', new_alias_name: 'new' } }] }],
  ['update_aliases', { actions: [{ create_alias: { collection_name: 'films', alias_name: 'more-films' } }] }],

  // Only for clusters
  ['create_shard_key', { shard_key: 'a', shards_number: 1 }],
  ['delete_shard_key', { shard_key: 3 }],
  ['update_collection_cluster', { move_shard: { shard_id: 0, from_peer_id: 1, to_peer_id: 2 } }],

  // Points
  ['upsert_points', { points: [] }],
  ['upsert_points', { points: [{ id: 1, vector: { plot: [1, 2, 3] } }] }],
  ['upsert_points', { points: [{ id: 1, vector: { none: [1] } }] }],
  ['upsert_points', { points: [{ id: 1, vector: [1, 2, 3, 4] }] }],
  ['upsert_points', { points: [{ id: 1, vector: { plot: [[1, 2, 3, 4]] } }] }],
  ['upsert_points', { points: [{ id: 1, vector: { plot: { indices: [1], values: [1] } } }] }],
  ['upsert_points', { points: [{ id: 1, vector: { scenes: [] } }] }],
  ['upsert_points', { points: [{ id: 1, vector: { words: { indices: [1, 1], values: [1, 2] } } }] }],
  ['upsert_points', { points: [{ id: 1, vector: { words: { indices: [1, 2], values: [1] } } }] }],
  ['upsert_points', { points: [{ id: 'no uuid', vector: {} }] }],
  ['upsert_points', { points: [{ id: 1, vector: { words: { text: 'x', model: 'no/such-model' } } }] }],
  ['upsert_points', { points: [{ id: 1, vector: { plot: { image: 'x', model: 'no/such-model' } } }] }],
  ['upsert_points', { points: [{ id: 1, vector: { plot: { object: { a: 1 }, model: 'no/such-model' } } }] }],
  ['upsert_points', { points: [{ id: 1, vector: {} }], timeout: 0 }],
  ['upsert_points', { points: [{ id: 1, vector: {} }], update_filter: { must: [{ key: 'a[', match: { value: 1 } }] } }],
  ['update_vectors', { points: [] }],
  ['update_vectors', { points: [{ id: 9999, vector: { plot: PLOT } }] }],
  ['update_vectors', { points: [{ id: 1, vector: { plot: [1] } }] }],
  ['delete_vectors', { points: [1], vector: [] }],
  ['delete_vectors', { points: [1], vector: ['none'] }],
  ['delete_vectors', { vector: ['plot'] }],
  ['set_payload', { payload: { a: 1 } }],
  ['set_payload', { payload: { a: 1 }, points: [1], key: 'a[' }],
  ['set_payload', { payload: { a: 1 }, points: [9999] }],
  ['overwrite_payload', { payload: { a: 1 } }],
  ['delete_payload', { keys: ['a'] }],
  ['delete_payload', { keys: ['a['], points: [1] }],
  ['batch_update', { operations: [{ clear_payload: { points: [1] } }, { upsert: { points: [{ id: 1, vector: { plot: [1] } }] } }] }],
  ['batch_update', { operations: [{ upsert: { points: [] } }] }],
  ['create_field_index', { field_name: 'a' }],
  ['create_field_index', { field_name: 'a[', field_schema: 'keyword' }],
  ['create_field_index', { field_name: 'a', field_schema: { type: 'integer', lookup: false, range: false } }],
  [
    'create_field_index',
    { field_name: 'a', field_schema: { type: 'text', tokenizer: 'word', stemmer: { type: 'snowball', language: 'klingon' } } },
  ],
  ['create_field_index', { field_name: 'a', field_schema: { type: 'text', tokenizer: 'word', stopwords: { languages: ['klingon'] } } }],

  // Reads
  ['get_points', { ids: ['no uuid'] }],
  ['get_points', { ids: [1], with_vector: ['none'] }],
  ['get_points', { ids: [1], timeout: 0 }],
  ['get_points', { ids: [1], consistency: 0 }],
  ['scroll_points', { limit: 0 }],
  ['scroll_points', { order_by: 'length' }],
  ['scroll_points', { order_by: 'studio' }],
  ['scroll_points', { order_by: 'year', offset: 1 }],
  ['scroll_points', { order_by: { key: 'released', start_from: 'no date' } }],
  ['scroll_points', { offset: 'no uuid' }],
  ...filters().flatMap((filter): [OperationName, Args][] => [
    ['count_points', { filter }],
    ['query_points', { query: PLOT, using: 'plot', filter }],
  ]),
  ...queries().map((query): [OperationName, Args] => ['query_points', query]),
  ['query_batch_points', { searches: queries().slice(0, 3) }],
  ['query_points_groups', { query: PLOT, using: 'plot', group_by: 'studio', group_size: 0 }],
  ['query_points_groups', { query: PLOT, using: 'plot', group_by: 'studio', limit: 0 }],
  ['query_points_groups', { query: PLOT, using: 'plot', group_by: 'a[' }],
  ['query_points_groups', { query: PLOT, using: 'plot', group_by: '' }],
  ['query_points_groups', { query: PLOT, using: 'plot', group_by: 'length', with_lookup: 'none' }],
  ['search_points', { vector: PLOT, limit: 3 }],
  ['search_points', { vector: { name: 'plot', vector: PLOT }, limit: 0 }],
  ['search_points', { vector: { name: 'plot', vector: [1, 2] }, limit: 3 }],
  ['search_points', { vector: { name: 'words', vector: PLOT }, limit: 3 }],
  ['search_points', { vector: { name: 'plot', vector: { indices: [1], values: [1] } }, limit: 3 }],
  ['search_point_groups', { vector: { name: 'plot', vector: PLOT }, group_by: 'studio', limit: 0, group_size: 1 }],
  ['recommend_points', { positive: [], using: 'plot', limit: 3 }],
  ['recommend_points', { positive: [9999], using: 'plot', limit: 3 }],
  ['recommend_points', { positive: [1], limit: 3 }],
  ['recommend_points', { positive: [1], using: 'plot', limit: 3, lookup_from: { collection: 'none' } }],
  ['recommend_points', { positive: [], negative: [1], using: 'plot', limit: 3, strategy: 'average_vector' }],
  ['discover_points', { using: 'plot', limit: 3 }],
  ['discover_points', { target: 9999, context: [{ positive: 1, negative: 2 }], using: 'plot', limit: 3 }],
  ['facet', { key: 'length' }],
  ['facet', { key: 'studio', limit: 0 }],
  ['facet', { key: 'a[' }],
  ['search_matrix_pairs', { sample: 1, using: 'plot' }],
  ['search_matrix_pairs', { sample: 10, limit: 0, using: 'plot' }],
  ['search_matrix_offsets', { using: 'none' }],
  ['search_matrix_offsets', {}],
];

function filters(): Json[] {
  const ring = (points: number[][]) => ({ points: points.map(([lon, lat]) => ({ lon: lon as number, lat: lat as number })) });
  return [
    { must: [{ key: 'place', geo_radius: { center: { lon: 500, lat: 0 }, radius: 5 } }] },
    { must: [{ key: 'place', geo_radius: { center: { lon: 0, lat: 91 }, radius: 5 } }] },
    {
      must: [
        {
          key: 'place',
          geo_polygon: {
            exterior: ring([
              [0, 0],
              [1, 1],
              [0, 0],
            ]),
          },
        },
      ],
    },
    {
      must: [
        {
          key: 'place',
          geo_polygon: {
            exterior: ring([
              [0, 0],
              [1, 1],
              [1, 0],
              [0, 1],
            ]),
          },
        },
      ],
    },
    { must: [{ key: 'studio' }] },
    { must: [{ key: 'a[', match: { value: 1 } }] },
    { must: [{ has_id: ['no uuid'] }] },
    { must: [{ nested: { key: '', filter: {} } }] },
  ];
}

function queries(): Args[] {
  return [
    { query: [1, 2], using: 'plot' },
    { query: PLOT },
    { query: PLOT, using: 'none' },
    { query: PLOT, using: 'plot', limit: 0 },
    { query: PLOT, using: 'words' },
    { query: 9999, using: 'plot' },
    { query: 7, using: 'plot', lookup_from: { collection: 'none' } },
    { query: 1, using: 'plot', lookup_from: { collection: 'more-films', vector: 'none' } },
    { query: { indices: [1, 1], values: [1, 2] }, using: 'words' },
    { query: [[1, 2], [1]], using: 'scenes' },
    { query: { fusion: 'rrf' } },
    { prefetch: { query: PLOT, using: 'plot' }, query: { rrf: { k: 0 } } },
    { prefetch: { query: PLOT, using: 'plot' }, query: { rrf: { weights: [1, 2] } } },
    { prefetch: { query: PLOT, using: 'plot', limit: 0 }, query: { fusion: 'dbsf' } },
    { prefetch: { query: PLOT, using: 'plot' } },
    { query: { formula: { sum: ['$score'] } } },
    { prefetch: { query: PLOT, using: 'plot' }, query: { formula: 'nothing' } },
    { prefetch: { query: PLOT, using: 'plot' }, query: { formula: { div: { left: 1, right: 0 } } } },
    { prefetch: { query: PLOT, using: 'plot' }, query: { formula: { sqrt: -1 } } },
    { prefetch: { query: PLOT, using: 'plot' }, query: { formula: { datetime: 'no date' } } },
    { prefetch: { query: PLOT, using: 'plot' }, query: { formula: { exp_decay: { x: 'length', midpoint: 2 } } } },
    { prefetch: { query: PLOT, using: 'plot' }, query: { formula: { exp_decay: { x: 'length', scale: -2 } } } },
    { prefetch: { query: PLOT, using: 'plot' }, query: { formula: { geo_distance: { origin: { lon: 400, lat: 0 }, to: 'place' } } } },
    { query: { nearest: PLOT, mmr: { diversity: 1.5 } }, using: 'plot' },
    { query: { nearest: PLOT, mmr: { candidates_limit: 1_000_000 } }, using: 'plot' },
    { query: { recommend: {} }, using: 'plot' },
    { query: { recommend: { positive: [9999] } }, using: 'plot' },
    { query: { discover: { target: PLOT, context: [{ positive: 9999, negative: 1 }] } }, using: 'plot' },
    { query: { order_by: 'length' } },
    { query: { order_by: '' } },
    { query: PLOT, using: 'plot', with_vector: ['none'] },
    { query: PLOT, using: 'plot', params: { quantization: { oversampling: 0.5 } } },
    { query: { text: 'x', model: 'no/such-model' }, using: 'words' },
    { query: PLOT, using: 'plot', timeout: 0 },
    { query: PLOT, using: 'plot', consistency: 0 },
  ];
}

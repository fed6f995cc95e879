/** Reading requests of every kind about the films. */

import type { Args, OperationName } from './doors.js';
import { filmId } from './films.js';
import type { Json } from './values.js';

/** With the name of the collection where it is not the films. */
export type Case = readonly [OperationName, Args, string?];

const UUID = filmId(45);
const PLOT = [0.3, -0.5, 0.2, 0.7];
const SOUND = [0.1, 0.9, -0.4];
const SCENES = [
  [0.5, 0.5],
  [-1, 0.25],
];
const WORDS = { indices: [20, 3, 8], values: [0.5, 1.25, 0.75] };
const CENTRE = { lon: 10, lat: 20 };

export const FILTERS: readonly Json[] = [
  {},
  { must: [{ key: 'studio', match: { value: 'North' } }] },
  { must: { key: 'year', match: { value: 1965 } } },
  { must: [{ key: 'colour', match: { value: true } }] },
  { must: [{ key: 'studio', match: { any: ['North', '東京'] } }] },
  { must: [{ key: 'year', match: { any: [1965, 1966] } }] },
  { must: [{ key: 'year', match: { except: [1965, 1966] } }] },
  { must_not: [{ key: 'studio', match: { except: ['Émile'] } }] },
  { must: [{ key: 'summary', match: { text: 'mountains river' } }] },
  { must: [{ key: 'summary', match: { text_any: 'mountain CAFE' } }] },
  { must: [{ key: 'summary', match: { phrase: 'night train' } }] },
  { must: [{ key: 'reference', match: { value: '11111111-1111-4111-8111-000000000003' } }] },
  { must: [{ key: 'genres', match: { value: 'drama' } }] },
  { must: [{ key: 'genres[]', match: { value: 'drama' } }] },
  { must: [{ key: 'year', range: { gte: 1962, lt: 1970 } }] },
  { must: [{ key: 'rating', range: { gt: 2.5, lte: 7.25 } }] },
  { must: [{ key: 'length', range: { gt: 70, lte: 100 } }] },
  { must: [{ key: 'released', range: { gte: '1965-01-01T00:00:00Z', lt: '1972-06-01T12:30:00.25+02:00' } }] },
  { must: [{ key: 'released', range: { gt: '1965-01-01', lte: '1975-05-05 10:00:00' } }] },
  { must: [{ key: 'place', geo_radius: { center: CENTRE, radius: 5_000_000 } }] },
  { must: [{ key: 'place', geo_bounding_box: { top_left: { lon: 100, lat: 60 }, bottom_right: { lon: -100, lat: -60 } } }] },
  {
    must: [
      {
        key: 'place',
        geo_polygon: {
          exterior: { points: ring(-120, -60, 120, 60) },
          interiors: [{ points: ring(-20, -20, 20, 20) }, { points: ring(50, -20, 80, 20) }],
        },
      },
    ],
  },
  { must: [{ key: 'genres', values_count: { gte: 2, lt: 5 } }] },
  { must: [{ key: 'rooms', values_count: { gt: 1, lte: 2 } }] },
  { must: [{ is_null: { key: 'draft' } }] },
  { must_not: [{ is_empty: { key: 'draft' } }] },
  { must: [{ key: 'draft', is_null: true }] },
  { must: [{ key: 'draft', is_empty: false }] },
  { must: [{ has_id: [1, 5, 39, UUID] }] },
  { must_not: [{ has_id: [1, 5, 39] }] },
  { must: [{ has_vector: 'words' }] },
  { must_not: [{ has_vector: 'tags' }] },
  {
    must: [
      {
        nested: {
          key: 'rooms',
          filter: { must: [{ key: 'seats', range: { gt: 300 } }], must_not: [{ key: 'open', match: { value: false } }] },
        },
      },
    ],
  },
  { must: [{ key: 'rooms[].seats', range: { gt: 480 } }] },
  { must: [{ key: 'draft.deep[]', match: { value: -3 } }] },
  {
    min_should: {
      conditions: [
        { key: 'colour', match: { value: true } },
        { key: 'year', range: { gte: 1970 } },
        { should: [{ key: 'studio', match: { value: 'South' } }, { has_id: [2, 3] }] },
      ],
      min_count: 2,
    },
  },
  {
    must: [{ should: [{ must_not: [{ key: 'colour', match: { value: true } }] }, { key: 'year', match: { value: 1962 } }] }],
    should: [{ has_vector: 'tags' }, { key: 'rating', range: { lt: 4 } }],
    must_not: [
      {
        must: [
          { key: 'studio', match: { value: 'North' } },
          { key: 'genres', match: { value: 'comedy' } },
        ],
      },
    ],
  },
];

const FILTER = FILTERS[14] as Json;

const QUERIES: readonly Args[] = [
  { query: PLOT, using: 'plot' },
  { query: { nearest: PLOT }, using: 'plot', offset: 3 },
  { query: SOUND, using: 'sound', score_threshold: 1.25 },
  { query: SCENES, using: 'scenes' },
  { query: WORDS, using: 'words' },
  { query: { indices: [3_000_000_000], values: [1] }, using: 'tags' },
  { query: { text: 'mountains at night', model: 'qdrant/bm25', options: { language: 'english' } }, using: 'spoken' },
  { query: 7, using: 'plot' },
  { query: UUID, using: 'scenes' },
  { query: { nearest: 8 }, using: 'tags' },
  { query: 3, using: 'words', lookup_from: { collection: 'more-films', vector: 'words' } },
  { query: { nearest: PLOT, mmr: { diversity: 0.75, candidates_limit: 20 } }, using: 'plot' },
  { query: { nearest: 9, mmr: {} }, using: 'sound' },
  { query: { recommend: { positive: [1, PLOT], negative: [UUID] } }, using: 'plot' },
  { query: { recommend: { positive: [1, 2], strategy: 'average_vector' } }, using: 'plot' },
  { query: { recommend: { positive: [1, 2], negative: [3, SOUND], strategy: 'best_score' } }, using: 'sound' },
  { query: { recommend: { negative: [3], strategy: 'sum_scores' } }, using: 'scenes' },
  { query: { recommend: { positive: [WORDS, 4], strategy: 'best_score' } }, using: 'words' },
  { query: { discover: { target: PLOT, context: [{ positive: 1, negative: 2 }] } }, using: 'plot' },
  { query: { discover: { target: 5, context: { positive: SOUND, negative: 2 } } }, using: 'sound' },
  { query: { discover: { target: 5, context: [] } }, using: 'plot' },
  {
    query: {
      context: [
        { positive: 1, negative: PLOT },
        { positive: UUID, negative: 6 },
      ],
    },
    using: 'plot',
  },
  { query: { order_by: 'year' } },
  { query: { order_by: { key: 'rating', direction: 'desc', start_from: 7.5 } } },
  { query: { order_by: { key: 'released', direction: 'asc', start_from: '1966-02-03T04:05:06.789Z' } } },
  { query: { order_by: { key: 'year', direction: 'desc', start_from: 1970 } }, filter: FILTERS[3] as Json },
  { filter: FILTER, with_vector: true },
  {
    query: {
      relevance_feedback: {
        target: PLOT,
        feedback: [
          { example: 2, score: 0.9 },
          { example: [0.1, 0.2, 0.3, 0.4], score: 0.1 },
        ],
        strategy: { naive: { a: 0.5, b: 1.5, c: 0.25 } },
      },
    },
    using: 'plot',
  },
  { prefetch: prefetches(), query: { fusion: 'rrf' } },
  { prefetch: prefetches(), query: { fusion: 'dbsf' }, score_threshold: 0.5 },
  { prefetch: prefetches(), query: { rrf: { k: 10, weights: [2, 0.5, 1] } } },
  { prefetch: prefetches(), query: { rrf: {} } },
  { prefetch: { query: WORDS, using: 'words', limit: 20 }, query: PLOT, using: 'plot' },
  {
    prefetch: [
      { prefetch: prefetches(), query: { fusion: 'rrf' }, limit: 12 },
      { prefetch: [{ query: SCENES, using: 'scenes', limit: 30 }], query: SOUND, using: 'sound', score_threshold: 2, limit: 15 },
    ],
    query: { fusion: 'dbsf' },
  },
  {
    prefetch: { query: 3, using: 'plot', lookup_from: { collection: 'more-films', vector: 'plot' }, limit: 9 },
    query: { order_by: 'year' },
  },
  ...formulas().map(
    (formula): Args => ({
      prefetch: { query: PLOT, using: 'plot', limit: 30 },
      query: { formula, defaults: { length: 90, rating: 5, nothing: 0 } },
    }),
  ),
];

const PARAMS: readonly Args[] = [
  { hnsw_ef: 64 },
  { exact: true },
  { indexed_only: true },
  { quantization: { ignore: true, rescore: false, oversampling: 2.5 } },
  { acorn: { enable: true, max_selectivity: 0.5 } },
];

const SELECTORS: readonly Args[] = [
  { with_payload: true, with_vector: true },
  { with_payload: false, with_vector: false },
  { with_payload: ['studio', 'rooms[].name', 'draft.deep'], with_vector: ['sound', 'tags'] },
  { with_payload: { include: ['year'] }, with_vector: [] },
  { with_payload: { exclude: ['rooms', 'summary'] }, with_vector: ['words'] },
];

export const READS: readonly Case[] = [
  ['get_points', { ids: [1, 999, UUID, 2, 1], with_payload: true, with_vector: true }],
  ...SELECTORS.map((selector): Case => ['get_points', { ids: [4, 7, 8, 12], ...selector }]),

  ['scroll_points', { limit: 7 }],
  ['scroll_points', { limit: 7, offset: 38, with_payload: true, with_vector: true }],
  ['scroll_points', { limit: 7, offset: UUID }],
  ['scroll_points', { limit: 8, order_by: 'year' }],
  ['scroll_points', { limit: 8, order_by: { key: 'rating', direction: 'desc' }, filter: FILTER }],
  ['scroll_points', { limit: 8, order_by: { key: 'released', start_from: '1970-01-01T00:00:00Z' } }],
  ['scroll_points', { limit: 100, consistency: 'majority', timeout: 5 }],
  ...SELECTORS.map((selector): Case => ['scroll_points', { limit: 9, ...selector }]),
  ...FILTERS.flatMap((filter): Case[] => [
    ['scroll_points', { filter, limit: 100, with_payload: false }],
    ['count_points', { filter, exact: true }],
    ['query_points', { query: PLOT, using: 'plot', filter, limit: 5, with_payload: ['year'] }],
  ]),
  ['count_points', { exact: true }],

  ...QUERIES.flatMap((query): Case[] => [
    ['query_points', { limit: 6, ...query }],
    ['query_points', { with_payload: true, limit: 25, ...query, filter: query.filter ?? FILTER }],
  ]),
  ...PARAMS.map((params): Case => ['query_points', { query: PLOT, using: 'plot', params }]),
  ...SELECTORS.map((selector): Case => ['query_points', { query: PLOT, using: 'plot', limit: 4, ...selector }]),
  ['query_points', { query: { sample: 'random' }, limit: 1, filter: { must: [{ has_id: [17] }] } }],
  ['query_points', { query: PLOT, using: 'plot', consistency: 1, timeout: 10 }],
  ['query_batch_points', { searches: QUERIES.map((query) => ({ limit: 3, with_payload: ['studio'], ...query })) }],
  ['query_batch_points', { searches: [] }],

  ...groupRequests().flatMap((group): Case[] => [
    ['query_points_groups', { query: PLOT, using: 'plot', ...group }],
    ['query_points_groups', { prefetch: prefetches(), query: { fusion: 'rrf' }, filter: FILTER, ...group }],
    ['search_point_groups', { vector: { name: 'plot', vector: PLOT }, ...group }],
    ['recommend_point_groups', { positive: [1, 2], negative: [3], using: 'plot', ...group }],
  ]),
  ['query_points_groups', { query: { recommend: { positive: [1] } }, using: 'sound', group_by: 'year', limit: 4, score_threshold: 2 }],

  ['search_points', { vector: { name: 'plot', vector: PLOT }, limit: 6 }],
  [
    'search_points',
    { vector: { name: 'sound', vector: SOUND }, limit: 6, offset: 2, filter: FILTER, with_payload: true, with_vector: true },
  ],
  ['search_points', { vector: { name: 'words', vector: WORDS }, limit: 6, score_threshold: 0.5, params: { exact: true } }],
  [
    'search_batch_points',
    {
      searches: [
        { vector: { name: 'plot', vector: PLOT }, limit: 2, filter: FILTER },
        { vector: { name: 'words', vector: WORDS }, limit: 3, with_payload: ['year'], with_vector: ['plot'] },
      ],
    },
  ],

  ...(['average_vector', 'best_score', 'sum_scores'] as const).map(
    (strategy): Case => ['recommend_points', { positive: [1, 2, PLOT], negative: [UUID], using: 'plot', strategy, limit: 6 }],
  ),
  ['recommend_points', { positive: [3], using: 'sound', limit: 5, offset: 1, filter: FILTER, with_payload: true, score_threshold: 1.5 }],
  ['recommend_points', { positive: [3], using: 'plot', limit: 5, lookup_from: { collection: 'more-films', vector: 'plot' } }],
  [
    'recommend_batch_points',
    {
      searches: [
        { positive: [3, 4], using: 'plot', limit: 5, with_vector: ['sound'] },
        { positive: [SOUND], negative: [1], using: 'sound', limit: 2, strategy: 'best_score' },
      ],
    },
  ],

  ['discover_points', { target: 1, context: [{ positive: 2, negative: 3 }], using: 'plot', limit: 6 }],
  ['discover_points', { target: PLOT, context: [{ positive: [0, 1, 0, 0], negative: UUID }], using: 'plot', limit: 6, with_payload: true }],
  ['discover_points', { context: [{ positive: 2, negative: 3 }], using: 'sound', limit: 6, filter: FILTER, offset: 1 }],
  [
    'discover_batch_points',
    {
      searches: [
        { target: 1, context: [{ positive: 2, negative: 3 }], using: 'plot', limit: 3 },
        { context: [{ positive: 2, negative: SOUND }], using: 'sound', limit: 2 },
      ],
    },
  ],

  ...(
    [
      ['get_points', { ids: [1], with_vector: true }],
      ['scroll_points', { limit: 3, with_vector: true }],
      ['query_points', { query: SOUND }],
      ['query_points', { query: { recommend: { positive: [1], negative: [[1, 2, 3]] } }, with_vector: true }],
      ['search_points', { vector: SOUND, limit: 3, with_vector: true }],
      ['search_batch_points', { searches: [{ vector: SOUND, limit: 3 }] }],
      ['search_point_groups', { vector: SOUND, group_by: 'year', limit: 3, group_size: 1 }],
      ['recommend_points', { positive: [1, SOUND], limit: 3 }],
      ['discover_points', { target: 1, context: [{ positive: SOUND, negative: 2 }], limit: 3 }],
      ['search_matrix_pairs', { sample: 100, limit: 2 }],
    ] as [OperationName, Args][]
  ).map(([operation, args]): Case => [operation, args, 'unnamed']),

  ['facet', { key: 'studio' }],
  ['facet', { key: 'year', limit: 5, exact: true }],
  ['facet', { key: 'colour', filter: FILTER }],
  ['facet', { key: 'reference', limit: 4, filter: FILTERS[3] as Json, exact: true }],

  // A sample of all points is no matter of chance.
  ['search_matrix_pairs', { sample: 100, limit: 3, using: 'plot' }],
  ['search_matrix_offsets', { sample: 100, limit: 3, using: 'plot' }],
  ['search_matrix_pairs', { sample: 50, limit: 2, using: 'sound', filter: FILTER }],
  ['search_matrix_offsets', { sample: 50, limit: 2, using: 'words', filter: FILTER }],
];

function groupRequests(): Args[] {
  return [
    { group_by: 'studio', limit: 3, group_size: 2 },
    { group_by: 'year', limit: 5, group_size: 1, with_payload: ['year'], with_vector: ['plot'] },
    { group_by: 'genres', limit: 4, group_size: 3 },
    { group_by: 'reference', limit: 4, group_size: 2, with_lookup: 'more-films' },
    {
      group_by: 'length',
      limit: 4,
      group_size: 3,
      with_lookup: { collection: 'more-films', with_payload: ['studio'], with_vectors: ['sound'] },
    },
  ];
}

function prefetches(): Json {
  return [
    { query: PLOT, using: 'plot', limit: 15 },
    { query: WORDS, using: 'words', limit: 10, filter: FILTERS[15] as Json },
    { query: 7, using: 'sound', limit: 10, params: { exact: true }, score_threshold: 2 },
  ];
}

function formulas(): Json[] {
  const numbers = ['$score', 'rating', 'length', 1.5];
  return [
    '$score',
    2.5,
    { sum: numbers },
    { mult: [{ neg: '$score' }, { abs: -3 }, { sqrt: 'length' }] },
    { div: { left: 'rating', right: 'nothing', by_zero_default: 2 } },
    { div: { left: 'rating', right: 'length' } },
    { pow: { base: 'rating', exponent: 2 } },
    { sum: [{ exp: '$score' }, { ln: 'length' }, { log10: 'length' }] },
    { sum: ['$score', { mult: [0.5, { key: 'colour', match: { value: true } }] }, { must: [{ key: 'year', range: { gt: 1970 } }] }] },
    { geo_distance: { origin: CENTRE, to: 'place' } },
    { exp_decay: { x: { datetime_key: 'released' }, target: { datetime: '1970-01-01T00:00:00Z' }, scale: 86_400_000, midpoint: 0.25 } },
    { gauss_decay: { x: { geo_distance: { origin: CENTRE, to: 'place' } }, scale: 5_000_000 } },
    { lin_decay: { x: 'length', target: 80, scale: 25 } },
  ];
}

function ring(west: number, south: number, east: number, north: number): Json {
  const corners = [
    [west, south],
    [east, south],
    [east, north],
    [west, north],
    [west, south],
  ] as const;
  return corners.map(([lon, lat]) => ({ lon, lat }));
}

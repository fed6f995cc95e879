/** Writing requests of every kind about the films, in the order in which they are carried out. */

import type { Args, OperationName } from './doors.js';
import { filmId } from './films.js';
import type { Json } from './values.js';

const UUID = filmId(45);
const NORTH = { must: [{ key: 'studio', match: { value: 'North' } }] };
const YEARS = { must: [{ key: 'year', range: { gte: 1970 } }] };

export const WRITES: readonly (readonly [OperationName, Args])[] = [
  // Points
  ['upsert_points', { wait: true, points: [{ id: 200, vector: {}, payload: {} }] }],
  ['upsert_points', { wait: true, ordering: 'strong', points: [{ id: 1, vector: { plot: [1, 0, 0, 0] }, payload: { year: 1999 } }] }],
  ['upsert_points', { wait: true, timeout: 10, points: [{ id: UUID, vector: { scenes: [[1, 2]] }, payload: { null: null, '': [] } }] }],
  ['upsert_points', { wait: true, update_mode: 'insert_only', points: [film(2, 'inserted'), film(201, 'inserted')] }],
  ['upsert_points', { wait: true, update_mode: 'update_only', points: [film(3, 'updated'), film(202, 'updated')] }],
  ['upsert_points', { wait: true, update_filter: NORTH, points: [film(4, 'North only'), film(5, 'North only'), film(203, 'new')] }],
  [
    'upsert_points',
    {
      wait: true,
      batch: {
        ids: [204, 205],
        vectors: {
          plot: [
            [0, 1, 0, 0],
            [0, 0, 1, 0],
          ],
          tags: [
            { indices: [9, 2], values: [1, 2] },
            { indices: [], values: [] },
          ],
        },
        payloads: [{ year: 1 }, { year: 2.5 }],
      },
    },
  ],
  ['upsert_points', { wait: true, points: [{ id: 206, vector: { words: document('the trains of the night') }, payload: { n: -0.5 } }] }],
  ['upsert_points', { wait: false, points: [film(207, 'not waited for')] }],
  ['upsert_points', { wait: true, points: [{ id: 208, vector: {}, payload: { deep: { list: [1, [2, { x: 'y' }]] }, big: 2 ** 53 - 1 } }] }],

  // Vectors
  [
    'update_vectors',
    {
      wait: true,
      points: [
        { id: 6, vector: { plot: [0, 0, 0, 1], words: { indices: [4], values: [0.5] } } },
        { id: UUID, vector: { sound: [1, 2, 3] } },
      ],
    },
  ],
  ['update_vectors', { wait: true, update_filter: NORTH, points: [vectorOf(8), vectorOf(9)] }],
  ['delete_vectors', { wait: true, points: [6, 7, UUID], vector: ['sound'] }],
  ['delete_vectors', { wait: true, filter: NORTH, vector: ['tags', 'words'], ordering: 'medium' }],

  // Payload
  ['set_payload', { wait: true, points: [1, 2, UUID], payload: { award: 'gold', year: 1980 } }],
  ['set_payload', { wait: true, filter: NORTH, payload: { seats: { free: 3 } }, key: 'rooms[].more' }],
  ['set_payload', { wait: true, points: [3], payload: { a: { b: 1 } }, key: 'deep.er' }],
  ['set_payload', { wait: true, points: [3, 4], payload: {}, ordering: 'weak' }],
  ['overwrite_payload', { wait: true, points: [10, 11], payload: { only: true, constructor: 1 } }],
  ['overwrite_payload', { wait: true, filter: { must: [{ has_id: [12] }] }, payload: {} }],
  ['delete_payload', { wait: true, points: [13, 14], keys: ['genres', 'rooms[].open'] }],
  ['delete_payload', { wait: true, filter: YEARS, keys: ['draft', 'no.such.key'] }],
  ['clear_payload', { wait: true, points: [15, UUID] }],
  ['clear_payload', { wait: true, filter: { must: [{ has_id: [16] }] } }],

  // All kinds at once
  [
    'batch_update',
    {
      wait: true,
      ordering: 'medium',
      timeout: 10,
      operations: [
        { upsert: { points: [film(300, 'batch'), film(301, 'batch'), film(302, 'batch')] } },
        { upsert: { points: [film(300, 'not again'), film(303, 'batch')], update_mode: 'insert_only' } },
        { set_payload: { points: [300], payload: { set: 1 }, key: 'in' } },
        { overwrite_payload: { points: [301], payload: { over: [1.5, 'x'] } } },
        { delete_payload: { filter: { must: [{ has_id: [302] }] }, keys: ['studio'] } },
        { clear_payload: { points: [303] } },
        { update_vectors: { points: [vectorOf(300)] } },
        { delete_vectors: { points: [301], vector: ['plot'] } },
        { delete: { points: [302] } },
        { clear_payload: { filter: { must: [{ has_id: [17] }] } } },
        { delete: { filter: { must: [{ has_id: [18, 19] }] } } },
      ],
    },
  ],

  // Payload indexes, and what they are made of
  ...indexes().map(([field_name, field_schema]): [OperationName, Args] => ['create_field_index', { field_name, field_schema, wait: true }]),
  ['delete_field_index', { field_name: 'year', wait: true }],
  ['delete_field_index', { field_name: 'no.such.field', wait: true }],

  // Vector names
  ['create_vector_name', { vector_name: 'late', dense: { size: 2, distance: 'Manhattan', datatype: 'uint8' }, wait: true }],
  [
    'create_vector_name',
    { vector_name: 'late-multi', dense: { size: 2, distance: 'Dot', multivector_config: { comparator: 'max_sim' } }, wait: true },
  ],
  ['create_vector_name', { vector_name: 'late-sparse', sparse: { modifier: 'idf' }, wait: true }],
  ['update_vectors', { wait: true, points: [{ id: 1, vector: { late: [1, 255], 'late-sparse': { indices: [5], values: [1] } } }] }],
  ['delete_vector_name', { vector_name: 'scenes', wait: true }],
  ['upsert_points', { wait: true, points: [{ id: 2, vector: { 'late-multi': [[1, 2]] }, payload: {} }] }],

  // Gone
  ['delete_points', { wait: true, points: [1, 20, UUID, 9999] }],
  ['delete_points', { wait: true, filter: NORTH }],
  ['delete_points', { wait: false, points: [2] }],
  // Its place is behind the deletion; a batch without operations has none, and waits for nothing.
  ['delete_points', { wait: true, points: [2] }],
  ['batch_update', { wait: true, operations: [] }],
];

function film(id: number, title: string): Json {
  return { id, vector: { plot: [id / 100, 1, 0, -0.5], sound: [0.25, 0, id] }, payload: { title, studio: 'new' } };
}

function vectorOf(id: number): Json {
  return { id, vector: { plot: [-id, 1, 1, 1] } };
}

function document(text: string): Json {
  return { text, model: 'qdrant/bm25', options: { language: 'english' } };
}

/** Indexes of all types with all parameters. */
function indexes(): [string, Json][] {
  const kinds = ['keyword', 'integer', 'float', 'geo', 'text', 'bool', 'datetime', 'uuid'];
  return [
    ...kinds.map((kind): [string, Json] => [`plain-${kind}`, kind]),
    ['studio', { type: 'keyword', is_tenant: true, on_disk: true, enable_hnsw: false }],
    ['year', { type: 'integer', lookup: true, range: false, is_principal: true, on_disk: true, enable_hnsw: true }],
    ['rating', { type: 'float', is_principal: true, on_disk: true, enable_hnsw: false }],
    ['place', { type: 'geo', on_disk: true, enable_hnsw: false }],
    ['colour', { type: 'bool', on_disk: true, enable_hnsw: false }],
    ['released', { type: 'datetime', on_disk: true, is_principal: true, enable_hnsw: false }],
    ['reference', { type: 'uuid', on_disk: true, is_tenant: true, enable_hnsw: false }],
    [
      'summary',
      {
        type: 'text',
        tokenizer: 'multilingual',
        lowercase: false,
        min_token_len: 1,
        max_token_len: 9,
        phrase_matching: true,
        ascii_folding: true,
        stopwords: { languages: ['english', 'german'], custom: ['film'] },
        stemmer: { type: 'snowball', language: 'english' },
        on_disk: true,
        enable_hnsw: false,
      },
    ],
    ['studio', { type: 'text', tokenizer: 'prefix', stopwords: { languages: ['french'] } }],
    ['genres[]', { type: 'text', tokenizer: 'whitespace' }],
  ];
}

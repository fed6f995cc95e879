/** Points with vectors of every kind and payloads of every kind, the same on every run. */

import { seededRandom } from '../../../ops/random.js';
import type { Args } from './doors.js';
import type { Json } from './values.js';

export const FILM_COUNT = 60;

export const FILMS_SETTINGS: Args = {
  vectors: {
    plot: { size: 4, distance: 'Cosine' },
    sound: { size: 3, distance: 'Euclid', datatype: 'float16' },
    scenes: { size: 2, distance: 'Dot', multivector_config: { comparator: 'max_sim' } },
  },
  sparse_vectors: { words: { modifier: 'idf' }, tags: { index: { on_disk: true } }, spoken: { modifier: 'idf' } },
};

/** Indexes of payload fields by their schema; `length`, `draft` and `rooms` stay without. */
export const FILM_INDEXES: readonly (readonly [string, Json])[] = [
  ['studio', { type: 'keyword', is_tenant: false, on_disk: false }],
  ['year', { type: 'integer', lookup: true, range: true, is_principal: false, on_disk: false }],
  ['rating', { type: 'float', on_disk: false }],
  ['released', { type: 'datetime', on_disk: true }],
  ['reference', 'uuid'],
  ['place', { type: 'geo', on_disk: false }],
  ['colour', 'bool'],
  [
    'summary',
    {
      type: 'text',
      tokenizer: 'word',
      lowercase: true,
      min_token_len: 2,
      max_token_len: 20,
      phrase_matching: true,
      ascii_folding: true,
      stopwords: { languages: ['english'], custom: ['film'] },
      stemmer: { type: 'snowball', language: 'english' },
      on_disk: false,
    },
  ],
];

const STUDIOS = ['North', 'South', 'Émile', '東京'];
const WORDS = ['a quiet river', 'the café at night', 'rivers and mountains', 'a film about a mountain', 'night train', 'the last café'];

/** Points 1 to 40, and as many with UUIDs as are left. */
export const FILMS: readonly Args[] = films();

export function filmId(at: number): number | string {
  return at <= 40 ? at : `00000000-0000-4000-8000-${String(at).padStart(12, '0')}`;
}

function films(): Args[] {
  const random = seededRandom(11).unit;
  const numbers = (count: number) => Array.from({ length: count }, () => Math.fround(random() * 2 - 1));
  return Array.from({ length: FILM_COUNT }, (_, index) => {
    const at = index + 1;
    const vector: Args = { plot: numbers(4), sound: numbers(3), scenes: Array.from({ length: 1 + (at % 3) }, () => numbers(2)) };
    vector.spoken = { text: WORDS[at % 6] as string, model: 'qdrant/bm25' };
    // Not every point has every vector.
    if (at % 5 !== 0) vector.words = { indices: [at % 7, 7 + (at % 3), 20], values: numbers(3).map((value) => Math.abs(value) + 0.1) };
    if (at % 4 === 0) vector.tags = { indices: [1, 3_000_000_000], values: numbers(2) };
    return { id: filmId(at), vector, payload: payloadOf(at, random) };
  });
}

function payloadOf(at: number, random: () => number): Args {
  const payload: Args = {
    studio: STUDIOS[at % 4] as string,
    year: 1960 + (at % 20),
    rating: at % 6 === 0 ? at / 10 : Math.round(random() * 1000) / 100,
    released: `19${60 + (at % 20)}-0${1 + (at % 9)}-1${at % 10}T0${at % 10}:00:00Z`,
    reference: `11111111-1111-4111-8111-00000000000${at % 10}`,
    place: { lon: random() * 360 - 180, lat: random() * 160 - 80 },
    colour: at % 3 === 0,
    summary: WORDS[at % 6] as string,
    length: 60 + at,
    genres: at % 2 === 0 ? ['drama', STUDIOS[at % 3] as string] : ['comedy'],
    rooms: [
      { name: 'hall', seats: at * 10, open: at % 2 === 0 },
      { name: 'cellar', seats: 500 - at * 5, open: true },
    ],
    __proto__x: at,
  };
  if (at % 7 === 0) payload.draft = null;
  if (at % 7 === 1) payload.draft = [];
  if (at % 7 === 2) payload.draft = { deep: [1.5, -3, 'x', [true, null]] };
  return payload;
}

/** Random payloads and filters that meet often: few keys, few values, and every kind of condition. */

import fc from 'fast-check';
import type { FieldSchema, FieldType } from '../../../protocols/model/collection.js';
import type { Condition, FieldCondition, Filter, GeoArea, GeoPoint, Match, Range } from '../../../protocols/model/filter.js';
import type { JsonValue, Payload } from '../../../protocols/model/payload.js';
import type { PointId } from '../../../protocols/model/point-id.js';

export const UUID = '550e8400-e29b-41d4-a716-446655440000';

const SCALARS: readonly JsonValue[] = [
  null,
  true,
  false,
  0,
  1,
  2,
  1.5,
  -3,
  2 ** 53,
  9007199254740993n,
  9007199254740995n,
  -9007199254740993n,
  'a',
  'b',
  'é',
  '\ud800',
  '2024-01-01',
  '2024-01-01T00:00:00Z',
  '2024-06-01 10:00:00',
  'The quick fox',
  'quick, fox',
  'fox QUICK',
  '!',
  UUID,
  UUID.replaceAll('-', '').toUpperCase(),
];

export const KEYS = ['k', 'k.j', 'k[]', 'k[].j', 'k[0]', 'm', '__proto__', '"d.t"'] as const;

/** Places that meet: poles, the antimeridian from both sides, corners of the areas below; and objects that are no places. */
const LONS = [-180, -179.5, -170, -10, 0, 5, 10, 90, 170, 179.9, 180];
const LATS = [-90, -89, -45, 0, 5, 10, 60, 89.5, 90];
const place = fc.record({ lon: fc.constantFrom(...LONS), lat: fc.constantFrom(...LATS) });
const placeLike: fc.Arbitrary<JsonValue> = fc.oneof(
  { weight: 6, arbitrary: place },
  { weight: 1, arbitrary: fc.constantFrom<JsonValue>({ lon: 5 }, { lon: '5', lat: 5 }, { lon: 5n, lat: 5, name: 'x' }) },
);

const scalar = fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...SCALARS) }, { weight: 1, arbitrary: placeLike });
const inner: fc.Arbitrary<JsonValue> = fc.oneof(
  { weight: 5, arbitrary: scalar },
  { weight: 2, arbitrary: fc.array(scalar, { maxLength: 3 }) },
  { weight: 2, arbitrary: scalar.map((j): JsonValue => ({ j })) },
  {
    weight: 1,
    arbitrary: fc.array(
      fc.oneof(
        scalar,
        scalar.map((j): JsonValue => ({ j })),
        fc.constant<JsonValue>([1]),
      ),
      { maxLength: 3 },
    ),
  },
);

/** Own properties of every name: `__proto__` is data. */
export const payload: fc.Arbitrary<Payload> = fc
  .array(fc.tuple(fc.constantFrom('k', 'm', '__proto__', 'd.t'), inner), { maxLength: 4 })
  .map((entries) => Object.fromEntries(entries) as Payload);

export interface Row {
  readonly id: PointId;
  readonly payload: Payload;
  readonly vectors: readonly string[];
}

export const rows: fc.Arbitrary<Row[]> = fc
  .array(fc.tuple(payload, fc.subarray(['', 'v'])), { maxLength: 70 })
  .map((list) => list.map(([one, vectors], at) => ({ id: at, payload: one, vectors })));

const key = fc.constantFrom<string>(...KEYS);
const word = fc.constantFrom('a', 'b', 'é', '\ud800', '2024-01-01', UUID, UUID.replaceAll('-', ''));
const integer = fc.constantFrom<number | bigint>(0, 1, 2, -3, 9007199254740993n, -9007199254740993n, 9007199254740994n);
const list = fc.oneof(fc.array(word, { maxLength: 3 }), fc.array(integer, { maxLength: 3 }));

const text = fc.constantFrom('quick', 'qui', 'FOX', 'fox quick', 'quick fox', 'the quick', 'The', '', '!', 'a', '\ud800', 'zebra fox');

const match: fc.Arbitrary<Match> = fc.oneof(
  fc.record({ kind: fc.constantFrom('text' as const, 'textAny' as const, 'phrase' as const), text }),
  fc.oneof(word, integer, fc.boolean()).map((value): Match => ({ kind: 'value', value })),
  list.map((values): Match => ({ kind: 'any', values })),
  list.map((values): Match => ({ kind: 'except', values })),
);

/** Bounds that lie on values, between them and beyond them. */
function range(bounds: readonly number[]): fc.Arbitrary<Range> {
  const bound = fc.option(fc.constantFrom(...bounds), { nil: undefined, freq: 2 });
  return fc.record({ lt: bound, lte: bound, gt: bound, gte: bound });
}

const ring: fc.Arbitrary<GeoPoint[]> = fc.array(place, { minLength: 3, maxLength: 5 }).map((points) => [...points, points[0] as GeoPoint]);

export const area: fc.Arbitrary<GeoArea> = fc.oneof(
  fc.record({ kind: fc.constant('box' as const), topLeft: place, bottomRight: place }),
  fc.record({
    kind: fc.constant('circle' as const),
    center: place,
    radius: fc.constantFrom(-5, 0, 1000, 60_000, 1_200_000, 5_000_000, 1e8),
  }),
  fc.record({ kind: fc.constant('polygon' as const), exterior: ring, interiors: fc.array(ring, { maxLength: 1 }) }),
);

const DAY = Date.UTC(2024, 0, 1) * 1000;

export const fieldCondition: fc.Arbitrary<FieldCondition> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('match' as const), key, match }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('range' as const), key, range: range([-4, -3, 0, 1, 1.25, 2, 2 ** 53, 1e300, DAY]) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('datetimeRange' as const), key, range: range([0, DAY, DAY + 1, 4e15]) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('geo' as const), key, area }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('valuesCount' as const), key, range: range([0, 1, 2]) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('fieldIsEmpty' as const), key, isEmpty: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('fieldIsNull' as const), key, isNull: fc.boolean() }) },
);

export const filter: fc.Arbitrary<Filter> = fc.letrec<{ filter: Filter; condition: Condition }>((tie) => ({
  filter: fc.record({
    must: fc.array(tie('condition'), { maxLength: 2 }),
    should: fc.array(tie('condition'), { maxLength: 2 }),
    mustNot: fc.array(tie('condition'), { maxLength: 2 }),
    minShould: fc.option(
      fc.record({ conditions: fc.array(tie('condition'), { minLength: 1, maxLength: 4 }), minCount: fc.integer({ min: 0, max: 5 }) }),
      {
        nil: null,
        freq: 3,
      },
    ),
  }),
  condition: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    { weight: 8, arbitrary: fieldCondition as fc.Arbitrary<Condition> },
    { weight: 1, arbitrary: key.map((one): Condition => ({ kind: 'isEmpty', key: one })) },
    { weight: 1, arbitrary: key.map((one): Condition => ({ kind: 'isNull', key: one })) },
    { weight: 1, arbitrary: fc.array(fc.nat(70), { maxLength: 4 }).map((ids): Condition => ({ kind: 'hasId', ids })) },
    { weight: 1, arbitrary: fc.constantFrom('', 'v', 'w').map((name): Condition => ({ kind: 'hasVector', name })) },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('nested' as const), key: fc.constantFrom('k', 'k[]', 'm'), filter: tie('filter') }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('filter' as const), filter: tie('filter') }) },
  ),
})).filter;

export const schema: fc.Arbitrary<FieldSchema> = fc.constantFrom<FieldSchema>(
  ...(['keyword', 'integer', 'float', 'bool', 'datetime', 'uuid', 'geo', 'text', 'text'] as FieldType[]).map((type) => ({ type })),
  { type: 'text', params: { tokenizer: 'prefix', min_token_len: 2, phrase_matching: true } },
  {
    type: 'text',
    params: { tokenizer: 'word', stopwords: 'english', stemmer: { type: 'snowball', language: 'english' }, phrase_matching: true },
  },
  { type: 'integer', params: { lookup: false, range: true } },
  { type: 'integer', params: { lookup: true, range: false } },
);

/** Some fields with an index. */
export const schemas: fc.Arbitrary<ReadonlyMap<string, FieldSchema>> = fc
  .array(fc.tuple(fc.constantFrom<string>('k', 'k.j', 'k[]', 'k[].j', 'm', '__proto__', 'm[].j'), schema), { maxLength: 5 })
  .map((entries) => new Map(entries));

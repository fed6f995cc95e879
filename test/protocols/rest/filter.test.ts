import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ErrorCode, TroupeError } from '../../../protocols/errors.js';
import { parseJson } from '../../../protocols/json.js';
import { decodeFilter, decodeKey } from '../../../protocols/rest/filter.js';

const RING = [
  { lon: 0, lat: 0 },
  { lon: 9, lat: 0 },
  { lon: 9, lat: 9 },
  { lon: 0, lat: 0 },
];
const OPEN_RING = [...RING.slice(0, 3), { lon: 0, lat: 9 }];

const EMPTY = { must: [], should: [], mustNot: [], minShould: null };

test('no filter is null, an empty one lets everything through', () => {
  assert.equal(decodeFilter(undefined, 'filter'), null);
  assert.equal(decodeFilter(null, 'filter'), null);
  assert.deepEqual(decodeFilter({}, 'filter'), EMPTY);
  assert.deepEqual(decodeFilter({ must: null, should: [], must_not: null, min_should: null }, 'filter'), EMPTY);
});

/** [condition as sent, condition of the model]. */
const DECODED: readonly [string, object][] = [
  ['{"key":"a","match":{"value":"x"}}', { kind: 'match', key: 'a', match: { kind: 'value', value: 'x' } }],
  ['{"key":"a","match":{"value":true}}', { kind: 'match', key: 'a', match: { kind: 'value', value: true } }],
  ['{"key":"a","match":{"value":9223372036854775807}}', { kind: 'match', key: 'a', match: { kind: 'value', value: 9223372036854775807n } }],
  ['{"key":"a","match":{"any":["x","y"]}}', { kind: 'match', key: 'a', match: { kind: 'any', values: ['x', 'y'] } }],
  ['{"key":"a","match":{"except":[1,2]}}', { kind: 'match', key: 'a', match: { kind: 'except', values: [1, 2] } }],
  ['{"key":"a","match":{"value":1,"any":[2]}}', { kind: 'match', key: 'a', match: { kind: 'value', value: 1 } }],
  ['{"key":"\\"a\\"","match":{"any":[]}}', { kind: 'match', key: 'a', match: { kind: 'any', values: [] } }],
  ['{"key":"a","range":{"gt":1,"lte":2.5,"lt":null}}', { kind: 'range', key: 'a', range: { gt: 1, lte: 2.5 } }],
  ['{"key":"a","range":{"gte":"1970-01-01T00:00:01Z","lt":null}}', { kind: 'datetimeRange', key: 'a', range: { gte: 1e6 } }],
  ['{"key":"a","values_count":{"gte":2}}', { kind: 'valuesCount', key: 'a', range: { gte: 2 } }],
  ['{"key":"a","is_empty":false}', { kind: 'fieldIsEmpty', key: 'a', isEmpty: false }],
  ['{"key":"a","is_null":true}', { kind: 'fieldIsNull', key: 'a', isNull: true }],
  ['{"is_empty":{"key":"a.b"}}', { kind: 'isEmpty', key: 'a.b' }],
  ['{"is_null":{"key":"a[]"}}', { kind: 'isNull', key: 'a[]' }],
  [
    '{"has_id":[1,18446744073709551615,"550E8400e29b41d4a716446655440000"]}',
    { kind: 'hasId', ids: [1, 18446744073709551615n, '550e8400-e29b-41d4-a716-446655440000'] },
  ],
  ['{"has_vector":""}', { kind: 'hasVector', name: '' }],
  ['{"nested":{"key":"a","filter":{}}}', { kind: 'nested', key: 'a', filter: EMPTY }],
  ['{}', { kind: 'filter', filter: EMPTY }],
  ['{"must":[]}', { kind: 'filter', filter: EMPTY }],
];

for (const [text, condition] of DECODED) {
  test(`${text} is decoded`, () => {
    assert.deepEqual(decodeFilter({ must: [parseJson(text)] }, 'filter')?.must, [condition]);
    assert.deepEqual(decodeFilter({ must_not: parseJson(text) }, 'filter')?.mustNot, [condition], 'a single condition stands for a list');
  });
}

test('two tests in one condition must both hold', () => {
  const filter = decodeFilter({ should: [{ key: 'n', match: { value: 1 }, range: { gt: 0 } }] }, 'filter');
  const [condition] = filter?.should ?? [];
  assert.ok(condition?.kind === 'filter');
  assert.deepEqual(
    condition.filter.must.map((one) => one.kind),
    ['match', 'range'],
  );
});

test('min_should without conditions lets everything through, whatever its count', () => {
  assert.equal(decodeFilter({ min_should: { conditions: [], min_count: 1 } }, 'filter')?.minShould, null);
  assert.equal(decodeFilter({ min_should: { conditions: [{}], min_count: 2 } }, 'filter')?.minShould?.minCount, 2);
});

/** [filter as sent, code, part of the message]. */
const REFUSED: readonly [string, ErrorCode, string][] = [
  ['[]', 'malformedBody', '`filter`: invalid type: a sequence'],
  ['{"musty":[]}', 'malformedBody', 'unknown field `musty`'],
  ['{"__proto__":[]}', 'malformedBody', 'unknown field `__proto__`'],
  ['{"must":"n"}', 'malformedBody', '`filter.must`'],
  ['{"must":[1]}', 'malformedBody', '`filter.must[0]`'],
  ['{"must":[{"match":{"value":1}}]}', 'malformedBody', 'missing field `key`'],
  ['{"must":[{"key":"n"}]}', 'invalidValue', 'filter.must[0]'],
  ['{"must":[{"key":"n","match":null}]}', 'invalidValue', 'filter.must[0]'],
  ['{"must":[{"key":"","match":{"value":1}}]}', 'malformedBody', "Invalid json path: ''"],
  ['{"must":[{"key":5,"match":{"value":1}}]}', 'malformedBody', '`filter.must[0].key`'],
  ['{"must":[{"key":"n","match":{}}]}', 'malformedBody', 'expected one of `value`'],
  ['{"must":[{"key":"n","match":"x"}]}', 'malformedBody', '`filter.must[0].match`'],
  ['{"must":[{"key":"n","match":{"value":1.5}}]}', 'malformedBody', 'use `range` for floats'],
  ['{"must":[{"key":"n","match":{"value":null}}]}', 'malformedBody', 'match.value'],
  ['{"must":[{"key":"n","match":{"value":18446744073709551615}}]}', 'malformedBody', 'match.value'],
  ['{"must":[{"key":"n","match":{"any":[1,"a"]}}]}', 'malformedBody', 'match.any'],
  ['{"must":[{"key":"n","match":{"any":[true]}}]}', 'malformedBody', 'match.any'],
  ['{"must":[{"key":"n","match":{"any":1}}]}', 'malformedBody', 'match.any'],
  ['{"must":[{"key":"n","match":{"text":5}}]}', 'malformedBody', 'match.text'],
  ['{"must":[{"key":"n","match":{"text_any":["a"]}}]}', 'malformedBody', 'match.text_any'],
  ['{"must":[{"key":"n","match":{"phrase":null}}]}', 'malformedBody', 'match.phrase'],
  ['{"must":[{"key":"n","geo_radius":5}]}', 'malformedBody', 'geo_radius'],
  ['{"must":[{"key":"n","geo_radius":{}}]}', 'malformedBody', 'geo_radius.center'],
  ['{"must":[{"key":"n","geo_radius":{"center":{"lon":0,"lat":0}}}]}', 'malformedBody', 'geo_radius.radius'],
  ['{"must":[{"key":"n","geo_radius":{"center":{"lon":0,"lat":90.1},"radius":1}}]}', 'malformedBody', '[-90;90]'],
  ['{"must":[{"key":"n","geo_bounding_box":{"top_left":{"lon":0,"lat":1}}}]}', 'malformedBody', 'bottom_right'],
  [
    '{"must":[{"key":"n","geo_bounding_box":{"top_left":{"lon":"0","lat":1},"bottom_right":{"lon":1,"lat":0}}}]}',
    'malformedBody',
    'top_left.lon',
  ],
  ['{"must":[{"key":"n","geo_polygon":{}}]}', 'malformedBody', 'exterior'],
  ['{"must":[{"key":"n","geo_polygon":{"exterior":{"points":[]}}}]}', 'malformedBody', 'at least 4, got 0'],
  [`{"must":[{"key":"n","geo_polygon":{"exterior":{"points":${JSON.stringify(OPEN_RING)}}}}]}`, 'malformedBody', 'closed line'],
  [
    `{"must":[{"key":"n","geo_polygon":{"exterior":{"points":${JSON.stringify(RING)}},"interiors":[{"points":[]}]}}]}`,
    'malformedBody',
    'interiors[0]',
  ],
  ['{"must":[{"key":"n","range":[1]}]}', 'malformedBody', 'range'],
  ['{"must":[{"key":"n","range":{}}]}', 'malformedBody', 'has no bound'],
  ['{"must":[{"key":"n","range":{"lt":null}}]}', 'malformedBody', 'has no bound'],
  ['{"must":[{"key":"n","range":{"above":5}}]}', 'malformedBody', 'unknown field `above` (did you mean `gt`?)'],
  ['{"must":[{"key":"n","range":{"gt":1,"greater_than":100}}]}', 'malformedBody', 'did you mean `gt`?'],
  ['{"must":[{"key":"n","range":{"$lte":5}}]}', 'malformedBody', 'did you mean `lte`?'],
  ['{"must":[{"key":"n","values_count":{"min":1}}]}', 'malformedBody', 'did you mean `gte`?'],
  ['{"must":[{"key":"n","match":{"value":1,"vlaue":2}}]}', 'malformedBody', 'did you mean `value`?'],
  ['{"must":[{"key":"n","matches":{"value":1}}]}', 'malformedBody', '`filter.must[0]`: unknown field `matches` (did you mean `match`?)'],
  ['{"must":[{"key":"n","match":{"value":1},"ragne":{"gt":1}}]}', 'malformedBody', 'did you mean `range`?'],
  ['{"must":[{"has_ids":[1]}]}', 'malformedBody', 'did you mean `has_id`?'],
  ['{"must":[{"has_id":[1],"wherever":1}]}', 'malformedBody', 'unknown field `wherever`, expected'],
  ['{"must":[{"is_empty":{"key":"a","of":1}}]}', 'malformedBody', 'unknown field `of`'],
  ['{"must":[{"nested":{"key":"a","filter":{},"must":[]}}]}', 'malformedBody', 'unknown field `must`'],
  ['{"min_should":{"conditions":[{}],"min_count":1,"max_count":2}}', 'malformedBody', 'unknown field `max_count`'],
  [`{"must":[{"key":"${'a.'.repeat(128)}b","match":{"value":1}}]}`, 'malformedBody', 'has 129 steps'],
  ['{"must":[{"key":"n","range":{"gt":true}}]}', 'malformedBody', 'range.gt'],
  ['{"must":[{"key":"n","range":{"gt":"abc"}}]}', 'malformedBody', 'RFC3339'],
  ['{"must":[{"key":"n","range":{"gt":"2024-01-01","lt":5}}]}', 'malformedBody', 'range.lt'],
  ['{"must":[{"key":"n","values_count":{"gt":-1}}]}', 'malformedBody', 'values_count.gt'],
  ['{"must":[{"key":"n","values_count":{"gt":0.5}}]}', 'malformedBody', 'values_count.gt'],
  ['{"must":[{"has_id":1}]}', 'malformedBody', 'has_id'],
  ['{"must":[{"has_id":["abc"]}]}', 'malformedBody', 'not a valid point ID'],
  ['{"must":[{"has_id":[-1]}]}', 'malformedBody', 'not a valid point ID'],
  ['{"must":[{"has_vector":["a"]}]}', 'malformedBody', 'has_vector'],
  ['{"must":[{"is_empty":{}}]}', 'malformedBody', 'is_empty.key'],
  ['{"must":[{"is_empty":"x"}]}', 'malformedBody', 'is_empty'],
  ['{"must":[{"nested":{"filter":{}}}]}', 'malformedBody', 'nested.key'],
  ['{"must":[{"nested":{"key":"a"}}]}', 'malformedBody', 'nested.filter'],
  ['{"must":[{"has_id":[1],"must_not":[{"has_id":[2]}]}]}', 'malformedBody', '`must_not` cannot be combined'],
  ['{"must":[{"key":"a","match":{"value":1},"must":[]}]}', 'malformedBody', '`must` cannot be combined'],
  ['{"min_should":[{}]}', 'malformedBody', 'min_should'],
  ['{"min_should":{"conditions":[{}]}}', 'malformedBody', 'missing field `min_count`'],
  ['{"min_should":{"conditions":[{}],"min_count":-1}}', 'malformedBody', 'min_count'],
];

for (const [text, code, part] of REFUSED) {
  test(`${text} is refused with ${code}`, () => {
    assert.throws(
      () => decodeFilter(parseJson(text), 'filter'),
      (error: unknown) => error instanceof TroupeError && error.code === code && error.detail.includes(part),
    );
  });
}

test('filters are read 64 levels deep, and refused beyond', () => {
  const nested = (levels: number) => parseJson(`${'{"must":['.repeat(levels - 1)}{}${']}'.repeat(levels - 1)}`);
  assert.notEqual(decodeFilter(nested(64), 'filter'), null);
  for (const levels of [65, 100_000])
    assert.throws(() => decodeFilter(nested(levels), 'filter'), /filters are nested deeper than 64 levels/);
  const inside = (levels: number) => parseJson(`${'{"must":[{"nested":{"key":"a","filter":'.repeat(levels)}{}${'}}]}'.repeat(levels)}`);
  assert.notEqual(decodeFilter(inside(63), 'filter'), null);
  assert.throws(() => decodeFilter(inside(64), 'filter'), /filters are nested deeper than 64 levels/);
});

test('a key comes out in canonical spelling, and a broken one is refused by name', () => {
  assert.equal(decodeKey('"a"[]."b.c"', 'key'), 'a[]."b.c"');
  assert.throws(() => decodeKey('a..b', 'key'), /Invalid json path: 'a\.\.b'/);
});

test('areas are decoded to the model, several of one condition as a filter of all', () => {
  const point = { lon: 1, lat: 2 };
  const condition = {
    key: 'n',
    geo_bounding_box: { top_left: point, bottom_right: { lon: 3, lat: 0 } },
    geo_radius: { center: point, radius: 5 },
    geo_polygon: { exterior: { points: RING }, interiors: [{ points: RING }] },
  };
  const filter = decodeFilter({ must: [condition] }, 'filter');
  const all = filter?.must[0];
  assert.equal(all?.kind, 'filter');
  assert.deepEqual(all?.kind === 'filter' && all.filter.must, [
    { kind: 'geo', key: 'n', area: { kind: 'box', topLeft: point, bottomRight: { lon: 3, lat: 0 } } },
    { kind: 'geo', key: 'n', area: { kind: 'circle', center: point, radius: 5 } },
    { kind: 'geo', key: 'n', area: { kind: 'polygon', exterior: RING, interiors: [RING] } },
  ]);
});

test('full-text matches are decoded to the model', () => {
  const kinds = { text: 'text', text_any: 'textAny', phrase: 'phrase' };
  for (const [name, kind] of Object.entries(kinds)) {
    const filter = decodeFilter({ must: { key: 'n', match: { [name]: 'a b' } } }, 'filter');
    assert.deepEqual(filter?.must, [{ kind: 'match', key: 'n', match: { kind, text: 'a b' } }]);
  }
});

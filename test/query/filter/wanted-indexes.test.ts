import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FieldSchema } from '../../../protocols/model/collection.js';
import type { Filter } from '../../../protocols/model/filter.js';
import { decodeFilter } from '../../../protocols/rest/filter.js';
import { evaluateFilter } from '../../../query/filter/evaluate.js';
import { wantedIndexes } from '../../../query/filter/wanted-indexes.js';
import { sourceOf } from './support.js';

const SCHEMAS = new Map<string, FieldSchema>([['known', { type: 'keyword' }]]);

function wanted(...must: readonly object[]): string[] {
  const filter = decodeFilter({ must: must as never }, 'filter') as Filter;
  return wantedIndexes(filter.must, (field) => SCHEMAS.get(field)).map(({ field, type }) => `${field} ${type}`);
}

test('the type of the index that a condition lacks follows from what it compares with', () => {
  assert.deepEqual(wanted({ key: 'a', match: { value: 'x' } }, { key: 'b', match: { value: 3 } }, { key: 'c', match: { value: true } }), [
    'a keyword',
    'b integer',
    'c bool',
  ]);
  assert.deepEqual(wanted({ key: 'a', match: { any: ['x'] } }, { key: 'b', match: { except: [3] } }, { key: 'c', match: { text: 'x' } }), [
    'a keyword',
    'b integer',
    'c text',
  ]);
  assert.deepEqual(wanted({ key: 'a', range: { gt: 1 } }, { key: 'b', range: { gt: '2024-01-01T00:00:00Z' } }), ['a float', 'b datetime']);
  assert.deepEqual(wanted({ key: 'a', geo_radius: { center: { lon: 1, lat: 1 }, radius: 5 } }), ['a geo']);
});

test('conditions in filters and nested conditions want indexes by their whole path, each field once', () => {
  const nested = { nested: { key: 'diet', filter: { must: [{ key: 'food', match: { value: 'meat' } }] } } };
  assert.deepEqual(
    wanted(nested, {
      should: [
        { key: 'a', match: { value: 'x' } },
        { key: 'a', match: { value: 'y' } },
      ],
    }),
    ['diet[].food keyword', 'a keyword'],
  );
});

test('fields with an index want none, and neither do conditions that tell no type', () => {
  assert.deepEqual(wanted({ key: 'known', match: { value: 'x' } }, { is_empty: { key: 'a' } }, { key: 'b', values_count: { gt: 1 } }), []);
  assert.deepEqual(wanted({ has_id: [1] }), []);
});

test('a scan begins with the conditions that no index has decided, and ends also when it is given up', () => {
  const rows = Array.from({ length: 600 }, (_, id) => ({ id, payload: { known: `${id % 2}`, free: id % 3 }, vectors: [] }));
  const filter = decodeFilter(
    {
      must: [
        { key: 'known', match: { value: '1' } },
        { key: 'free', match: { value: 1 } },
      ],
    },
    'filter',
  ) as Filter;
  const told: string[] = [];
  let looks = 0;
  const source = {
    ...sourceOf(rows, SCHEMAS, 'sealed'),
    beginScan: (conditions: Parameters<typeof wantedIndexes>[0], count: number) => {
      told.push(`${conditions.length} ${count}`);
      return () => told.push('ended');
    },
  };
  evaluateFilter(filter, source);
  assert.deepEqual(told.splice(0), ['1 300', 'ended']);
  const stopped = {
    ...source,
    checkpoint: () => {
      // The looks of the conditions come first.
      if (++looks > 4) throw new Error('the time is over');
    },
  };
  assert.throws(() => evaluateFilter(filter, stopped), /the time is over/);
  assert.deepEqual(told, ['1 300', 'ended']);
});

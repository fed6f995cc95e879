import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { canFacet, compareValues, topValues } from '../../query/facet.js';
import type { TermValue } from '../../query/filter/lookup.js';
import { seeded } from './property.js';

test('frequent values come first, and smaller ones among equally frequent ones', () => {
  const counts = new Map<TermValue, number>([
    [3, 1],
    [-4, 1],
    [1, 4],
    [2, 2],
    [9007199254740993n, 1],
  ]);
  assert.deepEqual(
    topValues(counts, 4).map(({ value, count }) => [value, count]),
    [
      [1, 4],
      [2, 2],
      [-4, 1],
      [3, 1],
    ],
  );
});

test('the top of many values is the top of all of them sorted', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(9), { minLength: 3000, maxLength: 4000 }), fc.integer({ min: 1, max: 700 }), (numbers, limit) => {
      const counts = new Map<TermValue, number>(numbers.map((count, value) => [(value * 7919) % 4001, count + 1]));
      const sorted = [...counts]
        .map(([value, count]) => ({ value, count }))
        .sort((a, b) => b.count - a.count || Number(a.value) - Number(b.value));
      assert.deepEqual(topValues(counts, limit), sorted.slice(0, limit));
    }),
    seeded(30),
  );
});

test('texts order as their UTF-8 does', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (a, b) => {
      assert.equal(Math.sign(compareValues(a, b)), Buffer.compare(Buffer.from(a), Buffer.from(b)));
    }),
    seeded(1000),
  );
  assert.ok(compareValues('\uffff', '😀') < 0);
});

test('values are counted where an index can match them', () => {
  for (const type of ['keyword', 'uuid', 'bool', 'integer'] as const) assert.ok(canFacet({ type }));
  for (const type of ['float', 'datetime', 'text', 'geo'] as const) assert.ok(!canFacet({ type }));
  assert.ok(!canFacet({ type: 'integer', params: { lookup: false, range: true } }));
});

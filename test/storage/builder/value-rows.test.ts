import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import type { FieldSchema } from '../../../protocols/model/collection.js';
import type { Payload } from '../../../protocols/model/payload.js';
import { frequentValues, placeValues, tenantOf, ValueCollector } from '../../../storage/builder/value-rows.js';
import { seeded } from '../../query/property.js';

function valuesOf(fields: readonly (readonly [string, FieldSchema])[], payloads: readonly Payload[]): ValueCollector['fields'] {
  const collector = new ValueCollector(fields);
  payloads.forEach((payload, row) => {
    collector.add(row, payload);
  });
  return collector.fields;
}

test('values are those that an index of the field has, as text, and only those of enough rows, the largest first', () => {
  const fields = valuesOf(
    [
      ['a.b', { type: 'integer' }],
      ['c', { type: 'uuid' }],
      ['d[]', { type: 'bool' }],
    ],
    [
      { a: { b: 5 }, c: '{BBBBBBBB-1111-4222-8333-444444444444}', d: [true, false, true] },
      { a: { b: [5, 6, 6] }, c: 'bbbbbbbb111142228333444444444444', d: [true] },
      { a: { b: '5' }, c: 'no', d: [] },
      { a: { b: 6 } },
      { a: { b: 6 } },
    ],
  );
  const found = frequentValues(fields, 2).map(({ field, value, rows }) => `${field} = ${value}: ${rows.join(' ')}`);
  assert.deepEqual(found, ['a.b = 6: 1 3 4', 'a.b = 5: 0 1', 'c = bbbbbbbb-1111-4222-8333-444444444444: 0 1', 'd[] = true: 0 1']);
});

test('values longer than anything that many rows share have no rows', () => {
  const fields = valuesOf([['k', { type: 'keyword' }]], [{ k: 'x'.repeat(513) }, { k: 'x'.repeat(512) }]);
  assert.deepEqual(
    frequentValues(fields, 1).map(({ value }) => value.length),
    [512],
  );
});

test('values that share a layer have no row in common, and only values that would need a further one are left out', () => {
  const values = fc.array(fc.uniqueArray(fc.nat(30), { minLength: 1, maxLength: 12 }), { maxLength: 12 });
  fc.assert(
    fc.property(values, fc.nat(4), (lists, layersMax) => {
      const given = lists.map((rows, i) => ({ field: 'f', value: `v${i}`, rows: Uint32Array.from(rows) }));
      const placed = placeValues(given, 31, layersMax);
      const taken = Array.from({ length: layersMax }, () => new Set<number>());
      const byValue = new Map(placed.map((one) => [one.value, one]));
      for (const { value, rows } of given) {
        const layer = byValue.get(value)?.layer;
        const free = taken.findIndex((of) => rows.every((row) => !of.has(row)));
        assert.equal(layer ?? -1, free);
        if (layer !== undefined) for (const row of rows) taken[layer]?.add(row);
      }
    }),
    seeded(300),
  );
});

test('a row belongs to its first tenant, and rows without one to a number of their own', () => {
  const tenant: FieldSchema = { type: 'keyword', params: { is_tenant: true } };
  const payloads: Payload[] = [{ k: 'b' }, {}, { k: ['a', 'b'] }, { k: 7 }, { k: 'b' }];
  assert.deepEqual(
    tenantOf(
      valuesOf(
        [
          ['n', { type: 'integer' }],
          ['k', tenant],
        ],
        payloads,
      ),
      5,
    ),
    Uint32Array.of(0, 2, 1, 2, 0),
  );
  assert.equal(tenantOf(valuesOf([['k', { type: 'keyword' }]], payloads), 5), null);
});

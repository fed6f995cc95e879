import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { TroupeError } from '../../protocols/errors.js';
import type { OrderBy } from '../../protocols/model/query.js';
import { compareOrdered, FirstInOrder, orderCondition, orderType, orderValues } from '../../query/order.js';
import { seeded } from './property.js';

const order = (direction: OrderBy['direction'], value?: number): OrderBy => ({
  key: 'n',
  direction,
  startFrom: value === undefined ? null : { kind: 'number', value },
});

test('only indexes of numbers and times order points', () => {
  assert.equal(orderType('n', { type: 'integer' }), 'integer');
  assert.equal(orderType('n', { type: 'float' }), 'float');
  assert.equal(orderType('n', { type: 'datetime' }), 'datetime');
  for (const schema of [undefined, { type: 'keyword' }, { type: 'integer', params: { range: false } }] as const) {
    assert.throws(
      () => orderType('n', schema),
      (error) => error instanceof TroupeError && error.code === 'wrongInput',
    );
  }
});

test('an order begins at its first value, in its direction', () => {
  assert.deepEqual(orderCondition(order('asc', 3), 'integer'), { kind: 'range', key: 'n', range: { gte: 3 } });
  assert.deepEqual(orderCondition(order('desc', 3), 'datetime'), { kind: 'datetimeRange', key: 'n', range: { lte: 3 } });
  assert.deepEqual(orderCondition(order('asc'), 'float'), { kind: 'range', key: 'n', range: {} });
});

test('a payload has the values that its index has', () => {
  const payload = { n: [3, 1.5, 3, 'x', null, 7n, '1970-01-01T00:00:01Z'] };
  assert.deepEqual(orderValues(order('asc'), 'integer', payload), [3, 7n]);
  assert.deepEqual(orderValues(order('asc', 3), 'float', payload), [3, 7]);
  assert.deepEqual(orderValues(order('desc', 3), 'float', payload), [3, 1.5]);
  assert.deepEqual(orderValues(order('asc'), 'datetime', payload), [1e6]);
  assert.deepEqual(orderValues(order('asc'), 'integer', {}), []);
});

test('values order integers beyond 2^53 too, ties go by id, and the other direction is the reverse', () => {
  const points = [
    { id: 2, value: 9007199254740993n },
    { id: 1, value: 9007199254740992 },
    { id: 4, value: -1.5 },
    { id: 3, value: -1.5 },
  ];
  const ids = (direction: OrderBy['direction']) => [...points].sort(compareOrdered(direction)).map(({ id }) => id);
  assert.deepEqual(ids('asc'), [3, 4, 1, 2]);
  assert.deepEqual(ids('desc'), [2, 1, 4, 3]);
});

test('the first of many points are those of the whole order', () => {
  const values = fc.array(fc.integer({ min: -50, max: 50 }), { maxLength: 4000 });
  fc.assert(
    fc.property(values, fc.nat(20), fc.constantFrom('asc' as const, 'desc' as const), (all, count, direction) => {
      const points = all.map((value, id) => ({ id, value }));
      const first = new FirstInOrder(direction, count);
      for (const point of points) first.add(point);
      assert.deepEqual(first.inOrder(), [...points].sort(compareOrdered(direction)).slice(0, count));
    }),
    seeded(100),
  );
});

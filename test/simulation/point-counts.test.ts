import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CountCall, wrongCount } from './point-counts.js';
import type { PointCall, PointOperation } from './point-model.js';

const COUNT: CountCall = { points: [1], called: 10, answered: 20, count: 1, complete: true };

function call(operation: PointOperation, called: number, answered: number): PointCall {
  return { id: 1, operation, promise: 'linearizable', called, answered, answer: { kind: 'done' }, acknowledged: false };
}
const put = (called: number, answered: number) => call({ kind: 'put', value: 'a' }, called, answered);
const remove = (called: number, answered: number) => call({ kind: 'delete' }, called, answered);
const told = (calls: readonly PointCall[], count: number, more: Partial<CountCall> = {}) =>
  wrongCount({ ...COUNT, count, ...more }, () => calls);

test('a count has every point that was put before it, and none that was deleted before it', () => {
  assert.equal(told([put(1, 2)], 1), null);
  assert.match(told([put(1, 2)], 0) ?? '', /gave 0, and there were 1 to 1/);
  assert.match(told([put(1, 2)], 2) ?? '', /gave 2/);
  assert.equal(told([put(1, 2), remove(3, 4)], 0), null);
  assert.match(told([put(1, 2), remove(3, 4)], 1) ?? '', /0 to 0/);
  assert.match(told([], 1) ?? '', /0 to 0/);
});

test('what is put or deleted beside a count, or with an end that nobody knows, may be in it or not', () => {
  for (const count of [0, 1]) {
    assert.equal(told([put(1, 12)], count), null);
    assert.equal(told([put(1, 2), remove(3, 12)], count), null);
    assert.equal(told([put(1, 2), remove(3, Infinity)], count), null);
    assert.equal(told([put(1, Infinity), remove(3, 4)], count), null);
  }
});

test('a weak count may be late, and makes nothing up', () => {
  for (const count of [0, 1]) assert.equal(told([put(1, 2), remove(3, 4)], count, { complete: false }), null);
  assert.match(told([put(30, 40)], 1, { complete: false }) ?? '', /gave 1/);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkLinearizable } from './linearizable.js';
import { missedWrite, type PointAnswer, type PointCall, type PointOperation, pointModel } from './point-model.js';

const DONE: PointAnswer = { kind: 'done' };

test('a read that misses an acknowledged write is told', () => {
  assert.equal(missedWrite([put('a', 0, 1), put('b', 2, 3), read('b', 4, 5)]), null);
  assert.match(missedWrite([put('a', 0, 1), put('b', 2, 3), read('a', 4, 5)]) ?? '', /gave a after .*"b"/);
  assert.match(missedWrite([put('a', 0, 1), read(null, 2, 3)]) ?? '', /gave null after/);
  assert.match(missedWrite([read('x', 2, 3)]) ?? '', /nobody had written/);
});

test('a read may see either side of a write beside it, and of one whose end nobody knows', () => {
  for (const value of ['a', 'b']) {
    assert.equal(missedWrite([put('a', 0, 1), put('b', 2, 9), read(value, 4, 5)]), null);
    assert.equal(missedWrite([put('a', 0, 1), put('b', 2, Infinity), read(value, 40, 50)]), null);
  }
  assert.equal(missedWrite([put('a', 0, 9), put('b', 2, 3), read('a', 12, 15)]), null);
});

test('a weak read may be late, and makes nothing up', () => {
  assert.equal(missedWrite([put('a', 0, 1), put('b', 2, 3), { ...read('a', 4, 5), promise: 'weak' }]), null);
  assert.match(missedWrite([{ ...read('x', 4, 5), promise: 'weak' }]) ?? '', /nobody had written/);
});

test('reads that see the new value and then the old one cannot have happened', () => {
  const calls = [put('a', 0, 1), put('b', 2, Infinity), read('b', 4, 5), read('a', 6, 7)];
  assert.equal(missedWrite(calls), null);
  assert.equal(checkLinearizable(calls, pointModel), 'impossible');
  assert.equal(checkLinearizable(calls.slice(0, 3), pointModel), 'linearizable');
});

test('a change is refused exactly where there is no point', () => {
  const change = (answer: PointAnswer) => noted({ kind: 'change', value: 'c' }, 2, 3, answer);
  assert.equal(checkLinearizable([put('a', 0, 1), change(DONE), read('c', 4, 5, 'a')], pointModel), 'linearizable');
  assert.equal(checkLinearizable([put('b', -2, -1), put('a', 0, 1), change(DONE), read('c', 4, 5, 'b')], pointModel), 'impossible');
  assert.equal(checkLinearizable([put('a', 0, 1), change({ kind: 'none' })], pointModel), 'impossible');
  assert.equal(checkLinearizable([change(DONE)], pointModel), 'impossible');
  assert.equal(checkLinearizable([change({ kind: 'none' }), read(null, 4, 5)], pointModel), 'linearizable');
  assert.equal(checkLinearizable([noted({ kind: 'delete' }, 0, 1, DONE), read(null, 4, 5)], pointModel), 'linearizable');
});

function put(value: string, called: number, answered: number): PointCall {
  return noted({ kind: 'put', value }, called, answered, answered === Infinity ? null : DONE);
}

function read(value: string | null, called: number, answered: number, put = value): PointCall {
  return noted({ kind: 'read' }, called, answered, { kind: 'seen', value, put });
}

function noted(operation: PointOperation, called: number, answered: number, answer: PointAnswer | null): PointCall {
  return { id: 1, promise: 'linearizable', acknowledged: false, operation, called, answered, answer };
}

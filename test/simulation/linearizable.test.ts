import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Call, checkLinearizable, type Model } from './linearizable.js';

type Operation = { kind: 'write'; value: number } | { kind: 'read' };
const register: Model<number, Operation, number> = {
  start: 0,
  step: (state, operation, answer) => (operation.kind === 'write' ? operation.value : answer === null || answer === state ? state : null),
  key: String,
};

function write(value: number, called: number, answered: number): Call<Operation, number> {
  return { operation: { kind: 'write', value }, called, answered, answer: answered === Infinity ? null : value };
}

function read(answer: number, called: number, answered: number): Call<Operation, number> {
  return { operation: { kind: 'read' }, called, answered, answer };
}

test('reads see the last write before them, or one beside them', () => {
  assert.equal(checkLinearizable([write(1, 1, 2), read(1, 3, 4)], register), 'linearizable');
  assert.equal(checkLinearizable([write(1, 1, 4), read(0, 2, 3)], register), 'linearizable');
  assert.equal(checkLinearizable([write(1, 1, 4), read(1, 2, 3)], register), 'linearizable');
});

test('a read of an old value after the answer of a write is impossible', () => {
  assert.equal(checkLinearizable([write(1, 1, 2), read(0, 3, 4)], register), 'impossible');
});

test('reads that go back in time are impossible, even beside the write', () => {
  assert.equal(checkLinearizable([write(1, 1, 10), read(1, 2, 3), read(0, 4, 5)], register), 'impossible');
});

test('a write without an answer may happen at any later time, or never', () => {
  const open = write(1, 1, Infinity);
  assert.equal(checkLinearizable([open, read(0, 2, 3), read(0, 8, 9)], register), 'linearizable');
  assert.equal(checkLinearizable([open, read(0, 2, 3), read(1, 8, 9)], register), 'linearizable');
  assert.equal(checkLinearizable([open, read(1, 2, 3), read(0, 8, 9)], register), 'impossible');
});

test('a history with many open writes is decided', () => {
  const calls: Call<Operation, number>[] = [];
  for (let at = 0; at < 60; at++) {
    calls.push(at % 4 === 0 ? write(at + 1, 10 * at, Infinity) : write(at + 1, 10 * at, 10 * at + 25));
    calls.push(read(0, 10 * at, 10 * at + 1));
  }
  assert.equal(
    checkLinearizable([...calls.filter((call) => call.operation.kind === 'write'), read(60, 1000, 1001)], register),
    'linearizable',
  );
  assert.equal(checkLinearizable(calls, register), 'impossible');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sorting } from '../../../storage/replica/sorting.js';

test('values are sorted in portions as at once, equal ones in the order in which they came', () => {
  // Which group a value belongs to is compared, not the value.
  const compare = (one: number, other: number): number => (one % 97) - (other % 97);
  for (const count of [0, 1, 256, 257, 5000]) {
    const values = Array.from({ length: count }, (_, at) => (at * 7919) % 10_007);
    const running = sorting(values, compare, () => () => true);
    let pauses = 0;
    let step = running.next();
    for (; step.done !== true; step = running.next()) pauses++;
    assert.deepEqual(step.value, [...values].sort(compare));
    assert.ok(pauses >= Math.floor(count / 256), `${pauses} pauses in ${count} values`);
  }
});

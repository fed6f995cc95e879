import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../ops/random.js';

test('the same seed gives the same numbers, another seed gives others', () => {
  const numbers = (seed: number) => {
    const random = seededRandom(seed);
    return [random.unit(), random.integer(1000), random.normal(), random.normal(), random.unit()];
  };
  assert.deepEqual(numbers(7), numbers(7));
  assert.notDeepEqual(numbers(7), numbers(8));
});

test('uniform numbers fill their range evenly, integers stay below their bound, normal ones have mean 0 and deviation 1', () => {
  const random = seededRandom(1);
  const count = 100_000;
  const tenths = new Array<number>(10).fill(0);
  let sum = 0;
  let squares = 0;
  for (let i = 0; i < count; i++) {
    const at = Math.floor(random.unit() * 10);
    tenths[at] = (tenths[at] ?? 0) + 1;
    const integer = random.integer(3);
    assert.ok(Number.isInteger(integer) && integer >= 0 && integer < 3);
    const normal = random.normal();
    sum += normal;
    squares += normal * normal;
  }
  for (const found of tenths) assert.ok(Math.abs(found - count / 10) < count / 100, String(found));
  assert.ok(Math.abs(sum / count) < 0.02);
  assert.ok(Math.abs(squares / count - 1) < 0.02);
});

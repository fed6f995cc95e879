import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { nearestPositions, samplePositions } from '../../query/matrix.js';
import { seeded } from './property.js';

test('a sample is as large as asked for or there is, ascending and without repetitions', () => {
  fc.assert(
    fc.property(fc.nat(60), fc.nat(80), fc.infiniteStream(fc.double({ min: 0, max: 0.999_999, noNaN: true })), (total, count, stream) => {
      const sample = samplePositions(total, count, () => stream.next().value as number);
      assert.equal(sample.length, Math.min(total, count));
      assert.ok(sample.every((position, at) => position < total && (at === 0 || position > (sample[at - 1] as number))));
    }),
    seeded(500),
  );
});

test('every number is as likely in a sample as another', () => {
  let state = 7;
  const random = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  const times = new Array<number>(10).fill(0);
  for (let run = 0; run < 5000; run++) for (const position of samplePositions(10, 3, random)) (times[position] as number)++;
  for (const count of times) assert.ok(Math.abs(count - 1500) < 150, `${times}`);
});

test('neighbours are the best of the others, ties by position, rows without a score left out', () => {
  const scores = Float32Array.of(0.5, 2, Number.NaN, 2, -1);
  assert.deepEqual([...nearestPositions(scores, 0, 2, 'larger')], [1, 3]);
  assert.deepEqual([...nearestPositions(scores, 1, 9, 'smaller')], [4, 0, 3]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeBfloat, decodeHalf, encodeBfloat, encodeHalf, fromBfloat, fromHalf, toBfloat, toHalf } from '../../vectors/half.js';
import { randomOf, SEED } from './segment.js';

test('every float16 and bfloat16 survives the way to a number and back', () => {
  for (let bits = 0; bits < 0x1_0000; bits++) {
    if (!Number.isNaN(fromHalf(bits))) assert.equal(toHalf(fromHalf(bits)), bits);
    if (!Number.isNaN(fromBfloat(bits))) assert.equal(toBfloat(fromBfloat(bits)), bits);
  }
  assert.ok(Number.isNaN(fromHalf(toHalf(Number.NaN))));
  assert.ok(Number.isNaN(fromBfloat(toBfloat(Number.NaN))));
});

test('numbers between two become the nearest one, half-way the even one', () => {
  for (const [to, from, bits] of [
    [toHalf, fromHalf, 0x7bff],
    [toBfloat, fromBfloat, 0x7f7f],
  ] as const) {
    for (let low = 0; low < bits; low += 7) {
      const [a, b] = [from(low), from(low + 1)];
      const middle = (a + b) / 2;
      const even = low % 2 === 0 ? low : low + 1;
      if (Math.fround(middle) === middle) {
        assert.equal(to(middle), even);
        assert.equal(to(-middle), even | 0x8000);
      }
      assert.equal(to(Math.fround(a + (b - a) * 0.25)), low);
      assert.equal(to(Math.fround(a + (b - a) * 0.75)), low + 1);
    }
  }
});

test('what is too large becomes infinite, what is too small zero', () => {
  assert.equal(fromHalf(toHalf(65_519)), 65_504);
  assert.equal(fromHalf(toHalf(65_520)), Number.POSITIVE_INFINITY);
  assert.equal(fromHalf(toHalf(-1e30)), Number.NEGATIVE_INFINITY);
  assert.equal(toHalf(1e-38), 0);
  assert.equal(toHalf(-1e-38), 0x8000);
  assert.equal(toHalf(2 ** -25), 0);
  assert.equal(toHalf(2 ** -24 * 0.51), 1);
});

test('arrays are encoded from an index on', () => {
  const random = randomOf(SEED);
  const values = Float32Array.from({ length: 50 }, () => random() * 2 - 1);
  for (const [encode, decode, error] of [
    [encodeHalf, decodeHalf, 2 ** -12],
    [encodeBfloat, decodeBfloat, 2 ** -8],
  ] as const) {
    const out = new Uint16Array(52);
    encode(values, out, 2);
    const decoded = decode(out.subarray(2));
    assert.ok(values.every((value, index) => Math.abs(value - (decoded[index] as number)) <= error));
    assert.equal(out[1], 0);
  }
});

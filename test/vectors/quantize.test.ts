import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseCodes, decodeCodes, encodeCodes, standForFloats } from '../../vectors/quantize.js';
import { randomOf, SEED } from './segment.js';

/** Roughly normal numbers. */
function normal(random: () => number): number {
  let sum = -6;
  for (let index = 0; index < 12; index++) sum += random();
  return sum;
}

test('whole numbers within a range of 255 are coded without loss', () => {
  const values = Float32Array.of(-3, 252, 7, 0, 100, 13);
  const codes = chooseCodes(values);
  assert.deepEqual(codes, { scale: 1, origin: -3 });
  const out = new Uint8Array(40).fill(9);
  assert.equal(encodeCodes(values, 3, 16, codes, out, 4), true);
  assert.deepEqual([...out], [9, 9, 9, 9, 0, 255, 10, ...new Array(13).fill(0), 3, 103, 16, ...new Array(13).fill(0), 9, 9, 9, 9]);
  assert.deepEqual(decodeCodes(out.subarray(4, 7), codes), values.subarray(0, 3));
  assert.equal(chooseCodes(Float32Array.of(0, 256)).scale, 256 / 255);
});

test('codes of plain numbers are off by half a step at most', () => {
  const random = randomOf(SEED);
  const values = Float32Array.from({ length: 10_000 }, () => random() * 3 - 1);
  const codes = chooseCodes(values);
  const out = new Uint8Array(values.length);
  assert.equal(encodeCodes(values, values.length, values.length, codes, out, 0), false);
  const decoded = decodeCodes(out, codes);
  assert.ok(values.every((value, index) => Math.abs(value - (decoded[index] as number)) <= codes.scale * 0.501));
});

test('a few outliers are clipped when that makes the whole more exact', () => {
  const random = randomOf(SEED);
  const values = Float32Array.from({ length: 100_000 }, () => normal(random));
  const plain = chooseCodes(values);
  values[5] = 50;
  values[6] = -50;
  const clipped = chooseCodes(values);
  assert.ok(clipped.scale < plain.scale * 1.2);
});

test('outliers that carry much of a vector are kept', () => {
  const random = randomOf(SEED);
  const values = Float32Array.from({ length: 76_800 }, (_, index) => (index % 768 === 3 ? 30 + random() : normal(random)));
  const codes = chooseCodes(values);
  assert.ok(codes.origin + codes.scale * 255 > 30);
});

test('odd samples give usable codes', () => {
  for (const values of [[], [5], [0.5], [0.5, 0.5], [Number.NaN], [Number.POSITIVE_INFINITY, 0.25, 0.75], [1e38, -3e38, 0.5]]) {
    const { scale, origin } = chooseCodes(Float32Array.from(values));
    assert.ok(scale > 0 && Number.isFinite(scale) && Number.isFinite(origin), `${values}: ${scale}, ${origin}`);
  }
  const out = new Uint8Array(3);
  encodeCodes(Float32Array.of(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY), 3, 3, { scale: 1, origin: 0 }, out, 0);
  assert.deepEqual([...out], [0, 255, 0]);
});

test('codes stand for floats where float32 arithmetic makes of each what double arithmetic does', () => {
  for (const codes of [
    { scale: 1, origin: -100 },
    { scale: 2 ** -8, origin: 0 },
    { scale: 0.5, origin: 3 },
  ])
    assert.equal(standForFloats(codes), true, JSON.stringify(codes));
  for (const codes of [
    { scale: 0.1, origin: 0 },
    { scale: 1, origin: 2 ** 24 },
    { scale: 1, origin: Number.POSITIVE_INFINITY },
  ])
    assert.equal(standForFloats(codes), false, JSON.stringify(codes));
});

test('minus zero is no component that a code stands for', () => {
  const out = new Uint8Array(16);
  assert.equal(encodeCodes(Float32Array.of(0, 1, 255), 3, 16, { scale: 1, origin: 0 }, out, 0), true);
  assert.equal(encodeCodes(Float32Array.of(-0, 1, 255), 3, 16, { scale: 1, origin: 0 }, out, 0), false);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { halfScore } from '../../../../storage/reader/nearest/half-score.js';
import { decodeHalf, encodeHalf } from '../../../../vectors/half.js';

function halves(...values: number[]): Float32Array {
  const bits = new Uint16Array(values.length);
  encodeHalf(Float32Array.from(values), bits);
  return decodeHalf(bits);
}

test('scores of short float16 vectors are rounded at every step', () => {
  const query = halves(2, 1, 1);
  const vector = halves(0.1, 0.2, 0.3);
  assert.equal(halfScore('Euclid', query, vector), Math.fround(2.1774323));
  assert.equal(halfScore('Manhattan', query, vector), Math.fround(3.4003906));
  assert.equal(halfScore('Dot', query, vector), Math.fround(0.6999512));
  const normalized = halves(0.26726124, 0.5345225, 0.8017837);
  assert.equal(halfScore('Cosine', normalized, normalized), Math.fround(0.99993896));
  assert.equal(halfScore('Cosine', halves(0.8164966, 0.4082483, 0.4082483), normalized), Math.fround(0.763916));
});

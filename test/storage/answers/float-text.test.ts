import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { floatText, printVector } from '../../../storage/answers/float-text.js';

const single = new Float32Array(1);
const word = new Uint32Array(single.buffer);

test('every power of two and its neighbours, of either sign, are printed with the fewest digits that read back as them', () => {
  for (let exponent = 0; exponent < 0xff; exponent++) {
    for (const fraction of [0, 1, 2, 3, 0x3f_ffff, 0x40_0000, 0x40_0001, 0x7f_fffe, 0x7f_ffff]) {
      for (const sign of [0, 0x8000_0000]) checkShortest(sign + (exponent << 23) + fraction);
    }
  }
});

test('200,000 float32 bit patterns are printed with the fewest digits that read back as them', () => {
  let bits = 14;
  for (let count = 0; count < 200_000; count++) {
    bits = Math.imul(bits, 1664525) + 1013904223;
    checkShortest((bits ^ (bits >>> 15)) >>> 0);
  }
});

test('of the decimals with fewest digits the nearest is printed, and of two as near the larger', () => {
  const shown = new Map([
    [2097152.25, '2097152.3'],
    [-2097152.25, '-2097152.3'],
    [2097152.75, '2097152.8'],
    [131072.015625, '131072.02'],
    [2 ** -24, '5.9604645e-8'],
  ]);
  for (const [value, text] of shown) assert.equal(floatText(value), text);
});

test('known values are printed as the API shows them', () => {
  const shown = new Map<number, string>([
    [0, '0'],
    [-0, '0'],
    [1, '1'],
    [-1, '-1'],
    [0.1, '0.1'],
    [2.59375, '2.59375'],
    [0.70710677, '0.70710677'],
    [0.81649655, '0.81649655'],
    [-0.26726124, '-0.26726124'],
    [9999999.5, '10000000'],
    [16777216, '16777216'],
    [123456.7, '123456.7'],
    [1e-7, '1e-7'],
    [-1.2345678e-6, '-0.0000012345678'],
    [1e20, '100000000000000000000'],
    [1e21, '1e+21'],
    [3.4e38, '3.4e+38'],
    [1e-45, '1e-45'],
    [0.00001, '0.00001'],
    [0.6, '0.6'],
  ]);
  for (const [value, text] of shown) assert.equal(floatText(Math.fround(value)), text);
});

test('what JSON cannot hold is null', () => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) assert.equal(floatText(value), 'null');
});

test('a vector is printed with a comma behind each number, however long it is', () => {
  assert.equal(vectorText(new Float32Array([1, 0.5, -0.1, Number.NaN])), '1,0.5,-0.1,null,');
  assert.equal(vectorText(new Float32Array()), '');
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 9000 }), fc.float({ noNaN: true, noDefaultInfinity: true }), (count, value) => {
      assert.equal(vectorText(new Float32Array(count).fill(value)), `${floatText(value)},`.repeat(count));
    }),
    { numRuns: 50 },
  );
});

function vectorText(values: Float32Array): string {
  let text = '';
  printVector(values, (bytes, start, end) => {
    text += bytes.toString('latin1', start, end);
  });
  return text;
}

/** Compares with JavaScript: its shortest text of a double is that of a float32 too, once the digits are enough. */
function checkShortest(bits: number): void {
  word[0] = bits;
  const value = single[0] as number;
  if (!Number.isFinite(value)) return;
  const text = floatText(value);
  const shortest = shortestByTrial(value);
  if (text === shortest) return;
  // Below a power of two the numbers are closer: another decimal of fewer digits may read back, though it is not the nearest.
  assert.equal(bits & 0x7f_ffff, 0, `${text} for ${shortest}`);
  assert.equal(Math.fround(Number(text)), value, text);
  assert.ok(text.length < shortest.length, `${text} for ${shortest}`);
}

function shortestByTrial(value: number): string {
  if (value === 0) return '0';
  for (let precision = 1; precision < 9; precision++) {
    const short = Number(value.toPrecision(precision));
    if (Math.fround(short) === value) return String(short);
  }
  return String(Number(value.toPrecision(9)));
}

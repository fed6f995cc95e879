import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { floatText, vectorText } from '../../../storage/answers/float-text.js';

test('a float32 is printed with the fewest digits that read back as it', () => {
  fc.assert(
    fc.property(fc.float({ noNaN: true, noDefaultInfinity: true }), (value) => {
      const text = floatText(value);
      assert.equal(Math.fround(Number(text)) + 0, value + 0, text);
      assert.ok(significantDigits(text) <= significantDigits(shortestByTrial(value)), `${text} for ${shortestByTrial(value)}`);
      assert.doesNotThrow(() => JSON.parse(text));
    }),
    { numRuns: 5000 },
  );
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
    [3.4e38, '3.4e+38'],
    [0.00001, '0.00001'],
    [0.6, '0.6'],
  ]);
  for (const [value, text] of shown) assert.equal(floatText(Math.fround(value)), text);
});

test('what JSON cannot hold is null', () => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) assert.equal(floatText(value), 'null');
});

test('a vector is a list', () => {
  assert.equal(vectorText(new Float32Array([1, 0.5, -0.1])), '[1,0.5,-0.1]');
  assert.equal(vectorText(new Float32Array()), '[]');
});

function shortestByTrial(value: number): string {
  for (let precision = 1; precision < 9; precision++) {
    const text = value.toPrecision(precision);
    if (Math.fround(Number(text)) === value) return text;
  }
  return value.toPrecision(9);
}

function significantDigits(text: string): number {
  return (text.toLowerCase().split('e')[0] as string).replace(/[-.]/g, '').replace(/^0+/, '').replace(/0+$/, '').length;
}

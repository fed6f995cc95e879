import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  countBits,
  emptyBits,
  forEachBit,
  fullBits,
  hasBit,
  invert,
  popcount,
  setBit,
  subtract,
  unite,
} from '../../../query/filter/bits.js';
import { seeded } from '../property.js';

test('a full bitset has the rows from..rows and nothing behind them', () => {
  fc.assert(
    fc.property(fc.nat(200), fc.nat(200), (rows, from) => {
      const bits = fullBits(rows, from);
      for (let row = 0; row < bits.length * 32; row++) assert.equal(hasBit(bits, row), row >= from && row < rows);
      assert.equal(countBits(bits), Math.max(0, rows - from));
    }),
    seeded(300),
  );
});

test('set operations agree with sets', () => {
  const set = fc.uniqueArray(fc.nat(99));
  fc.assert(
    fc.property(set, set, (a, b) => {
      const bitsOf = (rows: number[]): Uint32Array => {
        const bits = emptyBits(100);
        for (const row of rows) setBit(bits, row);
        return bits;
      };
      const listed = (bits: Uint32Array): number[] => {
        const rows: number[] = [];
        forEachBit(bits, (row) => rows.push(row));
        return rows;
      };
      const sorted = (rows: Iterable<number>): number[] => [...new Set(rows)].sort((x, y) => x - y);
      const joined = bitsOf(a);
      unite(joined, bitsOf(b));
      assert.deepEqual(listed(joined), sorted([...a, ...b]));
      const rest = bitsOf(a);
      subtract(rest, bitsOf(b));
      assert.deepEqual(listed(rest), sorted(a.filter((row) => !b.includes(row))));
      const others = bitsOf(a);
      invert(others, 100);
      assert.equal(countBits(others), 100 - a.length);
    }),
    seeded(300),
  );
});

test('popcount of every single bit is one, of all bits 32', () => {
  for (let bit = 0; bit < 32; bit++) assert.equal(popcount(1 << bit), 1);
  assert.equal(popcount(-1), 32);
  assert.equal(popcount(0xffff_ffff), 32);
});

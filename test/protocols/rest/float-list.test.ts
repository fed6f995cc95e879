import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FloatList } from '../../../protocols/rest/float-list.js';

const list = new FloatList();

/** The values of a list that stands alone in an object, null when it is not read. */
function read(text: string): Float32Array | null {
  const end = list.read(new TextEncoder().encode(`${text}}`), 0);
  if (end < 0) return null;
  assert.equal(end, text.length);
  return list.values.slice(0, list.count);
}

test('numbers beside the middle of two float32 values fall to the right side, at every size', () => {
  const bits = fc.integer({ min: 0x0080_0000, max: 0x7f7f_fffe });
  fc.assert(
    fc.property(bits, fc.integer({ min: -40, max: 40 }), fc.integer({ min: 16, max: 21 }), (low, units, digits) => {
      const pair = new Float32Array(Uint32Array.of(low, low + 1).buffer) as unknown as [number, number];
      const middle = Float64Array.of((pair[0] + pair[1]) / 2);
      const words = new BigInt64Array(middle.buffer);
      words[0] = (words[0] as bigint) + BigInt(units);
      const text = `[${middle[0]},-${(middle[0] as number).toPrecision(digits)}]`;
      assert.deepEqual(read(text), Float32Array.from(JSON.parse(text) as number[]), text);
    }),
    { numRuns: 5000 },
  );
});

test('numbers that change how the whole text is parsed are told', () => {
  const cases: [string, boolean][] = [
    ['[123456789012345,0.1234567890123456789,1e99,1e-100]', false],
    ['[1234567890123456]', true],
    ['[-1234567890123456.5]', true],
    ['[1e100]', true],
    ['[1E+005]', true],
    ['[]', false],
  ];
  for (const [text, remarkable] of cases) {
    assert.notEqual(read(text), null, text);
    assert.equal(list.remarkable, remarkable, text);
  }
});

test('a list that does not end, or is longer than there is room for, is not read', () => {
  for (const bytes of ['[1,2', '[1,2]', '[1', '[', '', '1]}']) assert.equal(list.read(new TextEncoder().encode(bytes), 0), -1, bytes);
  assert.equal(read(`[${new Array(65_536).fill(1).join()}]`)?.length, 65_536);
  assert.equal(read(`[${new Array(65_537).fill(1).join()}]`), null);
});

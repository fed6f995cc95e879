import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FloatList } from '../../../protocols/rest/float-list.js';

const list = new FloatList();

/** The values of a list that stands alone in an object, null when it is not read. */
function read(text: string): Float32Array | null {
  const end = list.read(Buffer.from(`${text}}`), 0);
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

test('float32 and double values of any bits are read as the parser reads them, in each form of their text', () => {
  const double = new Float64Array(1);
  const words = new Uint32Array(double.buffer);
  const single = new Float32Array(words.buffer);
  const forms: ((value: number) => string)[] = [
    (value) => String(value),
    (value) => value.toPrecision(8),
    (value) => value.toPrecision(19),
    (value) => value.toExponential(),
    (value) => value.toFixed(18),
  ];
  let bits = 14;
  const next = (): number => {
    bits = (Math.imul(bits, 1664525) + 1013904223) >>> 0;
    return (bits ^ (bits >>> 15)) >>> 0;
  };
  for (let round = 0; round < 400; round++) {
    const values: number[] = [];
    for (let count = 0; count < 500; count++) {
      words[0] = next();
      if (Number.isFinite(single[0])) values.push(single[0] as number, (next() / 2 ** 32 - 0.5) / (1 + (next() % 300)));
      // Exponents that a double has near those of a float32.
      words[1] = (next() & 0x8fff_ffff) + 0x3000_0000;
      if (Math.abs(double[0] as number) < 3e38) values.push(double[0] as number);
    }
    const form = forms[round % forms.length] as (value: number) => string;
    const space = round % 7 === 0 ? ' \n' : '';
    const text = `[${space}${values.map(form).join(`${space},${space}`)}${space}]`;
    assert.deepEqual(read(text), Float32Array.from(JSON.parse(text) as number[]), text);
  }
});

test('what is changed at one place is read as the parser reads it, or not at all', () => {
  const change = fc.tuple(fc.nat(60), fc.constantFrom(...'0123456789.-+eE,[] ]\t\0"x'), fc.boolean());
  const number = fc.oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e30, max: 1e30 }),
    fc.integer(),
    fc.constantFrom(0, 0.5, 1e-7),
  );
  fc.assert(
    fc.property(fc.array(number, { maxLength: 6 }), change, (values, [place, byte, inserted]) => {
      const text = JSON.stringify(values);
      const at = 1 + (place % text.length);
      const changed = text.slice(0, at) + byte + text.slice(inserted ? at : at + 1);
      const end = list.read(Buffer.from(changed), 0);
      if (end >= 0)
        assert.deepEqual(list.values.slice(0, list.count), Float32Array.from(JSON.parse(changed.slice(0, end)) as number[]), changed);
      else assert.notDeepEqual(parsed(changed), values, changed);
    }),
    { numRuns: 20_000 },
  );
});

test('what is no flat list of numbers is not read', () => {
  const texts = [
    '[1,]',
    '[,1]',
    '[01]',
    '[-01]',
    '[1 2]',
    '[-]',
    '[1.]',
    '[.5]',
    '[1e]',
    '[1e+]',
    '[+1]',
    '[NaN]',
    '[[1]]',
    '["1"]',
    '[1e999]',
    '[1',
  ];
  for (const text of texts) assert.equal(read(text), null, text);
  for (const bytes of ['[1,2', '[1', '[', '', '1]}', '[1\0]']) assert.equal(list.read(Buffer.from(bytes), 0), -1, bytes);
});

test('a list is read in pieces where it is long, and not where it is longer than there is room for', () => {
  for (let spaces = 0; spaces < 24; spaces++) {
    const text = `[${' '.repeat(spaces)}${new Array(9000).fill('-0.1234567890123456').join(', ')}]`;
    assert.deepEqual(read(text), new Float32Array(9000).fill(-0.1234567890123456));
  }
  // Numbers that are left to `Number`, at the end of pieces.
  const long = new Array(5000).fill('1.00000005960464477539062500001').join(' ,\n');
  assert.deepEqual(read(`[${long}]`), new Float32Array(5000).fill(Number('1.00000005960464477539062500001')));
  assert.equal(read(`[${'1'.repeat(40_000)}]`), null);
  assert.equal(read(`[${new Array(65_536).fill(1).join()}]`)?.length, 65_536);
  assert.equal(read(`[${new Array(65_537).fill(1).join()}]`), null);
});

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

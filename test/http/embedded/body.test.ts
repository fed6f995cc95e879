import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { encodeBody } from '../../../http/embedded/body.js';

const parsed = (body: unknown): unknown => JSON.parse(new TextDecoder().decode(encodeBody(body)));
/** As they come back: `null` for what JSON has not, no minus before zero. */
const listOf = (vector: Float32Array): (number | null)[] => Array.from(vector, (value) => (Number.isFinite(value) ? value + 0 : null));
const withLists = (value: unknown): unknown => {
  if (value instanceof Float32Array) return listOf(value);
  if (Array.isArray(value)) return value.map(withLists);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withLists(inner)]));
};
/** The same values as float32: a shorter text may have been printed for them. */
const rounded = (value: unknown): unknown => {
  if (typeof value === 'number') return Math.fround(value) + 0;
  if (Array.isArray(value)) return value.map(rounded);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, rounded(inner)]));
};

test('a body with vectors anywhere is the JSON that it would be with lists in their places', () => {
  const vector = fc.float32Array({ maxLength: 5000, size: 'max' });
  const body = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.string({ unit: 'grapheme' }),
      fc.double({ noNaN: true, noDefaultInfinity: true }).map(Math.fround),
      fc.constant(null),
      vector,
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(fc.oneof(fc.string(), fc.constant('__proto__')), tie('value'), { maxKeys: 4 }),
    ),
  })).value;
  fc.assert(
    fc.property(body, (value) =>
      assert.deepEqual(rounded(parsed(value)), rounded(withLists(JSON.parse(JSON.stringify(value, keepVectors), restoreVectors)))),
    ),
    { seed: 7, numRuns: 300 },
  );
});

/** Lists cannot be told from vectors in JSON: these are marked. */
const MARK = 'float32:';
function keepVectors(_key: string, value: unknown): unknown {
  if (!(value instanceof Float32Array)) return value;
  return MARK + Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64');
}
function restoreVectors(_key: string, value: unknown): unknown {
  if (typeof value !== 'string' || !value.startsWith(MARK)) return value;
  return new Float32Array(Uint8Array.from(Buffer.from(value.slice(MARK.length), 'base64')).buffer);
}

const textOf = (body: unknown): string => new TextDecoder().decode(encodeBody(body));

test('members that are undefined are left out, dates and long integers are as in any JSON, beside vectors and without', () => {
  for (const [rest, told] of [
    [{ none: undefined, at: new Date(0), text: 'Köln ≥ "東京"' }, '{"at":"1970-01-01T00:00:00.000Z","text":"Köln ≥ \\"東京\\""}'],
    [{ id: 2n ** 63n }, '{"id":9223372036854775808}'],
  ]) {
    assert.equal(textOf(rest), told);
    assert.equal(textOf({ vector: Float32Array.of(0.1, -2), rest }), `{"vector":[0.1,-2],"rest":${told}}`);
  }
  assert.equal(textOf({ vector: new Float32Array(0) }), '{"vector":[]}');
});

test('examples may be ids and vectors in one list: a number before a vector does not hide it', () => {
  assert.equal(textOf({ positive: [7, Float32Array.of(1, 2), 'a', 8] }), '{"positive":[7,[1,2],"a",8]}');
});

test('one body does not change another that was encoded before it', () => {
  const first = encodeBody({ query: Float32Array.of(1, 2) });
  encodeBody({ query: Float32Array.of(3, 4) });
  assert.equal(new TextDecoder().decode(first), '{"query":[1,2]}');
});

test('a body that is nested too deeply is refused, with a vector at its end and without', () => {
  for (const end of [Float32Array.of(1), 'end']) {
    let body: unknown = end;
    for (let depth = 0; depth < 200_000; depth++) body = { inner: body };
    assert.throws(() => encodeBody(body), { code: 'malformedBody' });
  }
});

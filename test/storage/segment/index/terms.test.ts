import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { FieldType } from '../../../../protocols/model/collection.js';
import { conditionTerms, decodeTerm, encodeTerm, fieldTerms, KEYWORD_BYTES_MAX } from '../../../../storage/segment/index/terms.js';
import { seeded } from '../../../query/property.js';

function valueKey(type: FieldType, value: string | number | boolean): Buffer {
  return Buffer.from(encodeTerm({ kind: 'value', type, value }));
}

function signOf(order: number): number {
  return Math.sign(order);
}

test('keys of numbers order as the numbers do', () => {
  const number = fc.oneof(
    fc.double({ noNaN: true }),
    fc.integer(),
    fc.constantFrom(0, -0, 1, -1, Number.MAX_VALUE, Number.MIN_VALUE, -Number.MIN_VALUE),
  );
  fc.assert(
    fc.property(number, number, (a, b) => {
      const order = a === b ? 0 : a < b ? -1 : 1;
      assert.equal(signOf(Buffer.compare(valueKey('float', a), valueKey('float', b))), order);
    }),
    seeded(2000),
  );
});

test('keys of keywords order as their UTF-8 does, and long ones stay apart', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), (a, b) => {
      assert.equal(
        signOf(Buffer.compare(valueKey('keyword', a), valueKey('keyword', b))),
        signOf(Buffer.compare(Buffer.from(a), Buffer.from(b))),
      );
    }),
    seeded(500),
  );
  const long = 'x'.repeat(KEYWORD_BYTES_MAX + 1);
  const keys = [long, `${long}y`, `${long}z`, 'x'.repeat(KEYWORD_BYTES_MAX)].map((text) => valueKey('keyword', text));
  assert.equal(new Set(keys.map((key) => key.toString('hex'))).size, 4);
  for (const key of keys) assert.ok(key.length <= KEYWORD_BYTES_MAX + 1);
});

test('bytes of a value tell it, but for long keywords and integers that may have been rounded', () => {
  const keep: [FieldType, string | number | boolean][] = [
    ['keyword', ''],
    ['keyword', 'a\0b'],
    ['keyword', 'é😀'],
    ['integer', 0],
    ['integer', -17],
    ['integer', 2 ** 53 - 1],
    ['float', -1.5],
    ['float', 1e300],
    ['bool', true],
    ['bool', false],
    ['uuid', '550e8400-e29b-41d4-a716-446655440000'],
  ];
  for (const [type, value] of keep) assert.equal(decodeTerm(type, valueKey(type, value)), value);
  assert.equal(decodeTerm('keyword', valueKey('keyword', 'x'.repeat(KEYWORD_BYTES_MAX + 1))), undefined);
  assert.equal(decodeTerm('integer', valueKey('integer', 2 ** 53)), undefined);
  assert.equal(decodeTerm('integer', encodeTerm({ kind: 'mark', mark: 'other' })), undefined);
});

test('a row is filed under its marks and each of its values once', () => {
  const terms = fieldTerms({ type: 'keyword' }, { k: ['b', 'a', 'b', null, 5] }, 'k');
  assert.deepEqual(
    terms.map((term) => (term.kind === 'mark' ? term.mark : term.value)),
    ['present', 'null', 'other', 'indexed', 'b', 'a'],
  );
  assert.deepEqual(fieldTerms({ type: 'keyword' }, {}, 'k'), []);
  assert.deepEqual(fieldTerms({ type: 'keyword' }, undefined, 'k'), []);
  assert.deepEqual(fieldTerms({ type: 'uuid' }, { k: '550E8400E29B41D4A716446655440000' }, 'k').at(-1), {
    kind: 'value',
    type: 'uuid',
    value: '550e8400-e29b-41d4-a716-446655440000',
  });
});

test('values that no term can be leave the question to the payloads of rows with other values', () => {
  const plan = conditionTerms({ type: 'integer' }, { kind: 'match', key: 'k', match: { kind: 'value', value: 'a' } });
  assert.equal(plan?.exact, false);
  assert.deepEqual(
    plan?.ranges.map((range) => [...range.from]),
    [[0, 2]],
  );
  assert.equal(conditionTerms({ type: 'keyword' }, { kind: 'valuesCount', key: 'k', range: { lt: 5 } }), null);
});

test('a range that holds nothing has no keys', () => {
  assert.deepEqual(conditionTerms({ type: 'float' }, { kind: 'range', key: 'k', range: { gt: 2, lt: 1 } })?.ranges, []);
  assert.deepEqual(conditionTerms({ type: 'float' }, { kind: 'range', key: 'k', range: { gt: 1, lt: 1 } })?.ranges, []);
});

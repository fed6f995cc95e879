import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ErrorCode, TroupeError } from '../../../protocols/errors.js';
import { decodeFieldSchema } from '../../../protocols/rest/field-schema.js';

test('a bare type has no parameters to show', () => {
  for (const type of ['keyword', 'integer', 'float', 'bool', 'datetime', 'uuid']) assert.deepEqual(decodeFieldSchema(type), { type });
});

test('parameters are shown as given, those of an integer index also when they were not', () => {
  assert.deepEqual(decodeFieldSchema({ type: 'keyword', on_disk: true, is_tenant: true }).params, {
    type: 'keyword',
    is_tenant: true,
    on_disk: true,
  });
  assert.deepEqual(decodeFieldSchema({ type: 'integer' }).params, { type: 'integer', lookup: null, range: null, is_principal: null });
  assert.deepEqual(decodeFieldSchema({ type: 'integer', lookup: false, range: true }).params, {
    type: 'integer',
    lookup: false,
    range: true,
    is_principal: null,
  });
  assert.deepEqual(decodeFieldSchema({ type: 'float', is_principal: null }).params, { type: 'float' });
});

test('parameters of other types are ignored', () => {
  assert.deepEqual(decodeFieldSchema({ type: 'bool', is_principal: true, lookup: 5 }).params, { type: 'bool' });
});

const REFUSED: readonly [unknown, ErrorCode][] = [
  [undefined, 'wrongInput'],
  [null, 'wrongInput'],
  ['decimal', 'malformedBody'],
  [5, 'malformedBody'],
  [{ on_disk: true }, 'malformedBody'],
  [{ type: 'decimal' }, 'malformedBody'],
  [{ type: 'keyword', is_tenant: 'yes' }, 'malformedBody'],
  [{ type: 'integer', lookup: false, range: false }, 'invalidValue'],
  ['text', 'unsupported'],
  [{ type: 'geo' }, 'unsupported'],
];

for (const [value, code] of REFUSED) {
  test(`${JSON.stringify(value)} is refused with ${code}`, () => {
    assert.throws(
      () => decodeFieldSchema(value),
      (error: unknown) => error instanceof TroupeError && error.code === code,
    );
  });
}

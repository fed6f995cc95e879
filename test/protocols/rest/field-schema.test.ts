import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ErrorCode, TroupeError } from '../../../protocols/errors.js';
import { decodeFieldSchema } from '../../../protocols/rest/field-schema.js';

test('a bare type has no parameters to show', () => {
  for (const type of ['keyword', 'integer', 'float', 'geo', 'text', 'bool', 'datetime', 'uuid'])
    assert.deepEqual(decodeFieldSchema(type), { type });
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
  [undefined, 'badRequest'],
  [null, 'badRequest'],
  ['decimal', 'malformedBody'],
  [5, 'malformedBody'],
  [{ on_disk: true }, 'malformedBody'],
  [{ type: 'decimal' }, 'malformedBody'],
  [{ type: 'keyword', is_tenant: 'yes' }, 'malformedBody'],
  [{ type: 'integer', lookup: false, range: false }, 'invalidValue'],
  [{ type: 'text', tokenizer: 'magic' }, 'malformedBody'],
  [{ type: 'text', min_token_len: -1 }, 'malformedBody'],
  [{ type: 'text', stopwords: 'klingon' }, 'malformedBody'],
  [{ type: 'text', stopwords: { languages: ['klingon'] } }, 'malformedBody'],
  [{ type: 'text', stopwords: { custom: [5] } }, 'malformedBody'],
  [{ type: 'text', stemmer: { type: 'snowball', language: 'klingon' } }, 'malformedBody'],
  [{ type: 'text', stemmer: { language: 'english' } }, 'malformedBody'],
  [{ type: 'text', stemmer: { type: 'snowball' } }, 'malformedBody'],
  [{ type: 'text', phrase_matching: 'yes' }, 'malformedBody'],
];

test('a text index shows its parameters, with the tokenizer always', () => {
  assert.deepEqual(decodeFieldSchema({ type: 'text' }).params, { type: 'text', tokenizer: 'word' });
  const all = {
    type: 'text',
    tokenizer: 'prefix',
    min_token_len: 10,
    max_token_len: 5,
    lowercase: false,
    ascii_folding: true,
    stopwords: { languages: ['english', 'german'], custom: ['foo'] },
    stemmer: { type: 'snowball', language: 'english' },
    phrase_matching: true,
    on_disk: true,
    enable_hnsw: false,
  };
  assert.deepEqual(decodeFieldSchema(all).params, all);
  assert.deepEqual(decodeFieldSchema({ type: 'text', stopwords: 'english', unknown: 5 }).params, {
    type: 'text',
    tokenizer: 'word',
    stopwords: 'english',
  });
});

for (const [value, code] of REFUSED) {
  test(`${JSON.stringify(value)} is refused with ${code}`, () => {
    assert.throws(
      () => decodeFieldSchema(value),
      (error: unknown) => error instanceof TroupeError && error.code === code,
    );
  });
}

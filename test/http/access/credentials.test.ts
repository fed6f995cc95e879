import assert from 'node:assert/strict';
import { test } from 'node:test';
import { credentialOf } from '../../../http/access/credentials.js';

test('a credential is in api-key, or a bearer of authorization; nowhere else', () => {
  const expected: readonly (readonly [readonly string[], string | null])[] = [
    [[], null],
    [['host', 'x'], null],
    [['api-key', 'k'], 'k'],
    [['API-Key', 'k'], 'k'],
    [['api-key', ''], ''],
    [['authorization', 'Bearer k'], 'k'],
    [['Authorization', 'Bearer a b'], 'a b'],
    [['authorization', 'bearer k'], null],
    [['authorization', 'BEARER k'], null],
    [['authorization', 'k'], null],
    [['authorization', 'Basic k'], null],
    [['authorization', 'Bearer'], null],
    [['authorization', 'Bearer  k'], ' k'],
    [['x-api-key', 'k', 'api_key', 'k', 'proxy-authorization', 'Bearer k'], null],
    [['authorization', 'Bearer b', 'api-key', 'a'], 'a'],
  ];
  for (const [fields, credential] of expected) assert.equal(credentialOf(fields), credential, JSON.stringify(fields));
});

test('a field that comes twice is no credential, whichever of the two would be right', () => {
  for (const fields of [
    ['api-key', 'a', 'api-key', 'a'],
    ['api-key', 'a', 'Api-Key', 'b'],
    ['authorization', 'Bearer a', 'authorization', 'Bearer b'],
    ['authorization', 'Bearer a', 'authorization', 'Bearer a', 'api-key', 'a'],
  ])
    assert.equal(credentialOf(fields), '');
});

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { claimsOf, signToken } from '../../../web/model/token.js';

test('a token of the form has the claims that the node checks, signed by HS256', () => {
  const claims = claimsOf(
    { level: 'collection-write', collections: ['a', 'b'], expiresInSec: 60, exists: { collection: 'users', key: 'id', value: '7' } },
    1000.5,
  );
  assert.deepEqual(claims, {
    exp: 1060,
    value_exists: { collection: 'users', matches: [{ key: 'id', value: 7 }] },
    access: [
      { collection: 'a', access: 'rw' },
      { collection: 'b', access: 'rw' },
    ],
  });
  assert.deepEqual(claimsOf({ level: 'read', collections: [], expiresInSec: null, exists: null }, 0), { access: 'r' });
  const [header = '', body = '', signature] = signToken(claims, 'käy').split('.');
  assert.deepEqual(JSON.parse(Buffer.from(header, 'base64url').toString()), { alg: 'HS256', typ: 'JWT' });
  assert.deepEqual(JSON.parse(Buffer.from(body, 'base64url').toString()), claims);
  assert.equal(signature, createHmac('sha256', 'käy').update(`${header}.${body}`).digest('base64url'));
});

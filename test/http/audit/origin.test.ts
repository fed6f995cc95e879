import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientAddress, givenRequestId } from '../../../http/audit/origin.js';

const origin = (fields: Record<string, string>, address = '10.0.0.9') => ({ address, field: (name: string) => fields[name] });

test('without trust a client is at the other end of its connection, whatever it says', () => {
  const claims = origin({ 'x-forwarded-for': '1.2.3.4', forwarded: 'for=1.2.3.4' });
  assert.deepEqual(clientAddress(claims, false), { from: '10.0.0.9', via: null });
  assert.deepEqual(clientAddress(origin({}, '::ffff:10.0.0.9'), false), { from: '10.0.0.9', via: null });
});

test('with trust the first address counts that proxies name, in all its spellings', () => {
  const spellings: readonly (readonly [Record<string, string>, string])[] = [
    [{ 'x-forwarded-for': '1.2.3.4, 5.6.7.8' }, '1.2.3.4'],
    [{ 'x-forwarded-for': ' 1.2.3.4:5000' }, '1.2.3.4'],
    [{ 'x-forwarded-for': '2001:db8::1' }, '2001:db8::1'],
    [{ forwarded: 'proto=https; For="[2001:db8::1]:47", for=5.6.7.8' }, '2001:db8::1'],
    [{ forwarded: 'for=1.2.3.4:80;by=x', 'x-forwarded-for': '5.6.7.8' }, '1.2.3.4'],
    [{ forwarded: 'for=unknown', 'x-forwarded-for': '5.6.7.8' }, '5.6.7.8'],
  ];
  for (const [fields, from] of spellings)
    assert.deepEqual(clientAddress(origin(fields), true), { from, via: '10.0.0.9' }, JSON.stringify(fields));
});

test('what is no address is not believed even then', () => {
  for (const value of ['unknown', '_hidden', '', '1.2.3', 'a\n{}', '999.1.1.1']) {
    assert.deepEqual(clientAddress(origin({ 'x-forwarded-for': value }), true), { from: '10.0.0.9', via: null }, value);
  }
});

test('a request id is taken from the client if it is short and has no odd characters', () => {
  for (const id of ['4bf92f35-77b3', 'a', 'x:y/z+1=', 'n'.repeat(128)]) assert.equal(givenRequestId(origin({ 'x-request-id': id })), id);
  for (const id of ['', 'n'.repeat(129), 'a b', 'a"b', 'ä', 'a\nb']) assert.equal(givenRequestId(origin({ 'x-request-id': id })), null);
  assert.equal(givenRequestId(origin({})), null);
});

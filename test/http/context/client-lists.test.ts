import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientNetworks, mayConnect } from '../../../http/context/client-lists.js';

const listsOf = (allow: readonly string[], deny: readonly string[] = []) => ({
  allow: clientNetworks(allow).networks,
  deny: clientNetworks(deny).networks,
});

test('without an allow list all may connect that are not denied, and with one only those in it', () => {
  assert.ok(mayConnect('203.0.113.9', listsOf([])));
  assert.ok(!mayConnect('203.0.113.9', listsOf([], ['203.0.113.0/24'])));
  assert.ok(mayConnect('203.0.112.9', listsOf([], ['203.0.113.0/24'])));
  const lists = listsOf(['10.0.0.0/8', 'fd00::/8', '192.0.2.7']);
  for (const address of ['10.255.0.1', 'fd12::1', '192.0.2.7']) assert.ok(mayConnect(address, lists), address);
  for (const address of ['11.0.0.1', 'fe80::1', '192.0.2.8', '127.0.0.1', '::1']) assert.ok(!mayConnect(address, lists), address);
});

test('who is in both lists may not connect', () => {
  assert.ok(!mayConnect('10.1.1.1', listsOf(['10.0.0.0/8'], ['10.1.0.0/16'])));
  assert.ok(mayConnect('10.2.1.1', listsOf(['10.0.0.0/8'], ['10.1.0.0/16'])));
});

test('an IPv4 client is the same one over a socket of IPv6, in the lists too', () => {
  for (const entry of ['10.0.0.0/8', '::ffff:10.0.0.0/104']) {
    assert.ok(mayConnect('::ffff:10.1.2.3', listsOf([entry])), entry);
    assert.ok(mayConnect('10.1.2.3', listsOf([entry])), entry);
    assert.ok(!mayConnect('::ffff:11.1.2.3', listsOf([entry])), entry);
    assert.ok(!mayConnect('::ffff:10.1.2.3', listsOf([], [entry])), entry);
  }
});

test('a client without an address (it has gone already) may not connect', () => {
  assert.ok(!mayConnect('', listsOf([], ['10.0.0.0/8'])));
});

test('entries that are neither an address nor a network are told apart', () => {
  assert.deepEqual(clientNetworks(['10.0.0.0/8', 'example.org', '10.0.0.0/64', '::1']).wrong, ['example.org', '10.0.0.0/64']);
});

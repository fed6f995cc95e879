import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OpenConnections, openConnectionsData } from '../../../http/context/open-connections.js';
import { addressBytes } from '../../../protocols/addresses.js';

const MAX = 100;
const bytesOf = (address: string): Uint8Array => addressBytes(address) as Uint8Array;
const dataOf = (maxPerClient: number) => openConnectionsData({ max: MAX, maxPerClient, lanes: 3, seeds: [123_456_789, 987_654_321] });

test('connections of all threads count together, and closed ones make room', () => {
  const data = dataOf(MAX);
  const threads = [0, 1, 2].map((lane) => new OpenConnections(data, lane)) as [OpenConnections, OpenConnections, OpenConnections];
  const open = (at: number) => threads[at % 3]?.open(bytesOf(`10.0.0.${at}`));
  for (let at = 0; at < MAX; at++) assert.equal(open(at), null);
  assert.equal(open(MAX), 'node');
  assert.equal(threads[1].count(), MAX);
  threads[0].close(bytesOf('10.0.0.0'));
  assert.equal(open(MAX), null);
  assert.equal(open(MAX + 1), 'node');
});

test('one client cannot take what others need, and a refused connection counts for nobody', () => {
  const data = dataOf(10);
  const [first, second] = [0, 1].map((lane) => new OpenConnections(data, lane)) as [OpenConnections, OpenConnections];
  const greedy = bytesOf('192.0.2.1');
  for (let at = 0; at < 10; at++) assert.equal((at % 2 === 0 ? first : second).open(greedy), null);
  for (let at = 0; at < 50; at++) assert.equal(first.open(greedy), 'client');
  assert.equal(second.count(), 10);
  for (let at = 0; at < 80; at++) assert.equal(second.open(bytesOf(`198.51.100.${at}`)), null);
  first.close(greedy);
  assert.equal(second.open(greedy), null);
});

test('a network of IPv6 that one host has is one client', () => {
  const open = new OpenConnections(dataOf(2), 0);
  assert.equal(open.open(bytesOf('2001:db8:1:1::1')), null);
  assert.equal(open.open(bytesOf('2001:db8:1:1::2')), null);
  assert.equal(open.open(bytesOf('2001:db8:1:1:ffff::3')), 'client');
  assert.equal(open.open(bytesOf('2001:db8:1:2::1')), null);
});

test('what a lost thread had open is taken off', () => {
  const data = dataOf(10);
  const [main, lost] = [0, 2].map((lane) => new OpenConnections(data, lane)) as [OpenConnections, OpenConnections];
  const address = bytesOf('192.0.2.1');
  for (let at = 0; at < 9; at++) assert.equal(lost.open(address), null);
  assert.equal(main.open(address), null);
  assert.equal(main.open(address), 'client');
  main.clear(2);
  assert.equal(main.count(), 1);
  assert.equal(main.open(address), null);
});

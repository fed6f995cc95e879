/** What changes on a real node, followed over a real connection. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventParser } from '../../web/model/event-stream.js';
import { API_KEY, tokenOf } from '../http/access/tokens.js';
import { EventReader } from './event-reader.js';
import { nodeFor, temporaryFolder } from './support.js';

test('a client hears of collections, replicas, optimizations and actors as they change, and goes on where it was', async (t) => {
  const environment = { SERVICE__SERVICE__API_KEY: API_KEY, SERVICE__SERVICE__JWT_RBAC: 'true' };
  const { url } = await nodeFor(t, { folder: await temporaryFolder(t), environment });
  const headers = { 'api-key': API_KEY };
  const call = async (method: string, path: string, body?: object): Promise<void> => {
    const response = await fetch(`${url}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    assert.equal(response.status, 200, await response.text());
  };
  const limited = tokenOf({ access: [{ collection: 'c', access: 'r' }] });
  assert.equal((await fetch(`${url}/telemetry/events`, { headers: { 'api-key': limited } })).status, 403);
  assert.equal((await fetch(`${url}/telemetry/events`)).status, 401);
  assert.equal((await fetch(`${url}/telemetry/events?topics=all`, { headers })).status, 400);

  const events = await EventReader.open(`${url}/telemetry/events`, headers);
  await events.until('ready', () => true);
  await call('PUT', '/collections/c', { vectors: { size: 2, distance: 'Dot' }, optimizers_config: { indexing_threshold: 1 } });
  await events.until('collections', ({ group, items }) => group === 'c' && items[0]?.status !== undefined);
  await events.until('replicas', ({ group, items }) => group === 'c' && items[0]?.state === 'Active');
  await events.until('actors', ({ group, items }) => group === '/node/c' && items[0]?.kind === 'collection');
  const points = Array.from({ length: 2000 }, (_, id) => ({ id, vector: [id, 1] }));
  await call('PUT', '/collections/c/points?wait=true', { points });
  await events.until('collections', ({ items }) => items[0]?.points_count === 2000);
  await events.until('optimizations', ({ group, items }) => group === 'c' && items[0]?.last != null);

  const { lastId } = events;
  events.close();
  await call('DELETE', '/collections/c');
  const again = await EventReader.open(`${url}/telemetry/events`, { ...headers, 'last-event-id': lastId });
  await again.until('collections', ({ group, items }) => group === 'c' && items.length === 0);
  assert.deepEqual(again.names.slice(0, 1), ['hello']);
  assert.ok(!again.names.includes('ready'), 'nothing was told anew');
  again.close();

  const now = await (await fetch(`${url}/telemetry/events?follow=false&topics=collections`, { headers })).text();
  assert.deepEqual(
    new EventParser().push(now).map(({ name }) => name),
    ['hello', 'ready'],
  );
});

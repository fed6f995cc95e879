/** What a newcomer does: start, upload, search, kill, start again, and find the same answers; also with an unmodified client. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { QdrantClient } from '@qdrant/js-client-rest';
import { nodeFor, type ScoredPoint, temporaryFolder, untilIndexed } from './support.js';

const CITIES = [
  { id: 1, vector: [0.05, 0.61, 0.76, 0.74], payload: { city: 'Berlin', people: 3_700_000 } },
  { id: 2, vector: [0.19, 0.81, 0.75, 0.11], payload: { city: 'London', people: 8_900_000 } },
  { id: 3, vector: [0.36, 0.55, 0.47, 0.94], payload: { city: 'Moscow', people: 13_000_000 } },
  { id: 'a3f0c6de-52ab-4e43-9f4b-6d3f0c7a9b11', vector: [0.18, 0.01, 0.85, 0.8], payload: { city: 'Berlin', people: 1 } },
];

test('points uploaded over REST are found again after SIGKILL and a restart, with the same scores', async (t) => {
  const folder = await temporaryFolder(t);
  let node = await nodeFor(t, { folder });
  await node.client.result('PUT', '/collections/cities', { vectors: { size: 4, distance: 'Dot' } });
  await node.client.result('PUT', '/collections/cities/points?wait=true', { points: CITIES });

  const query = { query: [0.2, 0.1, 0.9, 0.7], limit: 3, with_payload: true };
  const filtered = { ...query, filter: { must: [{ key: 'city', match: { value: 'Berlin' } }] } };
  const ask = async () => [
    await node.client.result<{ points: ScoredPoint[] }>('POST', '/collections/cities/points/query', query),
    await node.client.result<{ points: ScoredPoint[] }>('POST', '/collections/cities/points/query', filtered),
  ];
  const before = await ask();
  assert.deepEqual(
    before[0]?.points.map((point) => point.id),
    ['a3f0c6de-52ab-4e43-9f4b-6d3f0c7a9b11', 1, 3],
  );
  assert.deepEqual(
    before[1]?.points.map((point) => point.id),
    ['a3f0c6de-52ab-4e43-9f4b-6d3f0c7a9b11', 1],
  );

  assert.deepEqual(await node.end('SIGKILL'), { code: null, signal: 'SIGKILL' });
  node = await nodeFor(t, { folder });
  // Versions and scores too: the answer is the same in every field.
  assert.deepEqual(await ask(), before);
});

test('a node ends by itself with 0 on SIGTERM', async (t) => {
  const node = await nodeFor(t, { folder: await temporaryFolder(t) });
  assert.deepEqual(await node.end('SIGTERM'), { code: 0, signal: null });
});

test('an unmodified client creates, upserts, indexes, filters, searches, scrolls and deletes', async (t) => {
  const folder = await temporaryFolder(t);
  const node = await nodeFor(t, { folder });
  const client = new QdrantClient({ url: node.url });
  await client.createCollection('books', {
    vectors: { size: 8, distance: 'Cosine' },
    optimizers_config: { indexing_threshold: 1 },
  });
  assert.deepEqual(await client.collectionExists('books'), { exists: true });
  await client.createPayloadIndex('books', { field_name: 'shelf', field_schema: 'integer', wait: true });
  const points = Array.from({ length: 500 }, (_, id) => ({
    id,
    vector: Array.from({ length: 8 }, (_, i) => Math.sin(id * (i + 1))),
    payload: { shelf: id % 10, title: `volume ${id}` },
  }));
  const upserted = await client.upsert('books', { wait: true, points });
  assert.equal(upserted.status, 'completed');
  await untilIndexed(node.client, 'books', 500);

  const found = await client.query('books', { query: points[123]?.vector ?? [], limit: 5, with_payload: true });
  assert.equal(found.points[0]?.id, 123);
  assert.deepEqual(found.points[0]?.payload, { shelf: 3, title: 'volume 123' });
  const shelf = await client.query('books', {
    query: points[123]?.vector ?? [],
    filter: { must: [{ key: 'shelf', match: { value: 7 } }] },
    limit: 50,
  });
  assert.equal(shelf.points.length, 50);
  assert.ok(shelf.points.every((point) => Number(point.id) % 10 === 7));

  await client.setPayload('books', { wait: true, points: [123], payload: { title: 'renamed' } });
  const [renamed] = await client.retrieve('books', { ids: [123] });
  assert.deepEqual(renamed?.payload, { shelf: 3, title: 'renamed' });
  await client.delete('books', { wait: true, filter: { must: [{ key: 'shelf', range: { gte: 5 } }] } });
  assert.deepEqual(await client.count('books', { exact: true }), { count: 250 });
  const page = await client.scroll('books', { limit: 3, offset: 4 });
  assert.deepEqual(
    page.points.map((point) => point.id),
    [4, 10, 11],
  );
  assert.equal(page.next_page_offset, 12);
  assert.equal((await client.getCollection('books')).points_count, 250);
  assert.equal(await client.deleteCollection('books'), true);
  assert.deepEqual(await client.getCollections(), { collections: [] });
});

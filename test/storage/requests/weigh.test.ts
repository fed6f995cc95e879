import assert from 'node:assert/strict';
import { test } from 'node:test';
import { weightOf } from '../../../storage/requests/weigh.js';
import type { RawRequest, ReadOperation, WriteOperation } from '../../../storage/threads/messages.js';
import { configOf } from '../engine/collection-fixture.js';

const { params } = configOf({ size: 2, distance: 'Dot' });

function requestOf(body: unknown): RawRequest {
  return { path: { id: '7' }, query: {}, body: Buffer.from(JSON.stringify(body)), deadlineMs: Number.POSITIVE_INFINITY };
}

const read = (operation: ReadOperation, body: unknown) => weightOf({ kind: 'read', operation, request: requestOf(body) });
const write = (operation: WriteOperation, body: unknown) => weightOf({ kind: 'write', operation, request: requestOf(body), params });

const points = (count: number) => Array.from({ length: count }, (_, id) => ({ id, vector: [id, 1] }));
const nearest = { query: [1, 0], limit: 1 };

test('a batch costs what its searches cost, and a query as many as the prefetches that search, on all levels', () => {
  assert.equal(read('query', nearest), 1);
  assert.equal(read('queryBatch', { searches: Array(6).fill(nearest) }), 6);
  const fused = { prefetch: Array(6).fill(nearest), query: { fusion: 'rrf' } };
  assert.equal(read('query', fused), 6);
  assert.equal(read('query', { prefetch: { prefetch: [nearest, nearest], query: [0, 1] }, query: [1, 1] }), 2);
  assert.equal(read('queryBatch', { searches: [fused, nearest] }), 7);
  assert.equal(read('queryGroups', { prefetch: [nearest, nearest], query: [1, 1], group_by: 'a' }), 2);
  assert.equal(read('searchBatch', { searches: [{ vector: [1, 0], limit: 1 }] }), 1);
});

test('points by their ids cost one each, a sample a search for each of its points, lists and counts one', () => {
  assert.equal(read('retrieve', { ids: [1, 2, 3] }), 3);
  assert.equal(read('retrieve', { ids: [] }), 1);
  assert.equal(read('getPoint', null), 1);
  assert.equal(read('matrixPairs', { sample: 20 }), 20);
  for (const operation of ['scroll', 'count'] as const) assert.equal(read(operation, { limit: 100 }), 1);
  assert.equal(read('facet', { key: 'a' }), 1);
});

test('a write costs as many as the points that it names, a filter one, and a batch what its operations cost', () => {
  assert.equal(write('upsertPoints', { points: points(6) }), 6);
  assert.equal(write('deletePoints', { points: [1, 2] }), 2);
  assert.equal(write('deletePoints', { filter: {} }), 1);
  assert.equal(write('setPayload', { payload: { a: 1 }, points: [1, 2, 3] }), 3);
  const operations = [{ upsert: { points: points(2) } }, { delete: { points: [1] } }, { clear_payload: { filter: {} } }];
  assert.equal(write('batchUpdate', { operations }), 4);
  assert.equal(write('createFieldIndex', { field_name: 'a', field_schema: 'keyword' }), 1);
});

test('what is no request costs nothing: it is refused as such', () => {
  assert.throws(() => read('queryBatch', { searches: 1 }), { code: 'malformedBody' });
});

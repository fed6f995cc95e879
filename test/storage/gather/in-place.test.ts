/** Which reads over many nodes stay in the thread that has the request. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TroupeError } from '../../../protocols/errors.js';
import { smallRead } from '../../../storage/gather/in-place.js';
import type { RawRequest, ReadOperation } from '../../../storage/threads/messages.js';

function isSmall(operation: ReadOperation, body: unknown, path: RawRequest['path'] = {}): boolean {
  const bytes = body === null ? null : new TextEncoder().encode(JSON.stringify(body));
  return smallRead(operation, { path, query: {}, body: bytes, deadlineMs: Date.now() + 1000 }) !== null;
}

const VECTOR = [0.5, 0.5];

test('reads of few points, which ask nodes for one thing at a time, stay in this thread', () => {
  assert.ok(isSmall('query', { query: VECTOR, limit: 10, with_payload: true }));
  assert.ok(isSmall('query', { query: { order_by: 'n' }, limit: 64 }));
  assert.ok(isSmall('query', { query: VECTOR, limit: 8, with_vector: true }));
  assert.ok(isSmall('search', { vector: VECTOR, limit: 10 }));
  assert.ok(isSmall('retrieve', { ids: [1, 2, 3], with_vector: true }));
  assert.ok(isSmall('scroll', { limit: 64 }));
  assert.ok(isSmall('count', {}));
  assert.ok(isSmall('getPoint', null, { id: '5' }));
});

test('reads of many points or vectors, of several levels, and all with large bodies go to the gather thread', () => {
  assert.ok(!isSmall('query', { query: VECTOR, limit: 60, offset: 5 }));
  assert.ok(!isSmall('query', { query: VECTOR, limit: 9, with_vector: true }));
  assert.ok(!isSmall('query', { prefetch: { query: VECTOR }, query: { fusion: 'rrf' } }));
  assert.ok(!isSmall('query', { query: { nearest: VECTOR, mmr: {} } }));
  assert.ok(!isSmall('query', { query: { recommend: { positive: [1] } } }));
  assert.ok(!isSmall('queryBatch', { searches: [{ query: VECTOR }, { query: VECTOR }] }));
  assert.ok(!isSmall('queryGroups', { query: VECTOR, group_by: 'n' }));
  assert.ok(!isSmall('facet', { key: 'n' }));
  assert.ok(!isSmall('retrieve', { ids: Array.from({ length: 65 }, (_, id) => id) }));
  assert.ok(!isSmall('query', { query: Array.from({ length: 20_000 }, () => 0.5) }));
});

test('a mistake in a small body is its error', () => {
  assert.throws(() => isSmall('query', { query: 'no id' }), TroupeError);
});

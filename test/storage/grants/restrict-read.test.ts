import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Grants } from '../../../protocols/model/scope.js';
import { decodeRead } from '../../../storage/requests/read-request.js';
import type { ReadOperation } from '../../../storage/threads/messages.js';

const GRANTS: Grants = new Map([
  ['own', { access: 'r', tenant: null }],
  ['second', { access: 'r', tenant: null }],
]);

function decode(operation: ReadOperation, body: object): void {
  const bytes = new TextEncoder().encode(JSON.stringify(body));
  decodeRead(operation, { path: { collection_name: 'own' }, query: {}, body: bytes, deadlineMs: Number.POSITIVE_INFINITY, grants: GRANTS });
}

test('every way in which a read names another collection is judged by the grants', () => {
  const lookup = (collection: string) => ({ lookup_from: { collection } });
  const bodies: readonly (readonly [ReadOperation, (collection: string) => object])[] = [
    ['query', (name) => ({ query: 1, ...lookup(name) })],
    ['query', (name) => ({ prefetch: { query: 1, ...lookup(name) }, query: [1] })],
    [
      'query',
      (name) => ({ prefetch: [{ query: [1] }, { prefetch: [{ query: 1, ...lookup(name) }], query: [1] }], query: { fusion: 'rrf' } }),
    ],
    ['queryBatch', (name) => ({ searches: [{ query: [1] }, { query: 1, ...lookup(name) }] })],
    ['queryGroups', (name) => ({ query: 1, group_by: 'k', ...lookup(name) })],
    ['queryGroups', (name) => ({ query: [1], group_by: 'k', with_lookup: name })],
    ['queryGroups', (name) => ({ query: [1], group_by: 'k', with_lookup: { collection: name } })],
    ['searchGroups', (name) => ({ vector: [1], limit: 1, group_size: 1, group_by: 'k', with_lookup: name })],
    ['recommend', (name) => ({ positive: [1], limit: 1, ...lookup(name) })],
    ['recommendBatch', (name) => ({ searches: [{ positive: [1], limit: 1, ...lookup(name) }] })],
    ['recommendGroups', (name) => ({ positive: [1], limit: 1, group_size: 1, group_by: 'k', ...lookup(name) })],
    ['recommendGroups', (name) => ({ positive: [1], limit: 1, group_size: 1, group_by: 'k', with_lookup: name })],
    ['discover', (name) => ({ target: 1, limit: 1, ...lookup(name) })],
    ['discoverBatch', (name) => ({ searches: [{ target: 1, limit: 1, ...lookup(name) }] })],
  ];
  for (const [operation, body] of bodies) {
    for (const name of ['own', 'second']) decode(operation, body(name));
    assert.throws(
      () => decode(operation, body('foreign')),
      { code: 'forbidden', detail: 'Access to collection foreign is required' },
      `${operation} ${JSON.stringify(body('foreign'))}`,
    );
  }
});

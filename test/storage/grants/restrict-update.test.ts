import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CollectionParams } from '../../../protocols/model/collection.js';
import type { Filter } from '../../../protocols/model/filter.js';
import type { Grants } from '../../../protocols/model/scope.js';
import type { UpdateOperation, WriteOperation } from '../../../protocols/model/update.js';
import { decodeWriteRequest } from '../../../storage/requests/decode-update.js';

const PARAMS = { vectors: { size: 2, distance: 'Dot' } } as unknown as CollectionParams;
const GRANTS: Grants = new Map([
  ['own', { access: 'rw', tenant: { key: 'tenant', value: 'a' } }],
  ['read', { access: 'r', tenant: null }],
]);
const TENANT: Filter = {
  must: [{ kind: 'match', key: 'tenant', match: { kind: 'value', value: 'a' } }],
  should: [],
  mustNot: [],
  minShould: null,
};

function decode(kind: WriteOperation, body: object, collection = 'own'): readonly UpdateOperation[] {
  const bytes = new TextEncoder().encode(JSON.stringify(body));
  const path = { collection_name: collection, field_name: 'f' };
  return decodeWriteRequest(kind, { path, body: bytes, grants: GRANTS }, PARAMS).operations;
}

function only(kind: WriteOperation, body: object): UpdateOperation {
  const [operation] = decode(kind, body);
  assert.ok(operation !== undefined);
  return operation;
}

test('points of a tenant get its value, and take the place of its own points alone', () => {
  const points = [
    { id: 1, vector: [1, 0] },
    { id: 2, vector: [1, 0], payload: { n: 1 } },
    { id: 3, vector: [1, 0], payload: { tenant: 'a' } },
  ];
  const operation = only('upsertPoints', { points });
  assert.ok(operation.kind === 'upsert');
  assert.deepEqual(operation.batch.payloads, [{ tenant: 'a' }, { n: 1, tenant: 'a' }, { tenant: 'a' }]);
  assert.deepEqual(operation.filter, TENANT);
});

test('selected points are those of the tenant, by ids and by filters, and a payload that is cleared keeps the value', () => {
  const ids = { points: [1, 2] };
  const byIds = { kind: 'filter', filter: { ...TENANT, must: [{ kind: 'hasId', ids: [1, 2] }, ...TENANT.must] } };
  const cases: readonly (readonly [WriteOperation, object, UpdateOperation['kind']])[] = [
    ['deletePoints', ids, 'deletePoints'],
    ['deleteVectors', { ...ids, vector: [''] }, 'deleteVectors'],
    ['setPayload', { ...ids, payload: { n: 1 } }, 'setPayload'],
    ['overwritePayload', { ...ids, payload: { n: 1 } }, 'overwritePayload'],
    ['deletePayload', { ...ids, keys: ['n'] }, 'deletePayload'],
    ['clearPayload', ids, 'overwritePayload'],
  ];
  for (const [kind, body, becomes] of cases) {
    const operation = only(kind, body);
    assert.equal(operation.kind, becomes, kind);
    assert.ok('selector' in operation);
    assert.deepEqual(operation.selector, byIds, kind);
    if (operation.kind === 'overwritePayload') assert.equal(operation.payload.tenant, 'a');
    const filtered = only(kind, { ...body, points: undefined, filter: { must: [{ key: 'n', match: { value: 1 } }] } });
    assert.ok('selector' in filtered && filtered.selector.kind === 'filter');
    assert.deepEqual(filtered.selector.filter.must.at(-1), { kind: 'filter', filter: TENANT }, kind);
  }
  const update = only('updateVectors', { points: [{ id: 1, vector: [1, 0] }] });
  assert.ok(update.kind === 'updateVectors');
  assert.deepEqual(update.filter, TENANT);
});

test('no operation gives a point another value, or none, however the place is written', () => {
  const ids = { points: [1] };
  const point = (payload: object) => ({ id: 1, vector: [1, 0], payload });
  const refused: readonly (readonly [WriteOperation, object])[] = [
    ['upsertPoints', { points: [point({ tenant: 'b' })] }],
    ['upsertPoints', { points: [point({ tenant: ['a'] })] }],
    ['upsertPoints', { batch: { ids: [1], vectors: [[1, 0]], payloads: [{ tenant: null }] } }],
    ['setPayload', { ...ids, payload: { tenant: 'b' } }],
    ['setPayload', { ...ids, payload: { tenant: ['a', 'b'] } }],
    ['setPayload', { ...ids, payload: { x: 1 }, key: 'tenant' }],
    ['setPayload', { ...ids, payload: { x: 1 }, key: 'tenant.x' }],
    ['setPayload', { ...ids, payload: { x: 1 }, key: '"tenant"' }],
    ['setPayload', { ...ids, payload: { x: 1 }, key: 'tenant[0]' }],
    ['overwritePayload', { ...ids, payload: { tenant: 'b' } }],
    ['deletePayload', { ...ids, keys: ['n', 'tenant'] }],
    ['deletePayload', { ...ids, keys: ['"tenant"'] }],
    ['deletePayload', { ...ids, keys: ['tenant[]'] }],
    ['batchUpdate', { operations: [{ delete: ids }, { set_payload: { ...ids, payload: { tenant: 'b' } } }] }],
    ['createFieldIndex', { field_name: 'f', field_schema: 'keyword' }],
    ['deleteFieldIndex', {}],
  ];
  for (const [kind, body] of refused) assert.throws(() => decode(kind, body), { code: 'forbidden' }, `${kind} ${JSON.stringify(body)}`);
  decode('setPayload', { ...ids, payload: { tenant: 'a', tenants: 'b' } });
  decode('deletePayload', { ...ids, keys: ['tenants', 'x.tenant'] });
});

test('a collection that is not granted, or only for reading, is not written, whatever the door has let through', () => {
  for (const collection of ['read', 'another'])
    assert.throws(() => decode('deletePoints', { points: [1] }, collection), { code: 'forbidden' });
});

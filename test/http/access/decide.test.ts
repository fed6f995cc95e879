import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ANYONE, type Caller, PROGRAM, type TokenAccess } from '../../../http/access/caller.js';
import { decideAccess } from '../../../http/access/decide.js';
import { ROUTES, type Route } from '../../../http/routes.js';
import { ACCESS_CASES, type AccessCase, MISSING, OWN } from './access-table.js';

function token(access: TokenAccess): Caller {
  return { kind: 'token', subject: null, fingerprint: '0'.repeat(16), access, valueExists: null };
}

function forCollections(access: 'r' | 'rw', ...names: readonly string[]): Caller {
  return token({ kind: 'collections', grants: new Map(names.map((name) => [name, { access, tenant: null }])) });
}

/** Each kind of caller, and what it may do by the table. */
const CALLERS: readonly (readonly [string, Caller, (row: AccessCase) => boolean])[] = [
  ['anyone', ANYONE, () => true],
  ['a program', PROGRAM, () => true],
  ['a stranger', { kind: 'stranger', reason: 'missing', text: '' }, (row) => row.isOpen],
  ['api_key', { kind: 'key', setting: 'service.api_key' }, (row) => row.manage !== 'N'],
  ['alt_api_key', { kind: 'key', setting: 'service.alt_api_key' }, (row) => row.manage !== 'N'],
  ['read_only_api_key', { kind: 'key', setting: 'service.read_only_api_key' }, (row) => row.read !== 'N'],
  ['manage', token({ kind: 'manage' }), (row) => row.manage !== 'N'],
  ['read', token({ kind: 'read' }), (row) => row.read !== 'N'],
  ['collection rw', forCollections('rw', OWN, MISSING), (row) => row.collectionWrite !== 'N'],
  ['collection r', forCollections('r', OWN, MISSING), (row) => row.collectionRead !== 'N'],
  ['another collection', forCollections('rw', 'another'), (row) => row.collectionWrite !== 'N' && collectionOf(row) === null],
  ['no collection', forCollections('rw'), (row) => row.collectionWrite !== 'N' && collectionOf(row) === null],
];

function collectionOf({ name, path }: AccessCase): string | null {
  return routeOf(name).path.includes('{collection_name}') ? (path.split('/')[2] as string) : null;
}

function routeOf(name: string): Route {
  const route = ROUTES.find((each) => each.name === name);
  assert.ok(route !== undefined, name);
  return route;
}

test('every operation stands in the table once', () => {
  assert.deepEqual(ACCESS_CASES.map(({ name }) => name).sort(), ROUTES.map(({ name }) => name).sort());
});

test('every operation is allowed to whom the table allows it, and to nobody else', () => {
  for (const row of ACCESS_CASES) {
    for (const [who, caller, isAllowed] of CALLERS) {
      const denial = decideAccess(caller, routeOf(row.name), collectionOf(row));
      assert.equal(denial === null, isAllowed(row), `${who}: ${row.name}: ${denial?.detail ?? 'allowed'}`);
    }
  }
});

test('a denial says what would be needed, and of a collection nothing but its name', () => {
  const detailOf = (caller: Caller, name: string, collection: string | null) => decideAccess(caller, routeOf(name), collection)?.detail;
  const reader = forCollections('r', OWN);
  assert.equal(detailOf(reader, 'upsert_points', OWN), 'Write access to collection own is required');
  assert.equal(detailOf(reader, 'upsert_points', 'another'), 'Access to collection another is required');
  assert.equal(detailOf(reader, 'collection_exists', 'nothing'), 'Access to collection nothing is required');
  assert.equal(detailOf(reader, 'create_collection', 'nothing'), 'Global access is required');
  assert.equal(detailOf({ kind: 'key', setting: 'service.read_only_api_key' }, 'upsert_points', OWN), 'Global manage access is required');
});

test('a stranger is told that it is one: with a token that is no longer in force by another code', () => {
  const codeOf = (reason: Extract<Caller, { kind: 'stranger' }>['reason']) =>
    decideAccess({ kind: 'stranger', reason, text: 'why' }, routeOf('count_points'), OWN);
  for (const reason of ['missing', 'unknown', 'badClaims', 'revoked'] as const)
    assert.deepEqual(codeOf(reason), { code: 'unauthorized', detail: 'why' });
  for (const reason of ['expired', 'early', 'badSignature'] as const)
    assert.deepEqual(codeOf(reason), { code: 'tokenRefused', detail: 'why' });
});

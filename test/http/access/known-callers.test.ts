import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import type { Caller, KeySetting } from '../../../http/access/caller.js';
import { Keys } from '../../../http/access/keys.js';
import { openKnownCallers } from '../../../http/access/known-callers.js';
import { ALT_KEY, API_KEY, READ_KEY, type Signing, tokenOf } from './tokens.js';

const KEYS: ReadonlyMap<KeySetting, string> = new Map([
  ['service.api_key', API_KEY],
  ['service.alt_api_key', ALT_KEY],
  ['service.read_only_api_key', READ_KEY],
]);
const NOW_SECONDS = 1_800_000_000;

async function callersAt(seconds: number, tokens = true, keys = KEYS) {
  const clock = { seconds };
  const callers = await openKnownCallers({ keys, tokens }, () => clock.seconds * 1000);
  assert.ok(callers !== null);
  return { clock, callerOf: (credential: string | null) => callers.callerOf(credential) };
}

/** What kind of caller it is, with the reason of a stranger. */
function kindOf(caller: Caller): string {
  return caller.kind === 'stranger' ? caller.reason : caller.kind === 'key' ? caller.setting : caller.kind;
}

test('each key is found by its setting, and nothing that is not whole', async () => {
  const { callerOf } = await callersAt(NOW_SECONDS);
  const expected: readonly (readonly [string | null, string])[] = [
    [API_KEY, 'service.api_key'],
    [ALT_KEY, 'service.alt_api_key'],
    [READ_KEY, 'service.read_only_api_key'],
    [null, 'missing'],
    ['', 'unknown'],
    [API_KEY.slice(0, -1), 'unknown'],
    [`${API_KEY}x`, 'unknown'],
    [`${API_KEY}\0`, 'unknown'],
    [` ${API_KEY}`, 'unknown'],
    [API_KEY.toUpperCase(), 'unknown'],
    ['x'.repeat(100_000), 'unknown'],
  ];
  for (const [credential, kind] of expected) assert.equal(kindOf(callerOf(credential)), kind, String(credential).slice(0, 50));
});

test('a key of other characters than ASCII is the one whose bytes a client sends', () => {
  const keys = new Keys(new Map([['service.api_key', 'schlüssel 鍵']]));
  assert.equal(keys.find(Buffer.from('schlüssel 鍵').toString('latin1')), 'service.api_key');
  assert.equal(keys.find('schlüssel 鍵'), null);
});

test('a key as long as a head allows is compared to its end', () => {
  const long = 'k'.repeat(5000);
  const keys = new Keys(new Map([['service.api_key', long]]));
  assert.equal(keys.find(long), 'service.api_key');
  assert.equal(keys.find(`${long.slice(1)}x`), null);
  assert.equal(keys.find(`${long}k`), null);
});

test('a credential is compared with every key, by the comparison that takes the same time for all', () => {
  const equal = mock.method(process.getBuiltinModule('node:crypto'), 'timingSafeEqual');
  try {
    const keys = new Keys(KEYS);
    for (const credential of [API_KEY, 'wrong', READ_KEY]) {
      const before = equal.mock.callCount();
      keys.find(credential);
      assert.equal(equal.mock.callCount() - before, KEYS.size, credential);
    }
    const lengths = new Set(equal.mock.calls.flatMap(({ arguments: [left, right] }) => [left.byteLength, right.byteLength]));
    assert.equal(lengths.size, 1, 'as if all had one length');
  } finally {
    equal.mock.restore();
  }
});

test('tokens: who signed them, when they are in force, and what they claim', async () => {
  const { callerOf } = await callersAt(NOW_SECONDS);
  const at = (seconds: number) => NOW_SECONDS + seconds;
  const expected: readonly (readonly [string, unknown, string, Signing?])[] = [
    ['manage', { access: 'm' }, 'token'],
    ['nothing: manage', {}, 'token'],
    ['registered claims', { sub: 'a', iss: 'b', aud: ['c'], jti: 'd', iat: at(99), nbf: at(0), exp: at(1) }, 'token'],
    ['no type', {}, 'token', { header: { alg: 'HS256' } }],
    ['with the alternative key', {}, 'token', { key: ALT_KEY }],
    ['with the key for reading', {}, 'badSignature', { key: READ_KEY }],
    ['with another key', {}, 'badSignature', { key: 'another' }],
    ['expired', { exp: at(-31) }, 'expired'],
    ['expired long ago', { exp: 0 }, 'expired'],
    ['expired within the grace', { exp: at(-30) }, 'token'],
    ['not yet valid', { nbf: at(31) }, 'early'],
    ['not yet valid within the grace', { nbf: at(30) }, 'token'],
    ['expired and badly signed', { exp: 0 }, 'badSignature', { key: 'another' }],
    ['no algorithm', {}, 'unknown', { header: { alg: 'none', typ: 'JWT' }, hash: null }],
    ['no algorithm, signed', {}, 'unknown', { header: { alg: 'none', typ: 'JWT' } }],
    ['no signature', {}, 'badSignature', { hash: null }],
    ['another algorithm', {}, 'unknown', { header: { alg: 'HS512', typ: 'JWT' }, hash: 'sha512' }],
    ['another algorithm in the header only', {}, 'unknown', { header: { alg: 'HS512', typ: 'JWT' } }],
    ['the algorithm in the header only', {}, 'badSignature', { hash: 'sha512' }],
    ['public keys', {}, 'unknown', { header: { alg: 'RS256', typ: 'JWT' } }],
    ['a critical extension', {}, 'unknown', { header: { alg: 'HS256', typ: 'JWT', crit: ['b64'], b64: false } }],
    ['claims that are no JSON', '{', 'unknown'],
    ['claims that are no object', [], 'badClaims'],
    ['claims that are nothing', 'null', 'unknown'],
    ['a claim that there is not', { access: 'r', acces: 'm' }, 'badClaims'],
    ['a prototype', '{"__proto__":{"access":"m"},"access":"r"}', 'badClaims'],
    ['a time as a text', { exp: 'never' }, 'badClaims'],
    ['a broken time', { exp: 1.5 }, 'badClaims'],
    ['a subject that is no text', { sub: 1 }, 'badClaims'],
    ...[null, 5, 'x', 'rw', '', {}, ['c'], [null], [{ collection: 'c' }], [{ access: 'r' }]].map(
      (access) => [`access ${JSON.stringify(access)}`, { access }, 'badClaims'] as const,
    ),
    ['a collection to manage', { access: [{ collection: 'c', access: 'm' }] }, 'badClaims'],
    ['a collection and more', { access: [{ collection: 'c', access: 'r', payload: {} }] }, 'badClaims'],
    ['a collection twice', { access: ['r', 'rw'].map((access) => ({ collection: 'c', access })) }, 'badClaims'],
    ['no collections', { access: [] }, 'token'],
    ['a value', { value_exists: { collection: 'c', matches: [{ key: 'k', value: 3 }] } }, 'token'],
    ['no value', { value_exists: { collection: 'c', matches: [] } }, 'token'],
    ...[
      null,
      [],
      {},
      { collection: 'c' },
      { collection: 'c', matches: [{}] },
      { collection: 'c', matches: [{ key: 'k', value: 1.5 }] },
    ].map((value_exists) => [`value_exists ${JSON.stringify(value_exists)}`, { value_exists }, 'badClaims'] as const),
  ];
  for (const [name, claims, kind, signing] of expected) {
    for (const turn of ['first', 'second']) assert.equal(kindOf(callerOf(tokenOf(claims, signing))), kind, `${name}, ${turn} time`);
  }
  for (const garbage of ['a.b.c', 'abc.def', '..', 'é.é.é', '=.=.=', tokenOf({}).slice(0, -1), `${tokenOf({})}.`, `x${tokenOf({})}`])
    assert.match(kindOf(callerOf(garbage)), /^(unknown|badSignature)$/, garbage);
});

test('a token that was checked is over at its time, and is not in force when the clock goes back', async () => {
  const { callerOf, clock } = await callersAt(NOW_SECONDS);
  const token = tokenOf({ nbf: NOW_SECONDS, exp: NOW_SECONDS + 10 });
  assert.equal(kindOf(callerOf(token)), 'token');
  clock.seconds = NOW_SECONDS + 40;
  assert.equal(kindOf(callerOf(token)), 'token');
  clock.seconds = NOW_SECONDS + 41;
  assert.equal(kindOf(callerOf(token)), 'expired');
  clock.seconds = NOW_SECONDS - 31;
  assert.equal(kindOf(callerOf(token)), 'early');
});

test('a token says who it belongs to and leads nobody to itself', async () => {
  const { callerOf } = await callersAt(NOW_SECONDS);
  const token = tokenOf({ sub: 'ann', access: [{ collection: 'c', access: 'rw' }] });
  const caller = callerOf(token);
  assert.deepEqual(caller, {
    kind: 'token',
    subject: 'ann',
    fingerprint: (caller as { fingerprint: string }).fingerprint,
    access: { kind: 'collections', grants: new Map([['c', { access: 'rw', tenant: null }]]) },
    valueExists: null,
  });
  assert.match((caller as { fingerprint: string }).fingerprint, /^[0-9a-f]{16}$/);
  assert.equal(callerOf(token), caller, 'the same one each time');
  assert.notEqual(
    (callerOf(tokenOf({ sub: 'bob' })) as { fingerprint: string }).fingerprint,
    (caller as { fingerprint: string }).fingerprint,
  );
});

test('many tokens are forgotten in turn, and each is checked again', async () => {
  const { callerOf } = await callersAt(NOW_SECONDS);
  const tokens = Array.from({ length: 1100 }, (_, at) => tokenOf({ sub: `s${at}` }));
  const first = callerOf(tokens[0] as string);
  for (const token of tokens) callerOf(token);
  const again = callerOf(tokens[0] as string);
  assert.deepEqual(again, first);
  assert.notEqual(again, first);
});

test('without service.jwt_rbac a token is nothing, and with it alone the second key signs during a rotation', async () => {
  const without = await callersAt(NOW_SECONDS, false);
  assert.equal(kindOf(without.callerOf(tokenOf({}))), 'unknown');
  const rotated = await callersAt(
    NOW_SECONDS,
    true,
    new Map([
      ['service.api_key', 'new'],
      ['service.alt_api_key', API_KEY],
    ]),
  );
  assert.equal(kindOf(rotated.callerOf(tokenOf({}))), 'token');
  assert.equal(kindOf(rotated.callerOf(tokenOf({}, { key: 'new' }))), 'token');
  assert.equal(await openKnownCallers(null, Date.now), null);
});

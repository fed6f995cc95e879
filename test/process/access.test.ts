/** Who may do what on a real node: every operation by every kind of credential, over the plain path, Fastify and gRPC; and attacks. */

import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { test } from 'node:test';
import { Metadata } from '@grpc/grpc-js';
import { ROUTES } from '../../http/routes.js';
import { ACCESS_CASES, type AccessCase, MISSING, OWN } from '../http/access/access-table.js';
import { ALT_KEY, API_KEY, READ_KEY, type Signing, secondsFromNow, tokenOf } from '../http/access/tokens.js';
import { failure, GrpcClient } from '../http/grpc/client.js';
import { askWithCredentials, EXPECTED_OF_CREDENTIALS } from './clients/with-credentials.js';
import { type NodeUnderTest, nodeFor, temporaryFolder } from './support.js';

const UNAUTHENTICATED = 16;
const PERMISSION_DENIED = 7;
const AT_ONCE = 24;

type Outcome = 'allowed' | 'unknown' | 'refused token' | 'forbidden';

interface Holder {
  readonly name: string;
  readonly credential: string | null;
  readonly outcome: (row: AccessCase) => Outcome;
}

const ENVIRONMENT = {
  SERVICE__SERVICE__API_KEY: API_KEY,
  SERVICE__SERVICE__ALT_API_KEY: ALT_KEY,
  SERVICE__SERVICE__READ_ONLY_API_KEY: READ_KEY,
  SERVICE__SERVICE__JWT_RBAC: 'true',
};

const grants = (access: string, ...names: readonly string[]) => ({ access: names.map((collection) => ({ collection, access })) });
const exists = (value: string) => ({ value_exists: { collection: OWN, matches: [{ key: 'user', value }] } });

const known =
  (right: 'manage' | 'read' | 'collectionWrite' | 'collectionRead') =>
  (row: AccessCase): Outcome =>
    row[right] === 'N' ? 'forbidden' : 'allowed';
const TENANT = { key: 'user', value: 'u1' };
/** Of a collection, its points alone, and that it is there. */
const tenant = (row: AccessCase): Outcome =>
  row.collectionWrite === 'N' || (!row.isOpen && isOfCollection(row) && !OF_POINTS.test(row.path)) ? 'forbidden' : 'allowed';
const OF_POINTS = /^\/collections\/\w+\/(points|facet|exists)/;
const elsewhere = (row: AccessCase): Outcome =>
  row.collectionWrite === 'N' || (!row.isOpen && isOfCollection(row)) ? 'forbidden' : 'allowed';
const stranger =
  (outcome: Outcome) =>
  (row: AccessCase): Outcome =>
    row.isOpen ? 'allowed' : outcome;

const HOLDERS: readonly Holder[] = [
  { name: 'nobody', credential: null, outcome: stranger('unknown') },
  { name: 'a wrong key', credential: 'wrong', outcome: stranger('unknown') },
  { name: 'no key', credential: '', outcome: stranger('unknown') },
  { name: 'api_key', credential: API_KEY, outcome: known('manage') },
  { name: 'alt_api_key', credential: ALT_KEY, outcome: known('manage') },
  { name: 'read_only_api_key', credential: READ_KEY, outcome: known('read') },
  holder('manage', { access: 'm' }, known('manage')),
  holder('no claims', {}, known('manage')),
  holder('signed with the alternative key', { access: 'm' }, known('manage'), { key: ALT_KEY }),
  holder('read', { access: 'r' }, known('read')),
  holder('collections rw', grants('rw', OWN, MISSING), known('collectionWrite')),
  holder('collections r', grants('r', OWN, MISSING), known('collectionRead')),
  holder('a tenant', { access: [OWN, MISSING].map((collection) => ({ collection, access: 'rw', tenant: TENANT })) }, tenant),
  holder('another collection', grants('rw', 'another'), elsewhere),
  holder('an alias of the collection', grants('rw', 'alias'), elsewhere),
  holder('no collection', { access: [] }, elsewhere),
  {
    name: 'within the grace',
    // Made anew for each request: on a slow machine the grace of one for all would be over before the last request.
    get credential() {
      return tokenOf({ access: 'm', exp: secondsFromNow(-5) });
    },
    outcome: known('manage'),
  },
  holder('expired', { access: 'm', exp: secondsFromNow(-60) }, stranger('refused token')),
  holder('not yet valid', { access: 'm', nbf: secondsFromNow(600) }, stranger('refused token')),
  holder('wrong secret', { access: 'm' }, stranger('refused token'), { key: 'another' }),
  holder('signed with the key for reading', { access: 'm' }, stranger('refused token'), { key: READ_KEY }),
  holder('another algorithm', { access: 'm' }, stranger('unknown'), { header: { alg: 'HS512', typ: 'JWT' }, hash: 'sha512' }),
  holder('no algorithm', { access: 'm' }, stranger('unknown'), { header: { alg: 'none', typ: 'JWT' }, hash: null }),
  holder('a claim that there is not', { access: 'r', acess: 'm' }, stranger('unknown')),
  holder('a value that exists', { access: 'm', ...exists('u1') }, known('manage')),
  holder('a value that does not exist', { access: 'm', ...exists('u9') }, stranger('unknown')),
];

function holder(name: string, claims: object, outcome: Holder['outcome'], signing?: Signing): Holder {
  return { name, credential: tokenOf(claims, signing), outcome };
}

function isOfCollection({ name }: AccessCase): boolean {
  return ROUTES.find((route) => route.name === name)?.path.includes('{collection_name}') === true;
}

test('access', async (context) => {
  const node = await nodeFor(context, { folder: await temporaryFolder(context), environment: ENVIRONMENT });
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  context.after(() => agent.destroy());
  const rest = (method: string, path: string, body: object | undefined, headers: Record<string, string>) =>
    send(agent, node.port, method, path, body, headers);
  const manage = async (method: string, path: string, body: object) => {
    const { status, text } = await rest(method, path, body, { 'api-key': API_KEY });
    assert.equal(status, 200, text);
  };
  await manage('PUT', `/collections/${OWN}`, { vectors: { size: 2, distance: 'Dot' } });
  await manage('PUT', '/collections/foreign', { vectors: { size: 2, distance: 'Dot' } });
  const users = [1, 2, 3].map((id) => ({ id, vector: [id, 1], payload: { n: id, user: `u${id}` } }));
  await manage('PUT', `/collections/${OWN}/points?wait=true`, { points: users });
  await manage('PUT', '/collections/foreign/points?wait=true', { points: users });
  await manage('POST', '/collections/aliases', {
    actions: [
      { create_alias: { collection_name: OWN, alias_name: 'alias' } },
      { create_alias: { collection_name: 'foreign', alias_name: 'foreign-alias' } },
    ],
  });

  for (const [door, extra] of [
    ['the plain path', {}],
    // A field that the plain path leaves to Node's HTTP server.
    ['Fastify', { origin: 'http://localhost' }],
  ] as const) {
    await context.test(`every operation by every credential over ${door}`, async (t) => {
      const cells = ACCESS_CASES.flatMap((row) => HOLDERS.map((who, at) => ({ row, who, at })));
      const wrong = await differing(cells, async ({ at, row, who }) => {
        const headers = { ...extra, ...headersOf(who.credential, at) };
        const reply = await rest(row.method, row.path, row.body, headers);
        return [`${row.name} by ${who.name}`, restOutcome(reply), who.outcome(row), reply.text];
      });
      t.diagnostic(`${cells.length} cells`);
      assert.deepEqual(wrong, []);
    });
  }

  await context.test('every operation by every credential over gRPC', async (t) => {
    const clients = Array.from({ length: 4 }, (_, at) => new GrpcClient(node.grpcPort, { 'troupe.client': at }));
    const cells = ACCESS_CASES.flatMap((row) => {
      const grpc = ROUTES.find(({ name }) => name === row.name)?.grpc;
      return grpc == null ? [] : HOLDERS.map((who, at) => ({ method: grpc.slice('qdrant.'.length), row, who, at }));
    });
    const wrong = await differing(cells, async ({ at, method, row, who }) => {
      const client = clients[at % clients.length] as GrpcClient;
      const message = isOfCollection(row) ? { collection_name: row.path.split('/')[2] } : {};
      const { code, details } = await client.call(method, message, {}, metadataOf(who.credential, at)).then(
        () => ({ code: 0, details: '' }),
        (error: { code: number; details: string }) => error,
      );
      return [`${method} by ${who.name}`, grpcOutcome(code, details), who.outcome(row), `${code} ${details}`];
    });
    for (const client of clients) client.close();
    t.diagnostic(`${cells.length} cells`);
    assert.deepEqual(wrong, []);
  });

  await context.test('unmodified clients for REST and gRPC are answered by their key or token', async () => {
    const credentials = { key: API_KEY, reader: tokenOf(grants('r', 'asked')), stranger: tokenOf(grants('rw', OWN)) };
    const urls = { rest: node.url, grpc: `http://127.0.0.1:${node.grpcPort}` };
    assert.deepEqual(await askWithCredentials(urls, credentials, 'asked'), EXPECTED_OF_CREDENTIALS);
  });

  await context.test('lists show a token what it may know of, and no body leads it to another collection', async () => {
    const token = tokenOf(grants('r', OWN, 'foreign-alias'));
    const ask = (method: string, path: string, body?: object) => rest(method, path, body, { authorization: `Bearer ${token}` });
    const resultOf = async (path: string) => (JSON.parse((await ask('GET', path)).text) as { result: object }).result;
    assert.deepEqual(await resultOf('/collections'), { collections: [{ name: OWN }] });
    assert.deepEqual(await resultOf('/aliases'), { aliases: [] });
    assert.deepEqual(await resultOf('/issues'), { issues: [] });
    const lookups: readonly (readonly [string, (collection: string) => object])[] = [
      ['query', (collection) => ({ query: 1, lookup_from: { collection } })],
      ['query', (collection) => ({ prefetch: [{ query: 1, lookup_from: { collection } }], query: [1, 0] })],
      ['query/batch', (collection) => ({ searches: [{ query: [1, 0] }, { query: 1, lookup_from: { collection } }] })],
      ['query/groups', (collection) => ({ query: [1, 0], group_by: 'n', with_lookup: collection })],
      ['recommend', (collection) => ({ positive: [1], limit: 1, lookup_from: { collection } })],
      ['discover/batch', (collection) => ({ searches: [{ target: 1, limit: 1, lookup_from: { collection } }] })],
    ];
    for (const [operation, body] of lookups) {
      const path = `/collections/${OWN}/points/${operation}`;
      for (const [collection, status] of [
        [OWN, 200],
        ['foreign-alias', 200],
        ['foreign', 403],
        ['alias', 403],
        ['nothing', 403],
      ] as const)
        assert.equal((await ask('POST', path, body(collection))).status, status, `${operation} ${collection}`);
    }
    assert.equal((await ask('POST', '/collections/alias/points/count', {})).status, 403, 'the collection by an alias');
    assert.equal((await ask('POST', '/collections/foreign-alias/points/count', {})).status, 200, 'an alias by its name');
  });

  await context.test('what is said of a collection is the same whether it exists or not', async () => {
    const token = tokenOf(grants('rw', OWN));
    for (const { body, method, path } of ACCESS_CASES.filter(isOfCollection)) {
      const replies = ['foreign', 'nothing'].map((name) => rest(method, withCollection(path, name), body, { 'api-key': token }));
      const [there, not] = (await Promise.all(replies)).map(({ status, text }) => ({ status, text: text.replace(/"time":[^}]*/, '') }));
      assert.deepEqual(not, { status: there?.status, text: there?.text.replaceAll('foreign', 'nothing') }, path);
    }
  });

  await context.test('a token is revoked by the point that it wants, from the next request on', async () => {
    const token = tokenOf({ access: 'r', ...exists('u2') });
    const grpc = new GrpcClient(node.grpcPort);
    const count = async () => {
      const call = grpc.call('Points/Count', { collection_name: OWN }, {}, metadataOf(token, 0));
      const grpcCode = await call.then(
        () => 0,
        ({ code }: { code: number }) => code,
      );
      const { status } = await rest('POST', `/collections/${OWN}/points/count`, {}, { 'api-key': token });
      return [status, grpcCode];
    };
    const set = (user: string) => manage('POST', `/collections/${OWN}/points/payload?wait=true`, { payload: { user }, points: [2] });
    for (let turn = 0; turn < 3; turn++) {
      assert.deepEqual(await count(), [200, 0]);
      await set('nobody');
      assert.deepEqual(await count(), [401, UNAUTHENTICATED]);
      await set('u2');
    }
    assert.deepEqual(await count(), [200, 0]);
    grpc.close();
    const ofNothing = tokenOf({ value_exists: { collection: 'nothing', matches: [] } });
    assert.equal((await rest('GET', '/collections', undefined, { 'api-key': ofNothing })).status, 403);
  });

  await context.test('a tenant sees, finds and changes its own points alone', async () => {
    const tenants = ['a', 'b'].map((tenant) => [
      tenant,
      tokenOf({ access: [{ collection: 'shared', access: 'rw', tenant: { key: 'tenant', value: tenant } }] }),
    ]);
    const tokens = new Map(tenants as [string, string][]);
    const as = async (tenant: string | null, method: string, path: string, body?: object) => {
      const reply = await rest(method, `/collections/shared${path}`, body, {
        'api-key': tenant === null ? API_KEY : (tokens.get(tenant) as string),
      });
      return {
        status: reply.status,
        result: reply.text.startsWith('{') ? (JSON.parse(reply.text) as { result: never }).result : reply.text,
      } as {
        status: number;
        result: never;
      };
    };
    await as(null, 'PUT', '', { vectors: { size: 2, distance: 'Dot' } });
    for (const field of ['tenant', 'n']) await as(null, 'PUT', '/index?wait=true', { field_name: field, field_schema: 'keyword' });
    const upsert = (tenant: string | null, ids: readonly number[], payload: object = {}) =>
      as(tenant, 'PUT', '/points?wait=true', { points: ids.map((id) => ({ id, vector: [id, 1], payload: { n: `n${id}`, ...payload } })) });
    const everything = async (): Promise<readonly { id: number; payload: Record<string, unknown>; vector: unknown }[]> =>
      ((await as(null, 'POST', '/points/scroll', { limit: 100, with_vector: true })).result as { points: never }).points;
    assert.equal((await upsert('a', [1, 2, 3])).status, 200);
    assert.equal((await upsert('b', [4, 5, 6])).status, 200);
    assert.equal((await upsert(null, [7])).status, 200);
    assert.deepEqual(
      (await everything()).map(({ id, payload }) => [id, payload.tenant]),
      [1, 2, 3]
        .map((id) => [id, 'a'])
        .concat(
          [4, 5, 6].map((id) => [id, 'b']),
          [[7, undefined]] as never,
        ),
    );

    const idsIn = (result: unknown): number[] => [...JSON.stringify(result).matchAll(/"id":(\d+)/g)].map((match) => Number(match[1]));
    const target = { query: [1, 0], limit: 50 };
    const reads: readonly (readonly [string, object])[] = [
      ['scroll', { limit: 50 }],
      ['scroll', { limit: 50, offset: 4 }],
      ['scroll', { limit: 50, filter: { should: [{ has_id: [4, 5] }, { key: 'tenant', match: { value: 'b' } }] } }],
      ['scroll', { limit: 50, filter: { must_not: [{ key: 'tenant', match: { value: 'a' } }] } }],
      ['query', target],
      ['query', {}],
      ['query', { ...target, filter: { must: [{ key: 'tenant', match: { value: 'b' } }] } }],
      ['query', { prefetch: [target, { limit: 50 }], query: { fusion: 'rrf' }, limit: 50 }],
      ['query', { prefetch: { prefetch: target, query: [0, 1], limit: 50 }, query: { formula: { sum: ['$score', 1] } }, limit: 50 }],
      ['query', { query: { sample: 'random' }, limit: 50 }],
      ['query', { query: 1, limit: 50 }],
      ['query', { query: { recommend: { positive: [1], negative: [2] } }, limit: 50 }],
      ['query/batch', { searches: [target, target] }],
      ['query/groups', { ...target, group_by: 'n' }],
      ['search', { vector: [1, 0], limit: 50 }],
      ['search/groups', { vector: [1, 0], limit: 50, group_size: 5, group_by: 'n' }],
      ['recommend', { positive: [1], limit: 50 }],
      ['discover', { target: 1, context: [{ positive: 2, negative: 3 }], limit: 50 }],
      ['', { ids: [1, 2, 3, 4, 5, 6, 7] }],
    ];
    for (const [operation, body] of reads) {
      const { result, status } = await as('a', 'POST', `/points${operation === '' ? '' : `/${operation}`}`, body);
      assert.equal(status, 200, `${operation} ${JSON.stringify(body)} ${JSON.stringify(result)}`);
      assert.deepEqual(
        idsIn(result).filter((id) => id > 3),
        [],
        `${operation} ${JSON.stringify(body)}`,
      );
    }
    assert.deepEqual(idsIn((await as('a', 'POST', '/points', { ids: [6, 3, 4, 1] })).result), [3, 1]);
    assert.deepEqual((await as('a', 'POST', '/points/count', {})).result, { count: 3 });
    assert.deepEqual(JSON.stringify((await as('a', 'POST', '/facet', { key: 'tenant' })).result), '{"hits":[{"value":"a","count":3}]}');
    assert.deepEqual(
      JSON.stringify((await as('a', 'POST', '/points/search/matrix/pairs', { sample: 50, limit: 9 })).result).match(/"[ab]":[4-7]\b/g),
      null,
    );
    assert.deepEqual(
      [
        (await as('a', 'GET', '/points/1')).status,
        (await as('a', 'GET', '/points/4')).status,
        (await as('a', 'GET', '/points/999')).status,
      ],
      [200, 404, 404],
    );
    for (const query of [
      4,
      { recommend: { positive: [1, 4] } },
      { recommend: { positive: [1], negative: [4] } },
      { discover: { target: 4, context: [] } },
      { context: [{ positive: 1, negative: 4 }] },
    ])
      for (const body of [{ query }, { prefetch: { query }, query: [1, 0] }])
        assert.equal((await as('a', 'POST', '/points/query', body)).status, 404, JSON.stringify(body));

    const before = (await everything()).filter(({ id }) => id > 3);
    const foreign = { points: [4, 5, 7] };
    const writes: readonly (readonly [string, string, object])[] = [
      ['PUT', '', { points: [4, 5, 7].map((id) => ({ id, vector: [9, 9], payload: { stolen: true } })) }],
      ['PUT', '', { batch: { ids: [4], vectors: [[9, 9]], payloads: [{ stolen: true }] } }],
      ['PUT', '/vectors', { points: [{ id: 4, vector: [9, 9] }] }],
      ['POST', '/vectors/delete', { ...foreign, vector: [''] }],
      ['POST', '/delete', foreign],
      ['POST', '/delete', { filter: { must: [{ key: 'tenant', match: { value: 'b' } }] } }],
      ['POST', '/payload', { ...foreign, payload: { x: 1 } }],
      ['PUT', '/payload', { ...foreign, payload: { x: 1 } }],
      ['POST', '/payload/delete', { ...foreign, keys: ['n'] }],
      ['POST', '/payload/clear', foreign],
      [
        'POST',
        '/batch',
        { operations: [{ delete: foreign }, { clear_payload: foreign }, { upsert: { points: [{ id: 6, vector: [9, 9] }] } }] },
      ],
    ];
    for (const [method, operation, body] of writes) {
      const { result, status } = await as('a', method, `/points${operation}?wait=true`, body);
      assert.equal(status, 200, `${operation} ${JSON.stringify(body)} ${JSON.stringify(result)}`);
      assert.deepEqual(
        (await everything()).filter(({ id }) => id > 3),
        before,
        `${method} ${operation} ${JSON.stringify(body)}`,
      );
    }
    assert.equal((await upsert('a', [1], { tenant: 'b' })).status, 403);
    assert.equal((await as('a', 'POST', '/points/payload?wait=true', { points: [1], payload: { tenant: 'b' } })).status, 403);
    await as('a', 'POST', '/points/payload/clear?wait=true', { points: [1] });
    await as('a', 'PUT', '/points/payload?wait=true', { points: [2], payload: { x: 1 } });
    assert.deepEqual(
      (await everything()).slice(0, 2).map(({ payload }) => payload),
      [{ tenant: 'a' }, { x: 1, tenant: 'a' }],
    );
    await as('a', 'POST', '/points/delete?wait=true', { filter: {} });
    assert.deepEqual(
      (await everything()).map(({ id }) => id),
      [4, 5, 6, 7],
    );
    for (const [method, path] of [
      ['GET', ''],
      ['GET', '/cluster'],
      ['GET', '/snapshots'],
      ['POST', '/snapshots'],
      ['PUT', '/index'],
      ['GET', '/aliases'],
      ['DELETE', ''],
    ] as const)
      assert.equal((await as('a', method, path, {})).status, 403, `${method} ${path}`);
  });

  await context.test('a request that is written to be read in two ways has no credential', async () => {
    const head = (...lines: readonly string[]) =>
      `GET /collections HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${lines.join('\r\n')}\r\n\r\n`;
    const key = `api-key: ${API_KEY}`;
    const expected: readonly (readonly [string, number])[] = [
      [head(key), 200],
      [head(`API-KEY:${API_KEY}`), 200],
      [head(`api-key: \t${API_KEY} \t`), 200],
      [head(`authorization: Bearer ${API_KEY}`), 200],
      [head(key, key), 401],
      [head(key, 'Api-Key: wrong'), 401],
      [head('api-key: wrong', key), 401],
      [head(key, 'te: trailers'), 200],
      [head(key, key, 'te: trailers'), 401],
      [head(key, 'api-key: wrong', 'te: trailers'), 401],
      [head('api-key: wrong', key, 'te: trailers'), 401],
      [head(`authorization: Bearer ${API_KEY}`, 'authorization: Bearer wrong', 'te: trailers'), 401],
      [head(`authorization: Bearer wrong`, `authorization: Bearer ${API_KEY}`), 401],
      [head(`authorization: Bearer  ${API_KEY}`), 401],
      [head(`authorization: bearer ${API_KEY}`), 401],
      [head('api-key:', ` ${API_KEY}`), 400],
      [head(`api-key : ${API_KEY}`), 400],
      [head(`api-key: ${API_KEY}\0`), 400],
      [head(`x: y\napi-key: ${API_KEY}`), 400],
      [head(`x-api-key: ${API_KEY}`), 401],
      [head(`api-key: "${API_KEY}"`), 401],
      [head().replace('/collections', `/collections?api-key=${API_KEY}`), 401],
      [head().replace('/collections', `/collections?authorization=Bearer%20${API_KEY}`), 401],
      [head().replace('GET /collections', 'HEAD /collections'), 401],
      [head().replace('/collections', '/no/such/path'), 401],
      [head(key).replace('/collections', '/no/such/path'), 404],
      [head().replace('/collections', '/healthz/../collections'), 401],
      [head().replace('/collections', '//collections'), 401],
      [head().replace('/collections', '/%63ollections'), 401],
    ];
    for (const [text, status] of expected) assert.equal(statusOf(await answerTo(node, text)), status, text);
  });

  await context.test('who may not send a body is told so before it is taken', async () => {
    for (const credential of ['wrong', READ_KEY]) {
      const head = `PUT /collections/${OWN}/points HTTP/1.1\r\nhost: x\r\napi-key: ${credential}\r\ncontent-length: 1000000\r\n\r\n`;
      assert.match(await firstBytes(node, head), credential === READ_KEY ? /^HTTP\/1\.1 403 / : /^HTTP\/1\.1 401 /);
    }
    // A small one is taken, so that the connection can go on.
    const small = (credential: string) =>
      `POST /collections/${OWN}/points/count HTTP/1.1\r\nhost: x\r\napi-key: ${credential}\r\ncontent-length: 2\r\n`;
    const answers = await answerTo(node, `${small('wrong')}\r\n{}${small(API_KEY)}connection: close\r\n\r\n{}`);
    assert.deepEqual(answers.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 401', 'HTTP/1.1 200']);
  });

  await context.test(
    'gRPC: twice a key is none; reflection and methods that there are not need a credential, health checks none',
    async () => {
      const client = new GrpcClient(node.grpcPort);
      const codeOf = async (path: string, ...keys: readonly string[]) => {
        const metadata = new Metadata();
        for (const key of keys) metadata.add('api-key', key);
        return client.raw(path, Buffer.alloc(0), {}, metadata).then(
          () => 0,
          ({ code }: { code: number }) => code,
        );
      };
      assert.equal(await codeOf('/qdrant.Collections/List', API_KEY), 0);
      assert.equal(await codeOf('/qdrant.Collections/List', API_KEY, API_KEY), UNAUTHENTICATED);
      assert.equal(await codeOf('/qdrant.Collections/List', 'wrong', API_KEY), UNAUTHENTICATED);
      assert.equal(await codeOf('/qdrant.Collections/Nothing'), UNAUTHENTICATED);
      assert.equal(await codeOf('/grpc.reflection.v1.ServerReflection/ServerReflectionInfo'), UNAUTHENTICATED);
      assert.equal(await codeOf('/grpc.health.v1.Health/Check'), 0);
      assert.equal(await codeOf('/qdrant.Qdrant/HealthCheck'), 0);
      assert.equal((await failure(client.raw('/qdrant.Collections/Nothing', Buffer.alloc(0), {}, metadataOf(API_KEY, 0)))).code, 12);
      client.close();
    },
  );
});

interface Reply {
  readonly status: number;
  readonly text: string;
}

function send(
  agent: Agent,
  port: number,
  method: string,
  path: string,
  body: object | undefined,
  headers: Record<string, string>,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const sent = body === undefined ? undefined : JSON.stringify(body);
    const length = sent === undefined ? {} : { 'content-length': String(Buffer.byteLength(sent)) };
    const asked = request({ agent, port, host: '127.0.0.1', method, path, headers: { ...headers, ...length } }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    asked.on('error', reject);
    asked.end(sent);
  });
}

/** Each of the two ways to send it in turn. */
function headersOf(credential: string | null, at: number): Record<string, string> {
  if (credential === null) return {};
  return at % 2 === 0 || credential === '' ? { 'api-key': credential } : { authorization: `Bearer ${credential}` };
}

function metadataOf(credential: string | null, at: number): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headersOf(credential, at))) metadata.set(name, value);
  return metadata;
}

function restOutcome({ status, text }: Reply): Outcome | string {
  if (status === 401) return 'unknown';
  if (status === 403) return text.includes('Forbidden: ') ? 'forbidden' : 'refused token';
  return status < 500 ? 'allowed' : `${status} ${text}`;
}

function grpcOutcome(code: number, details: string): Outcome | string {
  if (code === UNAUTHENTICATED) return 'unknown';
  if (code === PERMISSION_DENIED) return details.startsWith('Forbidden: ') ? 'forbidden' : 'refused token';
  return code === 13 || code === 14 ? `${code} ${details}` : 'allowed';
}

/** Those whose outcome is another one than expected, some at a time. */
async function differing<Cell>(
  cells: readonly Cell[],
  ask: (cell: Cell) => Promise<readonly [name: string, outcome: string, expected: string, facts: string]>,
): Promise<string[]> {
  const wrong: string[] = [];
  const left = [...cells];
  const work = async (): Promise<void> => {
    for (let cell = left.pop(); cell !== undefined; cell = left.pop()) {
      const [name, outcome, expected, facts] = await ask(cell);
      if (outcome !== expected) wrong.push(`${name}: ${outcome}, expected ${expected}: ${facts}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return wrong;
}

function withCollection(path: string, name: string): string {
  return path.replace(/^\/collections\/\w+/, `/collections/${name}`);
}

/** All that comes until the node ends the connection. */
function answerTo({ port }: NodeUnderTest, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(text, 'latin1'));
    socket.setEncoding('latin1').on('data', (part: string) => {
      answer += part;
    });
    socket.on('end', () => socket.destroy()).on('close', () => resolve(answer));
    socket.on('error', reject);
  });
}

function firstBytes({ port }: NodeUnderTest, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(text, 'latin1'));
    socket.setEncoding('latin1').once('data', (part: string) => {
      socket.destroy();
      resolve(part);
    });
    socket.on('error', reject);
  });
}

function statusOf(answer: string): number {
  return Number(answer.slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length));
}

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { after, before, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ROUTES } from '../../../http/routes.js';
import { ERROR_KINDS, type ErrorCode, TroupeError } from '../../../protocols/errors.js';
import { type Harness, openDoor, sendRaw } from './fake-node.js';

let harness: Harness;

before(async () => {
  harness = await openDoor();
});
after(() => harness.door.close(1000));
beforeEach(async () => {
  harness.node.asked.length = 0;
  harness.errors.length = 0;
  harness.node.answer = () => Promise.resolve(Buffer.from('[]'));
  harness.node.collections.clear();
  await call('PUT', '/collections/c', { vectors: { size: 4, distance: 'Dot' } });
});

interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Undefined when the body is not JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of many shapes
  readonly json: any;
}

async function call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Reply> {
  const sent = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body);
  const response = await fetch(harness.url + path, { method, headers, ...(sent === undefined ? {} : { body: sent }) });
  const text = await response.text();
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    json = undefined;
  }
  return { status: response.status, headers: response.headers, text, json };
}

test('the result bytes of the engine stand in the envelope untouched', async () => {
  const bytes = '{"points":[{"id":18446744073709551615,"score":1.10}]}';
  harness.node.answer = () => Promise.resolve(Buffer.from(bytes));
  const reply = await call('POST', '/collections/c/points/query', { query: [1, 2, 3, 4] });
  assert.equal(reply.status, 200);
  assert.equal(reply.headers.get('content-type'), 'application/json');
  assert.ok(reply.text.startsWith(`{"result":${bytes},"status":"ok","time":0`), reply.text);
  assert.equal(typeof reply.json.time, 'number');
});

test('a request reaches the engine as raw bytes with decoded path and query', async () => {
  const body = ' {"limit": 3.0, not even JSON';
  const start = Date.now();
  await call('POST', '/collections/c/points/scroll?timeout=7&consistency=all', body, { 'content-type': 'nonsense;;' });
  const [asked] = harness.node.asked;
  assert.equal(asked?.operation, 'scroll');
  assert.equal(Buffer.from(asked?.request.body as Uint8Array).toString(), body);
  assert.equal(asked?.request.query.timeout, '7');
  assert.ok((asked?.request.deadlineMs as number) - start - 7000 < 1000);
  // The whole buffer is the body's, so that it can move to another thread.
  assert.equal(asked?.request.body?.buffer.byteLength, body.length);
});

test('the engine gets 60 seconds when the request does not say', async () => {
  const start = Date.now();
  await call('POST', '/collections/c/points/count', {});
  const deadline = harness.node.asked[0]?.request.deadlineMs as number;
  assert.ok(deadline >= start + 60_000 && deadline < start + 62_000);
});

test('chunked bodies arrive whole', async () => {
  const answer = await sendRaw(
    harness.door.port,
    'POST /collections/c/points/count HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n3\r\n{"a\r\n4\r\n":1}\r\n0\r\n\r\n',
  );
  assert.match(answer, /^HTTP\/1\.1 200/);
  assert.equal(Buffer.from(harness.node.asked[0]?.request.body as Uint8Array).toString(), '{"a":1}');
});

test('writes carry their wait flag and path parameters', async () => {
  await call('PUT', '/collections/c/points?wait=true&ordering=strong', {});
  await call('DELETE', '/collections/c/index/a.b%5B%5D%2Fc');
  assert.deepEqual(
    harness.node.asked.map(({ operation, wait }) => [operation, wait]),
    [
      ['upsertPoints', true],
      ['deleteFieldIndex', false],
    ],
  );
  assert.equal(harness.node.asked[1]?.request.path.field_name, 'a.b[]/c');
  assert.equal(harness.node.asked[1]?.request.body, null);
});

test('every engine row of the operations table reaches the engine', async () => {
  for (const operation of ROUTES) {
    if (operation.kind !== 'read' && operation.kind !== 'write') continue;
    harness.node.asked.length = 0;
    const path = operation.path.replace('{collection_name}', 'c').replace('{id}', '5').replace('{field_name}', 'f');
    const reply = await call(operation.method, path, operation.method === 'GET' || operation.method === 'DELETE' ? undefined : '{}');
    assert.equal(reply.status, 200, path);
    assert.deepEqual(
      harness.node.asked.map((asked) => asked.operation),
      [operation.engine],
    );
  }
});

test('a path that the API does not have is a 404 with the nearest one, a wrong method a 405 with those that the path takes', async () => {
  const wrong: [string, string, number, RegExp, string | null][] = [
    ['GET', '/no/such/path', 404, /^Not found: no operation at GET \/no\/such\/path; GET \/openapi\.json lists/, null],
    ['POST', '/collections/c/search?api-key=secret', 404, /did you mean \/collections\/\{collection_name\}\/points\/search\?$/, null],
    ['OPTIONS', '/no/such/path', 404, /no operation/, null],
    ['POST', '/healthz', 405, /^Method not allowed: no operation at POST \/healthz: this path takes GET, HEAD$/, 'GET, HEAD, OPTIONS'],
    ['POST', '/', 405, /takes GET/, 'GET, HEAD, OPTIONS'],
    ['PUT', '/collections', 405, /takes GET/, 'GET, HEAD, OPTIONS'],
    ['POST', '/collections/c', 405, /takes GET, HEAD, PUT, PATCH, DELETE$/, 'GET, HEAD, PUT, PATCH, DELETE, OPTIONS'],
    ['GET', '/collections/c/points/', 405, /takes PUT, POST$/, 'PUT, POST, OPTIONS'],
    ['PROPFIND', '/collections/c', 405, /takes GET/, 'GET, HEAD, PUT, PATCH, DELETE, OPTIONS'],
  ];
  for (const [method, path, status, text, allow] of wrong) {
    const reply = await call(method, path, method === 'POST' || method === 'PUT' ? { a: 1 } : undefined);
    assert.equal(reply.status, status, `${method} ${path}`);
    assert.deepEqual(Object.keys(reply.json), ['status', 'time']);
    assert.match(reply.json.status.error, text);
    assert.doesNotMatch(reply.text, /secret/);
    assert.equal(reply.headers.get('allow'), allow);
    assert.equal(reply.headers.get('content-type'), 'application/json');
  }
  assert.deepEqual(harness.errors, []);
});

test('OPTIONS says what a path takes', async () => {
  const reply = await call('OPTIONS', '/collections/c/points/search');
  assert.deepEqual([reply.status, reply.text, reply.headers.get('allow')], [200, '', 'GET, HEAD, POST, OPTIONS']);
});

test('HEAD answers as GET does, without the body', async () => {
  for (const path of ['/', '/healthz', '/readyz', '/collections', '/collections/c', '/collections/none', '/docs', '/no/such/path']) {
    const heads = await Promise.all(['GET', 'HEAD'].map((method) => call(method, path)));
    const [got, asked] = heads.map(({ headers, status }) => ({ status, type: headers.get('content-type') }));
    if (path !== '/no/such/path') assert.deepEqual(asked, got, path);
    assert.equal(asked?.status, got?.status);
    assert.equal(heads[1]?.text, '');
    assert.ok(Number(heads[1]?.headers.get('content-length')) > 0);
  }
  const pair = 'HEAD /healthz HTTP/1.1\r\nhost: x\r\n\r\nGET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n';
  assert.equal((await sendRaw(harness.door.port, pair)).match(/healthz check passed/g)?.length, 1);
});

test('trailing and double slashes are forgiven', async () => {
  for (const path of ['/collections/', '//collections', '/collections//c/']) assert.equal((await call('GET', path)).status, 200, path);
});

test('a path that cannot be decoded is a wrong input', async () => {
  const reply = await call('GET', '/collections/%zz');
  assert.equal(reply.status, 400);
  assert.match(reply.json.status.error, /Wrong input/);
});

test('each error of the catalogue has its status and envelope', async () => {
  const seen: Record<string, string> = {};
  for (const code of Object.keys(ERROR_KINDS) as ErrorCode[]) {
    harness.node.answer = () => Promise.reject(new TroupeError(code, 'why'));
    const reply = await call('POST', '/collections/c/points/query', {});
    // Who has no valid credential is told so in plain text.
    const isText = code === 'unauthorized' || code === 'tokenRefused';
    if (!isText) assert.deepEqual(Object.keys(reply.json), ['status', 'time']);
    seen[code] = `${reply.status} ${isText ? reply.text : reply.json.status.error}`;
  }
  assert.deepEqual(seen, {
    malformedBody: '400 Format error in JSON body: why',
    malformedParameter: '400 Deserialize error in query parameters: why',
    invalidValue: '422 Validation error in JSON body: why',
    invalidParameter: '422 Validation error in query parameters: why',
    invalidPath: '422 Validation error in path parameters: why',
    wrongInput: '400 Wrong input: why',
    unsupported: '400 Not supported: why',
    badRequest: '400 Bad request: why',
    standalone: '400 Bad request: why',
    notFound: '404 Not found: why',
    methodNotAllowed: '405 Method not allowed: why',
    conflict: '409 Wrong input: why',
    unauthorized: '401 why',
    tokenRefused: '403 why',
    forbidden: '403 Forbidden: why',
    bodyTooLarge: '400 why',
    unreadableCoding: '415 Unsupported media type: why',
    busy: '429 Too many requests: why',
    outOfMemory: '507 Out of memory: why',
    outOfDisk: '507 Out of disk space: why',
    rateLimited: '429 Rate limiting exceeded: why',
    unavailable: '503 Service unavailable: why',
    timeout: '408 Timeout: why',
    storage: '500 Storage error: why',
    internal: '500 Service internal error: why',
  });
  assert.deepEqual(harness.errors, []);
});

test('a busy node says when to come back', async () => {
  harness.node.answer = () => Promise.reject(new TroupeError('busy', 'full', { retryAfterMs: 2100 }));
  const reply = await call('POST', '/collections/c/points/query', {});
  assert.equal(reply.status, 429);
  assert.equal(reply.headers.get('retry-after'), '3');
});

test('an unexpected error is a 500, is logged, and the door goes on', async () => {
  harness.node.answer = () => Promise.reject(new Error('a bug'));
  assert.equal((await call('POST', '/collections/c/points/query', {})).status, 500);
  assert.match(harness.errors[0] as string, /a bug/);
  assert.equal((await call('GET', '/collections')).status, 200);
});

test('no answer has a stack or a path of the server: the log has them', async () => {
  const faults: (() => Promise<never>)[] = [
    () => readFile(import.meta.filename.replace(/[^/]+$/, 'none/such.file')) as Promise<never>,
    () => Promise.reject(Object.assign(new Error(), { message: new Error('deep').stack })),
    () => Promise.reject(new TroupeError('storage', '/var/lib/troupe/collections/c/0/lmdb/data.mdb: cannot be read (EIO)')),
    () => Promise.reject(new TroupeError('unavailable', 'file:///srv/troupe/dist/x.js failed; see `POST /cluster/recover`')),
  ];
  const shown: string[] = [];
  for (const fault of faults) {
    harness.node.answer = fault;
    const { json, status } = await call('PUT', '/collections/c/points', {});
    assert.ok(status >= 500);
    shown.push(json.status.error);
  }
  assert.doesNotMatch(shown.join('\n'), /\n\s+at |\/http\/|\/lib\/|\/srv\//);
  assert.match(shown[0] as string, /ENOENT: no such file or directory, open '…\/such\.file'/);
  assert.match(shown[2] as string, /…\/data\.mdb: cannot be read \(EIO\)/);
  assert.match(shown[3] as string, /see `POST \/cluster\/recover`/);
  assert.match(harness.errors.join('\n'), /none\/such\.file/);
});

test('parameters are checked before the collection is looked for', async () => {
  const cases: [string, string, number][] = [
    ['POST', '/collections/none/points/search?timeout=0', 400],
    ['POST', '/collections/none/points/search?consistency=some', 400],
    ['PUT', '/collections/none/points?wait=1', 400],
    ['GET', '/collections/none/points/search', 400],
    ['GET', `/collections/${'n'.repeat(300)}`, 422],
    ['POST', `/collections/${'n'.repeat(300)}/points/count`, 422],
    ['PUT', '/collections/a%2Fb', 422],
    ['PUT', '/collections/new?timeout=0', 422],
    ['POST', '/collections/none/points/search', 404],
  ];
  for (const [method, path, status] of cases) {
    const reply = await call(method, path, method === 'GET' ? undefined : '{}');
    assert.equal(reply.status, status, path);
    assert.equal(typeof reply.json.status.error, 'string');
    assert.equal(reply.json.result, undefined);
  }
});

test('settings that would keep the main thread busy are refused by their size, on every operation that has some', async () => {
  const large = JSON.stringify({ metadata: { text: 'x'.repeat(1 << 20) } });
  const wide = await openDoor({ maxBodyBytes: 1 << 22 });
  after(() => wide.door.close(0));
  await wide.node.createCollection('c', { params: {} } as never);
  for (const [method, path] of [
    ['PUT', '/collections/large'],
    ['PATCH', '/collections/c'],
    ['PUT', '/collections/c/vectors/v'],
    ['POST', '/collections/aliases'],
  ] as const) {
    const response = await fetch(`${wide.url}${path}`, { method, body: large });
    assert.equal(response.status, 400, path);
    const { status } = (await response.json()) as { status: { error: string } };
    assert.match(status.error, /^settings \(\d+ bytes\) are larger than allowed/);
  }
});

test('a body above the limit is refused with its size, and the connection lives on', async () => {
  const small = await openDoor({ maxBodyBytes: 1000 });
  try {
    await small.node.createCollection('c', { params: {} } as never);
    for (const size of [1001, 9000]) {
      const response = await fetch(`${small.url}/collections/c/points/count`, { method: 'POST', body: 'x'.repeat(size) });
      assert.equal(response.status, 400);
      const { status } = (await response.json()) as { status: { error: string } };
      assert.equal(status.error, `JSON payload (${size} bytes) is larger than allowed (limit: 1000 bytes).`);
    }
    assert.equal((await fetch(`${small.url}/collections/c/points/count`, { method: 'POST', body: 'x'.repeat(1000) })).status, 200);
    assert.equal(small.node.asked.length, 1);
    const endless = await sendRaw(
      small.door.port,
      `POST /collections/c/points/count HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999\r\n\r\n${'x'.repeat(20_000)}`,
    );
    assert.match(endless, /^HTTP\/1\.1 400.*\r\nconnection: close\r\n/is);
  } finally {
    await small.door.close(1000);
  }
});

test('browsers of any origin may ask, unless CORS is switched off', async () => {
  const origin = 'http://example.com';
  const asking = { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' };
  const preflight = await call('OPTIONS', '/collections/c/points/search', undefined, asking);
  assert.equal(preflight.status, 200);
  assert.equal(preflight.text, '');
  assert.equal(preflight.headers.get('access-control-allow-origin'), origin);
  assert.match(preflight.headers.get('access-control-allow-methods') as string, /POST/);
  assert.equal(preflight.headers.get('access-control-allow-headers'), 'content-type');
  for (const path of ['/collections', '/no/such/path', '/collections/none', '/collections/%zz']) {
    const { headers } = await call('GET', path, undefined, { origin });
    assert.equal(headers.get('access-control-allow-origin'), origin, path);
    assert.match(headers.get('access-control-expose-headers') as string, /retry-after.*troupe-outcome/);
    assert.match(headers.get('vary') as string, /Origin/);
  }
  assert.equal((await call('GET', '/collections')).headers.get('access-control-allow-origin'), null);

  const closed = await openDoor({ cors: false });
  try {
    const response = await fetch(`${closed.url}/collections`, { headers: { origin } });
    assert.equal(response.headers.get('access-control-allow-origin'), null);
    const asked = await fetch(closed.url, { method: 'OPTIONS', headers: asking });
    assert.deepEqual([asked.status, asked.headers.get('access-control-allow-methods')], [200, null]);
  } finally {
    await closed.door.close(1000);
  }
});

test('collections are made, shown, changed, listed and deleted', async () => {
  assert.equal((await call('PUT', '/collections/c', {})).status, 409);
  const made = await call('PUT', '/collections/%C3%BC%20%F0%9F%98%80%25', { vectors: { size: 2, distance: 'Euclid' }, metadata: { n: 1 } });
  assert.equal(made.json.result, true);
  const path = `/collections/${encodeURIComponent('ü 😀%')}`;
  assert.deepEqual((await call('GET', path)).json.result.config.params.vectors, { size: 2, distance: 'Euclid' });
  assert.deepEqual((await call('GET', `${path}/exists`)).json.result, { exists: true });
  assert.equal((await call('PATCH', path, { metadata: { n: 2 } })).json.result, true);
  assert.deepEqual((await call('GET', path)).json.result.config.metadata, { n: 2 });
  assert.deepEqual((await call('GET', '/collections')).json.result, { collections: [{ name: 'c' }, { name: 'ü 😀%' }] });
  assert.equal((await call('DELETE', path)).json.result, true);
  assert.equal((await call('DELETE', path)).json.result, false);
  assert.equal((await call('GET', path)).status, 404);
  assert.equal((await call('PATCH', path, {})).status, 404);
});

test('a broken or missing body at creation is malformed', async () => {
  for (const body of ['', '{', '[]', 'null', '{"vectors":4}']) assert.equal((await call('PUT', '/collections/d', body)).status, 400, body);
  assert.equal((await call('PUT', '/collections/d')).status, 400);
  assert.equal(harness.node.exists('d'), false);
});

test('no more collections than max_collections', async () => {
  const bounded = await openDoor({ maxCollections: 1 });
  try {
    const put = async (name: string) => (await fetch(`${bounded.url}/collections/${name}`, { method: 'PUT', body: '{}' })).status;
    assert.deepEqual([await put('a'), await put('b'), await put('a')], [200, 400, 409]);
  } finally {
    await bounded.door.close(1000);
  }
});

test('health checks are texts; readiness follows the replicas', async () => {
  for (const path of ['/healthz', '/livez']) {
    const reply = await call('GET', path);
    assert.equal(reply.text, 'healthz check passed');
    assert.equal(reply.headers.get('content-type'), 'text/plain; charset=utf-8');
  }
  assert.equal((await call('GET', '/readyz')).text, 'all shards are ready');
  harness.ready = false;
  const { status, text } = await call('GET', '/readyz');
  assert.deepEqual([status, text], [503, 'some shards are not ready: its collections are being opened']);
  harness.ready = true;
});

test('the root tells a version that clients take for compatible, and its own', async () => {
  const { json } = await call('GET', '/');
  assert.match(json.version, /^1\.18\.\d+$/);
  assert.equal(json.troupe.version, '0.0.1');
  assert.equal(typeof json.title, 'string');
  assert.equal(json.result, undefined);
});

test('the API is described as a document and as a page that loads nothing from elsewhere', async () => {
  const document = await call('GET', '/openapi.json');
  assert.equal(document.json.openapi, '3.0.3');
  assert.ok(document.json.paths['/collections/{collection_name}'].put);
  const page = await call('GET', '/docs');
  assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
  assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'none'; script-src 'sha256-/);
  assert.doesNotMatch(page.text, /https?:|innerHTML|insertAdjacentHTML/);
});

test('a node of its own answers for the cluster', async () => {
  assert.deepEqual((await call('GET', '/cluster')).json.result, { status: 'disabled' });
  assert.equal((await call('DELETE', '/cluster/peer/5')).status, 400);
  assert.equal((await call('DELETE', '/cluster/peer/x')).text, 'can not parse "x" to a u64');
  assert.equal((await call('GET', '/collections/none/shards')).status, 404);
  assert.deepEqual((await call('GET', '/collections/c/cluster')).json.result, {
    peer_id: 77,
    shard_count: 1,
    local_shards: [{ shard_id: 0, points_count: 3, state: 'Active' }],
    remote_shards: [],
    shard_transfers: [],
  });
  assert.deepEqual((await call('GET', '/aliases')).json.result, { aliases: [] });
  assert.deepEqual((await call('GET', '/collections/none/aliases')).json.result, { aliases: [] });
  assert.deepEqual((await call('GET', '/issues')).json.result, { issues: [] });
});

test('the optimizations report shows the parts that are asked for', async () => {
  const plain = (await call('GET', '/collections/c/optimizations')).json.result;
  assert.deepEqual(Object.keys(plain), ['summary', 'running']);
  const parts = (await call('GET', '/collections/c/optimizations?with=queued,completed&completed_limit=2')).json.result;
  assert.deepEqual(parts.completed, [1, 2]);
  assert.deepEqual(parts.queued, []);
  assert.equal((await call('GET', '/collections/c/optimizations?with=everything')).status, 400);
  assert.equal((await call('GET', '/collections/c/optimizations?with=completed&completed_limit=x')).status, 400);
});

test('telemetry shows actors, workers and requests; anonymized it tells no names', async () => {
  await call('PUT', '/collections/secret', {});
  const plain = (await call('GET', '/telemetry')).json.result;
  assert.equal(plain.collections.number_of_collections, 2);
  assert.equal(plain.app.actors.children[0].path, '/node/secret');
  assert.equal(plain.app.engine.workers[0].name, 'reader-0');
  assert.ok(plain.requests.rest.responses['PUT /collections/{collection_name}'][200].count >= 1);
  assert.equal(plain.collections.collections, undefined);
  const detailed = (await call('GET', '/telemetry?details_level=3')).json.result;
  assert.equal(detailed.collections.collections[1].id, 'secret');
  assert.ok(detailed.memory.resident_bytes > 0);
  assert.doesNotMatch((await call('GET', '/telemetry?details_level=3&anonymize=true')).text, /secret/);
  for (const query of ['details_level=abc', 'details_level=-1', 'anonymize=maybe', 'per_collection=5']) {
    assert.equal((await call('GET', `/telemetry?${query}`)).status, 400, query);
  }
});

test('a client that goes away mid-request harms nobody', async () => {
  let release: (() => void) | undefined;
  harness.node.answer = () => new Promise((resolve) => (release = () => resolve(Buffer.from('1'))));
  const gone = httpRequest(`${harness.url}/collections/c/points/count`, { method: 'POST' });
  gone.on('error', () => {});
  gone.end('{}');
  while (release === undefined) await sleep(1);
  gone.destroy();
  await sleep(5);
  release();
  const half = connect({ port: harness.door.port, host: '127.0.0.1' });
  half.write('POST /collections/c/points/count HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{');
  await sleep(5);
  half.destroy();
  await sleep(5);
  assert.equal((await call('GET', '/collections')).status, 200);
  assert.deepEqual(harness.errors, []);
});

test('closing lets a running request finish and takes no new ones', async () => {
  const closing = await openDoor();
  await closing.node.createCollection('c', { params: {} } as never);
  let release: (() => void) | undefined;
  closing.node.answer = () => new Promise((resolve) => (release = () => resolve(Buffer.from('"late"'))));
  const running = fetch(`${closing.url}/collections/c/points/count`, { method: 'POST', body: '{}' });
  while (release === undefined) await sleep(1);
  const closed = closing.door.close(5000);
  await sleep(10);
  await assert.rejects(fetch(`${closing.url}/collections`));
  release();
  const response = await running;
  assert.equal(response.headers.get('connection'), 'close');
  assert.equal(((await response.json()) as { result: string }).result, 'late');
  await closed;
});

test('closing cuts what takes longer than its grace', async () => {
  const closing = await openDoor();
  await closing.node.createCollection('c', { params: {} } as never);
  closing.node.answer = () => new Promise(() => {});
  const running = fetch(`${closing.url}/collections/c/points/count`, { method: 'POST', body: '{}' });
  const cut = assert.rejects(running);
  while (closing.node.asked.length === 0) await sleep(1);
  await closing.door.close(50);
  await cut;
});

test('a port in use rejects with the system error', async () => {
  await assert.rejects(openDoor({ port: harness.door.port }), { code: 'EADDRINUSE' });
});

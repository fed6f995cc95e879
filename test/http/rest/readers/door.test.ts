import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { errorReply } from '../../../../http/rest/calls/reply.js';
import { errorFromFacts, TroupeError } from '../../../../protocols/errors.js';
import { BUILT_IN_DEFAULTS, decodeCreateCollection } from '../../../../protocols/rest/collections.js';
import type { AloneAnswer } from '../../../../storage/reader/reader.js';
import type { RawRequest } from '../../../../storage/threads/messages.js';
import { type Harness, openDoor, sendRaw } from '../fake-node.js';

const COUNT = '/collections/c/points/count';

async function openReader(t: TestContext, readAlone: () => AloneAnswer | Promise<AloneAnswer>): Promise<Harness> {
  const harness = await openDoor({ readAlone });
  t.after(() => harness.door.close(0));
  await harness.node.createCollection('c', decodeCreateCollection({}, BUILT_IN_DEFAULTS));
  return harness;
}

async function post(harness: Harness, path: string): Promise<{ status: number; text: string }> {
  const response = await fetch(harness.url + path, { method: 'POST', body: '{}' });
  return { status: response.status, text: await response.text() };
}

test('what a reader answers alone does not reach the main thread, and is counted', async (t) => {
  const harness = await openReader(t, () => Buffer.from('{"count":7}'));
  const { status, text } = await post(harness, COUNT);
  assert.equal(status, 200);
  assert.match(text, /^\{"result":\{"count":7\},"status":"ok","time":[\d.e-]+\}$/);
  assert.deepEqual(harness.node.asked, []);
  const counts = harness.services.stats.counts().filter(({ endpoint }) => endpoint.path.endsWith('/count'));
  assert.deepEqual(
    counts.map(({ durations, status }) => [status, durations.count]),
    [[200, 1]],
  );
});

test('what is beyond its rate is refused by the reader as by the main thread, before anybody looks at it, and is counted', async (t) => {
  const facts = { code: 'rateLimited', detail: 'too often', retryAfterMs: 2100, limit: 'a_rate_limit' } as const;
  const asked: string[] = [];
  const harness = await openDoor({
    readAlone: () => assert.fail('the body was looked at'),
    refusalOf: (collection) => {
      asked.push(`read ${collection}`);
      return facts;
    },
    payWrite: (collection, operation) => {
      asked.push(`${operation} ${collection}`);
      return facts;
    },
  });
  t.after(() => harness.door.close(0));
  for (const [method, path, access] of [
    ['POST', COUNT, 'r'],
    ['PUT', '/collections/c/points', 'writePoints'],
    ['DELETE', '/collections/c/index/field', 'w'],
  ] as const) {
    const { headers, ...told } = await fetch(harness.url + path, { method, ...(method === 'DELETE' ? {} : { body: 'no JSON' }) }).then(
      async (answer) => ({ status: answer.status, headers: answer.headers, text: await answer.text() }),
    );
    const thrown = errorReply(errorFromFacts(facts), { access, method }, 0);
    assert.deepEqual([told.status, told.text.replace(/"time":.*/, '')], [thrown.status, thrown.body.toString().replace(/"time":.*/, '')]);
    for (let at = 0; at < thrown.headers.length; at += 2) assert.equal(headers.get(thrown.headers[at] as string), thrown.headers[at + 1]);
  }
  assert.deepEqual(asked, ['read c', 'upsertPoints c', 'deleteFieldIndex c']);
  assert.deepEqual(harness.node.asked, []);
  assert.deepEqual(
    harness.services.stats.counts().map(({ durations, status }) => [status, durations.count]),
    [
      [429, 1],
      [429, 1],
      [429, 1],
    ],
  );
});

test('a write goes to the main thread with the tokens that the reader has taken for it, and without any where it has taken none', async (t) => {
  const payments = [3, 0];
  const harness = await openDoor({ readAlone: () => null, payWrite: () => payments.shift() as number });
  t.after(() => harness.door.close(0));
  await harness.node.createCollection('c', decodeCreateCollection({}, BUILT_IN_DEFAULTS));
  for (let at = 0; at < 2; at++) await fetch(`${harness.url}/collections/c/points`, { method: 'PUT', body: '{"points":[]}' });
  assert.deepEqual(
    harness.node.asked.map(({ request }) => request.paid),
    [3, undefined],
  );
});

test('a read that peers are asked for is answered later, or handed on then', async (t) => {
  const answers: AloneAnswer[] = [null, Buffer.from('{"count":7}'), 'heavy'];
  const harness = await openReader(t, async () => answers.pop() ?? null);
  const texts: string[] = [];
  for (let at = 0; at < 3; at++) texts.push((await post(harness, COUNT)).text);
  assert.match(texts[1] as string, /^\{"result":\{"count":7\}/);
  assert.deepEqual(
    harness.node.asked.map(({ operation }) => operation),
    ['count', 'count'],
  );
});

test('an error of a read is answered as on the main thread', async (t) => {
  const harness = await openReader(t, () => {
    throw new TroupeError('busy', 'full', { retryAfterMs: 2100 });
  });
  const response = await fetch(harness.url + COUNT, { method: 'POST', body: '{}' });
  assert.equal(response.status, 429);
  assert.equal(response.headers.get('retry-after'), '3');
  assert.equal((await post(harness, `${COUNT}?timeout=0`)).status, 400);
  assert.equal(
    harness.services.stats.counts().reduce((sum, { durations }) => sum + durations.count, 0),
    2,
  );
});

test('what a reader must not decide is answered by the main thread: its reads, writes and operations on collections', async (t) => {
  const harness = await openReader(t, () => null);
  assert.equal((await post(harness, COUNT)).status, 200);
  assert.equal((await post(harness, '/collections/none/points/count')).status, 404);
  const written = await fetch(`${harness.url}/collections/c/points`, { method: 'PUT', body: '{"points":[]}' });
  assert.equal(written.status, 200);
  assert.deepEqual(
    harness.node.asked.map(({ operation }) => operation),
    ['count', 'upsertPoints'],
  );
  const info = (await (await fetch(`${harness.url}/collections/c`)).json()) as { result: { points_count: number } };
  assert.equal(info.result.points_count, 3);
});

test('a read that is too heavy for a reader goes to the main thread, marked as such', async (t) => {
  const answers: AloneAnswer[] = ['heavy', null];
  const harness = await openReader(t, () => answers.shift() as AloneAnswer);
  assert.equal((await post(harness, COUNT)).status, 200);
  assert.equal((await post(harness, COUNT)).status, 200);
  assert.deepEqual(
    harness.node.asked.map(({ operation, request }) => [operation, request.heavy?.gone[0]]),
    [
      ['count', 0],
      ['count', undefined],
    ],
  );
});

for (const [how, leave] of Object.entries({
  'resets the connection': (socket: Socket) => socket.resetAndDestroy(),
  'ends its half of the connection': (socket: Socket) => socket.end(),
})) {
  test(`a heavy read is told when its client ${how}, which is then closed`, async (t) => {
    const { asked, socket } = await askHeavy(t);
    const closed = once(socket, 'close');
    const { heavy } = await asked;
    assert.equal(heavy?.gone[0], 0);
    leave(socket);
    while (heavy.gone[0] === 0) await new Promise(setImmediate);
    await closed;
  });
}

async function askHeavy(t: TestContext): Promise<{ asked: Promise<RawRequest>; socket: Socket }> {
  const harness = await openReader(t, () => 'heavy');
  const asked = new Promise<RawRequest>((resolve) => {
    harness.node.read = (_collection, _operation, request) => {
      resolve(request);
      return new Promise(() => {});
    };
  });
  const socket = connect(harness.door.port, '127.0.0.1');
  socket.write(`POST ${COUNT} HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}`);
  return { asked, socket };
}

test('a quick request of a client that has ended its half of the connection is answered', async (t) => {
  const harness = await openReader(t, () => null);
  harness.node.answer = () => new Promise((resolve) => setTimeout(() => resolve(Buffer.from('7')), 20));
  const socket = connect({ port: harness.door.port, host: '127.0.0.1', allowHalfOpen: true });
  socket.end(`POST ${COUNT} HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}`);
  const [answer] = await once(socket, 'data');
  assert.match(String(answer), /^HTTP\/1\.1 200 OK.*"result":7/s);
});

test('a fixed answer is given again for half a second without the main thread, byte for byte, and counted', async (t) => {
  let nowMs = 1000;
  let answeredByMain = 0;
  t.mock.method(performance, 'now', () => nowMs);
  const harness = await openDoor({
    readAlone: () => null,
    // The main thread asks for the time once with each answer, the reader has its own.
    nowMs: () => {
      answeredByMain++;
      return 0;
    },
  });
  t.after(() => harness.door.close(0));
  const answer = async (path: string) => {
    const text = await sendRaw(harness.door.port, `GET ${path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`);
    return text.replace(/\r\nDate: [^\r]*/, '');
  };
  const paths = ['/', '/healthz', '/livez'];
  const first = await Promise.all(paths.map(answer));
  assert.equal(answeredByMain, 3);
  nowMs += 500;
  assert.deepEqual(await Promise.all(paths.map(answer)), first);
  assert.equal(answeredByMain, 3);
  nowMs += 1;
  assert.deepEqual(await Promise.all(paths.map(answer)), first);
  assert.equal(answeredByMain, 6);
  assert.deepEqual(
    harness.services.stats.counts().map(({ durations, endpoint }) => [endpoint.path, durations.count]),
    paths.map((path) => [path, 3]),
  );
});

test('whether the node is ready is asked of the main thread each time', async (t) => {
  const harness = await openReader(t, () => null);
  const statusOf = async () => (await fetch(`${harness.url}/readyz`)).status;
  assert.equal(await statusOf(), 200);
  harness.ready = false;
  assert.equal(await statusOf(), 503);
});

test('a bug that a reader meets is met and logged by the main thread', async (t) => {
  const harness = await openReader(t, () => {
    throw new Error('a bug');
  });
  harness.node.answer = () => Promise.reject(new Error('the same bug'));
  assert.equal((await post(harness, COUNT)).status, 500);
  assert.match(harness.errors[0] as string, /the same bug/);
});

test('a connection with an unusual request goes to the server of the main thread', async (t) => {
  const harness = await openReader(t, () => null);
  const response = await fetch(harness.url + COUNT, { method: 'POST', body: '{}', headers: { origin: 'http://example.com' } });
  assert.equal(response.headers.get('access-control-allow-origin'), 'http://example.com');
});

test('a port that another server has is refused, though readers could share it', async (t) => {
  const harness = await openReader(t, () => null);
  await assert.rejects(openDoor({ readAlone: () => null, port: harness.door.port }), { code: 'EADDRINUSE' });
});

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ANYONE } from '../../../../http/access/caller.js';
import { AnswerEncoder } from '../../../../http/rest/calls/encode-answer.js';
import { jsonReply } from '../../../../http/rest/calls/reply.js';
import { FastFront } from '../../../../http/rest/fast/front.js';
import { fakeMemory, type Harness, type HarnessOptions, openDoor, sendRaw } from '../fake-node.js';

const COUNT = 'POST /collections/c/points/count HTTP/1.1\r\nhost: x\r\n';
const IDLE_CONNECTIONS = 5000;

const WAYS = {
  'the plain path': {},
  'the plain path of a reader': { readAlone: () => null },
  Fastify: { fastPath: false },
} as const satisfies Record<string, HarnessOptions>;

for (const [name, options] of Object.entries(WAYS)) {
  test(`${name} answers requests that come together in their order`, async (t) => {
    const { door, node } = await openCollection(t, options);
    let at = 0;
    // The first is answered last.
    node.answer = async () => {
      const mine = at++;
      await sleep(20 - mine * 5);
      return Buffer.from(String(mine));
    };
    const requests = [0, 1, 2, 3].map((at) => `${COUNT}content-length: 2\r\n${at === 3 ? 'connection: close\r\n' : ''}\r\n{}`);
    const text = await sendRaw(door.port, requests.join(''));
    assert.deepEqual(
      [...text.matchAll(/"result":(\d)/g)].map(([, result]) => result),
      ['0', '1', '2', '3'],
    );
  });

  test(`${name} takes a request byte by byte`, async (t) => {
    const { door, node } = await openCollection(t, options);
    const socket = connect({ port: door.port, host: '127.0.0.1', noDelay: true });
    const answered = once(socket, 'data');
    for (const byte of `${COUNT}content-length: 9\r\n\r\n{"a":"b"}`) {
      socket.write(byte);
      await sleep(0);
    }
    assert.match(String(await answered), /^HTTP\/1\.1 200 OK/);
    assert.equal(Buffer.from(node.asked[0]?.request.body as Uint8Array).toString(), '{"a":"b"}');
    socket.destroy();
  });

  test(`${name} refuses a request whose client ends before its body`, async (t) => {
    const { door, node } = await openCollection(t, options);
    const socket = connect({ port: door.port, host: '127.0.0.1' });
    socket.end(`${COUNT}content-length: 100\r\n\r\n{`);
    const [answer] = await once(socket, 'data');
    assert.match(String(answer), /^HTTP\/1\.1 400 Bad Request\r\n.*"message":"Client Error"/s);
    assert.equal(node.asked.length, 0);
  });

  for (const [what, line] of Object.entries({
    parameter: 'POST /collections/c/points/count?timeout=0',
    'write’s parameter': 'PUT /collections/c/points?ordering=none',
    'collection name': `PATCH /collections/${'c'.repeat(256)}`,
    'upload’s parameter': 'POST /collections/c/snapshots/upload?priority=urgent',
  })) {
    test(`${name} refuses a request for its ${what} before its body has come`, { timeout: 10_000 }, async (t) => {
      const { door } = await openCollection(t, options);
      const socket = connect({ port: door.port, host: '127.0.0.1' });
      t.after(() => socket.destroy());
      socket.write(`${line} HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{`);
      const [answer] = await once(socket, 'data');
      assert.match(String(answer), /^HTTP\/1\.1 4\d\d .*"status":\{"error"/s);
    });
  }

  test(`${name} does not answer a last request that has bytes behind it`, async (t) => {
    const { door, node } = await openCollection(t, options);
    const text = await sendRaw(door.port, `${COUNT}connection: close\r\ncontent-length: 2\r\n\r\n{}{}`);
    assert.match(text, /^HTTP\/1\.1 400 Bad Request\r\n.*"message":"Client Error"/s);
    assert.ok(node.asked.length <= 1);
  });

  test(`${name} takes a body that comes in many parts, also with the next request behind it`, async (t) => {
    const { door, node } = await openCollection(t, options);
    const body = 'x'.repeat(700_000);
    const text = await sendRaw(
      door.port,
      `${COUNT}content-length: ${body.length}\r\n\r\n${body}${COUNT}connection: close\r\ncontent-length: 3\r\n\r\nend`,
    );
    assert.equal(text.match(/HTTP\/1\.1 200/g)?.length, 2);
    assert.deepEqual(
      node.asked.map(({ request }) => request.body?.length),
      [700_000, 3],
    );
  });

  test(`${name} answers beside 5,000 idle connections, and closes them`, { timeout: 60_000 }, async (t) => {
    const { door } = await openCollection(t, options);
    const idle: Socket[] = [];
    for (let at = 0; at < IDLE_CONNECTIONS; at += 250)
      idle.push(...(await Promise.all(Array.from({ length: 250 }, () => connected(door.port)))));
    const text = await sendRaw(door.port, `${COUNT}connection: close\r\ncontent-length: 2\r\n\r\n{}`);
    assert.match(text, /^HTTP\/1\.1 200 OK/);
    const closed = Promise.all(idle.map((socket) => once(socket, 'close')));
    await door.close(10_000);
    await closed;
  });

  test(`${name} answers what runs when it is closed under load, and each answer is whole`, async (t) => {
    const { door, node } = await openCollection(t, options);
    node.answer = async () => {
      await sleep(2);
      return Buffer.from(`"${'x'.repeat(20_000)}"`);
    };
    let answered = 0;
    const clients = Array.from({ length: 16 }, async () => {
      const socket = await connected(door.port);
      for (;;) {
        socket.write(`${COUNT}content-length: 2\r\n\r\n{}`);
        const text = await oneAnswer(socket);
        if (text === '') return;
        assert.match(text, /^HTTP\/1\.1 200 OK.*"status":"ok","time":[\d.]+\}$/s);
        answered++;
        if (/connection: close/i.test(text)) return;
      }
    });
    while (answered < 100) await sleep(1);
    await door.close(5000);
    await Promise.all(clients);
    assert.equal(node.asked.length, answered, 'no request that has begun is cut off');
  });
}

test('a connection leaves the plain path at its first unusual request, and what follows is answered too', async (t) => {
  const { door, node } = await openCollection(t, {});
  const plain = `${COUNT}content-length: 1\r\n\r\n`;
  const chunked = `${COUNT}transfer-encoding: chunked\r\n\r\n1\r\n2\r\n0\r\n\r\n`;
  const last = `${COUNT}connection: close\r\ncontent-length: 1\r\n\r\n4`;
  const text = await sendRaw(door.port, `${plain}1${chunked}${plain}3${last}`);
  assert.equal(text.match(/HTTP\/1\.1 200/g)?.length, 4);
  assert.deepEqual(
    node.asked.map(({ request }) => Buffer.from(request.body as Uint8Array).toString()),
    ['1', '2', '3', '4'],
  );
});

test('a client that sends nothing, or not the rest of its body, is told so after its time', async (t) => {
  const { front, port } = await openFront(t);
  const silent = await connected(port);
  const slow = await connected(port);
  slow.write(`${COUNT}content-length: 10\r\n\r\n{`);
  while (front.connections < 2) await sleep(1);
  front.checkTimes(Date.now() + 59_000);
  front.checkTimes(Date.now() + 61_000);
  assert.match(await oneAnswer(silent), /^HTTP\/1\.1 408 Request Timeout/);
  front.checkTimes(Date.now() + 301_000);
  assert.match(await oneAnswer(slow), /^HTTP\/1\.1 408 Request Timeout/);
});

test('a connection without requests is closed after its time, one that is being answered is not', async (t) => {
  const { front, port, release } = await openFront(t);
  const idle = await connected(port);
  idle.write(`${COUNT}content-length: 0\r\n\r\n`);
  while (release.length < 1) await sleep(1);
  front.checkTimes(Date.now() + 1e9);
  release[0]?.();
  assert.match(await oneAnswer(idle), /Keep-Alive: timeout=75\r\n/);
  front.checkTimes(Date.now() + 74_000);
  assert.equal(front.connections, 1);
  const closed = once(idle, 'close');
  front.checkTimes(Date.now() + 76_000);
  await closed;
});

async function openCollection(t: TestContext, options: HarnessOptions): Promise<Harness> {
  const harness = await openDoor(options);
  t.after(() => harness.door.close(0));
  await harness.node.createCollection('c', { params: {} } as never);
  return harness;
}

test('a request’s time counts while its thread does other things, and not while its client sends slowly', async (t) => {
  const { ledger } = fakeMemory();
  let activeMs = 1000;
  const heads: (() => void)[] = [];
  const heldMs: number[] = [];
  const front = new FastFront({
    maxBodyBytes: 1000,
    findRequest: () => {
      heads.shift()?.();
      return { at: 0, path: {}, query: {}, caller: ANYONE };
    },
    ledger,
    encoder: new AnswerEncoder({ minBytes: null, ledger, isMain: true }),
    refuse: () => jsonReply(429, Buffer.from('full')),
    answer: (request) => {
      heldMs.push(request.heldMs);
      return jsonReply(200, Buffer.from('1'));
    },
    handOn: (socket) => socket.destroy(),
    activeMs: () => activeMs,
  });
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => front.take(socket)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = await connected((server.address() as { port: number }).port);
  t.after(() => {
    front.close();
    front.cut();
    server.close();
  });
  const headCame = new Promise<void>((resolve) => heads.push(resolve));
  socket.write(`${COUNT}content-length: 2\r\n\r\n{`);
  await headCame;
  // As if another body were parsed for so long.
  activeMs += 250;
  const first = oneAnswer(socket);
  socket.write('}');
  await first;
  const second = oneAnswer(socket);
  socket.write(`${COUNT}content-length: 2\r\n\r\n{}`);
  await second;
  assert.deepEqual(heldMs, [250, 0]);
});

/** A front over a server of its own; each request waits for its release. */
async function openFront(t: TestContext): Promise<{ front: FastFront; port: number; release: (() => void)[] }> {
  const release: (() => void)[] = [];
  const { ledger } = fakeMemory();
  const front = new FastFront({
    maxBodyBytes: 1000,
    findRequest: () => ({ at: 0, path: {}, query: {}, caller: ANYONE }),
    ledger,
    encoder: new AnswerEncoder({ minBytes: null, ledger, isMain: true }),
    refuse: () => jsonReply(429, Buffer.from('full')),
    answer: () => new Promise((resolve) => release.push(() => resolve(jsonReply(200, Buffer.from('1'))))),
    handOn: (socket) => socket.destroy(),
  });
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => front.take(socket)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    front.close();
    front.cut();
    server.close();
  });
  return { front, port: (server.address() as { port: number }).port, release };
}

async function connected(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

/** The next whole answer; empty if the server closes instead. */
function oneAnswer(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const onClose = () => resolve(text);
    const onData = (chunk: Buffer) => {
      text += chunk.toString('latin1');
      const end = text.indexOf('\r\n\r\n');
      const length = /content-length: (\d+)/i.exec(text)?.[1];
      if (end === -1 || text.length < end + 4 + Number(length)) return;
      socket.off('data', onData).off('close', onClose);
      resolve(text);
    };
    socket.on('data', onData).on('close', onClose);
    socket.resume();
  });
}

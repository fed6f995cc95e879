import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import { connect as connectSocket, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { Client, credentials } from '@grpc/grpc-js';
import { GrpcListener } from '../../../http/grpc/listener.js';
import type { Served } from '../../../http/grpc/methods.js';
import { type GrpcDoor, startGrpcDoor } from '../../../http/grpc/server.js';
import * as h2 from '../../../protocols/http2/frames.js';
import { unlimitedLedger } from '../../../storage/memory/shared-ledger.js';
import { bytesOf } from '../../protocols/grpc/protos.js';
import { type Harness, openDoor, until } from '../rest/fake-node.js';
import { failure, GrpcClient } from './client.js';
import { bytes, data, framesOf, HELLO, headers, message } from './frames.js';

const MESSAGE_BYTES_MAX = 40 << 20;
const DEADLINE_EXCEEDED = 4;
const UNAVAILABLE = 14;
const COUNT = Buffer.from(bytesOf('CountPoints', { collection_name: 'c' }));

interface Opened {
  readonly harness: Harness;
  readonly door: GrpcDoor;
  readonly client: GrpcClient;
}

async function opened(context: TestContext): Promise<Opened> {
  const harness = await openDoor();
  await harness.node.createCollection('c', {} as never);
  const door = await startGrpcDoor(harness.services, {
    host: '127.0.0.1',
    port: 0,
    maxMessageBytes: MESSAGE_BYTES_MAX,
    logRequests: false,
  });
  const client = new GrpcClient(door.port);
  context.after(async () => {
    client.close();
    await door.close(0);
    await harness.door.close(0);
  });
  return { harness, door, client };
}

/** A promise that others settle. */
function later<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** Holds each read until it is let go; `asked` resolves when one has come. */
function held({ node }: Harness): { readonly asked: Promise<void>; readonly letGo: () => void } {
  const asked = later<void>();
  const answer = later<Uint8Array>();
  node.answer = () => {
    asked.resolve();
    return answer.promise;
  };
  return { asked: asked.promise, letGo: () => answer.resolve(Buffer.from('the answer')) };
}

function http2(context: TestContext, { door }: Opened, options = {}): ClientHttp2Session {
  const session = connect(`http://127.0.0.1:${door.port}`, options);
  session.on('error', () => {});
  context.after(() => session.destroy());
  return session;
}

function request(session: ClientHttp2Session, path = '/qdrant.Points/Count') {
  const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' });
  stream.on('error', () => {});
  return stream;
}

async function raw(context: TestContext, { door }: Opened): Promise<Socket> {
  const socket = connectSocket(door.port, '127.0.0.1');
  context.after(() => socket.destroy());
  await once(socket, 'connect');
  return socket;
}

/** All that the server sends until it ends the connection. */
async function rest(socket: Socket): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of socket) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

test('messages of 32 MB come in and go out', async (context) => {
  const { harness, client } = await opened(context);
  harness.node.answer = () => Promise.resolve(Buffer.alloc(32 << 20, 'answer'));
  const body = Buffer.concat([COUNT, Buffer.from([0xfa, 0xff, 0x03, 0x80, 0x80, 0x80, 0x10]), Buffer.alloc(32 << 20, 'request')]);
  const answer = await client.raw('/qdrant.Points/Count', body);
  const asked = harness.node.asked[0]?.request.body as Uint8Array;
  assert.ok(Buffer.from(asked.buffer, asked.byteOffset, asked.length).equals(body));
  assert.equal(asked.buffer.byteLength, asked.length);
  assert.ok(answer.subarray(0, 32 << 20).equals(Buffer.alloc(32 << 20, 'answer')));
});

test('many calls at once on one connection each get their own answer', async (context) => {
  const { harness, client } = await opened(context);
  harness.node.answer = async () => {
    const { body } = (harness.node.asked.at(-1) as { request: { body: Uint8Array } }).request;
    await new Promise(setImmediate);
    return body;
  };
  const calls = Array.from({ length: 1500 }, (_, at) => {
    const sent = Buffer.concat([COUNT, Buffer.from([0xfa, 0xff, 0x03, 4, at >> 8, at & 255, 1, 2]), Buffer.alloc(0)]);
    return client.raw('/qdrant.Points/Count', sent).then((answer) => assert.ok(answer.subarray(0, sent.length).equals(sent)));
  });
  await Promise.all(calls);
});

test('reflection and calls work on one connection', async (context) => {
  const { door, client: calls } = await opened(context);
  const channel = new Client(`127.0.0.1:${door.port}`, credentials.createInsecure());
  context.after(() => channel.close());
  const asIs = (part: Buffer) => part;
  const unary = () =>
    new Promise<Buffer>((resolve, reject) =>
      channel.makeUnaryRequest('/qdrant.Points/Count', asIs, asIs, COUNT, (error, answer) =>
        error ? reject(error) : resolve(answer as Buffer),
      ),
    );
  await unary();
  for (const version of ['v1', 'v1alpha']) {
    const stream = channel.makeBidiStreamRequest(`/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`, asIs, asIs);
    // Field 7: list the services.
    stream.write(Buffer.from([0x3a, 1, 0x2a]));
    const [services] = (await once(stream, 'data')) as [Buffer];
    assert.match(services.toString('latin1'), /qdrant\.Points/);
    await unary();
    stream.end();
    await once(stream, 'end');
  }
  const { code } = await failure(calls.raw('/grpc.reflection.v1.ServerReflection/None', Buffer.alloc(0)));
  assert.equal(code, 12);
});

test('a call whose deadline comes while it runs ends with that status, and those after it are served', async (context) => {
  const { harness, door } = await opened(context);
  const { asked, letGo } = held(harness);
  const socket = connect(`http://127.0.0.1:${door.port}`);
  context.after(() => socket.destroy());
  const fields = { ':method': 'POST', ':path': '/qdrant.Points/Count', 'content-type': 'application/grpc', te: 'trailers' };
  const stream = socket.request({ ...fields, 'grpc-timeout': '50m' });
  stream.end(message(COUNT));
  await asked;
  assert.ok((harness.node.asked[0]?.request.deadlineMs ?? 0) <= Date.now() + 50);
  const [head] = (await once(stream, 'response')) as [Record<string, string>];
  assert.equal(Number(head['grpc-status']), DEADLINE_EXCEEDED);
  letGo();
  const client = new GrpcClient(door.port);
  context.after(() => client.close());
  assert.match((await client.raw('/qdrant.Points/Count', COUNT)).toString('latin1'), /^the answer/);
});

test('a call that its client gives up gets no answer, and the connection goes on', async (context) => {
  const all = await opened(context);
  const { asked, letGo } = held(all.harness);
  const session = http2(context, all);
  const first = request(session);
  first.end(message(COUNT));
  await asked;
  first.close(h2.CANCEL);
  await once(first, 'close');
  letGo();
  const second = request(session);
  second.end(message(COUNT));
  const [head] = await once(second, 'response');
  assert.equal((head as Record<string, number>)[':status'], 200);
});

test('a slow client gets a large answer as its windows allow', async (context) => {
  const all = await opened(context);
  all.harness.node.answer = () => Promise.resolve(Buffer.alloc(3 << 20, 'answer'));
  const session = http2(context, all, { settings: { initialWindowSize: 1000 } });
  const stream = request(session);
  stream.end(message(COUNT));
  let length = 0;
  for await (const part of stream) {
    length += (part as Buffer).length;
    await new Promise(setImmediate);
  }
  assert.ok(length > 3 << 20 && length < (3 << 20) + 100);
});

test('a client that sends and never reads is read no further, and does not hold up others', async (context) => {
  const all = await opened(context);
  all.harness.node.answer = () => Promise.resolve(Buffer.alloc(1 << 20));
  const socket = await raw(context, all);
  socket.pause();
  socket.write(
    bytes(
      HELLO,
      h2.settingsFrame([[h2.SETTINGS_INITIAL_WINDOW_SIZE, h2.WINDOW_MAX]]),
      h2.numberFrame(h2.WINDOW_UPDATE, 0, h2.WINDOW_MAX - h2.WINDOW_DEFAULT),
    ),
  );
  for (let stream = 1; stream < 200; stream += 2) socket.write(bytes(headers(stream), data(stream, message(COUNT), h2.END_STREAM)));
  const ping = h2.frame(h2.PING, 0, 0, Buffer.alloc(8));
  const flood = bytes(...Array.from({ length: 100_000 }, () => ping));
  const sent = later<void>();
  let done = 0;
  for (let at = 0; at < 20; at++) {
    socket.write(flood, () => {
      done++;
      if (done === 20) sent.resolve();
    });
  }
  for (let at = 0; at < 20; at++) await all.client.raw('/qdrant.Points/Count', COUNT);
  const outcome = await Promise.race([sent.promise.then(() => 'all'), new Promise((resolve) => setTimeout(resolve, 300, 'not all'))]);
  assert.equal(outcome, 'not all');
});

test('a connection that is not HTTP/2 is told so and ended', async (context) => {
  const socket = await raw(context, await opened(context));
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  const last = framesOf(await rest(socket)).at(-1);
  assert.deepEqual([last?.type, last?.payload.readUInt32BE(4)], [h2.GOAWAY, h2.PROTOCOL_ERROR]);
});

test('closing lets the running call end, takes no other and ends idle connections', async (context) => {
  const all = await opened(context);
  const idle = await raw(context, all);
  idle.write(HELLO);
  const { asked, letGo } = held(all.harness);
  const running = all.client.raw('/qdrant.Points/Count', COUNT);
  await asked;
  const closed = all.door.close(10_000);
  assert.equal(framesOf(await rest(idle)).at(-1)?.type, h2.GOAWAY);
  const late = new GrpcClient(all.door.port);
  context.after(() => late.close());
  assert.equal((await failure(late.raw('/qdrant.Points/Count', COUNT, { deadline: Date.now() + 5000 }))).code, UNAVAILABLE);
  letGo();
  assert.match((await running).toString('latin1'), /^the answer/);
  await closed;
});

test('closing cuts calls that take longer than the grace period', async (context) => {
  const all = await opened(context);
  const { asked } = held(all.harness);
  const running = failure(all.client.raw('/qdrant.Points/Count', COUNT));
  await asked;
  await all.door.close(20);
  assert.equal((await running).code, UNAVAILABLE);
});

test('a port in use is an error with its code', async (context) => {
  const { harness, door } = await opened(context);
  const again = startGrpcDoor(harness.services, { host: '127.0.0.1', port: door.port, maxMessageBytes: 1, logRequests: false });
  await assert.rejects(again, { code: 'EADDRINUSE' });
});

/** A listener with one method. monotonicMs: its clock. */
async function listening(context: TestContext, served: Served, monotonicMs = () => performance.now()) {
  const listener = new GrpcListener({
    methods: new Map([['/qdrant.Points/Count', served]]),
    callers: null,
    refuse: () => null,
    messageBytesMax: MESSAGE_BYTES_MAX,
    ledger: unlimitedLedger(),
    clients: null,
    calls: null,
    noRoom: () => ({ kind: 'failed', code: 8, details: '', metadata: [] }),
    nowMs: Date.now,
    monotonicMs,
  });
  const port = await listener.listen({ host: '127.0.0.1', port: 0 });
  const client = new GrpcClient(port);
  context.after(async () => {
    client.close();
    listener.cut();
    await listener.close();
  });
  return { client, listener, port };
}

test('connections that say nothing, ask for nothing or do not end their request are ended, and no other one', async (context) => {
  let nowMs = 0;
  const served: Served = async () => ({ kind: 'message', parts: [Buffer.from('the answer')] });
  const { client, listener, port } = await listening(context, served, () => nowMs);
  const that = (sent: Uint8Array) => {
    const heard: Buffer[] = [];
    const socket = connectSocket(port, '127.0.0.1', () => socket.write(sent));
    socket.on('data', (part: Buffer) => heard.push(part));
    context.after(() => socket.destroy());
    const closed = new Promise((resolve) => socket.once('close', resolve));
    return { socket, closed, heard: () => Buffer.concat(heard) };
  };
  const silent = that(bytes());
  const half = that(bytes(HELLO).subarray(0, 20));
  // The ping shows that the server has read what came before it.
  const ping = h2.frame(h2.PING, 0, 0, Buffer.alloc(8));
  const idle = that(bytes(HELLO, ping));
  const unfinished = that(bytes(HELLO, headers(1), data(1, message(COUNT).subarray(0, 3), 0), ping));
  await until(() => [silent, half].every(({ heard }) => heard().length > 0));
  await until(() => [idle, unfinished].every(({ heard }) => framesOf(heard()).some(({ type }) => type === h2.PING)));
  await client.raw('/qdrant.Points/Count', COUNT);
  const at = (ms: number): void => {
    nowMs = ms;
    listener.checkTimes();
  };
  const areOpen = (...watched: (typeof idle)[]): boolean => watched.every(({ socket }) => socket.readyState === 'open');
  at(10_000);
  assert.ok(areOpen(silent, half, idle, unfinished));
  at(10_001);
  await Promise.all([silent.closed, half.closed]);
  assert.ok(areOpen(idle, unfinished));
  at(60_001);
  await idle.closed;
  assert.equal(framesOf(idle.heard()).at(-1)?.type, h2.GOAWAY);
  at(310_000);
  assert.ok(areOpen(unfinished));
  at(310_002);
  await until(() => /did not come to its end within 300 seconds/.test(unfinished.heard().toString('latin1')));
  assert.equal((await client.raw('/qdrant.Points/Count', COUNT)).toString(), 'the answer');
});

test('who works on a call is told when its client gives up: at the deadline, and when the connection is lost', async (context) => {
  let asked = later<void>();
  let gone = later<void>();
  const served: Served = (_message, _deadlineMs, caller) => {
    caller.onGone?.(() => gone.resolve());
    asked.resolve();
    return new Promise(() => {});
  };
  const { client, listener } = await listening(context, served);
  assert.equal((await failure(client.raw('/qdrant.Points/Count', COUNT, { deadline: Date.now() + 50 }))).code, DEADLINE_EXCEEDED);
  await gone.promise;
  asked = later<void>();
  gone = later<void>();
  const lost = failure(client.raw('/qdrant.Points/Count', COUNT));
  await asked.promise;
  listener.cut();
  await gone.promise;
  assert.equal((await lost).code, UNAVAILABLE);
});

/** What calls need of memory is bounded over all connections. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { type GrpcDoor, startGrpcDoor } from '../../../http/grpc/server.js';
import { fakeMemory, type Harness, held, openDoor, until } from '../rest/fake-node.js';
import { failure, GrpcClient } from './client.js';

const MB = 1 << 20;
/** A quarter of 80 % of it is 10 MB. */
const BUDGET = 50 * MB;
const RESOURCE_EXHAUSTED = 8;
const COUNT = '/qdrant.Points/Count';
const COMPRESSED = 1;

test('messages beyond the budget of all connections are refused, with what to do', async (context) => {
  const { client, door, harness } = await opened(context, BUDGET);
  const session = http2(context, door);
  const under = [0, 1].map(() => call(session, [prefix(4 * MB, 0), Buffer.alloc(3 * MB)]));
  await until(() => held(harness.services, 'bodies') >= 6 * MB);
  const read = await failure(client.raw(COUNT, Buffer.alloc(6 * MB)));
  assert.equal(read.code, RESOURCE_EXHAUSTED);
  assert.match(read.details, /^Too many requests: .*retry later/);
  assert.deepEqual(read.metadata.get('retry-after'), ['1']);
  const write = await failure(client.raw('/qdrant.Points/Upsert', Buffer.alloc(6 * MB)));
  assert.match(write.details, /^Out of memory: /);
  assert.deepEqual(write.metadata.get('troupe-outcome'), ['none']);
  assert.equal(harness.node.asked.length, 0);
  for (const stream of under) stream.close();
  await until(() => held(harness.services, 'bodies') === 0);
});

test('a compressed message is refused when there is no memory for what it would become', async (context) => {
  const { door, harness } = await opened(context, BUDGET);
  const packed = gzipSync(Buffer.alloc(16 * MB));
  const stream = call(http2(context, door), [prefix(packed.length, COMPRESSED), packed], { 'grpc-encoding': 'gzip' });
  const status = new Promise((resolve) => stream.on('response', (headers) => resolve(headers['grpc-status'])));
  stream.end();
  assert.equal(await status, String(RESOURCE_EXHAUSTED));
  assert.equal(harness.node.asked.length, 0);
  await until(() => held(harness.services, 'bodies') === 0);
});

test('a call that is refused while its message is on its way tells its client why, and the connection goes on', {
  timeout: 30_000,
}, async (context) => {
  const { door, harness } = await opened(context, BUDGET);
  const { ledger } = harness.services.memory;
  // Room for the beginning of one message.
  const taken = 10 * MB - 20_000;
  assert.ok(ledger.reserve('bodies', taken));
  const session = http2(context, door);
  const slow = call(session, [prefix(65_536, 0), Buffer.alloc(16_370)]);
  const told = refusal(slow);
  for (let bites = 0; bites < 60 && slow.writable; bites++) {
    slow.write(Buffer.alloc(7));
    await nextTurn();
  }
  assert.match(await told, /^8 Too many requests: /);
  // Each fills its window of 4 MB before it hears of it: together they fill that of the connection twice.
  for (let uploads = 0; uploads < 4; uploads++) {
    assert.match(await refusal(call(session, [prefix(6 * MB, 0), Buffer.alloc(6 * MB)])), /^8 Too many requests: /);
    assert.match(await refusal(call(session, [prefix(33 * MB, 0), Buffer.alloc(6 * MB)])), /^8 .*larger/);
  }
  ledger.release('bodies', taken);
  const after = call(session, [prefix(3, 0), Buffer.from([0x0a, 0x01, 0x63])]);
  after.end();
  assert.match(await refusal(after), /^0/);
  assert.deepEqual([harness.node.asked.length, session.destroyed, held(harness.services, 'bodies')], [1, false, 0]);
});

test('answers that clients do not take are counted, and end their connections beyond the budget', async (context) => {
  const { door, harness } = await opened(context, 8 * BUDGET);
  harness.node.answer = () => Promise.resolve(Buffer.alloc(48 * MB));
  let closed = 0;
  const sessions = [0, 1, 2].map(() => {
    const session = http2(context, door);
    session.on('close', () => closed++);
    const stream = call(session, [prefix(3, 0), Buffer.from([0x0a, 0x01, 0x63])]);
    stream.end();
    stream.pause();
    return session;
  });
  // The budget of 80 MB has room for one of them.
  await until(() => closed === 2);
  assert.ok(
    held(harness.services, 'answers') > 40 * MB && held(harness.services, 'answers') <= 80 * MB,
    `${held(harness.services, 'answers')}`,
  );
  for (const session of sessions) session.destroy();
  await until(() => held(harness.services, 'answers') === 0);
});

interface Opened {
  readonly harness: Harness;
  readonly door: GrpcDoor;
  readonly client: GrpcClient;
}

async function opened(context: TestContext, budget: number): Promise<Opened> {
  const harness = await openDoor({ memory: fakeMemory(budget) });
  const door = await startGrpcDoor(harness.services, { host: '127.0.0.1', port: 0, maxMessageBytes: 32 * MB, logRequests: false });
  const client = new GrpcClient(door.port);
  await harness.node.createCollection('c', { params: {} } as never);
  context.after(async () => {
    client.close();
    await door.close(0);
    await harness.door.close(0);
  });
  return { harness, door, client };
}

function http2(context: TestContext, { port }: GrpcDoor): ClientHttp2Session {
  // Node's client counts what it has not sent of a refused call for ever.
  const session = connect(`http://127.0.0.1:${port}`, { maxSessionMemory: 1000 });
  session.on('error', () => {});
  context.after(() => session.destroy());
  return session;
}

function call(session: ClientHttp2Session, parts: readonly Buffer[], fields: Record<string, string> = {}): ClientHttp2Stream {
  const stream = session.request({ ':method': 'POST', ':path': COUNT, 'content-type': 'application/grpc', te: 'trailers', ...fields });
  stream.on('error', () => {});
  for (const part of parts) stream.write(part);
  return stream;
}

/** Status and message of a call, once its stream is closed; rejects if it was broken off without them. */
async function refusal(stream: ClientHttp2Stream): Promise<string> {
  let fields: Record<string, unknown> = {};
  stream.on('response', (headers) => {
    fields = { ...fields, ...headers };
  });
  stream.on('trailers', (headers) => {
    fields = { ...fields, ...headers };
  });
  stream.resume();
  await once(stream, 'close');
  assert.equal(stream.rstCode, 0);
  return `${String(fields['grpc-status'])} ${String(fields['grpc-message'] ?? '')}`;
}

function prefix(length: number, compressed: number): Buffer {
  const bytes = Buffer.alloc(5);
  bytes[0] = compressed;
  bytes.writeUInt32BE(length, 1);
  return bytes;
}

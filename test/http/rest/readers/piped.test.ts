import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { PipedConnections } from '../../../../http/rest/readers/piped.js';
import { until } from '../fake-node.js';

const MINUTE_MS = 60_000;
/** More than the buffers of two connections take. */
const ANSWER = Buffer.alloc(64 << 20, 'answer');

/** A client, and the connection that a reader has of it and has handed on to a server that says the answer. */
async function handedOn(
  t: TestContext,
  answer = ANSWER,
  allowHalfOpen = false,
): Promise<{ piped: PipedConnections; client: Socket; socket: Socket; server: Socket }> {
  const folder = await mkdtemp(join(tmpdir(), 'troupe-piped-'));
  const inner = createServer().listen(join(folder, 'http'));
  const outer = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
  t.after(async () => {
    for (const server of [inner, outer]) server.close();
    await rm(folder, { recursive: true });
  });
  await Promise.all([once(inner, 'listening'), once(outer, 'listening')]);
  const piped = new PipedConnections(join(folder, 'http'));
  const client = connect({ port: (outer.address() as { port: number }).port, host: '127.0.0.1', allowHalfOpen, noDelay: true });
  client.on('error', () => {}).pause();
  const [socket] = (await once(outer, 'connection')) as [Socket];
  piped.take(socket, 0);
  const [server] = (await once(inner, 'connection')) as [Socket];
  server.on('error', () => {}).resume();
  server.end(answer);
  t.after(() => {
    for (const end of [client, socket, server]) end.destroy();
  });
  return { piped, client, socket, server };
}

test('a client that takes nothing of its answer loses its connection after a minute, and the server hears of it', async (t) => {
  const { client, piped, server, socket } = await handedOn(t);
  await until(() => socket.writableLength > 0);
  let taken = -1;
  // What the system's buffers hold counts as taken.
  await until(() => {
    const before = taken;
    taken = socket.bytesWritten - socket.writableLength;
    return taken === before;
  });
  piped.checkTimes(0);
  piped.checkTimes(MINUTE_MS);
  assert.equal(socket.destroyed, false);
  const ended = new Promise((resolve) => server.once('close', resolve));
  piped.checkTimes(MINUTE_MS + 1);
  assert.equal(socket.destroyed, true);
  await ended;
  client.destroy();
});

test('one that takes its answer slowly keeps its connection, and so does one that waits for the next request', async (t) => {
  const { client, piped, server, socket } = await handedOn(t);
  let taken = 0;
  let checks = 0;
  let checkedAt = 0;
  client.on('data', (chunk: Buffer) => {
    taken += chunk.length;
    if (taken - checkedAt < 4 << 20) return;
    checkedAt = taken;
    piped.checkTimes(++checks * MINUTE_MS);
  });
  client.resume();
  await once(client, 'end');
  assert.equal(taken, ANSWER.length);
  assert.ok(checks > 10);
  await until(() => server.destroyed && socket.destroyed);
});

test('a client that still sends when the server has closed its connection is not cut off: it would lose what it has not read', async (t) => {
  const { client, server, socket } = await handedOn(t, Buffer.from('no'), true);
  const send = () => new Promise<void>((done, failed) => client.write('part of a body', (error) => (error ? failed(error) : done())));
  await send();
  // The answer is on its way to the client, which reads nothing yet.
  await until(() => socket.bytesWritten === 2);
  server.destroy();
  await until(() => socket.writableFinished);
  for (let parts = 0; parts < 50; parts++) {
    await send();
    await nextTurn();
  }
  client.end();
  assert.deepEqual(await once(client.resume(), 'data'), [Buffer.from('no')]);
  await until(() => socket.destroyed);
});

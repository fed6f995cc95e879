import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { watchSessions } from './lost-sessions.js';

test('an error of a connection that its client has left is told, and does not end the program', async () => {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const told: string[] = [];
  const listeners = process.listenerCount('unhandledRejection');
  const end = watchSessions(({ message }) => told.push(message));
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  await once(session, 'connect');
  // `once` would be one that hears the error.
  const closed = new Promise((done) => session.on('close', done));
  session.destroy(new Error('received GOAWAY'));
  await closed;
  assert.deepEqual(told, ['received GOAWAY']);
  end();
  assert.equal(process.listenerCount('unhandledRejection'), listeners);
  server.close();
});

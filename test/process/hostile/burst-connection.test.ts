import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'node:test';
import { BurstConnection } from './burst-connection.js';

/** A server that gets text and says what to answer to each request line; null: the connection is cut. */
async function serverOf(answer: (line: string, connection: number) => string | null) {
  let connections = 0;
  const server = createServer((socket) => {
    const connection = ++connections;
    socket.on('error', () => {});
    socket.on('data', (bytes) => {
      for (const line of bytes.toString('latin1').match(/^GET \S+/gm) ?? []) {
        const text = answer(line, connection);
        if (text === null) socket.destroy();
        else if (!socket.destroyed) socket.write(text);
        if (text?.includes('connection: close')) socket.end();
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, close: () => server.close() };
}

const requests = ['/a', '/b', '/c'].map((path) => ({ method: 'GET', path, body: undefined }));
const answerOf = (body: string, header = ''): string => `HTTP/1.1 200 OK\r\n${header}content-length: ${body.length}\r\n\r\n${body}`;

test('requests that are sent at once get their answers in order, and those behind one that closes the connection are sent again', async () => {
  const server = await serverOf((line, connection) =>
    answerOf(`${line} ${connection}`, line.endsWith('/b') ? 'connection: close\r\n' : ''),
  );
  const client = new BurstConnection(server.port);
  const texts: string[] = [];
  await client.ask(requests, { answered: (at, { status, text }) => texts.push(`${at} ${status} ${text}`) });
  assert.deepEqual(texts, ['0 200 GET /a 1', '1 200 GET /b 1', '2 200 GET /c 2']);
  client.close();
  server.close();
});

test('a connection that breaks with requests unanswered is told', async () => {
  const server = await serverOf((line) => (line.endsWith('/c') ? null : answerOf('')));
  const client = new BurstConnection(server.port);
  await assert.rejects(client.ask(requests, { answered: () => {} }), /2 of 3 were answered|0 of 3|ECONNRESET/);
  server.close();
});

test('of a large answer its beginning and the time that the node says are told, and that the request was sent before', async () => {
  const body = `{"result":"${'x'.repeat(1 << 20)}","status":"ok","time":0.0125}`;
  const server = await serverOf(() => answerOf(body));
  const client = new BurstConnection(server.port);
  const told: string[] = [];
  const answered = (_: number, { nodeMs, text }: { readonly nodeMs: number | null; readonly text: string }) =>
    told.push(`${text.length} ${text.slice(0, 12)} ${nodeMs}`);
  await client.ask(requests.slice(0, 1), { answered, sent: () => told.push('sent') });
  assert.deepEqual(told, ['sent', '300 {"result":"x 12.5']);
  client.close();
  server.close();
});

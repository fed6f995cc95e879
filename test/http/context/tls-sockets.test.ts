/** REST and gRPC over TLS, in readers and in the main thread. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:https';
import { connect as connectPlain } from 'node:net';
import { type TestContext, test } from 'node:test';
import { type ConnectionOptions, connect, type PeerCertificate, type TLSSocket } from 'node:tls';
import type { DoorTls } from '../../../http/context/tls-sockets.js';
import { GrpcListener } from '../../../http/grpc/listener.js';
import { noRoomOutcome } from '../../../http/grpc/no-room.js';
import { Authority } from '../../../ops/tls/authority.js';
import { failure, GrpcClient } from '../grpc/client.js';
import { type Harness, openDoor, sendRaw } from '../rest/fake-node.js';

const NOW_MS = Date.now();
const authority = new Authority('the authority', NOW_MS);
const stranger = new Authority('another authority', NOW_MS);
const server = authority.sign({ name: 'first', hosts: ['localhost', '127.0.0.1', '::1'] });
const HEALTH = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n';
const COUNT = '/collections/c/points/count';

function doorTls(clientCa: string | null = null, { cert, key } = server): DoorTls {
  return { cert, key, clientCa, ticketKeys: new Uint8Array(48).fill(7) };
}

const DOORS = {
  'in a reader': { readAlone: () => Buffer.from('{"count":7}') },
  'in the main thread': {},
  'through Fastify': { fastPath: false },
};

async function open(t: TestContext, options: object, tls = doorTls()): Promise<Harness> {
  const harness = await openDoor({ ...options, tls });
  t.after(() => harness.door.close(0));
  await harness.node.createCollection('c', { params: {} } as never);
  return harness;
}

async function connected(t: TestContext, port: number, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', port, servername: 'localhost', ca: authority.cert, ...options });
  t.after(() => socket.destroy());
  await once(socket, 'secureConnect');
  return socket;
}

/** The head and body of the next answer. */
async function answerTo(socket: TLSSocket, text: string): Promise<string> {
  socket.write(text);
  let answer = '';
  for (;;) {
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    answer += chunk.toString('latin1');
    const length = /content-length: (\d+)/i.exec(answer)?.[1];
    if (length !== undefined && answer.length >= answer.indexOf('\r\n\r\n') + 4 + Number(length)) return answer;
  }
}

/** What ends a connection: an error's code, or what was said before its end. */
async function endOf(port: number, options: ConnectionOptions): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port, servername: 'localhost', ca: authority.cert, ...options });
  const said: Buffer[] = [];
  socket.on('data', (chunk) => said.push(chunk));
  // In TLS 1.3 a client learns only with the first answer that its certificate was refused.
  socket.on('secureConnect', () => socket.write(HEALTH.replace('Host', 'Connection: close\r\nHost')));
  return new Promise((resolve) => {
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket.on('close', () => resolve(Buffer.concat(said).toString('latin1')));
  });
}

function post(harness: Harness, path: string, body: string | Buffer, headers = {}): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const options = {
      host: '127.0.0.1',
      port: harness.door.port,
      servername: 'localhost',
      ca: authority.cert,
      method: 'POST',
      path,
      headers,
      agent: false,
    };
    const asking = request(options as object, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }));
    });
    asking.on('error', reject);
    asking.end(body);
  });
}

for (const [where, options] of Object.entries(DOORS)) {
  test(`REST over TLS ${where}: plain and other requests on one connection, small and large bodies`, async (t) => {
    const harness = await open(t, options);
    const socket = await connected(t, harness.door.port, { ALPNProtocols: ['h2', 'http/1.1'] });
    assert.equal(socket.alpnProtocol, 'http/1.1');
    assert.match(socket.getProtocol() as string, /^TLSv1\.3$/);
    for (let at = 0; at < 3; at++) assert.match(await answerTo(socket, HEALTH), /^HTTP\/1\.1 200 OK\r\n/);
    // Not plain: from here on the connection is that of Node's HTTP server.
    const odd = 'GET /nowhere HTTP/1.1\r\nHost: localhost\r\nOrigin: http://a\r\n\r\n';
    assert.match(await answerTo(socket, odd), /^HTTP\/1\.1 404 Not Found\r\n/);
    assert.match(await answerTo(socket, HEALTH), /^HTTP\/1\.1 200 OK\r\n/);
    const { status, text } = await post(harness, COUNT, '{}');
    assert.equal(status, 200, text);
    const large = Buffer.concat([Buffer.from('{"filter":null}'), Buffer.alloc(900_000, ' ')]);
    assert.equal((await post(harness, COUNT, large)).status, 200);
    assert.equal((await post(harness, COUNT, large, { 'transfer-encoding': 'chunked' })).status, 200);
  });

  test(`TLS 1.1, another authority and plain HTTP are refused ${where}`, async (t) => {
    const { port } = (await open(t, options)).door;
    assert.match(
      await endOf(port, { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' }),
      /PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL/,
    );
    assert.match(await endOf(port, { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' }), /^HTTP\/1\.1 200 OK/);
    assert.match(await endOf(port, { ca: stranger.cert }), /UNABLE_TO_VERIFY|SELF_SIGNED/);
    assert.match(await endOf(port, { ALPNProtocols: ['h2'] }), /NO_APPLICATION_PROTOCOL/);
    const said = await sendRaw(port, HEALTH);
    assert.match(said, /^HTTP\/1\.1 400 Bad Request\r\n/);
    assert.match(said, /"error":"Wrong input: this port takes requests with TLS only \(service\.enable_tls\): use https:\/\/"/);
  });

  test(`with client certificates, only those of the authority are let in ${where}`, async (t) => {
    const { port } = (await open(t, options, doorTls(authority.cert))).door;
    assert.match(await endOf(port, {}), /CERTIFICATE_REQUIRED|ECONNRESET|^$/);
    assert.match(await endOf(port, stranger.sign({ name: 'client' })), /UNKNOWN_CA|ECONNRESET|^$/);
    const { cert, key } = authority.sign({ name: 'client', uses: ['client'] });
    assert.match(await answerTo(await connected(t, port, { cert, key }), HEALTH), /^HTTP\/1\.1 200 OK\r\n/);
  });

  test(`a changed certificate is shown to new connections, while those that are open go on ${where}`, async (t) => {
    const harness = await open(t, options);
    const { port } = harness.door;
    const first = await connected(t, port);
    assert.match(await answerTo(first, HEALTH), /200 OK/);
    const { cert, key } = authority.sign({ name: 'second', hosts: ['localhost'] });
    harness.door.renew({ cert, key, clientCa: null, ticketKeys: new Uint8Array(48).fill(8) });
    await untilShown(t, port, 'second');
    assert.match(await answerTo(first, HEALTH), /200 OK/);
    assert.equal(first.getPeerCertificate().subject.CN, 'first');
  });
}

/** A reader hears of a change by a message. */
async function untilShown(t: TestContext, port: number, name: string): Promise<void> {
  for (let tries = 0; ; tries++) {
    const shown: PeerCertificate = (await connected(t, port)).getPeerCertificate();
    if (shown.subject.CN === name) return;
    assert.ok(tries < 100, `${name} is not shown`);
  }
}

test('a client may go on with a session, and not after the certificates have changed', async (t) => {
  const harness = await open(t, {});
  const { port } = harness.door;
  const first = await connected(t, port);
  const [[session]] = (await Promise.all([once(first, 'session'), answerTo(first, HEALTH)])) as [[Buffer], string];
  assert.equal((await connected(t, port, { session })).isSessionReused(), true);
  harness.door.renew({ ...doorTls(), ticketKeys: new Uint8Array(48).fill(9) });
  assert.equal((await connected(t, port, { session })).isSessionReused(), false);
});

test('a client that refuses the certificate leaves no connection behind, and one that ends its half gets its answer', async (t) => {
  for (const options of Object.values(DOORS)) {
    const harness = await openDoor({ ...options, tls: doorTls() });
    const { port } = harness.door;
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      await endOf(port, { ca: stranger.cert, minVersion: version, maxVersion: version });
    }
    const socket = await connected(t, port);
    socket.allowHalfOpen = true;
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.end(HEALTH);
    await once(socket, 'close');
    if (!('fastPath' in options)) assert.match(Buffer.concat(chunks).toString(), /^HTTP\/1\.1 200 OK/);
    // Without a time after which connections are cut.
    await harness.door.close(600_000);
  }
});

test('connections that are silent or in the middle of a handshake do not keep a server open', async (t) => {
  for (const options of Object.values(DOORS)) {
    const harness = await openDoor({ ...options, tls: doorTls() });
    const { port } = harness.door;
    const silent = connectPlain(port, '127.0.0.1');
    const slow = connectPlain(port, '127.0.0.1', () => slow.write(Buffer.from('160301', 'hex')));
    const open = await connected(t, port);
    assert.match(await answerTo(open, HEALTH), /200 OK/);
    const ends = [silent, slow, open].map((socket) => {
      socket.on('error', () => {});
      return once(socket, 'close');
    });
    await harness.door.close(10);
    await Promise.all(ends);
  }
});

test('gRPC over TLS: the protocol is agreed on, certificates are checked on both sides, and plain connections are told', async (t) => {
  const { memory } = (await open(t, {})).services;
  const context = {
    calls: null,
    clients: null,
    methods: new Map(),
    messageBytesMax: 1 << 20,
    ledger: memory.ledger,
    nowMs: Date.now,
    monotonicMs: () => performance.now(),
  };
  const listener = new GrpcListener(
    { ...context, callers: null, refuse: () => null, noRoom: () => noRoomOutcome({ method: 'GET', access: 'open' }) },
    doorTls(authority.cert),
  );
  const port = await listener.listen({ host: '127.0.0.1', port: 0 });
  t.after(async () => {
    listener.cut();
    await listener.close();
  });
  const client = authority.sign({ name: 'client' });
  const clients = [
    new GrpcClient(port, {}, { ca: authority.cert, ...client }),
    new GrpcClient(port, {}, { ca: authority.cert }),
    new GrpcClient(port, {}, { ca: stranger.cert, ...client }),
    new GrpcClient(port),
  ];
  const calls = await Promise.all(clients.map((each) => failure(each.call('Points/Count', { collection_name: 'c' }))));
  for (const each of clients) each.close();
  // The server is reached: it has no methods.
  assert.deepEqual(
    calls.map(({ code }) => code),
    [12, 14, 14, 7],
  );
  const socket = await connected(t, port, { ALPNProtocols: ['h2'], ...client });
  assert.equal(socket.alpnProtocol, 'h2');
  socket.destroy();
  const said = await sendRaw(port, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  assert.match(said, /this port takes connections with TLS only/);
});

/** Which clients may connect, and what a node that asks for no key tells about itself. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { ClientGate } from '../../http/context/client-gate.js';
import { clientNetworks } from '../../http/context/client-lists.js';
import { openConnectionsData } from '../../http/context/open-connections.js';
import { startGrpcDoor } from '../../http/grpc/server.js';
import { GrpcClient } from '../http/grpc/client.js';
import { openDoor, until as untilHere } from '../http/rest/fake-node.js';
import { nodeFor, temporaryFolder, until } from './support.js';

/** Linux gives a machine all of 127.0.0.0/8, so one machine has clients of many addresses. */
const ALLOWED = '127.0.0.1';
const OTHER = '127.0.0.2';
/** All that the node in this test takes, and of them from one address. */
const CONNECTIONS = 12;
const OF_ONE = 8;
const REQUEST = 'GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n';
/** Handed on by readers: Node's HTTP server answers it. */
const ODD_REQUEST = 'GET //healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n';

/** All that the server says to a client from an address; empty: it closed the connection at once. */
async function answerTo(from: string, port: number, request: string): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port, localAddress: from });
  const chunks: Buffer[] = [];
  socket.on('data', (chunk) => chunks.push(chunk));
  // A connection that is closed before its request was read may be reset.
  socket.on('error', () => {});
  socket.write(request);
  await new Promise((resolve) => socket.once('close', resolve));
  return Buffer.concat(chunks).toString();
}

test('readers close connections of clients that are not allowed, over both protocols, and the node counts them and tells once', async (t) => {
  const environment = {
    SERVICE__SERVICE__HOST: '0.0.0.0',
    SERVICE__SERVICE__ALLOW_CLIENTS: `${ALLOWED},127.0.1.0/24`,
    SERVICE__SERVICE__MAX_CONNECTIONS: String(CONNECTIONS),
    SERVICE__SERVICE__MAX_CONNECTIONS_PER_CLIENT: String(OF_ONE),
  };
  const node = await nodeFor(t, { folder: await temporaryFolder(t), environment });
  // On connections that end: others are counted below.
  const page = (path: string) => answerTo(ALLOWED, node.port, REQUEST.replace('GET /', `GET ${path}`));
  for (let tries = 0; tries < 8; tries++) {
    assert.equal(await answerTo(OTHER, node.port, REQUEST), '');
    assert.equal(await answerTo(OTHER, node.grpcPort, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), '');
  }
  assert.match(await answerTo(ALLOWED, node.port, REQUEST), /^HTTP\/1\.1 200/);
  assert.match(await answerTo(ALLOWED, node.port, ODD_REQUEST), /^HTTP\/1\.1 200/);
  const grpc = new GrpcClient(node.grpcPort);
  t.after(() => grpc.close());
  assert.match(String((await grpc.call('Qdrant/HealthCheck', {})).title), /troupe/);
  assert.match(await page('/metrics'), /^refused_connections_total\{reason="address"\} 16$/m);
  const telemetry = JSON.parse(bodyOf(await page('/telemetry'))) as {
    result: { requests: { connections: { refused: unknown } } };
  };
  assert.deepEqual(telemetry.result.requests.connections.refused, { address: 16, max_connections: 0, max_connections_per_client: 0 });
  const told = () => node.log().match(/WARN .*connections were refused.*/g) ?? [];
  await until(
    async () => told().length,
    (lines) => lines > 0,
  );
  assert.equal(told().length, 1);
  assert.match(told()[0] as string, /one_address=127\.0\.0\.2/);

  // The node asks for no key and listens on all interfaces.
  assert.match(node.log(), /WARN .*no API key and listens on all interfaces/);
  assert.match(await page('/docs'), /<p role="alert">This node has no API key/);
  assert.doesNotMatch(bodyOf(await page('/')), /key/);

  // One address takes what it may, then others take the rest.
  grpc.close();
  const openFrom = async (from: string, port: number): Promise<Socket> => {
    const socket = connect({ host: '127.0.0.1', port, localAddress: from });
    t.after(() => socket.destroy());
    await once(socket, 'connect');
    return socket;
  };
  const [first, second, third] = ['127.0.1.1', '127.0.1.2', '127.0.1.3'] as const;
  const connections = async () =>
    (JSON.parse(bodyOf(await page('/telemetry'))) as { result: { requests: { connections: Connections } } }).result.requests.connections;
  // Nothing but the question itself.
  await until(connections, ({ open }) => open === 1);
  const taken: Socket[] = [];
  for (let at = 0; at < OF_ONE; at++) taken.push(await openFrom(first, at % 2 === 0 ? node.port : node.grpcPort));
  await until(connections, ({ open }) => open === OF_ONE + 1);
  assert.match(await answerTo(first, node.port, REQUEST), /^HTTP\/1\.1 503 [\s\S]*service\.max_connections/);
  assert.match(await answerTo(first, node.grpcPort, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), /service\.max_connections/);
  assert.match(await answerTo(second, node.port, REQUEST), /^HTTP\/1\.1 200/);
  // A connection that a reader hands on to the main thread is one, as before.
  taken.push(await openFrom(second, node.port));
  taken.at(-1)?.write('GET //healthz HTTP/1.1\r\nhost: x\r\n\r\n');
  await once(taken.at(-1) as Socket, 'data');
  while (taken.length < CONNECTIONS) taken.push(await openFrom(third, node.port));
  await until(
    () => answerTo(second, node.port, REQUEST),
    (answer) => answer.startsWith('HTTP/1.1 503'),
  );
  for (const socket of taken) socket.destroy();
  await until(
    () => answerTo(first, node.port, REQUEST),
    (answer) => answer.startsWith('HTTP/1.1 200'),
  );
  const { max, max_per_client, refused } = await connections();
  assert.deepEqual([max, max_per_client, refused.address], [CONNECTIONS, OF_ONE, 16]);
  assert.ok((refused.max_connections ?? 0) >= 1 && (refused.max_connections_per_client ?? 0) >= 2, JSON.stringify(refused));
  assert.match(await page('/metrics'), /^connections_max 12$/m);
});

function bodyOf(answer: string): string {
  return answer.slice(answer.indexOf('\r\n\r\n') + 4);
}

interface Connections {
  readonly open: number;
  readonly max: number;
  readonly max_per_client: number;
  readonly refused: Readonly<Record<string, number>>;
}

function gateFor(allow: readonly string[]): ClientGate {
  const open = openConnectionsData({ max: 100, maxPerClient: 100, lanes: 1, seeds: [1, 2] });
  return ClientGate.of({ allow: clientNetworks(allow).networks, deny: [] }, open);
}

async function doorsIn(t: TestContext, clients: ClientGate, fastPath: boolean): Promise<{ rest: number; grpc: number }> {
  const harness = await openDoor({ clients, fastPath });
  const grpc = await startGrpcDoor(harness.services, { host: '127.0.0.1', port: 0, maxMessageBytes: 1 << 20, logRequests: false });
  t.after(() => Promise.all([harness.door.close(0), grpc.close(0)]));
  return { rest: harness.door.port, grpc: grpc.port };
}

test('so do the servers of the main thread, with the plain path and without it', async (t) => {
  for (const fastPath of [true, false]) {
    const clients = gateFor([ALLOWED]);
    const doors = await doorsIn(t, clients, fastPath);
    assert.match(await answerTo(ALLOWED, doors.rest, REQUEST), /^HTTP\/1\.1 200/);
    assert.equal(await answerTo(OTHER, doors.rest, REQUEST), '');
    assert.equal(await answerTo(OTHER, doors.grpc, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), '');
    await untilHere(() => clients.refusals().counts.address === 2);
    assert.equal(clients.refusals().lately, OTHER);
  }
});

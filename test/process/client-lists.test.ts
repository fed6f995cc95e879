/** Which clients may connect, and what a node that asks for no key tells about itself. */

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { ClientGate } from '../../http/context/client-gate.js';
import { clientNetworks } from '../../http/context/client-lists.js';
import { startGrpcDoor } from '../../http/grpc/server.js';
import { GrpcClient } from '../http/grpc/client.js';
import { openDoor, until as untilHere } from '../http/rest/fake-node.js';
import { nodeFor, temporaryFolder, until } from './support.js';

/** Linux gives a machine all of 127.0.0.0/8, so one machine has clients of many addresses. */
const ALLOWED = '127.0.0.1';
const OTHER = '127.0.0.2';
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
  const environment = { SERVICE__SERVICE__HOST: '0.0.0.0', SERVICE__SERVICE__ALLOW_CLIENTS: `${ALLOWED},10.0.0.0/8` };
  const node = await nodeFor(t, { folder: await temporaryFolder(t), environment });
  for (let tries = 0; tries < 8; tries++) {
    assert.equal(await answerTo(OTHER, node.port, REQUEST), '');
    assert.equal(await answerTo(OTHER, node.grpcPort, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), '');
  }
  assert.match(await answerTo(ALLOWED, node.port, REQUEST), /^HTTP\/1\.1 200/);
  assert.match(await answerTo(ALLOWED, node.port, ODD_REQUEST), /^HTTP\/1\.1 200/);
  const grpc = new GrpcClient(node.grpcPort);
  t.after(() => grpc.close());
  assert.match(String((await grpc.call('Qdrant/HealthCheck', {})).title), /troupe/);
  assert.match(await (await fetch(`${node.url}/metrics`)).text(), /^refused_connections_total 16$/m);
  const telemetry = (await (await fetch(`${node.url}/telemetry`)).json()) as { result: { requests: { refused_connections: number } } };
  assert.equal(telemetry.result.requests.refused_connections, 16);
  const told = () => node.log().match(/WARN .*connections were refused.*/g) ?? [];
  await until(
    async () => told().length,
    (lines) => lines > 0,
  );
  assert.equal(told().length, 1);
  assert.match(told()[0] as string, /one_address=127\.0\.0\.2/);

  // The node asks for no key and listens on all interfaces.
  assert.match(node.log(), /WARN .*no API key and listens on all interfaces/);
  assert.match(await (await fetch(`${node.url}/docs`)).text(), /<p role="alert">This node has no API key/);
  assert.doesNotMatch(await (await fetch(`${node.url}/`)).text(), /key/);
});

function gateFor(allow: readonly string[]): ClientGate {
  return ClientGate.of({ allow: clientNetworks(allow).networks, deny: [] });
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
    await untilHere(() => clients.refusals().count === 2);
    assert.equal(clients.refusals().lately, OTHER);
  }
});

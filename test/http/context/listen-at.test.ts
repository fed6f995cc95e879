import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { test } from 'node:test';
import { listenAt } from '../../../http/context/listen-at.js';

async function listening(host: string, port: number, reusePort = false): Promise<Server> {
  const server = createServer();
  const event = once(server, 'listening');
  listenAt(server, { host, port, reusePort });
  await event;
  return server;
}

test('a server listens on an IPv4 address, and on the address of a name', async () => {
  for (const host of ['127.0.0.1', 'localhost']) {
    const server = await listening(host, 0);
    const { address, port } = server.address() as AddressInfo;
    assert.notEqual(port, 0);
    assert.ok(['127.0.0.1', '::1'].includes(address), address);
    server.close();
  }
});

test('a port that another server has, and an address that this machine lacks, are errors of the server with the code of the system', async () => {
  const first = await listening('127.0.0.1', 0);
  const { port } = first.address() as AddressInfo;
  await assert.rejects(listening('127.0.0.1', port), { code: 'EADDRINUSE' });
  await assert.rejects(listening('192.0.2.1', 0), { code: 'EADDRNOTAVAIL' });
  first.close();
});

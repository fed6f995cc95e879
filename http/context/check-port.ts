/** Whether a port can be taken, for servers that share it among threads. */

import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { listenAt } from './listen-at.js';

/** The port, or a free one for 0. Errors: the system's, where another process has it; sharing it would not say so. */
export async function checkPort(host: string, port: number): Promise<number> {
  const server = createServer();
  listenAt(server, { host, port });
  await once(server, 'listening');
  const found = (server.address() as AddressInfo).port;
  server.close();
  await once(server, 'close');
  return found;
}

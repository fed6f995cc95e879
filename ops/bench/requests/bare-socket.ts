/**
 * The least that a request over HTTP costs on this machine and runtime: a process that answers whatever comes with the same bytes, over
 * `node:net`. What a health check costs more is the server's own.
 */

import { type ChildProcess, fork } from 'node:child_process';
import { readlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { AskedNode } from './slices.js';

const HERE = fileURLToPath(import.meta.url);
const BODY = 'healthz check passed';
const ANSWER = `HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: ${BODY.length}\r\nConnection: keep-alive\r\nKeep-Alive: timeout=75\r\n\r\n${BODY}`;

export interface BareSocket extends AskedNode {
  end(): void;
}

/** Starts the process on the runtime of the process `pid`, or on this one where the system does not tell. */
export async function startBareSocket(pid: number): Promise<BareSocket> {
  const child = fork(HERE, ['serve'], { execPath: runtimeOf(pid), execArgv: ['--max-semi-space-size=2'] });
  const port = await portOf(child);
  return { node: { pid: child.pid as number, port, grpcPort: port }, end: () => child.disconnect() };
}

function portOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('message', (port) => resolve(port as number));
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`the bare socket ended with ${code}`)));
  });
}

function runtimeOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/exe`);
  } catch {
    return process.execPath;
  }
}

function serve(): void {
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on('data', () => socket.write(ANSWER, 'latin1'));
    socket.on('error', () => {});
  });
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as { port: number }).port));
  process.once('disconnect', () => process.exit(0));
}

if (process.argv[1] === HERE && process.argv[2] === 'serve') serve();

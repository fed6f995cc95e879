/**
 * How connections of Node's HTTP server end: with their clients (`endWithClient`), as those may be in the middle of a request. By itself the
 * server closes them after the last answer, and after bytes that it cannot read.
 */

import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { endWithClient } from '../context/linger.js';
import type { RequestBody } from './body.js';
import { brokenOff } from './calls/last-words.js';

const STATUSES: Readonly<Record<string, readonly [status: number, message: string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'Client Timeout'],
  HPE_HEADER_OVERFLOW: [431, 'Exceeded maximum allowed HTTP header size'],
};

export class ConnectionEnds {
  /** Nothing more is taken of them, though requests may have come behind the last one. */
  readonly #over = new WeakSet<Socket>();
  /** Of requests that are being answered. */
  readonly #bodies = new WeakMap<Socket, RequestBody>();

  /** Before others listen for its connections. */
  watch(server: Server): void {
    server.on('connection', (socket: Socket) => {
      // Node's HTTP server calls it after the last answer.
      socket.destroySoon = () => this.end(socket);
    });
  }

  isOver(socket: Socket): boolean {
    return this.#over.has(socket);
  }

  /** The answer that is given now is the last one. */
  takeNoMore(socket: Socket): void {
    this.#over.add(socket);
  }

  reads(socket: Socket, body: RequestBody): void {
    this.#bodies.set(socket, body);
  }

  end(socket: Socket): void {
    this.takeNoMore(socket);
    endWithClient(socket);
  }

  /** The server cannot read what the client sends, or has waited too long for it. It tells so again for each part of what is dropped. */
  broken(error: NodeJS.ErrnoException, socket: Socket): void {
    if (error.code === 'ECONNRESET') socket.destroy();
    if (socket.destroyed || this.isOver(socket)) return;
    this.#bodies.get(socket)?.breakOff(error);
    const [status, message] = STATUSES[error.code ?? ''] ?? [400, 'Client Error'];
    if (socket.writable) socket.write(brokenOff(status, message), 'latin1');
    this.end(socket);
  }
}

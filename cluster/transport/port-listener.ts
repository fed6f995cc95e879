/** The internal port: what a connection begins with tells whether it is one of gRPC or a plain one. */

import { createServer, type Server, type Socket } from 'node:net';
import { PLAIN_PREFACE } from './plain-stream.js';

export interface PortUsers {
  /** A connection of gRPC, of which nothing was read. */
  grpc(socket: Socket): void;
  /** A plain one. */
  plain(socket: Socket): void;
}

/** How long a connection may be silent at its beginning. */
const FIRST_BYTE_MS = 5000;

export class PortListener {
  private readonly server: Server;
  private readonly plain = new Set<Socket>();

  constructor(private readonly users: PortUsers) {
    this.server = createServer({ noDelay: true, keepAlive: true }, (socket) => this.taken(socket));
  }

  /** The port. Errors: what the system says. */
  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen({ host, port }, () => {
        this.server.removeListener('error', reject);
        this.server.on('error', () => {});
        const address = this.server.address();
        resolve(typeof address === 'object' && address !== null ? address.port : port);
      });
    });
  }

  /** Plain connections that are open. */
  get plainConnections(): number {
    return this.plain.size;
  }

  /** No connection is taken from here on. */
  close(): void {
    this.server.close();
  }

  /** Ends the plain connections. */
  cut(): void {
    for (const socket of this.plain) socket.destroy();
  }

  private taken(socket: Socket): void {
    // Whoever uses the connection hears of it, too.
    socket.on('error', () => {});
    const patience = setTimeout(() => socket.destroy(), FIRST_BYTE_MS);
    socket.once('close', () => clearTimeout(patience));
    socket.once('data', (chunk: Buffer) => {
      clearTimeout(patience);
      socket.pause();
      socket.unshift(chunk);
      if (chunk[0] !== PLAIN_PREFACE[0]) {
        this.users.grpc(socket);
        return;
      }
      this.plain.add(socket);
      socket.once('close', () => this.plain.delete(socket));
      this.users.plain(socket);
      socket.resume();
    });
  }
}

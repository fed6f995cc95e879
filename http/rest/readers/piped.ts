/**
 * Connections whose requests the HTTP server of the main thread answers: bytes go to and fro through this thread. The server has time limits for
 * requests; here a connection ends whose client does not take its answers, which the server cannot see: what waits for the client keeps it from
 * hearing of the server's end.
 */

import { connect, type Socket } from 'node:net';
import { addressLine } from '../../context/client-address.js';
import { endWithClient } from '../../context/linger.js';

interface Piped {
  /** When it was looked at, and how many bytes the client had taken then. */
  sinceMs: number;
  takenBytes: number;
}

/** While something waits for it, a client takes so much in this time, or everything. */
const TAKEN_BYTES_MIN = 16 << 10;
const PATIENCE_MS = 60_000;

export class PipedConnections {
  readonly #piped = new Map<Socket, Piped>();

  /** path: of the server's socket. */
  constructor(private readonly path: string) {}

  /** Takes a connection over; its next byte is the first of a request. */
  take(socket: Socket, nowMs: number): void {
    const server = connect({ path: this.path, allowHalfOpen: true });
    this.#piped.set(socket, { sinceMs: nowMs, takenBytes: takenBytes(socket) });
    server.write(addressLine(socket));
    const gone = (): void => {
      this.#piped.delete(socket);
      server.destroy();
    };
    // What the server has said before it closed still goes to the client, which may not have sent all yet.
    const over = (): void => {
      socket.unpipe(server).resume();
      endWithClient(socket);
    };
    socket.on('error', gone).on('close', gone).pipe(server);
    server
      .on('error', () => {})
      .on('close', over)
      .pipe(socket);
  }

  /** Ends connections of clients that are too slow. Called every few seconds. */
  checkTimes(nowMs: number): void {
    for (const [socket, piped] of this.#piped) {
      const taken = takenBytes(socket);
      if (socket.writableLength === 0 || taken - piped.takenBytes >= TAKEN_BYTES_MIN) {
        piped.sinceMs = nowMs;
        piped.takenBytes = taken;
      } else if (nowMs - piped.sinceMs > PATIENCE_MS) socket.destroy();
    }
  }

  /** Ends all. */
  cut(): void {
    for (const socket of this.#piped.keys()) socket.destroy();
  }
}

/** Of those that were written so far. */
function takenBytes(socket: Socket): number {
  return socket.bytesWritten - socket.writableLength;
}

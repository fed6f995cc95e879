/**
 * Connections of clients that speak TLS: a server gives each connection that it takes, and gets it back when the client has proven that it speaks
 * TLS 1.2 or newer and, where it has to, who it is. Whoever begins with something else is told so in the clear and let go.
 */

import type { Socket } from 'node:net';
import type { Server as TlsServer } from 'node:tls';
import { tls } from '../../protocols/late-modules.js';

/** What a server of clients shows and asks for. Can be sent to other threads. */
export interface DoorTls {
  /** The server's certificates, its own first, and its private key, as PEM. */
  readonly cert: string;
  readonly key: string;
  /** Who must have signed the certificates of clients, as PEM; null: clients need none. */
  readonly clientCa: string | null;
  /**
   * 48 random bytes, the same in all threads, so that a client can go on with a session in another one. They change with the certificates: a
   * session does not outlive who signed for it.
   */
  readonly ticketKeys: Uint8Array;
}

export interface TlsSocketsOptions {
  /** What the two sides agree to speak inside (ALPN). */
  readonly protocol: 'http/1.1' | 'h2';
  /** Said in the clear to a client that does not speak TLS. */
  readonly lastWords: Buffer;
  /** Takes a connection after its handshake. */
  readonly take: (socket: Socket) => void;
}

/** First byte of a TLS record with a handshake. Source: RFC 8446, section 5.1. */
const HANDSHAKE_RECORD = 22;
/** From the connection to its first byte, and from there to the end of the handshake. */
const HANDSHAKE_MS = 10_000;
/** How long a client that speaks no TLS gets to read why the connection ends. */
const LAST_WORDS_MS = 1000;

export class TlsSockets {
  /** Does the handshakes. It listens nowhere. */
  readonly #server: TlsServer;
  /** Of which nothing has come. */
  readonly #silent = new Set<Socket>();
  /** All others, handshake done or not. */
  readonly #begun = new Set<Socket>();
  #isClosing = false;

  constructor(
    private readonly options: TlsSocketsOptions,
    certificates: DoorTls,
  ) {
    const { protocol, take } = options;
    const settings = { ALPNProtocols: [protocol], requestCert: certificates.clientCa !== null, rejectUnauthorized: true };
    this.#server = tls().createServer({ ...settings, handshakeTimeout: HANDSHAKE_MS, ...contextOf(certificates) }, (socket) => {
      // Http-H8.
      socket.allowHalfOpen = protocol === 'http/1.1';
      if (this.#isClosing) socket.destroy();
      else take(socket);
    });
    // The client has been told why; one that was too slow would stay.
    this.#server.on('tlsClientError', (_error, socket) => socket.destroy());
  }

  /** A connection that a client has opened. */
  take(socket: Socket): void {
    if (this.#isClosing) {
      socket.destroy();
      return;
    }
    this.#silent.add(socket);
    const patience = setTimeout(() => socket.destroy(), HANDSHAKE_MS);
    const gone = (): void => {
      clearTimeout(patience);
      this.#silent.delete(socket);
    };
    const failed = (): void => void socket.destroy();
    socket.once('close', gone).on('error', failed).once('end', failed);
    socket.once('data', (first: Buffer) => {
      socket.off('close', gone).off('error', failed).off('end', failed);
      gone();
      this.#begin(socket, first);
    });
  }

  /** For handshakes from now on; connections that are open stay as they are. */
  renew(certificates: DoorTls): void {
    this.#server.setSecureContext(contextOf(certificates));
  }

  /** Takes no connection any more; those that have begun a handshake end with it. */
  close(): void {
    this.#isClosing = true;
    for (const socket of this.#silent) socket.destroy();
  }

  /** Ends all connections. */
  cut(): void {
    for (const socket of this.#begun) socket.destroy();
  }

  #begin(socket: Socket, first: Buffer): void {
    if (first[0] !== HANDSHAKE_RECORD) {
      // What the client still sends is read and dropped: else it would lose what is said to it.
      socket.on('error', () => {}).resume();
      socket.end(this.options.lastWords);
      setTimeout(() => socket.destroy(), LAST_WORDS_MS).unref();
      return;
    }
    this.#begun.add(socket);
    socket.once('close', () => this.#begun.delete(socket));
    // A client that goes away in the middle of a handshake would keep its half open.
    socket.allowHalfOpen = false;
    socket.pause();
    socket.unshift(first);
    this.#server.emit('connection', socket);
  }
}

function contextOf({ cert, clientCa, key, ticketKeys }: DoorTls) {
  return {
    cert,
    key,
    ...(clientCa === null ? {} : { ca: clientCa }),
    ticketKeys: Buffer.from(ticketKeys),
    sessionIdContext: 'troupe',
    minVersion: 'TLSv1.2' as const,
  };
}

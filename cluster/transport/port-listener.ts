/**
 * The internal port: lets in members of the cluster, where the settings say how they are known, and tells by what a connection begins with whether it is one
 * of gRPC or a plain one.
 */

import { createServer, type Server, type Socket } from 'node:net';
import type { TLSSocket, Server as TlsServer } from 'node:tls';
import { tls } from '../../protocols/late-modules.js';
import { ENTER_MS, type Entrance, isOpen, type PeerTls } from './entrance.js';
import { PLAIN_PREFACE } from './plain-stream.js';
import { checkMember, MEMBER_PREFACE, NEEDS_KEY } from './proof.js';

export interface PortUsers {
  /** A connection of gRPC, of which nothing was read. */
  grpc(socket: Socket): void;
  /** A plain one. */
  plain(socket: Socket): void;
  /** One that is not let in, and where it comes from. */
  refused(address: string, reason: string): void;
  /** Tells a node without TLS or a key, which speaks as if none was needed, why it is not let in, and ends the connection. */
  tell(socket: Socket, kind: 'grpc' | 'plain', reason: string): void;
}

/** How long a connection may be silent at its beginning. */
const FIRST_BYTE_MS = 5000;
/** How long one that is refused gets to read why. */
const LEAVING_MS = 300;
/** Connections that are being let in: more are turned away. */
const ENTERING_MAX = 256;
/** First byte of a TLS record with a handshake. Source: RFC 8446, section 5.1. */
const HANDSHAKE_RECORD = 22;
/** A certificate that says what it is for says this of a server's. Source: RFC 5280, section 4.2.1.12. */
const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';

const NO_TLS = 'the caller speaks TLS, this node does not (cluster.p2p.enable_tls): switch it on for all nodes of the cluster, or for none';
const NEEDS_TLS = 'connections to the internal port of this node need TLS (cluster.p2p.enable_tls), as on all nodes of its cluster';

export class PortListener {
  private readonly server: Server;
  /** Does the handshakes of TLS, and listens nowhere; null: connections are plain. */
  private readonly tls: TlsServer | null;
  private readonly plain = new Set<Socket>();
  private readonly entering = new Set<Socket>();

  constructor(
    private readonly users: PortUsers,
    private readonly entrance: Entrance,
  ) {
    this.server = createServer({ noDelay: true, keepAlive: true }, (socket) => this.taken(socket));
    this.tls = entrance.tls === null ? null : this.tlsServer(entrance.tls);
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

  /** For handshakes from now on. */
  renew(peerTls: PeerTls): void {
    this.tls?.setSecureContext(contextOf(peerTls));
  }

  /** Plain connections that are open. */
  get plainConnections(): number {
    return this.plain.size;
  }

  /** No connection is taken from here on. */
  close(): void {
    this.server.close();
    for (const socket of this.entering) socket.destroy();
  }

  /** Ends the plain connections. */
  cut(): void {
    for (const socket of this.plain) socket.destroy();
  }

  private taken(socket: Socket): void {
    // Whoever uses the connection hears of it, too.
    socket.on('error', () => {});
    if (!isOpen(this.entrance) && this.entering.size >= ENTERING_MAX) {
      socket.destroy();
      return;
    }
    this.begin(socket, (first) => {
      if (this.tls === null) this.inside(socket, first);
      else if (first === HANDSHAKE_RECORD) this.tls.emit('connection', socket);
      else this.refuse(socket, first, NEEDS_TLS);
    });
  }

  /** Waits for the first byte, which stays unread. */
  private begin(socket: Socket, next: (first: number) => void): void {
    this.entering.add(socket);
    const patience = setTimeout(() => socket.destroy(), FIRST_BYTE_MS);
    const begun = (): void => {
      clearTimeout(patience);
      this.entering.delete(socket);
    };
    socket.once('close', begun);
    socket.once('data', (chunk: Buffer) => {
      socket.off('close', begun);
      begun();
      socket.pause();
      socket.unshift(chunk);
      next(chunk[0] as number);
    });
    socket.resume();
  }

  /** What comes without TLS, or within it. */
  private inside(socket: Socket, first: number): void {
    if (first === MEMBER_PREFACE[0]) void this.checkKey(socket);
    else if (isOpen(this.entrance) && first !== HANDSHAKE_RECORD) this.use(socket, first);
    else this.refuse(socket, first, first === HANDSHAKE_RECORD ? NO_TLS : NEEDS_KEY);
  }

  private async checkKey(socket: Socket): Promise<void> {
    this.entering.add(socket);
    const patience = setTimeout(() => socket.destroy(), ENTER_MS);
    try {
      await checkMember(socket, this.entrance.keys);
      this.begin(socket, (first) => this.use(socket, first));
    } catch (error) {
      this.users.refused(socket.remoteAddress ?? '', (error as Error).message);
      this.entering.delete(socket);
      setTimeout(() => socket.destroy(), LEAVING_MS).unref();
    } finally {
      clearTimeout(patience);
    }
  }

  private use(socket: Socket, first: number): void {
    if (first !== PLAIN_PREFACE[0]) {
      this.users.grpc(socket);
      return;
    }
    this.plain.add(socket);
    socket.once('close', () => this.plain.delete(socket));
    this.users.plain(socket);
    socket.resume();
  }

  private refuse(socket: Socket, first: number, reason: string): void {
    this.users.refused(socket.remoteAddress ?? '', reason);
    if (first === HANDSHAKE_RECORD || first === MEMBER_PREFACE[0]) socket.destroy();
    else this.users.tell(socket, first === PLAIN_PREFACE[0] ? 'plain' : 'grpc', reason);
  }

  private tlsServer(peerTls: PeerTls): TlsServer {
    const settings = {
      requestCert: true,
      rejectUnauthorized: true,
      ALPNProtocols: ['h2'],
      handshakeTimeout: ENTER_MS,
      ...contextOf(peerTls),
    };
    const server = tls().createServer(settings, (socket) => {
      socket.on('error', () => {});
      const uses = socket.getPeerCertificate().ext_key_usage as readonly string[] | undefined;
      if (uses !== undefined && !uses.includes(SERVER_AUTH)) {
        this.users.refused(socket.remoteAddress ?? '', 'its certificate is one of a client, not of a node');
        socket.destroy();
        return;
      }
      this.begin(socket, (first) => this.inside(socket, first));
    });
    server.on('tlsClientError', (error: Error, socket: TLSSocket) => {
      this.users.refused(socket.remoteAddress ?? '', `no connection with TLS comes about: ${error.message}`);
      socket.destroy();
    });
    return server;
  }
}

function contextOf({ ca, cert, key }: PeerTls) {
  return { ca, cert, key, minVersion: 'TLSv1.2' as const };
}

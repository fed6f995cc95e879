/**
 * The network between local nodes, as far as it can be cut: each node reaches its peers through a proxy of its own (HTTP
 * CONNECT, to which the variable `grpc_proxy` leads a node's gRPC channels), so that this process sees who talks to whom.
 *
 * A cut is silent, as a lost cable is: nothing is refused or closed, bytes just don't arrive any more. Those that were under
 * way wait in front of the cut, and arrive when it heals if both ends still hold the connection, as TCP would send them again.
 */

import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';

/** Answers whether bytes get from one port's node to another's. */
export type Passes = (source: number, target: number) => boolean;

const ESTABLISHED = 'HTTP/1.1 200 Connection established\r\n\r\n';
const REFUSED = 'HTTP/1.1 502 Bad Gateway\r\n\r\n';

interface Tunnel {
  readonly target: number;
  /** On this side and on that; news that one has gone may be held back from the other. */
  readonly sockets: readonly [Socket, Socket];
  /** Bytes from this proxy's node, and to it. */
  readonly outward: Flow;
  readonly inward: Flow;
}

/** A connection that was asked for and has not come about: its packets are lost. */
interface Waiting {
  readonly target: number;
  readonly socket: Socket;
  readonly open: () => void;
}

/** The way out of one node: all its connections to other nodes. */
export class NodeProxy {
  private readonly tunnels = new Set<Tunnel>();
  private readonly waiting = new Set<Waiting>();
  /** All that came from this proxy's node and are not closed. */
  private readonly sockets = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    private readonly source: number,
    private readonly passes: Passes,
  ) {}

  /** source: the internal port of the node whose proxy it is. passes: asked with ports of nodes, at any time. */
  static async start(source: number, passes: Passes): Promise<NodeProxy> {
    const server = createServer((_request, response) => response.writeHead(405).end());
    const proxy = new NodeProxy(server, source, passes);
    server.on('connect', (request: IncomingMessage, socket: Socket, head: Buffer) => proxy.connect(request, socket, head));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, '127.0.0.1', resolve);
    });
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Connections to each port. */
  targets(): number[] {
    const whole = [...this.tunnels].filter(({ sockets }) => sockets.every((socket) => !socket.destroyed));
    return whole.map(({ target }) => target).sort((one, other) => one - other);
  }

  /** To be called when `passes` has changed its mind. */
  apply(): void {
    for (const { target, outward, inward } of this.tunnels) {
      outward.set(this.passes(this.source, target));
      inward.set(this.passes(target, this.source));
    }
    for (const waiting of this.waiting) if (this.connects(waiting.target)) waiting.open();
  }

  close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    return new Promise((resolve) => {
      this.server.close(() => resolve());
      this.server.closeAllConnections();
      for (const { outward, inward } of this.tunnels) for (const flow of [outward, inward]) flow.destroy();
    });
  }

  private connect(request: IncomingMessage, socket: Socket, head: Buffer): void {
    const target = Number(/:(\d+)$/.exec(request.url ?? '')?.[1]);
    socket.on('error', () => socket.destroy());
    this.sockets.add(socket);
    socket.once('close', () => this.sockets.delete(socket));
    if (!Number.isInteger(target)) {
      socket.end(REFUSED);
      return;
    }
    const open = (): void => {
      this.waiting.delete(waiting);
      this.open(target, socket, head);
    };
    const waiting: Waiting = { target, socket, open };
    if (this.connects(target)) {
      open();
      return;
    }
    this.waiting.add(waiting);
    socket.once('close', () => this.waiting.delete(waiting));
  }

  /** A handshake of TCP takes both ways. */
  private connects(target: number): boolean {
    return this.passes(this.source, target) && this.passes(target, this.source);
  }

  private open(target: number, socket: Socket, head: Buffer): void {
    const peer = connect(target, '127.0.0.1');
    const refused = (): void => {
      socket.end(REFUSED);
    };
    peer.once('error', refused);
    peer.once('connect', () => {
      peer.off('error', refused);
      socket.write(ESTABLISHED);
      if (head.length > 0) peer.write(head);
      const tunnel: Tunnel = { target, sockets: [socket, peer], outward: new Flow(socket, peer), inward: new Flow(peer, socket) };
      this.tunnels.add(tunnel);
      const end = (): void => {
        if (socket.destroyed && peer.destroyed) this.tunnels.delete(tunnel);
      };
      socket.once('close', end);
      peer.once('close', end);
      this.apply();
    });
  }
}

/** One direction of a connection. */
class Flow {
  private passing = true;
  private ended = false;

  constructor(
    private readonly source: Socket,
    private readonly target: Socket,
  ) {
    source.on('data', (bytes: Buffer) => {
      if (!target.write(bytes)) source.pause();
    });
    target.on('drain', () => {
      if (this.passing) source.resume();
    });
    // That it ended is news as well, which a cut holds back. A process that is killed ends its side only: its socket stays half open.
    source.once('end', () => {
      this.ended = true;
      if (this.passing) target.end();
    });
    source.once('close', () => {
      this.ended = true;
      if (this.passing) target.destroy();
    });
    source.on('error', () => source.destroy());
  }

  set(passing: boolean): void {
    this.passing = passing;
    if (this.ended && passing) this.target.destroy();
    else if (passing) this.source.resume();
    else this.source.pause();
  }

  destroy(): void {
    this.source.destroy();
    this.target.destroy();
  }
}

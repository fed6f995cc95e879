/** Connections of clients of gRPC on one port of one thread, and the deadlines of their calls. */

import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import type { ClientGate } from '../context/client-gate.js';
import { type ListenPlace, listenAt } from '../context/listen-at.js';
import { type DoorTls, TlsSockets } from '../context/tls-sockets.js';
import { Connection, type ConnectionContext } from './connection.js';
import { TOO_MANY_GRPC, WITHOUT_TLS_GRPC } from './last-words.js';
import { RareStreams } from './rare-streams.js';

/** The longest time a timer takes. */
const TIMER_MS_MAX = 0x7fff_ffff;
const CHECK_EVERY_MS = 5000;

export interface ListenerContext extends Omit<ConnectionContext, 'rare' | 'watchDeadline'> {
  /** Which clients may connect; null: all. */
  readonly clients: ClientGate | null;
}

export class GrpcListener {
  private readonly server: Server;
  /** Null: connections are plain. */
  private readonly tls: TlsSockets | null;
  private readonly connections = new Set<Connection>();
  private readonly rare = new RareStreams();
  private timer: NodeJS.Timeout | null = null;
  private readonly checking: NodeJS.Timeout;
  /** When the timer runs out. */
  private timerMs = Number.POSITIVE_INFINITY;

  /** tls: null for connections that are plain. */
  constructor(
    private readonly context: ListenerContext,
    tls: DoorTls | null = null,
  ) {
    const { clients } = context;
    const whole = { ...context, rare: this.rare, watchDeadline: (deadlineMs: number) => this.watch(deadlineMs) };
    const take = (socket: Socket): void => {
      const connection = new Connection(socket, whole);
      this.connections.add(connection);
      socket.on('close', () => this.connections.delete(connection));
    };
    const tooMany = tls === null ? TOO_MANY_GRPC : null;
    const door = tls === null ? null : new TlsSockets({ protocol: 'h2', lastWords: WITHOUT_TLS_GRPC, take }, tls);
    this.tls = door;
    this.checking = setInterval(() => this.checkTimes(), CHECK_EVERY_MS);
    this.checking.unref();
    this.server = createServer({ noDelay: true }, (socket) => {
      if (clients !== null && !clients.admits(socket, tooMany)) return;
      if (door === null) take(socket);
      else door.take(socket);
    });
  }

  /** Resolves to the port. Errors: those of the system. */
  listen(place: ListenPlace): Promise<number> {
    return new Promise((resolve, reject) => {
      this.server.once('error', reject);
      this.server.once('listening', () => resolve((this.server.address() as AddressInfo).port));
      listenAt(this.server, place);
    });
  }

  /** Takes no new connection and no new call; resolves when the last connection has ended. */
  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.tls?.close();
    for (const connection of this.connections) connection.shutDown();
    await closed;
    if (this.timer !== null) clearTimeout(this.timer);
    clearInterval(this.checking);
    await this.rare.close();
  }

  /** Ends what has waited too long. */
  checkTimes(): void {
    for (const connection of this.connections) connection.checkTime();
  }

  /** Shows other certificates from now on. */
  renew(tls: DoorTls): void {
    this.tls?.renew(tls);
  }

  /** Ends the connections that are left. */
  cut(): void {
    this.tls?.cut();
    for (const connection of this.connections) connection.destroy();
  }

  private watch(deadlineMs: number): void {
    if (deadlineMs >= this.timerMs) return;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timerMs = deadlineMs;
    const wait = Math.min(TIMER_MS_MAX, Math.max(1, Math.ceil(deadlineMs - this.context.nowMs())));
    this.timer = setTimeout(() => this.expire(), wait);
    this.timer.unref();
  }

  private expire(): void {
    this.timer = null;
    this.timerMs = Number.POSITIVE_INFINITY;
    const now = this.context.nowMs();
    for (const connection of this.connections) this.watch(connection.expire(now));
  }
}

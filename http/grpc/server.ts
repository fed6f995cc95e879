/**
 * The gRPC server. Unary calls are served over frames of HTTP/2 that this room reads and writes itself, because the usual library costs
 * several times the work of a small read; what is no unary call goes to the library (`rare-streams.ts`).
 */

import { type AddressInfo, createServer, type Server } from 'node:net';
import type { DoorServices } from '../context/services.js';
import { Connection, type ConnectionContext } from './connection.js';
import { servedMethods } from './methods.js';
import { RareStreams } from './rare-streams.js';

export interface GrpcOptions {
  readonly host: string;
  /** 0 for any free one. */
  readonly port: number;
  readonly maxMessageBytes: number;
  /** Write a debug line for each request. */
  readonly logRequests: boolean;
}

export interface GrpcDoor {
  readonly port: number;
  /** Stops taking connections, lets running requests finish and cuts those that take longer than `graceMs`. */
  close(graceMs: number): Promise<void>;
}

/** The address cannot be taken. */
export class GrpcBindError extends Error {
  constructor(
    message: string,
    /** What the system said; undefined when it was something else. */
    readonly code: string | undefined,
  ) {
    super(message);
  }
}

/** The longest time a timer takes. */
const TIMER_MS_MAX = 0x7fff_ffff;

/** Listens for gRPC requests. Errors: `GrpcBindError`. */
export async function startGrpcDoor(services: DoorServices, options: GrpcOptions): Promise<GrpcDoor> {
  const door = new Door(services, options);
  await door.listen();
  return door;
}

class Door implements GrpcDoor {
  port = 0;
  private readonly server: Server;
  private readonly connections = new Set<Connection>();
  private readonly rare = new RareStreams();
  private readonly context: ConnectionContext;
  private timer: NodeJS.Timeout | null = null;
  /** When the timer runs out. */
  private timerMs = Number.POSITIVE_INFINITY;

  constructor(
    private readonly services: DoorServices,
    private readonly options: GrpcOptions,
  ) {
    const { nowMs, monotonicMs } = services;
    this.context = {
      methods: servedMethods(services, options.logRequests),
      rare: this.rare,
      messageBytesMax: options.maxMessageBytes,
      nowMs,
      monotonicMs,
      watchDeadline: (deadlineMs) => this.watch(deadlineMs),
    };
    this.server = createServer({ noDelay: true }, (socket) => {
      const connection = new Connection(socket, this.context);
      this.connections.add(connection);
      socket.on('close', () => this.connections.delete(connection));
    });
  }

  listen(): Promise<void> {
    const { host, port } = this.options;
    return new Promise((resolve, reject) => {
      this.server.once('error', (error: NodeJS.ErrnoException) => reject(new GrpcBindError(error.message, error.code)));
      this.server.listen({ host, port }, () => {
        this.port = (this.server.address() as AddressInfo).port;
        resolve();
      });
    });
  }

  async close(graceMs: number): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    for (const connection of this.connections) connection.shutDown();
    const cut = setTimeout(() => {
      for (const connection of this.connections) connection.destroy();
    }, graceMs);
    await closed;
    clearTimeout(cut);
    if (this.timer !== null) clearTimeout(this.timer);
    await this.rare.close();
  }

  private watch(deadlineMs: number): void {
    if (deadlineMs >= this.timerMs) return;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timerMs = deadlineMs;
    const wait = Math.min(TIMER_MS_MAX, Math.max(1, Math.ceil(deadlineMs - this.services.nowMs())));
    this.timer = setTimeout(() => this.expire(), wait);
    this.timer.unref();
  }

  private expire(): void {
    this.timer = null;
    this.timerMs = Number.POSITIVE_INFINITY;
    const now = this.services.nowMs();
    for (const connection of this.connections) this.watch(connection.expire(now));
  }
}

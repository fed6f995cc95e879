/**
 * The gRPC server. Unary calls are served over frames of HTTP/2 that this room reads and writes itself, because the usual library costs
 * several times the work of a small read; what is no unary call goes to the library (`rare-streams.ts`).
 */

import { checkPort } from '../context/check-port.js';
import type { DoorThreads } from '../context/reader-servers.js';
import type { DoorServices } from '../context/services.js';
import type { DoorTls } from '../context/tls-sockets.js';
import { ROUTES } from '../routes.js';
import { GrpcListener } from './listener.js';
import { LoggedCalls } from './logged-calls.js';
import { servedMethods } from './methods.js';
import { noRoomOutcome } from './no-room.js';
import { grpcRowOf, openGrpcInReaders } from './reader-doors.js';
import type { GrpcReaderSettings } from './reader-messages.js';
import { strangerRefusal } from './strangers.js';

export interface GrpcOptions {
  readonly host: string;
  /** 0 for any free one. */
  readonly port: number;
  readonly maxMessageBytes: number;
  /** Write a debug line for each request. */
  readonly logRequests: boolean;
  /** Null or left out: connections are plain. */
  readonly tls?: DoorTls | null;
  /** Readers that take the connections; null or left out: the main thread takes them. */
  readonly readers?: DoorThreads<GrpcReaderSettings> | null;
}

export interface GrpcDoor {
  readonly port: number;
  /** Shows other certificates from now on, where connections have TLS; those that are open stay. */
  renew(tls: DoorTls): void;
  /** Stops taking connections, lets running requests finish and cuts those that take longer than `graceMs`. */
  close(graceMs: number): Promise<void>;
}

/** What a method changes that is no row of the table. */
const READING = { method: 'GET', access: 'open' } as const;

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

/** Listens for gRPC requests. Errors: `GrpcBindError`. */
export async function startGrpcDoor(services: DoorServices, options: GrpcOptions): Promise<GrpcDoor> {
  try {
    return await (options.readers == null ? openHere(services, options) : openInReaders(services, options, options.readers));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new GrpcBindError(message, code);
  }
}

async function openHere(services: DoorServices, { host, logRequests, maxMessageBytes, port, tls = null }: GrpcOptions): Promise<GrpcDoor> {
  const { clients, monotonicMs, nowMs } = services;
  const methods = servedMethods(services, logRequests);
  const { ledger } = services.memory;
  const noRoom = (path: string) => noRoomOutcome(ROUTES.find(({ grpc }) => `/${grpc}` === path) ?? READING);
  const callers = services.access?.callers ?? null;
  const rows = [...methods.keys()].map(grpcRowOf);
  const refuse = strangerRefusal(rows, ({ at }, status) => services.grpcStats.record(at, status, 0, services.dateMs()));
  const calls = services.calls === null ? null : new LoggedCalls(services.calls, rows);
  const limits = { messageBytesMax: maxMessageBytes, ledger, noRoom };
  const recorded = calls?.recorded(methods) ?? methods;
  const listener = new GrpcListener({ methods: recorded, calls, callers, refuse, ...limits, clients, nowMs, monotonicMs }, tls);
  return {
    port: await listener.listen({ host, port }),
    renew: (renewed) => listener.renew(renewed),
    async close(graceMs) {
      const cut = setTimeout(() => listener.cut(), graceMs);
      await listener.close();
      clearTimeout(cut);
    },
  };
}

async function openInReaders(services: DoorServices, options: GrpcOptions, threads: DoorThreads<GrpcReaderSettings>): Promise<GrpcDoor> {
  const { host, maxMessageBytes, tls = null } = options;
  const port = await checkPort(host, options.port);
  const doors = await openGrpcInReaders(services, threads, { host, port, messageBytesMax: maxMessageBytes, tls });
  return { port, renew: (renewed) => doors.renew(renewed), close: (graceMs) => doors.close(graceMs) };
}

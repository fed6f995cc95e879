/** Starts the REST door: in the readers where they can share a port, in the main thread elsewhere. */

import { createServer, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { checkPort } from '../context/check-port.js';
import { takeAddressLine } from '../context/client-address.js';
import type { DoorThreads } from '../context/reader-servers.js';
import type { DoorServices } from '../context/services.js';
import type { DoorTls } from '../context/tls-sockets.js';
import { makeHandOnSocket, openRestInReaders } from './readers/doors.js';
import type { ReaderDoorSettings } from './readers/messages.js';
import type { RestServer } from './server.js';

export interface RestOptions {
  readonly host: string;
  /** 0 for any free one. */
  readonly port: number;
  readonly maxBodyBytes: number;
  readonly cors: boolean;
  /** Answers from this length on are packed for clients that accept it; null: none. */
  readonly packFromBytes: number | null;
  /** The folder of the dashboard's files; null or left out: there is no dashboard. */
  readonly pages?: string | null;
  /** Null or left out: connections are plain. */
  readonly tls?: DoorTls | null;
  /** Write a debug line for each request. */
  readonly logRequests: boolean;
  /** So long a client of an upload or a download may do nothing; left out: a minute (tests). */
  readonly silenceMs?: number;
  /** False: all requests go through Fastify (tests). */
  readonly fastPath?: boolean;
  /** Readers that take the connections, on a system where threads can share a port; null or left out: this thread takes them. */
  readonly readers?: DoorThreads<ReaderDoorSettings> | null;
}

export interface RestDoor {
  readonly port: number;
  /** Shows other certificates from now on, where connections have TLS; those that are open stay. */
  renew(tls: DoorTls): void;
  /** Stops taking connections, lets running requests finish and closes those that take longer than `graceMs`. */
  close(graceMs: number): Promise<void>;
}

/** Listens for REST requests. Rejects with the system's error when the address cannot be taken. */
export async function startRestDoor(services: DoorServices, options: RestOptions): Promise<RestDoor> {
  const { host, maxBodyBytes, packFromBytes, readers = null, tls = null } = options;
  if (readers === null) {
    const { listenForRest } = await import('./server.js');
    return listenForRest(services, options, { host, port: options.port });
  }
  const port = await checkPort(host, options.port);
  const socket = await makeHandOnSocket();
  // What readers hand on has no TLS any more.
  const rest = new LateServer(services, { ...options, tls: null, fastPath: false }, `${socket.path}-server`);
  await rest.listen(socket.path);
  const doors = await openRestInReaders(services, readers, { host, port, maxBodyBytes, packFromBytes, tls }, socket.path);
  return {
    port,
    renew: (renewed) => doors.renew(renewed),
    close: async (graceMs) => {
      await Promise.all([doors.close(graceMs), rest.close(graceMs)]);
      await socket.remove();
    },
  };
}

/** The server for connections that readers hand on. It is loaded with the first of them, since most clients never need it. */
class LateServer {
  /** Connections come as they are: nothing is read of them before the server has them. */
  readonly #listener = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (socket) => void this.#take(socket));
  #server: Promise<RestServer> | null = null;

  /** ownPath: where the server itself listens; nobody connects to it. */
  constructor(
    private readonly services: DoorServices,
    private readonly options: RestOptions,
    private readonly ownPath: string,
  ) {}

  listen(path: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#listener.once('error', reject);
      this.#listener.listen({ path }, () => {
        this.#listener.off('error', reject);
        resolve();
      });
    });
  }

  async close(graceMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      this.#listener.close(() => resolve());
    });
    await (await this.#server?.catch(() => null))?.close(graceMs);
    await closed;
  }

  async #take(socket: Socket): Promise<void> {
    // The reader may be gone before the server is there.
    const gone = (): void => {};
    socket.on('error', gone);
    try {
      this.#server ??= this.#load();
      await takeAddressLine(socket);
      const server = await this.#server;
      socket.off('error', gone);
      server.take(socket);
      socket.resume();
    } catch (error) {
      this.#server = null;
      this.services.log.error('the HTTP server for rare requests could not be started', { error: String(error) });
      socket.destroy();
    }
  }

  /** In steps: other requests that the main thread has wait for one of them, not for all. */
  async #load(): Promise<RestServer> {
    const { listenForRest } = await import('./server.js');
    await setImmediate();
    return listenForRest(this.services, this.options, { path: this.ownPath });
  }
}

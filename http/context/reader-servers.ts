/** The servers of the readers for one protocol, as the main thread sees them: it opens and closes them, and takes the calls they hand on. */

import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { ThreadChannels } from './thread-channels.js';
import type { DoorTls } from './tls-sockets.js';

/** The readers' threads. */
export interface DoorThreads<Settings> {
  /** Has each reader open a server, now and as others start. Returns how many open one now, or as soon as they are ready. */
  openDoors(open: (reader: number) => { readonly port: MessagePort; readonly settings: Settings }): number;
  forgetDoors(): void;
}

/** What every server of a reader tells the main thread, beside its calls. */
export type ServerNews =
  | { readonly kind: 'listening' }
  | { readonly kind: 'failed'; readonly code: string | undefined; readonly message: string }
  | { readonly kind: 'closed' };

/** What the main thread tells every server of a reader, beside its answers. */
export type ServerOrder =
  /** Show these from now on. */
  | { readonly kind: 'certificates'; readonly tls: DoorTls }
  /** Take no new connections; answered by `closed` once there are none. */
  | { readonly kind: 'close' }
  /** Cut the connections that are left. */
  | { readonly kind: 'cut' };

/** Lanes of open connections: of the main thread, and of each reader's two servers. */
export function lanesFor(readers: number): number {
  return 1 + 2 * readers;
}

export function laneOf(protocol: 'rest' | 'grpc', reader: number): number {
  return 1 + 2 * reader + (protocol === 'rest' ? 0 : 1);
}

export class ReaderServers<Settings, Call extends { readonly kind: 'call' | 'counted' | 'slow' | 'unknownFields' }> {
  private readonly channels = new ThreadChannels<ServerOrder>();

  /**
   * tls: as of now; null: connections are plain. answer: answers a call over the port that it came from, or takes what needs no answer.
   */
  constructor(
    private readonly threads: DoorThreads<Settings>,
    private tls: DoorTls | null,
    private readonly answer: (port: MessagePort, call: Call) => Promise<void>,
  ) {}

  /** Resolves when every reader that has begun listens. settings: made anew for each server. Errors: the system's, if one cannot. */
  open(settings: (tls: DoorTls | null, reader: number) => Settings): Promise<void> {
    return new Promise((resolve, reject) => {
      let listening = 0;
      const missing = this.threads.openDoors((reader) => {
        const { port1, port2 } = new MessageChannel();
        this.take(port1, (error) => {
          if (error !== null) reject(error);
          else if (++listening === missing) resolve();
        });
        return { port: port2, settings: settings(this.tls, reader) };
      });
    });
  }

  /** Certificates for servers that are open and for those to come. */
  renew(tls: DoorTls): void {
    this.tls = tls;
    this.channels.tell({ kind: 'certificates', tls });
  }

  /** Resolves when no reader has a connection; those that are left after `graceMs` are cut. */
  async close(graceMs: number): Promise<void> {
    this.threads.forgetDoors();
    const ended = this.channels.ended();
    this.channels.tell({ kind: 'close' });
    const cut = setTimeout(() => this.channels.tell({ kind: 'cut' }), graceMs);
    await ended;
    clearTimeout(cut);
  }

  private take(port: MessagePort, onListening: (error: Error | null) => void): void {
    this.channels.add(port);
    port.on('message', (message: ServerNews | Call) => {
      switch (message.kind) {
        case 'listening':
          onListening(null);
          return;
        case 'failed':
          onListening(Object.assign(new Error(message.message), { code: message.code }));
          return;
        case 'call':
        case 'counted':
        case 'slow':
        case 'unknownFields':
          void this.answer(port, message);
          return;
        case 'closed':
          port.close();
          return;
        default:
          message satisfies never;
      }
    });
  }
}

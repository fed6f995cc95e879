/** The REST servers of the readers, as the main thread sees them: it opens and closes them, and answers what they hand on. */

import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import { join } from 'node:path';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import type { OperationName } from '../../../protocols/openapi/operations.js';
import type { DoorServices } from '../../context/services.js';
import { ROUTES, type Route } from '../../routes.js';
import { answerCall } from '../calls/answer-call.js';
import { parseQueryString } from '../calls/query-string.js';
import type { RestReply } from '../calls/reply.js';
import type { DoorRow, FromDoor, ReaderDoorSettings, ToDoor } from './messages.js';

/** The readers' threads. */
export interface DoorThreads {
  readonly readers: number;
  /** Has each reader open a server, now and as replacements start. */
  openDoors(open: (reader: number) => { readonly port: MessagePort; readonly settings: ReaderDoorSettings }): void;
  forgetDoors(): void;
}

export type DoorAddress = Pick<ReaderDoorSettings, 'host' | 'port' | 'maxBodyBytes'>;

/** A folder that only this user can enter, for the socket through which readers hand connections on. */
export interface HandOnSocket {
  readonly path: string;
  remove(): Promise<void>;
}

/** Operations that answer the same for as long as the process lives. */
const FIXED: ReadonlySet<string> = new Set<OperationName>(['root', 'healthz', 'livez']);

/** Whether threads of this process can listen on one port. Elsewhere the main thread takes all connections. */
export function canSharePort(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  return process.platform === 'linux' && (major > 22 || (major === 22 && minor >= 12)) && !(major === 23 && minor === 0);
}

export async function makeHandOnSocket(): Promise<HandOnSocket> {
  const folder = await mkdtemp(join(os.tmpdir(), 'troupe-'));
  return { path: join(folder, 'http'), remove: () => rm(folder, { recursive: true, force: true }) };
}

export class ReaderDoors {
  readonly #ports = new Set<MessagePort>();
  #closed: (() => void) | null = null;

  private constructor(
    private readonly services: DoorServices,
    private readonly threads: DoorThreads,
  ) {}

  /** Resolves when every reader listens. Errors: the system's, if one cannot. */
  static async open(services: DoorServices, threads: DoorThreads, address: DoorAddress, handOnPath: string): Promise<ReaderDoors> {
    const doors = new ReaderDoors(services, threads);
    const rows = ROUTES.map(rowOf);
    await new Promise<void>((resolve, reject) => {
      let missing = threads.readers;
      threads.openDoors(() => {
        const { port1, port2 } = new MessageChannel();
        doors.#take(port1, (error) => {
          if (error !== null) reject(error);
          else if (--missing === 0) resolve();
        });
        const counts = services.stats.share().buffer;
        return { port: port2, settings: { ...address, rows, handOnPath, counts } };
      });
    });
    return doors;
  }

  /** Resolves when no reader has a connection; those that are left after `graceMs` are cut. */
  async close(graceMs: number): Promise<void> {
    this.threads.forgetDoors();
    if (this.#ports.size === 0) return;
    const closed = new Promise<void>((resolve) => {
      this.#closed = resolve;
    });
    this.#tell({ kind: 'close' });
    const cut = setTimeout(() => this.#tell({ kind: 'cut' }), graceMs);
    await closed;
    clearTimeout(cut);
  }

  #tell(message: ToDoor): void {
    for (const port of this.#ports) port.postMessage(message);
  }

  #take(port: MessagePort, onListening: (error: Error | null) => void): void {
    this.#ports.add(port);
    port.on('message', (message: FromDoor) => {
      switch (message.kind) {
        case 'listening':
          onListening(null);
          return;
        case 'failed':
          onListening(Object.assign(new Error(message.message), { code: message.code }));
          return;
        case 'call':
          void this.#answer(port, message);
          return;
        case 'closed':
          port.close();
          return;
        default:
          message satisfies never;
      }
    });
    // Also when the thread is lost.
    port.on('close', () => {
      this.#ports.delete(port);
      if (this.#ports.size === 0) this.#closed?.();
    });
  }

  async #answer(port: MessagePort, { at, body, id, path, query, url }: Extract<FromDoor, { kind: 'call' }>): Promise<void> {
    const reply = await answerCall(this.services, false, {
      route: ROUTES[at] as Route,
      at,
      url,
      path,
      query: parseQueryString(query),
      body: () => body,
      isGone: () => false,
    });
    const [message, transfer] = packed(id, reply);
    port.postMessage(message, transfer);
  }
}

/** The body in a buffer of its own: a message takes the whole buffer of a view along. */
function packed(id: number, reply: RestReply | null): [ToDoor, ArrayBuffer[]] {
  if (reply === null) return [{ kind: 'reply', id, reply }, []];
  const body = Buffer.allocUnsafeSlow(reply.body.length);
  body.set(reply.body);
  return [{ kind: 'reply', id, reply: { ...reply, body } }, body.length > 0 ? [body.buffer as ArrayBuffer] : []];
}

function rowOf(route: Route): DoorRow {
  const { access, method, name, path } = route;
  return { access, method, path, engine: route.kind === 'read' ? route.engine : null, isFixed: FIXED.has(name) };
}

/** The gRPC servers of the readers, as the main thread sees them: it opens and closes them, and answers what they hand on. */

import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { GRPC_METHOD_NAMES, type GrpcMethodName } from '../../protocols/grpc/method-names.js';
import type { DoorServices } from '../context/services.js';
import { ROUTES } from '../routes.js';
import { type Served, type ServedOutcome, servedMethods } from './methods.js';
import type { FromGrpcDoor, GrpcReaderSettings, GrpcRow, ToGrpcDoor } from './reader-messages.js';

/** The readers' threads. */
export interface GrpcDoorThreads {
  readonly readers: number;
  /** Has each reader open a server, now and as replacements start. */
  openDoors(open: (reader: number) => { readonly port: MessagePort; readonly settings: GrpcReaderSettings }): void;
  forgetDoors(): void;
}

export class GrpcReaderDoors {
  private readonly ports = new Set<MessagePort>();
  private readonly methods: ReadonlyMap<string, Served>;
  private closed: (() => void) | null = null;

  private constructor(
    services: DoorServices,
    private readonly threads: GrpcDoorThreads,
  ) {
    this.methods = servedMethods(services, false);
  }

  /** Resolves when every reader listens. Errors: the system's, if one cannot. */
  static async open(
    services: DoorServices,
    threads: GrpcDoorThreads,
    address: Pick<GrpcReaderSettings, 'host' | 'port' | 'messageBytesMax'>,
  ): Promise<GrpcReaderDoors> {
    const doors = new GrpcReaderDoors(services, threads);
    const rows = [...doors.methods.keys()].map(rowOf);
    await new Promise<void>((resolve, reject) => {
      let missing = threads.readers;
      threads.openDoors(() => {
        const { port1, port2 } = new MessageChannel();
        doors.take(port1, (error) => {
          if (error !== null) reject(error);
          else if (--missing === 0) resolve();
        });
        return { port: port2, settings: { ...address, rows, counts: services.grpcStats.share().buffer } };
      });
    });
    return doors;
  }

  /** Resolves when no reader has a connection; those that are left after `graceMs` are cut. */
  async close(graceMs: number): Promise<void> {
    this.threads.forgetDoors();
    if (this.ports.size === 0) return;
    const closed = new Promise<void>((resolve) => {
      this.closed = resolve;
    });
    this.tell({ kind: 'close' });
    const cut = setTimeout(() => this.tell({ kind: 'cut' }), graceMs);
    await closed;
    clearTimeout(cut);
  }

  private tell(message: ToGrpcDoor): void {
    for (const port of this.ports) port.postMessage(message);
  }

  private take(port: MessagePort, onListening: (error: Error | null) => void): void {
    this.ports.add(port);
    port.on('message', (message: FromGrpcDoor) => {
      switch (message.kind) {
        case 'listening':
          onListening(null);
          return;
        case 'failed':
          onListening(Object.assign(new Error(message.message), { code: message.code }));
          return;
        case 'call':
          void this.answer(port, message);
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
      this.ports.delete(port);
      if (this.ports.size === 0) this.closed?.();
    });
  }

  private async answer(port: MessagePort, { deadlineMs, id, message, path }: Extract<FromGrpcDoor, { kind: 'call' }>): Promise<void> {
    const served = this.methods.get(path) as Served;
    const outcome = await served(Buffer.from(message.buffer, message.byteOffset, message.length), deadlineMs);
    const [own, transfer] = packed(outcome);
    port.postMessage({ kind: 'outcome', id, outcome: own } satisfies ToGrpcDoor, transfer);
  }
}

/** The answer in a buffer of its own: a message takes the whole buffer of a view along. */
function packed(outcome: ServedOutcome): [ServedOutcome, ArrayBuffer[]] {
  if (outcome.kind === 'failed') return [outcome, []];
  const part = new Uint8Array(outcome.parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const bytes of outcome.parts) {
    part.set(bytes, at);
    at += bytes.length;
  }
  return [{ kind: 'message', parts: [part] }, [part.buffer]];
}

function rowOf(path: string): GrpcRow {
  const name = path.slice(1);
  const route = ROUTES.find(({ grpc }) => grpc === name);
  const at = GRPC_METHOD_NAMES.indexOf(name as GrpcMethodName);
  return { path, at, engine: route?.kind === 'read' ? route.engine : null };
}

/** Tells nodes that speak gRPC as if neither TLS nor a key was needed why they are not let in: every call ends with the reason. */

import type { Socket } from 'node:net';
import {
  type ConnectionInjector,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type ServiceDefinition,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';

const LEAVING_MS = 300;
const MESSAGE_BYTES_MAX = 65_536;

export class Strangers {
  /** A server for each reason, of which there are two. */
  readonly #servers = new Map<string, { readonly server: Server; readonly injector: ConnectionInjector }>();

  constructor(private readonly service: ServiceDefinition) {}

  take(socket: Socket, reason: string): void {
    let known = this.#servers.get(reason);
    if (known === undefined) {
      const server = new Server({ 'grpc.max_receive_message_length': MESSAGE_BYTES_MAX });
      server.addService(this.service, refusing(this.service, reason));
      known = { server, injector: server.createConnectionInjector(ServerCredentials.createInsecure()) };
      this.#servers.set(reason, known);
    }
    known.injector.injectConnection(socket);
    setTimeout(() => socket.destroy(), LEAVING_MS).unref();
  }

  close(): void {
    for (const { server } of this.#servers.values()) server.forceShutdown();
  }
}

function refusing(service: ServiceDefinition, reason: string) {
  const error = { code: status.FAILED_PRECONDITION, details: reason };
  const unary = (_call: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>): void => callback(error);
  const stream = (call: ServerDuplexStream<Buffer, Buffer>): void => {
    call.on('error', () => {});
    call.emit('error', Object.assign(new Error(reason), error));
  };
  return Object.fromEntries(Object.entries(service).map(([name, { requestStream }]) => [name, requestStream ? stream : unary]));
}

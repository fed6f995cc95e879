/** The methods of the gRPC server, served by grpc-js: what the server's own connections are compared with. */

import {
  Metadata,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceDefinition,
  type sendUnaryData,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { ANYONE } from '../../../http/access/caller.js';
import type { DoorServices } from '../../../http/context/services.js';
import { servedMethods } from '../../../http/grpc/methods.js';
import type { GrpcDoor } from '../../../http/grpc/server.js';

export async function startLibraryDoor(services: DoorServices, maxMessageBytes: number): Promise<GrpcDoor> {
  const server = new Server({ 'grpc.max_receive_message_length': maxMessageBytes, 'grpc.max_send_message_length': -1 });
  const groups = new Map<string, [Record<string, ServiceDefinition[string]>, UntypedServiceImplementation]>();
  for (const [path, served] of servedMethods(services, false)) {
    const [, service, name] = path.split('/') as [string, string, string];
    const [definition, implementation] = groups.get(service) ?? [{}, {}];
    groups.set(service, [definition, implementation]);
    const codecs = { requestSerialize: asIs, requestDeserialize: asIs, responseSerialize: asIs, responseDeserialize: asIs };
    definition[name] = { path, requestStream: false, responseStream: false, ...codecs, originalName: name };
    implementation[name] = async (call: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>) => {
      const outcome = await served(call.request, Number(call.getDeadline()), { caller: ANYONE, credential: null });
      if (outcome.kind === 'message') return callback(null, Buffer.concat(outcome.parts));
      const metadata = new Metadata();
      for (const [key, value] of outcome.metadata) metadata.set(key, value);
      return callback({ code: outcome.code, details: outcome.details, metadata });
    };
  }
  for (const [definition, implementation] of groups.values()) server.addService(definition, implementation);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { port, renew: () => {}, close: async () => server.forceShutdown() };
}

function asIs(bytes: Buffer): Buffer {
  return bytes;
}

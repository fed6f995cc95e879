/** A gRPC client of the tests: messages by protobufjs, calls by grpc-js. */

import { type CallOptions, Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js';
import { root } from '../../protocols/grpc/protos.js';

export class GrpcClient {
  private readonly client: Client;

  /** tls: texts as PEM; left out: a plain connection. */
  constructor(
    port: number,
    options: Record<string, unknown> = {},
    tls?: { readonly ca: string; readonly cert?: string; readonly key?: string },
  ) {
    const bytes = (text?: string): Buffer | null => (text === undefined ? null : Buffer.from(text));
    const secure = tls === undefined ? credentials.createInsecure() : credentials.createSsl(bytes(tls.ca), bytes(tls.key), bytes(tls.cert));
    this.client = new Client(`127.0.0.1:${port}`, secure, { 'grpc.max_receive_message_length': -1, ...options });
  }

  /** Calls `Points/Upsert` and the like. The answer as protobufjs shows it: 64-bit integers as texts, enums by name. */
  async call(method: string, message: object, options: CallOptions = {}, metadata?: Metadata): Promise<Record<string, unknown>> {
    const [service, name] = method.split('/') as [string, string];
    const { requestType, responseType } = root.lookupService(`qdrant.${service}`).methods[name] as {
      requestType: string;
      responseType: string;
    };
    const request = root.lookupType(typeName(requestType));
    const response = root.lookupType(typeName(responseType));
    const bytes = await this.raw(`/qdrant.${method}`, Buffer.from(request.encode(request.fromObject(message)).finish()), options, metadata);
    return response.toObject(response.decode(bytes), { longs: String, enums: String, arrays: true, objects: true }) as Record<
      string,
      unknown
    >;
  }

  /** Rejects with grpc-js's ServiceError. */
  raw(path: string, bytes: Buffer, options: CallOptions = {}, metadata = new Metadata()): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      this.client.makeUnaryRequest(path, asIs, asIs, bytes, metadata, options, (error, answer) => {
        if (error === null) resolve(answer as Buffer);
        else reject(error);
      });
    });
  }

  close(): void {
    this.client.close();
  }
}

/** What a call failed with. */
export async function failure(call: Promise<unknown>): Promise<{ code: number; details: string; metadata: Metadata }> {
  try {
    await call;
  } catch (error) {
    const { code, details, metadata } = error as ServiceError;
    return { code, details, metadata };
  }
  throw new Error('the call did not fail');
}

function typeName(name: string): string {
  return name.startsWith('qdrant.') ? name : `qdrant.${name}`;
}

function asIs(bytes: Buffer): Buffer {
  return bytes;
}

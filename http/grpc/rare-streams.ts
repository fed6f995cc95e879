/**
 * Streams of services that are rarely asked for and are no unary calls (reflection): grpc-js serves them. It is loaded with the first of
 * them, has no port, and gets each stream over a connection inside the process.
 */

import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2';
import { duplexPair } from 'node:stream';
import type { Server } from '@grpc/grpc-js';
import { CANCEL, ENHANCE_YOUR_CALM, INTERNAL_ERROR } from '../../protocols/http2/frames.js';
import type { FieldList } from '../../protocols/http2/hpack-decoder.js';
import type { Http2Session } from './http2-session.js';
import type { Http2Stream, StreamHandler } from './http2-stream.js';

/** Parts of an answer that may wait for a client that does not take them. */
const WAITING_PARTS_MAX = 256;
const END_STREAM = 0x1;

export function isRare(path: string): boolean {
  return path.startsWith('/grpc.reflection.');
}

export class RareStreams {
  private server: Promise<Server> | null = null;
  private inner: Promise<ClientHttp2Session> | null = null;

  serve(session: Http2Session, stream: Http2Stream, fields: FieldList): StreamHandler {
    return new RareStream(session, stream, this.request(fields));
  }

  async close(): Promise<void> {
    const { server, inner } = this;
    this.inner = null;
    (await inner?.catch(() => null))?.destroy();
    (await server?.catch(() => null))?.forceShutdown();
  }

  private async request(fields: FieldList): Promise<ClientHttp2Stream> {
    this.inner ??= this.connect();
    const inner = await this.inner;
    return inner.request(headersOf(fields), { endStream: false });
  }

  private async connect(): Promise<ClientHttp2Session> {
    const [{ ServerCredentials }, { connect }] = await Promise.all([import('@grpc/grpc-js'), import('node:http2')]);
    this.server ??= startServer();
    const server = await this.server;
    const [near, far] = duplexPair();
    server.createConnectionInjector(ServerCredentials.createInsecure()).injectConnection(far);
    const session = connect('http://localhost', { createConnection: () => near });
    session.on('error', () => {});
    session.on('close', () => {
      this.inner = null;
    });
    return session;
  }
}

async function startServer(): Promise<Server> {
  const [{ Server: GrpcServer }, { addReflection }] = await Promise.all([import('@grpc/grpc-js'), import('./reflection.js')]);
  const server = new GrpcServer();
  addReflection(server);
  return server;
}

/** Hands a stream on, in both directions. */
class RareStream implements StreamHandler {
  private over = false;

  constructor(
    private readonly session: Http2Session,
    private readonly stream: Http2Stream,
    private readonly request: Promise<ClientHttp2Stream>,
  ) {
    void request.then(
      (inner) => this.follow(inner),
      () => session.reset(stream, INTERNAL_ERROR),
    );
  }

  data(bytes: Buffer): void {
    const own = Buffer.from(bytes);
    this.pass((inner) => inner.write(own));
  }

  end(): void {
    this.pass((inner) => inner.end());
  }

  cancelled(): void {
    this.over = true;
    void this.request.then(
      (inner) => inner.close(CANCEL),
      () => {},
    );
  }

  /** In the order of the calls: a promise calls back in order. */
  private pass(act: (inner: ClientHttp2Stream) => void): void {
    void this.request.then(
      (inner) => {
        if (!this.over && !inner.destroyed) act(inner);
      },
      () => {},
    );
  }

  private follow(inner: ClientHttp2Stream): void {
    const { session, stream } = this;
    // Node.js 26 may give the first bytes of an answer before its head: they wait for it.
    let early: Buffer[] | null = [];
    inner.on('response', (headers, flags) => {
      if ((flags & END_STREAM) !== 0) session.answerEmpty(stream, fieldsOf(headers));
      else session.begin(stream, fieldsOf(headers));
      for (const bytes of early ?? []) session.send(stream, bytes);
      early = null;
    });
    inner.on('data', (bytes: Buffer) => {
      if (early !== null) early.push(bytes);
      else session.send(stream, bytes);
      if ((early ?? stream.waiting).length > WAITING_PARTS_MAX) session.reset(stream, ENHANCE_YOUR_CALM);
    });
    inner.on('trailers', (headers) => session.finish(stream, fieldsOf(headers)));
    inner.on('error', () => {});
    // After a whole answer the stream is closed already, and this does nothing.
    inner.on('close', () => {
      if (stream.lastBlock === null) session.reset(stream, INTERNAL_ERROR);
    });
  }
}

function headersOf(fields: FieldList): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] as string;
    const value = fields[at + 1] as string;
    const known = headers[name];
    headers[name] = known === undefined ? value : [...(Array.isArray(known) ? known : [known]), value];
  }
  return headers;
}

/** Fields of an answer: the status comes first. */
function fieldsOf(headers: IncomingHttpHeaders & { readonly ':status'?: number }): string[] {
  const fields: string[] = [];
  for (const [name, value] of Object.entries(headers)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one === undefined) continue;
      if (name.startsWith(':')) fields.unshift(name, String(one));
      else fields.push(name, String(one));
    }
  }
  return fields;
}

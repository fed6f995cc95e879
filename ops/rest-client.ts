/** A plain REST client for the command line, the demo, the benchmark and the process tests: JSON in, status and JSON out. */

import * as http from 'node:http';
import * as https from 'node:https';
import type { Readable } from 'node:stream';

export interface RestAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** The decoded body; undefined when it is empty or no JSON. Answers differ by operation, so the caller states the type. */
  readonly body: unknown;
}

/** What a client of a node with TLS trusts and shows: texts as PEM. */
export interface ClientTls {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/** Where a node is, and what it is told with each request. */
export interface NodeAddress {
  readonly host: string;
  readonly port: number;
  /** In front of the paths of the API, without a `/` at its end. */
  readonly prefix: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Null: plain connections. */
  readonly tls: ClientTls | null;
  /** Milliseconds without a byte after which a request is given up; 0: never. */
  readonly silenceMs: number;
}

/** What is sent: bytes as they come, and how many. */
export interface RestUpload {
  readonly bytes: Readable;
  readonly length: number;
  readonly contentType: string;
}

export class RestClient {
  readonly #address: NodeAddress;
  readonly #agent: http.Agent;
  readonly #request: typeof http.request;

  /** at: a port of this machine, or another address. connections: how many requests may be under way at once; further ones wait. */
  constructor(at: number | NodeAddress, connections = 16, tls: ClientTls | null = null) {
    this.#address = typeof at === 'number' ? { host: '127.0.0.1', port: at, prefix: '', headers: {}, tls, silenceMs: 0 } : at;
    const options = { keepAlive: true, maxSockets: connections };
    const { tls: wanted } = this.#address;
    this.#agent = wanted === null ? new http.Agent(options) : new https.Agent({ ...options, ...wanted });
    this.#request = wanted === null ? http.request : https.request;
  }

  /** Sends a request. `body` is sent as it is when it is text or bytes, otherwise as JSON. Rejects when the connection breaks. */
  async call(method: string, path: string, body?: unknown): Promise<RestAnswer> {
    const bytes =
      body === undefined ? null : typeof body === 'string' || body instanceof Uint8Array ? Buffer.from(body) : JSON.stringify(body);
    const headers = bytes === null ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(bytes) };
    return answerOf(await this.#send(method, path, headers, (outgoing) => outgoing.end(bytes ?? undefined)));
  }

  /** The answer as it comes, for bodies that are too large for memory. */
  download(path: string): Promise<http.IncomingMessage> {
    return this.#send('GET', path, {}, (outgoing) => outgoing.end());
  }

  /** Rejects when the connection or the source of the bytes breaks. */
  async upload(method: string, path: string, { bytes, contentType, length }: RestUpload): Promise<RestAnswer> {
    const headers = { 'content-type': contentType, 'content-length': length };
    const response = await this.#send(method, path, headers, (outgoing) => {
      bytes.once('error', (error) => outgoing.destroy(error));
      bytes.pipe(outgoing);
    });
    return answerOf(response);
  }

  /** The `result` of a request that must succeed. */
  async result<T>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await this.call(method, path, body);
    if (answer.status !== 200) throw new Error(`${method} ${path}: ${answer.status} ${answer.text.slice(0, 500)}`);
    return (answer.body as { result: T }).result;
  }

  close(): void {
    this.#agent.destroy();
  }

  #send(
    method: string,
    path: string,
    headers: http.OutgoingHttpHeaders,
    write: (outgoing: http.ClientRequest) => void,
  ): Promise<http.IncomingMessage> {
    const { headers: always, host, port, prefix, silenceMs } = this.#address;
    return new Promise((done, refuse) => {
      const options = { host, port, method, path: prefix + path, agent: this.#agent, headers: { ...always, ...headers } };
      const outgoing = this.#request(options, done);
      outgoing.once('error', refuse);
      if (silenceMs > 0) outgoing.setTimeout(silenceMs, () => outgoing.destroy(new Error(`no answer within ${silenceMs / 1000} s`)));
      write(outgoing);
    });
  }
}

function answerOf(response: http.IncomingMessage): Promise<RestAnswer> {
  return new Promise((done, refuse) => {
    const chunks: Buffer[] = [];
    response.on('data', (chunk: Buffer) => chunks.push(chunk));
    response.once('error', refuse);
    response.once('aborted', () => refuse(new Error('the connection broke')));
    response.once('end', () => {
      const text = Buffer.concat(chunks).toString('utf8');
      const { headers, statusCode: status = 0 } = response;
      let body: { readonly value: unknown } | null = null;
      done({
        status,
        headers,
        text,
        get body() {
          body ??= { value: decoded(text) };
          return body.value;
        },
      });
    });
  });
}

function decoded(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A plain REST client for the demo, the benchmark and the process tests: JSON in, status and JSON out. */

import * as http from 'node:http';
import * as https from 'node:https';

export interface RestAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** The decoded body; undefined when it is empty or no JSON. Answers differ by operation, so the caller states the type. */
  readonly body: unknown;
}

/** What a client of a node with TLS trusts and shows: texts as PEM. */
export interface ClientTls {
  readonly ca: string;
  readonly cert?: string;
  readonly key?: string;
}

export class RestClient {
  readonly #port: number;
  readonly #agent: http.Agent;
  readonly #request: typeof http.request;

  /** connections: how many requests may be under way at once; further ones wait. tls: null: plain connections. */
  constructor(port: number, connections = 16, tls: ClientTls | null = null) {
    const options = { keepAlive: true, maxSockets: connections };
    this.#port = port;
    this.#agent = tls === null ? new http.Agent(options) : new https.Agent({ ...options, ...tls });
    this.#request = tls === null ? http.request : https.request;
  }

  /** Sends a request. `body` is sent as it is when it is text or bytes, otherwise as JSON. Rejects when the connection breaks. */
  call(method: string, path: string, body?: unknown): Promise<RestAnswer> {
    const bytes =
      body === undefined ? null : typeof body === 'string' || body instanceof Uint8Array ? Buffer.from(body) : JSON.stringify(body);
    return new Promise((done, refuse) => {
      const outgoing = this.#request(
        {
          host: '127.0.0.1',
          port: this.#port,
          method,
          path,
          agent: this.#agent,
          headers: bytes === null ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(bytes) },
        },
        (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.once('error', refuse);
          response.once('aborted', () => refuse(new Error('the connection broke')));
          response.once('end', () => {
            const text = Buffer.concat(chunks).toString('utf8');
            done({ status: response.statusCode ?? 0, headers: response.headers, text, body: decoded(text) });
          });
        },
      );
      outgoing.once('error', refuse);
      outgoing.end(bytes ?? undefined);
    });
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
}

function decoded(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

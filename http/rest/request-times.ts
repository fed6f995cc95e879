/**
 * How long a client may take for the body of a request. Node's own limit is for all requests alike; the body of an upload may take as long as
 * it does, as long as something comes.
 */

import type { IncomingMessage, Server, ServerResponse } from 'node:http';

/** As Node.js has them. */
export const HEADERS_MS = 60_000;
const REQUEST_MS = 300_000;

export class RequestTimes {
  readonly #timers = new WeakMap<IncomingMessage, NodeJS.Timeout>();

  /** Ends the request with 408, as Node's limit would, if its body does not come to its end in time. */
  limit(server: Server, request: IncomingMessage): void {
    const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
    if (encoding === undefined && (length === undefined || length === '0')) return;
    const expire = (): void => {
      const error = Object.assign(new Error('the request has not come in time'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
      if (!request.complete) server.emit('clientError', error, request.socket);
    };
    const timer = setTimeout(expire, REQUEST_MS);
    timer.unref();
    this.#timers.set(request, timer);
    request.once('close', () => clearTimeout(timer));
  }

  /**
   * The body may take longer, as long as it is never silent for `silenceMs`: then the connection is closed. Once it has come, the answer may take
   * its time.
   */
  limitSilence(request: IncomingMessage, response: ServerResponse, silenceMs: number): void {
    clearTimeout(this.#timers.get(request));
    const { socket } = request;
    const silent = (): void => {
      if (request.complete) socket.setTimeout(0);
      else socket.destroy();
    };
    request.setTimeout(silenceMs, silent);
    // Node tells a request that has come of nothing more, and closes a connection of whose silence nobody was told.
    response.on('timeout', silent);
  }
}

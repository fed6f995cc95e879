/** What clients of REST hear whose connections the server does not take, or breaks off. */

import { http } from '../../../protocols/late-modules.js';
import { errorBody } from '../../context/answer.js';

export const WITHOUT_TLS_REST = lastAnswer(
  '400 Bad Request',
  errorBody({ code: 'wrongInput', detail: 'this port takes requests with TLS only (service.enable_tls): use https://' }, 0),
);

export const TOO_MANY_REST = lastAnswer(
  '503 Service Unavailable',
  errorBody(
    {
      code: 'unavailable',
      detail:
        'too many connections are open (service.max_connections, service.max_connections_per_client): close some, and use those that are open for ' +
        'several requests',
    },
    0,
  ),
);

/** Answer to a client that does not send a request in time or to its end, or sends none, as Fastify writes it. */
export function brokenOff(status: number, message: string): string {
  const label = http().STATUS_CODES[status] ?? 'unknown';
  const body = JSON.stringify({ error: label, message, statusCode: status });
  const head = `HTTP/1.1 ${status} ${label}\r\nContent-Length: ${body.length}\r\nContent-Type: application/json\r\nConnection: close`;
  return `${head}\r\n\r\n${body}`;
}

function lastAnswer(status: string, body: Buffer): Buffer {
  const head = `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nConnection: close\r\n\r\n`;
  return Buffer.concat([Buffer.from(head, 'latin1'), body]);
}

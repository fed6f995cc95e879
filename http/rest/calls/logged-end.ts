/** The end of a request of REST in the logs of calls, and where one of Node's HTTP server comes from. */

import type { IncomingMessage } from 'node:http';
import type { RequestOrigin } from '../../audit/origin.js';
import type { EndCall } from '../../context/call-log.js';
import { addressOf } from '../../context/client-address.js';
import type { RestReply } from './reply.js';

/** reply: null where the client is gone. */
export function ended<Reply extends (Pick<RestReply, 'denied' | 'status'> & { readonly body?: unknown }) | null>(
  end: EndCall | null,
  reply: Reply,
): Reply {
  end?.(reply?.status ?? null, reply?.denied ?? null, () => problemOf(reply?.body));
  return reply;
}

/** What the body of a refusal says; null for another body. */
function problemOf(body: unknown): string | null {
  if (!Buffer.isBuffer(body)) return null;
  const text = body.toString('utf8');
  try {
    const { status } = JSON.parse(text) as { readonly status?: { readonly error?: unknown } };
    return typeof status?.error === 'string' ? status.error : null;
  } catch {
    // Downloads are refused in plain text.
    return text;
  }
}

/** Of a request that Node's HTTP server has read. */
export function originOf({ headers, socket }: IncomingMessage): RequestOrigin {
  return {
    address: addressOf(socket),
    field: (name) => {
      const value = headers[name];
      return Array.isArray(value) ? value.join(', ') : value;
    },
  };
}

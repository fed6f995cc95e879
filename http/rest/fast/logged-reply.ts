/** Plain requests of REST in the logs of calls, as they are answered. */

import type { CallLog, CallOperation } from '../../context/call-log.js';
import { ended } from '../calls/logged-end.js';
import type { RestReply } from '../calls/reply.js';
import type { FastRequest } from './connection.js';
import { headField } from './head.js';

type Answer = RestReply | null | Promise<RestReply | null>;

/** The answer to a plain request, recorded when it is there. answer: never rejects. */
export function loggedReply(calls: CallLog, operation: CallOperation, request: FastRequest, answer: () => Answer): Answer {
  const { found, head } = request;
  const origin = { address: request.address(), field: (name: string) => headField(head, name) };
  const end = calls.begin('rest', operation, found.caller, found.path.collection_name ?? null, origin);
  if (end === null) return answer();
  request.trace = end.trace;
  const reply = answer();
  if (reply instanceof Promise) return reply.then((later) => ended(end, later));
  return ended(end, reply);
}

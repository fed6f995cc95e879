/** Records plain requests of REST as they are answered. */

import type { AuditedOperation, CallRecorder } from '../../audit/audit-log.js';
import { ended } from '../calls/audited-end.js';
import type { RestReply } from '../calls/reply.js';
import type { FastRequest } from './connection.js';
import { headField } from './head.js';

type Answer = RestReply | null | Promise<RestReply | null>;

/** The answer to a plain request, recorded when it is there. answer: never rejects. */
export function auditedReply(audit: CallRecorder, operation: AuditedOperation, request: FastRequest, answer: () => Answer): Answer {
  const { found, head } = request;
  const origin = { address: request.address(), field: (name: string) => headField(head, name) };
  const end = audit.begin('rest', operation, found.caller, found.path.collection_name ?? null, origin);
  if (end === null) return answer();
  const reply = answer();
  if (reply instanceof Promise) return reply.then((later) => ended(end, later));
  return ended(end, reply);
}

/** The access log: a line of the log for each call that a door answers, with who asked, from where, and why it was refused. */

import type { Log } from '../../actors/runtime/ports.js';
import type { Caller } from '../access/caller.js';
import type { CallLog, CallOperation, EndCall } from '../context/call-log.js';
import { isFailure } from './faults.js';
import { OriginNames, type RequestOrigin } from './origin.js';
import { type AuditedCall, callerFacts } from './record.js';

/**
 * Answers are told as INFO, refusals as WARN, and what the node could not do as ERROR. What is open to all (probes of health) is not told. No line
 * has a key, a token, a body or a query string.
 */
export class AccessLog implements CallLog {
  readonly #origins: OriginNames;

  /** trustForwarded: as in `clientAddress`. */
  constructor(
    private readonly log: Log,
    trustForwarded: boolean,
    private readonly monotonicMs: () => number,
  ) {
    this.#origins = new OriginNames(trustForwarded);
  }

  begin(
    protocol: AuditedCall['protocol'],
    { access, name }: CallOperation,
    caller: Caller,
    collection: string | null,
    origin: RequestOrigin,
  ): EndCall | null {
    if (access === 'open') return null;
    const { from, requestId, via } = this.#origins.of(origin);
    const startedMs = this.monotonicMs();
    return (status, denied, problem) => {
      const { level, message } = endOf(protocol, status);
      this.log[level](message, {
        request_id: requestId,
        operation: name,
        collection: collection ?? undefined,
        status: status ?? undefined,
        milliseconds: Math.round((this.monotonicMs() - startedMs) * 1000) / 1000,
        who: Object.values(callerFacts(caller)).join(' '),
        from,
        via: via ?? undefined,
        protocol,
        reason: level === 'info' ? undefined : (denied ?? problem?.() ?? undefined),
      });
    };
  }

  /** Lines are written as they come. */
  close(): Promise<void> {
    return Promise.resolve();
  }
}

function endOf(protocol: AuditedCall['protocol'], status: number | null): { level: 'info' | 'warn' | 'error'; message: string } {
  if (status === null) return { level: 'warn', message: 'the client was gone before its answer' };
  if (isFailure(protocol, status)) return { level: 'error', message: 'failed' };
  const isRefusal = protocol === 'rest' ? status >= 400 : status !== 0;
  return isRefusal ? { level: 'warn', message: 'refused' } : { level: 'info', message: 'answered' };
}

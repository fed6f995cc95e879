/** What records the calls of a door as they end: the audit log, the access log, traces. */

import type { CallTrace } from '../../protocols/model/explanation.js';
import type { Caller } from '../access/caller.js';
import type { RequestOrigin } from '../audit/origin.js';
import type { Access } from './endpoint.js';

/** What an operation is, as far as its record is concerned. */
export interface CallOperation {
  /** Of `routes.ts`. */
  readonly name: string;
  readonly access: Access;
}

/**
 * Records how a call has ended. status: of REST (200) or gRPC (0); null: the client was gone before its answer. denied: why the caller may not do
 * it; null: it may. problem: what else was wrong with it, made when it is asked for; null: nothing is known.
 */
export type EndCall = ((status: number | null, denied: string | null, problem?: () => string | null) => void) & {
  /** Wants to be told how a read was carried out, before the end. */
  readonly trace?: CallTrace;
};

export interface CallLog {
  /**
   * A call is about to be carried out; the answer records its end. Null: it has no record. collection: as the request names it. origin: is looked
   * at now, since the client may be gone afterwards.
   */
  begin(
    protocol: 'rest' | 'grpc',
    operation: CallOperation,
    caller: Caller,
    collection: string | null,
    origin: RequestOrigin,
  ): EndCall | null;
  /** Writes or sends what waits. */
  close(): Promise<void>;
}

/** Null where there are none. */
export function allCallLogs(logs: readonly (CallLog | null)[]): CallLog | null {
  const present = logs.filter((log) => log !== null);
  if (present.length < 2) return present[0] ?? null;
  return {
    begin: (...call) => {
      const ends = present.map((log) => log.begin(...call)).filter((end) => end !== null);
      if (ends.length === 0) return null;
      const endAll: EndCall = (...how) => {
        for (const end of ends) end(...how);
      };
      const trace = ends.find((end) => end.trace !== undefined)?.trace;
      return trace === undefined ? endAll : Object.assign(endAll, { trace });
    },
    close: async () => {
      await Promise.all(present.map((log) => log.close()));
    },
  };
}

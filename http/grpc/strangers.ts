/** Refuses calls of callers that the node does not know, before their messages are taken. */

import type { Stranger } from '../access/caller.js';
import { decideAccess, denialError } from '../access/decide.js';
import { clientFacts, errorHeaders } from '../context/answer.js';
import type { Endpoint } from '../context/endpoint.js';
import type { ServedOutcome } from './methods.js';
import { grpcStatusOf } from './status.js';

/** How a call of this method ends; null: the method is open to all. */
export type RefuseStranger = (path: string, caller: Stranger) => Extract<ServedOutcome, { kind: 'failed' }> | null;

export type MethodRow = Pick<Endpoint, 'access' | 'method'> & { readonly path: string };

/** Methods that there are not, and streams that tell of those that there are. */
const ANY_OTHER = { access: 'known', method: 'GET' } as const;

/** count: gets the status of each call that is refused, if its method is one of the rows. */
export function strangerRefusal<Row extends MethodRow>(rows: readonly Row[], count: (row: Row, status: number) => void): RefuseStranger {
  const byPath = new Map(rows.map((row) => [row.path, row]));
  return (path, caller) => {
    const row = byPath.get(path);
    const denial = decideAccess(caller, row ?? ANY_OTHER, null);
    if (denial === null) return null;
    const facts = clientFacts(denialError(denial), row ?? ANY_OTHER);
    const status = grpcStatusOf(facts);
    if (row !== undefined) count(row, status.code);
    return { kind: 'failed', ...status, metadata: errorHeaders(facts) };
  };
}

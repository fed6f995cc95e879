/** A read for which this node's own replicas do not suffice: it asks for points of another collection. */

import { TroupeError } from '../../protocols/errors.js';

const DETAIL = 'points of another collection may be on other nodes';

/** Thrown by a read that may only look at its own collection's replicas here. */
export function pointsElsewhere(): TroupeError {
  return new TroupeError('unsupported', DETAIL);
}

/** Whether it is that error, also behind a thread's boundary. */
export function isElsewhere(error: unknown): boolean {
  return error instanceof TroupeError && error.code === 'unsupported' && error.detail === DETAIL;
}

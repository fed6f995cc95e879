/** A read for which this node's own replicas do not suffice: it asks for points of another collection. */

import { TroupeError } from '../../protocols/errors.js';

/** Thrown by a read that may only look at its own collection's replicas here: reason `otherCollection`. */
export function pointsElsewhere(): TroupeError {
  return new TroupeError('unsupported', 'points of another collection may be on other nodes', { reason: 'otherCollection' });
}

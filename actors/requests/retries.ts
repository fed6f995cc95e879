/** What a shard's leader answers to a write, and whether it is asked again. */

import { type ErrorReason, outcomeOf, TroupeError } from '../../protocols/errors.js';

/**
 * again: by what is agreed then. whenLedElsewhere: where another replica can lead the shard. patiently: the leader waits for a replica,
 * and takes no more for a while. never: it was carried out, may be, or would end in the same way.
 */
export type Retry = 'never' | 'again' | 'whenLedElsewhere' | 'patiently';

/** changesNothing: done twice, it comes to the same. */
export function retryOf(error: unknown, changesNothing: boolean): Retry {
  if (!(error instanceof TroupeError) || (outcomeOf(error) === 'unknown' && !changesNothing)) return 'never';
  return error.code === 'busy' ? 'patiently' : retryOfReason(error.reason);
}

function retryOfReason(reason: ErrorReason | undefined): Retry {
  switch (reason) {
    case 'notLeader':
    case 'shardMapChanged':
    case 'shardMigrating':
    case 'replicaNotHere':
    case 'peerRefused':
      return 'again';
    // Whoever leads next answers.
    case 'notReached':
    case 'answerLost':
      return 'whenLedElsewhere';
    case 'replicaNotServing':
    case 'staleCopy':
    case 'otherCollection':
    case 'failedOnApply':
    case 'changedMeanwhile':
    case 'placementChanged':
    case 'actorCrashed':
    case undefined:
      return 'never';
    default:
      return reason satisfies never;
  }
}

/** Whether a write that ended like this, or a part of it, may be carried out, or be in a log for the next leader. */
export function mayBeWritten(error: unknown): boolean {
  return !(error instanceof TroupeError) || outcomeOf(error) === 'unknown' || error.reason === 'failedOnApply';
}

/** Whether nodes that were asked for a part of a read know more than this one: another round asks by what is agreed then. */
export function isReadAgain(error: unknown): boolean {
  if (!(error instanceof TroupeError)) return false;
  const { reason } = error;
  switch (reason) {
    case 'notLeader':
    case 'replicaNotHere':
    case 'replicaNotServing':
    case 'peerRefused':
    case 'shardMigrating':
      return true;
    // All rounds go by one shard map version: the whole read is spread again.
    case 'shardMapChanged':
    case 'staleCopy':
    case 'otherCollection':
    case 'failedOnApply':
    case 'changedMeanwhile':
    case 'placementChanged':
    // Others were asked already.
    case 'notReached':
    case 'answerLost':
    case 'actorCrashed':
    case undefined:
      return false;
    default:
      return reason satisfies never;
  }
}

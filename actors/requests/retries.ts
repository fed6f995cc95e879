/** Decides by a leader's error whether a write is tried again. */

import { type ErrorReason, outcomeOf, TroupeError } from '../../protocols/errors.js';

/**
 * When a write is tried again. again: by the agreed state of that time. whenLedElsewhere: if another replica can lead the shard. patiently:
 * the leader waits for a replica and takes no writes for a while. never: the write was executed, may have been, or would end in the same
 * way.
 */
export type Retry = 'never' | 'again' | 'whenLedElsewhere' | 'patiently';

/** When a write with this error is tried again. changesNothing: a second execution has no effect. */
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
    // The next leader answers.
    case 'notReached':
    case 'answerLost':
      return 'whenLedElsewhere';
    case 'replicaNotServing':
    case 'staleCopy':
    case 'otherCollection':
    case 'failedOnApply':
    case 'damaged':
    case 'changedMeanwhile':
    case 'placementChanged':
    case 'addressTaken':
    case 'checkpointLost':
    case 'segmentTooLarge':
    case 'actorCrashed':
    case undefined:
      return 'never';
    default:
      return reason satisfies never;
  }
}

/** Whether a write that ended with this error, or a part of it, may have been executed, or may be in a log for the next leader. */
export function mayBeWritten(error: unknown): boolean {
  return !(error instanceof TroupeError) || outcomeOf(error) === 'unknown' || error.reason === 'failedOnApply';
}

/** Whether a peer that refused a part of a read knows a newer agreed state, so that the next round uses the newest one here. */
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
    // All rounds use one shard map version, so the whole read is split again.
    case 'shardMapChanged':
    case 'staleCopy':
    case 'otherCollection':
    case 'failedOnApply':
    case 'damaged':
    case 'changedMeanwhile':
    case 'placementChanged':
    case 'addressTaken':
    case 'checkpointLost':
    case 'segmentTooLarge':
    // The other replicas have been asked already.
    case 'notReached':
    case 'answerLost':
    case 'actorCrashed':
    case undefined:
      return false;
    default:
      return reason satisfies never;
  }
}

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isReadAgain, mayBeWritten, type Retry, retryOf } from '../../../actors/requests/retries.js';
import { type ErrorReason, TroupeError } from '../../../protocols/errors.js';

interface Decision {
  /** Of a write, and of a question that changes nothing. */
  readonly write: Retry;
  readonly question: Retry;
  readonly mayBeWritten: boolean;
  readonly readAgain: boolean;
}

const AGAIN = { write: 'again', question: 'again', mayBeWritten: false, readAgain: true } as const;
const NEVER = { write: 'never', question: 'never', mayBeWritten: false, readAgain: false } as const;

const DECISIONS: Readonly<Record<ErrorReason, Decision>> = {
  notLeader: AGAIN,
  shardMigrating: AGAIN,
  replicaNotHere: AGAIN,
  peerRefused: AGAIN,
  shardMapChanged: { ...AGAIN, readAgain: false },
  replicaNotServing: { ...NEVER, readAgain: true },
  staleCopy: NEVER,
  otherCollection: NEVER,
  changedMeanwhile: NEVER,
  placementChanged: NEVER,
  addressTaken: NEVER,
  checkpointLost: NEVER,
  segmentTooLarge: NEVER,
  failedOnApply: { ...NEVER, mayBeWritten: true },
  damaged: { ...NEVER, mayBeWritten: true },
  notReached: { ...NEVER, write: 'whenLedElsewhere', question: 'whenLedElsewhere' },
  answerLost: { ...NEVER, question: 'whenLedElsewhere', mayBeWritten: true },
  actorCrashed: { ...NEVER, mayBeWritten: true },
};

function decisionOf(error: unknown): Decision {
  return {
    write: retryOf(error, false),
    question: retryOf(error, true),
    mayBeWritten: mayBeWritten(error),
    readAgain: isReadAgain(error),
  };
}

test('each reason says whether a write, a question and a part of a read are tried again', () => {
  for (const [reason, decision] of Object.entries(DECISIONS))
    assert.deepEqual(decisionOf(new TroupeError('conflict', 'why', { reason: reason as ErrorReason })), decision, reason);
});

test('what may have been written is never written again, whatever its reason', () => {
  for (const reason of Object.keys(DECISIONS) as ErrorReason[]) {
    const error = new TroupeError('conflict', 'why', { reason, outcome: 'unknown' });
    assert.equal(retryOf(error, false), 'never', reason);
    assert.equal(mayBeWritten(error), true, reason);
  }
});

test('an error without a reason ends the write; one that is no error of the catalogue leaves it open', () => {
  assert.deepEqual(decisionOf(new TroupeError('conflict', 'why')), NEVER);
  assert.deepEqual(decisionOf(new TroupeError('wrongInput', 'why')), NEVER);
  assert.deepEqual(decisionOf(new TroupeError('timeout', 'why')), { ...NEVER, mayBeWritten: true });
  assert.deepEqual(decisionOf(new Error('a bug')), { ...NEVER, mayBeWritten: true });
});

test('a leader that is busy is asked again patiently', () => {
  assert.deepEqual(decisionOf(new TroupeError('busy', 'why')), { ...NEVER, write: 'patiently', question: 'patiently' });
});

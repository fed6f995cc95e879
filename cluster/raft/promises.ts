/** Invariants of Raft, checked at the end of each step: a step that breaks one stops its peer before anything is sent or written. */

import { invariant } from '../../protocols/invariant.js';
import type { Membership } from '../../protocols/model/cluster.js';
import type { Entry } from '../../protocols/model/consensus.js';
import { lastIndex, termAt } from './log.js';
import type { RaftLog, RaftState } from './state.js';

/** Compares the state before a step with the state after it. Costs a dozen comparisons. Errors: `BrokenInvariant`. */
export function checkStep(before: RaftState, after: RaftState): void {
  invariant(after.term >= before.term, 'Raft-R2', () => `term ${before.term} goes back to ${after.term}`);
  invariant(
    after.term !== before.term || before.votedFor === null || after.votedFor === before.votedFor,
    'Raft-R2',
    () => `the vote for peer ${before.votedFor} in term ${before.term} becomes one for ${after.votedFor}`,
  );
  invariant(after.commitIndex >= before.commitIndex, 'Raft-R4', () => `commit ${before.commitIndex} goes back to ${after.commitIndex}`);
  const last = lastIndex(after.log);
  invariant(after.commitIndex <= last, 'Raft-R4', () => `${after.commitIndex} is committed in a log that ends at ${last}`);
  invariant(after.persistedIndex <= last, 'Raft-R4', () => `${after.persistedIndex} counts as on disk in a log that ends at ${last}`);
  invariant(
    after.role.kind !== 'Leader' || after.commitIndex === before.commitIndex || termAt(after.log, after.commitIndex) === after.term,
    'Raft-R3',
    () => `the leader of term ${after.term} commits ${after.commitIndex}, an entry of term ${termAt(after.log, after.commitIndex)}`,
  );
  invariant(after.appliedIndex <= after.commitIndex, 'Raft-R5', () => `${after.appliedIndex} is applied, ${after.commitIndex} committed`);
  invariant(
    after.appliedIndex >= before.appliedIndex || before.pendingRestore !== null,
    'Raft-R5',
    () => `applied ${before.appliedIndex} goes back to ${after.appliedIndex}`,
  );
  const snapshot = after.log.snapshot?.index ?? 0;
  invariant(snapshot <= after.commitIndex, 'Raft-R8', () => `the snapshot ends at ${snapshot}, ${after.commitIndex} is committed`);
}

/** Asserts that `entries` may replace those of `log` from the first one's index on. Errors: `BrokenInvariant`. */
export function checkEntries(log: RaftLog, commitIndex: number, entries: readonly Entry[]): void {
  const first = entries[0] as Entry;
  invariant(first.index > commitIndex, 'Raft-R4', () => `entry ${first.index} is replaced, ${commitIndex} is committed`);
  let { index, term } = { index: first.index - 1, term: termAt(log, first.index - 1) };
  invariant(term !== null, 'Raft-R12', () => `entry ${first.index} cannot follow a log that ends at ${lastIndex(log)}`);
  for (const entry of entries) {
    invariant(entry.index === index + 1, 'Raft-R12', () => `entry ${entry.index} comes after entry ${index}`);
    invariant(entry.term >= term, 'Raft-R12', () => `entry ${entry.index} of term ${entry.term} comes after one of term ${term}`);
    ({ index, term } = entry);
  }
}

/**
 * Asserts that consecutive memberships differ by one peer, which is added, removed or changed; the very first membership comes as a whole.
 */
export function checkMembership(before: Membership, after: Membership): void {
  if (before.length === 0) return;
  const known = new Map(before.map((member) => [member.peerId, member]));
  let changes = 0;
  for (const { peerId, uri, version, voter } of after) {
    const member = known.get(peerId);
    known.delete(peerId);
    if (member === undefined || member.voter !== voter || member.uri !== uri || member.version !== version) changes++;
  }
  changes += known.size;
  invariant(changes <= 1, 'Raft-R9', () => `${changes} peers change at once, from ${namesOf(before)} to ${namesOf(after)}`);
}

function namesOf(membership: Membership): string {
  return membership.map(({ peerId, voter }) => `${peerId}${voter ? '' : ' (learner)'}`).join(', ');
}

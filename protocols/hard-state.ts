/** What a peer of the cluster promises about its term and its vote, whoever writes them to disk. */

import { invariant } from './invariant.js';
import type { HardState } from './model/consensus.js';

/** What goes to disk after what went there before: a term does not go back, and a vote is given once in a term. Errors: `BrokenInvariant`. */
export function checkHardState(before: HardState, after: HardState): void {
  invariant(after.term >= before.term, 'Raft-R2', () => `term ${before.term} on disk goes back to ${after.term}`);
  invariant(
    after.term !== before.term || before.votedFor === null || after.votedFor === before.votedFor,
    'Raft-R2',
    () => `the vote for peer ${before.votedFor} in term ${before.term} on disk becomes one for ${after.votedFor}`,
  );
}

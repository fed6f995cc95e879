/** Replaces the beginning of the log by a snapshot. Source: dissertation, chapter 5. */

import type { Snapshot } from '../../protocols/model/consensus.js';
import type { RaftDraft } from './draft.js';
import { compacted, firstIndex, membershipAt, termAt } from './log.js';

/**
 * Replaces entries up to `index` by a snapshot. data: the state after `index`. Does nothing unless the log has entry `index`, applied and
 * later than the last snapshot.
 */
export function compact(draft: RaftDraft, index: number, data: Uint8Array): void {
  const state = draft.state;
  if (state.pendingRestore !== null || index <= (state.log.snapshot?.index ?? 0) || index > state.appliedIndex) return;
  const { membership } = membershipAt(state.log, index);
  const snapshot: Snapshot = { index, term: termAt(state.log, index) as number, membership, data };
  state.log = compacted(state.log, snapshot, state.config.entriesKept);
  draft.snapshot = snapshot;
  draft.firstIndex = firstIndex(state.log);
}

/** What a consensus store holds after a write: the store's contract as a function, for networks in memory. */

import assert from 'node:assert/strict';
import type { Member, Membership, PeerId } from '../../../protocols/model/cluster.js';
import type { ConsensusWrite, Entry, StoredConsensus } from '../../../protocols/model/consensus.js';

export function member(peerId: PeerId, voter: boolean): Member {
  return { peerId, uri: `http://peer-${peerId}:6335`, version: '1', voter };
}

/** Founded by `membership`: a snapshot at index 1 of term 1, and nothing behind it. */
export function foundedBy(membership: Membership, data: Uint8Array): StoredConsensus {
  return {
    identity: null,
    hardState: { term: 1, votedFor: null, commit: 1 },
    snapshot: { index: 1, term: 1, membership, data },
    entries: [],
    applied: 1,
  };
}

/** `stored` with a write. Fails on one that breaks the store's contract: a gap in the log, a term or snapshot that goes back. */
export function written(stored: StoredConsensus, write: ConsensusWrite): StoredConsensus {
  const snapshot = write.snapshot ?? stored.snapshot;
  const hardState = write.hardState ?? stored.hardState;
  assert.ok(hardState.term >= stored.hardState.term, 'a stored term went back');
  const kept = write.clearEntries ? [] : stored.entries;
  const entries = from(replaced(kept, write.entries), write.firstIndex ?? 0);
  const begin = entries[0]?.index;
  assert.ok(begin === undefined || begin <= (snapshot?.index ?? 0) + 1, 'a gap between the snapshot and the entries');
  assert.ok(
    entries.every((entry, at) => entry.index === begin! + at),
    'stored entries are not consecutive',
  );
  return {
    identity: write.identity ?? stored.identity,
    hardState,
    snapshot,
    entries,
    applied: Math.max(write.applied ?? stored.applied, snapshot?.index ?? 0),
  };
}

function replaced(stored: readonly Entry[], entries: readonly Entry[]): readonly Entry[] {
  const first = entries[0];
  if (first === undefined) return stored;
  return [...stored.filter((entry) => entry.index < first.index), ...entries];
}

function from(entries: readonly Entry[], firstIndex: number): readonly Entry[] {
  return entries.filter((entry) => entry.index >= firstIndex);
}

/**
 * The leader sends entries within each follower's window, heartbeats and parts of snapshots. Source: dissertation, sections 3.5, 5 and
 * 10.2.
 */

import type { PeerId } from '../../protocols/model/cluster.js';
import type { Entry } from '../../protocols/model/consensus.js';
import { changeLeaderRole, progressOf, type RaftDraft, sendEarly } from './draft.js';
import { batchFrom, lastIndex, termAt } from './log.js';
import { appended, mayAppend, receivingSnapshot } from './progress.js';
import type { LeaderRole, Progress } from './state.js';

/** Sends `peer` the entries that it has not been sent yet, as far as its window allows. */
export function sendEntries(draft: RaftDraft, peer: PeerId): void {
  const { log, config } = draft.state;
  for (;;) {
    const progress = progressOf(draft).get(peer) as Progress;
    if (progress.nextIndex > lastIndex(log) || !mayAppend(progress, config.appendsInFlightMax)) return;
    if (termAt(log, progress.nextIndex - 1) === null) {
      beginSnapshot(draft, peer, false);
      return;
    }
    const entries = batchFrom(log, progress.nextIndex, config.appendBytesMax);
    sendAppend(draft, peer, progress, entries);
    progressOf(draft).set(peer, appended(progress, entries.length, (entries.at(-1) as Entry).index));
  }
}

/** Starts a new round of heartbeats: a peer that answers it confirms that this peer still leads (Raft-R7). */
export function heartbeat(draft: RaftDraft): void {
  const { role } = draft.state;
  if (role.kind !== 'Leader') return;
  changeLeaderRole(draft, { round: role.round + 1, heartbeatElapsed: 0 });
  for (const peer of role.progress.keys()) sendHeartbeat(draft, peer);
}

/**
 * Sends an `append` without entries, which probes the log and tells the commit index; or a snapshot, if the follower needs entries that the
 * log no longer has.
 */
export function sendHeartbeat(draft: RaftDraft, peer: PeerId): void {
  const { log } = draft.state;
  const progress = progressOf(draft).get(peer) as Progress;
  if (progress.mode.kind === 'Snapshot') sendAppendAt(draft, peer, 0, 0, []);
  else if (termAt(log, progress.nextIndex - 1) === null) beginSnapshot(draft, peer, false);
  else sendAppend(draft, peer, progress, []);
}

function sendAppend(draft: RaftDraft, peer: PeerId, progress: Progress, entries: readonly Entry[]): void {
  const prevIndex = progress.nextIndex - 1;
  sendAppendAt(draft, peer, prevIndex, termAt(draft.state.log, prevIndex) as number, entries);
}

function sendAppendAt(draft: RaftDraft, peer: PeerId, prevIndex: number, prevTerm: number, entries: readonly Entry[]): void {
  const { commitIndex, role } = draft.state;
  const { round } = role as LeaderRole;
  sendEarly(draft, peer, { kind: 'append', prevIndex, prevTerm, entries, commit: commitIndex, round });
}

/** Starts to send a snapshot. forced: the follower asked for it and takes it even if its own state is newer. */
export function beginSnapshot(draft: RaftDraft, peer: PeerId, forced: boolean): void {
  const { snapshot } = draft.state.log;
  const progress = progressOf(draft).get(peer);
  if (snapshot === null || progress === undefined) return;
  progressOf(draft).set(peer, receivingSnapshot(progress, snapshot, forced));
  sendChunk(draft, peer);
}

/** Sends the next part of a snapshot. */
export function sendChunk(draft: RaftDraft, peer: PeerId): void {
  const { config, role } = draft.state;
  const { mode } = (role as LeaderRole).progress.get(peer) as Progress;
  if (mode.kind !== 'Snapshot') return;
  const { data, ...snapshot } = mode.snapshot;
  sendEarly(draft, peer, {
    kind: 'installSnapshot',
    snapshot,
    offset: mode.offset,
    totalBytes: data.length,
    chunk: data.subarray(mode.offset, mode.offset + config.snapshotChunkBytes),
    forced: mode.forced,
    round: (role as LeaderRole).round,
  });
}

/**
 * The leader's side of snapshots: it sends one part at a time to followers that need entries which the log no longer has, or that ask for
 * the state.
 */

import { type MessageOf, progressOf, type RaftDraft } from './draft.js';
import { replicating } from './progress.js';
import { beginSnapshot, sendChunk, sendEntries } from './sending.js';
import type { LeaderRole } from './state.js';

export function receiveInstallSnapshotReply(draft: RaftDraft, message: MessageOf<'installSnapshotReply'>): void {
  const { role } = draft.state;
  if (role.kind !== 'Leader') return;
  const progress = role.progress.get(message.from);
  if (progress === undefined || progress.mode.kind !== 'Snapshot' || progress.mode.snapshot.index !== message.index) return;
  const round = Math.max(progress.round, message.round);
  if (message.done) {
    const matchIndex = Math.max(progress.matchIndex, message.index);
    progressOf(draft).set(message.from, replicating({ ...progress, round, matchIndex }));
    sendEntries(draft, message.from);
    return;
  }
  // The same offset again is the answer to a part that arrived twice.
  const moved = message.nextOffset !== progress.mode.offset && message.nextOffset <= progress.mode.snapshot.data.length;
  const mode = moved ? { ...progress.mode, offset: message.nextOffset, ticksWaiting: 0 } : progress.mode;
  progressOf(draft).set(message.from, { ...progress, round, mode });
  if (moved) sendChunk(draft, message.from);
}

/** Sends a part again that is not answered in time, as parts may be lost. */
export function tickSnapshots(draft: RaftDraft): void {
  const { role, config } = draft.state;
  for (const [peer, progress] of (role as LeaderRole).progress) {
    if (progress.mode.kind !== 'Snapshot') continue;
    const ticksWaiting = progress.mode.ticksWaiting + 1;
    const again = ticksWaiting >= config.electionTicks;
    progressOf(draft).set(peer, { ...progress, mode: { ...progress.mode, ticksWaiting: again ? 0 : ticksWaiting } });
    if (again) sendChunk(draft, peer);
  }
}

/**
 * A follower asks for the newest state (`POST /cluster/recover`). The leader asks the actor that applies entries for it, unless the log's
 * snapshot is as new.
 */
export function receiveRequestSnapshot(draft: RaftDraft, message: MessageOf<'requestSnapshot'>): void {
  const { role, log, appliedIndex } = draft.state;
  if (role.kind !== 'Leader') return;
  const progress = role.progress.get(message.from);
  if (progress === undefined || (progress.mode.kind === 'Snapshot' && progress.mode.forced)) return;
  if (log.snapshot !== null && log.snapshot.index === appliedIndex) {
    beginSnapshot(draft, message.from, true);
    return;
  }
  progressOf(draft).set(message.from, { ...progress, snapshotWanted: true });
  draft.effects.push({ kind: 'snapshotWanted' });
}

/** Sends the snapshot to the followers that asked for it. */
export function sendWantedSnapshots(draft: RaftDraft): void {
  const { role } = draft.state;
  if (role.kind !== 'Leader') return;
  for (const [peer, progress] of role.progress) if (progress.snapshotWanted) beginSnapshot(draft, peer, true);
}

/** A follower takes a leader's entries and snapshots. Source: dissertation, sections 3.5 and 5. */

import { invariant } from '../../protocols/invariant.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import type { Snapshot } from '../../protocols/model/consensus.js';
import { forgetPersisted, type MessageOf, type RaftDraft, rereadMembership, sendLate, writeEntries, writeNumber } from './draft.js';
import { lastOfTerm, termAt, withSnapshot } from './log.js';
import { becomeFollower } from './roles.js';

/** Notes a message of this term's leader, of which there is only one (Raft-R2). Candidates are refused for a while (Raft-R10). */
function hearLeader(draft: RaftDraft, leader: PeerId): void {
  const state = draft.state;
  invariant(state.role.kind !== 'Leader', 'Raft-R2', () => `peer ${leader} leads term ${state.term}, and so does this peer`);
  if (state.role.kind !== 'Follower' || state.leader !== leader) becomeFollower(draft, state.term, leader);
  state.elapsedTicks = 0;
}

/** Appends entries if the logs agree up to the entry before them; otherwise the answer says where they may agree. */
export function receiveAppend(draft: RaftDraft, message: MessageOf<'append'>): void {
  hearLeader(draft, message.from);
  const state = draft.state;
  const { prevIndex, round } = message;
  // Committed entries agree with every later leader's log, so nothing before the commit index is compared (Raft-R4).
  if (prevIndex >= state.commitIndex && termAt(state.log, prevIndex) !== message.prevTerm) {
    const index = lastOfTerm(state.log, prevIndex, message.prevTerm);
    sendLate(draft, message.from, { kind: 'appendReply', matched: false, index, logTerm: termAt(state.log, index) ?? 0, round });
    return;
  }
  const last = prevIndex + message.entries.length;
  takeEntries(draft, message);
  state.commitIndex = Math.max(state.commitIndex, Math.min(message.commit, last));
  sendLate(draft, message.from, { kind: 'appendReply', matched: true, index: Math.max(last, draft.before.commitIndex), logTerm: 0, round });
}

/**
 * Adds the entries that the log lacks. Equal entries stay, also those after the message's last one, as the message may be late. From the
 * first entry that differs on, the log is replaced.
 */
function takeEntries(draft: RaftDraft, message: MessageOf<'append'>): void {
  const { log, commitIndex } = draft.state;
  const known = message.entries.findIndex(({ index, term }) => {
    const own = termAt(log, index);
    invariant(
      index > commitIndex || own === null || own === term,
      'Raft-R4',
      () => `the leader of term ${message.term} has entry ${index}/${term} where ${index}/${own} is committed`,
    );
    return index > commitIndex && own !== term;
  });
  if (known !== -1) writeEntries(draft, known === 0 ? message.entries : message.entries.slice(known));
}

/** Takes a part of a snapshot. Parts come in order; the reply says how many bytes have arrived. */
export function receiveInstallSnapshot(draft: RaftDraft, message: MessageOf<'installSnapshot'>): void {
  hearLeader(draft, message.from);
  const state = draft.state;
  const { index } = message.snapshot;
  const reply = (nextOffset: number, done: boolean) =>
    sendLate(draft, message.from, { kind: 'installSnapshotReply', index, nextOffset, done, round: message.round });
  if (!isUseful(draft, message)) {
    state.incoming = null;
    reply(message.totalBytes, true);
    return;
  }
  const { from, term } = message;
  const same = state.incoming?.from === from && state.incoming.term === term && state.incoming.index === index;
  const incoming = same && state.incoming !== null ? state.incoming : { from, term, index, chunks: [], bytes: 0 };
  const isNext = message.offset === incoming.bytes && message.offset + message.chunk.length <= message.totalBytes;
  // Ignore a part without bytes: it brings no progress, and any number of them would be kept.
  if (!isNext || (message.chunk.length === 0 && message.totalBytes > 0)) {
    reply(incoming.bytes, false);
    return;
  }
  const chunks = [...incoming.chunks, message.chunk];
  const bytes = incoming.bytes + message.chunk.length;
  if (bytes < message.totalBytes) {
    state.incoming = { ...incoming, chunks, bytes };
    reply(bytes, false);
    return;
  }
  state.incoming = null;
  install(draft, { ...message.snapshot, data: joined(chunks, bytes) });
  reply(bytes, true);
}

/**
 * Whether a snapshot is installed. One that ends at or before the commit index is not, unless this peer asked for it. Even then no
 * committed entry after the snapshot may be dropped (Raft-R8), so the log must have them all.
 */
function isUseful(draft: RaftDraft, message: MessageOf<'installSnapshot'>): boolean {
  const { commitIndex, log } = draft.state;
  const { index, term } = message.snapshot;
  if (index > commitIndex) return true;
  return message.forced && termAt(log, index) === term;
}

function install(draft: RaftDraft, snapshot: Snapshot): void {
  const state = draft.state;
  const { log, contradicts } = withSnapshot(state.log, snapshot);
  state.log = log;
  if (contradicts) forgetPersisted(draft, 0);
  state.commitIndex = Math.max(state.commitIndex, snapshot.index);
  state.pendingRestore = { snapshot, write: writeNumber(draft) };
  draft.snapshot = snapshot;
  draft.clearEntries = contradicts;
  draft.firstIndex = contradicts ? null : snapshot.index + 1;
  rereadMembership(draft);
}

function joined(chunks: readonly Uint8Array[], bytes: number): Uint8Array {
  if (chunks.length === 1) return chunks[0] as Uint8Array;
  const data = new Uint8Array(bytes);
  let offset = 0;
  for (const chunk of chunks) {
    data.set(chunk, offset);
    offset += chunk.length;
  }
  return data;
}

/** Gives inputs to Raft and passes its effects on: to the log, the peers, the agreed state and waiting callers. */

import { applyEntries } from '../../cluster/apply/apply.js';
import type { RaftEffect, RaftInput, RaftMessage } from '../../cluster/raft/messages.js';
import { leadsOfOthers } from '../../cluster/state/giving-back.js';
import { decodeState, encodeState } from '../../cluster/state/state-codec.js';
import { decideInRow, type Row } from '../../protocols/machine.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import type { Entry, Snapshot } from '../../protocols/model/consensus.js';
import { maybeActivate } from './agreed/activation.js';
import { askToReconcile } from './agreed/carrying.js';
import { noteCatchUpIndex } from './agreed/catching-up.js';
import { announce } from './membership/peer-requests.js';
import { removeEmpty } from './membership/remove-peer.js';
import { isHeldBack } from './membership/survivor.js';
import type { ConsensusDraft, DraftActs } from './proposals/draft.js';
import { finishAll, noteAgreed, noteProposed, submit, tryAllAnew } from './proposals/proposals.js';
import { maybeAnswerReads, noteReadReady } from './proposals/reads.js';
import { maybeSettle } from './proposals/settling.js';
import type { ReadCall } from './state.js';

export const DRAFT_ACTS: DraftActs = { raft: drive, afterRead, afterMark: removeEmpty };

function drive(draft: ConsensusDraft, input: RaftInput): void {
  if (isHeldBack(draft, input)) {
    // Another peer's proposal is dropped, and that peer proposes it again.
    if (input.kind === 'propose') noteProposed(draft, input.id, { kind: 'refused', reason: 'membershipPending' });
    return;
  }
  const { state, effects } = draft.member.settings.raftStep(draft.member.raft, input);
  draft.change({ raft: state });
  takeEffects(draft, effects);
}

function afterRead(draft: ConsensusDraft, { deadlineTick, next, replyTo }: ReadCall): void {
  switch (next.kind) {
    case 'answer':
      draft.reply(replyTo, true);
      break;
    case 'submit':
      submit(draft, next.submission, next.caller, deadlineTick, { isCaughtUp: true });
      break;
    case 'announce':
      announce(draft, next.caller, deadlineTick);
      break;
    default:
      next satisfies never;
  }
}

export function takeEffects(draft: ConsensusDraft, effects: readonly RaftEffect[]): void {
  for (const effect of effects) decideInRow(RAFT_EFFECTS, draft, effect);
}

const RAFT_EFFECTS: Row<RaftEffect, ConsensusDraft, void> = {
  persist: (draft, { number, write }) => draft.write(write, number),
  send: (draft, { messages }) => {
    for (const [to, batch] of byPeer(messages)) draft.emitAfterWrites({ kind: 'send', to, messages: batch });
  },
  sendEarly: (draft, { messages }) => {
    for (const [to, batch] of byPeer(messages)) draft.emit({ kind: 'send', to, messages: batch });
  },
  apply: (draft, { entries }) => applyCommitted(draft, entries),
  restore: (draft, { snapshot }) => restore(draft, snapshot),
  proposed: (draft, { id, outcome }) => noteProposed(draft, id, outcome),
  readReady: (draft, { id, index }) => {
    noteCatchUpIndex(draft, id, index);
    noteReadReady(draft, id, index);
  },
  roleChanged: tryAllAnew,
  snapshotWanted: compact,
  removed: (draft) => {
    draft.removed = true;
  },
};

function byPeer(messages: readonly RaftMessage[]): Map<PeerId, { kind: 'raft'; message: RaftMessage }[]> {
  const byPeer = new Map<PeerId, { kind: 'raft'; message: RaftMessage }[]>();
  for (const message of messages) {
    const batch = byPeer.get(message.to);
    if (batch === undefined) byPeer.set(message.to, [{ kind: 'raft', message }]);
    else batch.push({ kind: 'raft', message });
  }
  return byPeer;
}

/** Applies committed entries. Errors: `storage` if this release cannot read a command. */
function applyCommitted(draft: ConsensusDraft, entries: readonly Entry[]): void {
  const { identity } = draft.member;
  const { outcomes, state } = applied(draft, entries);
  const results = outcomes.filter(({ origin, session }) => origin === identity.peerId && session === identity.starts);
  let { logBytes } = draft.member;
  for (const { payload } of entries) if (payload.kind === 'operation') logBytes += payload.bytes.length;
  draft.change({ agreed: state, logBytes });
  askToReconcile(draft);
  finishAll(draft, results);
  noteAgreed(draft);
  maybeActivate(draft);
  maybeSettle(draft);
  maybeAnswerReads(draft);
  maybeCompact(draft);
}

/** The agreed state after these entries. On its way, the leads are noted that were agreed on when the log was loaded. */
function applied(draft: ConsensusDraft, entries: readonly Entry[]): ReturnType<typeof applyEntries> {
  const { agreed, identity, loadedIndex, loadedLeads } = draft.member;
  if (loadedLeads !== null) return applyEntries(agreed, entries);
  const loaded = applyEntries(
    agreed,
    entries.filter(({ index }) => index <= loadedIndex),
  );
  if (loaded.state.appliedIndex < loadedIndex) return loaded;
  draft.change({ loadedLeads: leadsOfOthers(loaded.state, identity.peerId) });
  const later = applyEntries(
    loaded.state,
    entries.filter(({ index }) => index > loadedIndex),
  );
  return { state: later.state, outcomes: [...loaded.outcomes, ...later.outcomes] };
}

function restore(draft: ConsensusDraft, snapshot: Snapshot): void {
  const { calls } = draft.member;
  const agreed = decodeState(snapshot.data);
  // What was agreed on between the loaded log's end and a later snapshot is not known.
  const { identity, loadedIndex } = draft.member;
  if (agreed.appliedIndex === loadedIndex) draft.change({ loadedLeads: leadsOfOthers(agreed, identity.peerId) });
  else if (agreed.appliedIndex > loadedIndex) draft.change({ loadedLeads: draft.member.loadedLeads ?? new Map() });
  draft.change({ agreed, logBytes: 0, snapshotBytes: snapshot.data.length });
  askToReconcile(draft);
  noteAgreed(draft);
  if (calls.recovery !== null) {
    draft.reply(calls.recovery.replyTo, true);
    draft.changeCalls({ recovery: null });
  }
}

/**
 * Compacts the log after `compactEntries` entries, but not before they are larger than the snapshot, so that a large state is not written
 * for a few small changes. The log on disk stays within about twice the state, or `compactEntries` entries.
 */
function maybeCompact(draft: ConsensusDraft): void {
  const { agreed, logBytes, raft, settings, snapshotBytes } = draft.member;
  const entries = agreed.appliedIndex - (raft.log.snapshot?.index ?? 0);
  if (settings.compactEntries > 0 && entries >= settings.compactEntries && logBytes >= snapshotBytes) compact(draft);
}

function compact(draft: ConsensusDraft): void {
  const { agreed } = draft.member;
  const data = encodeState(agreed);
  draft.change({ logBytes: 0, snapshotBytes: data.length });
  draft.raft({ kind: 'compact', index: agreed.appliedIndex, data });
}

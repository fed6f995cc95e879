/**
 * Decides whether a leader acknowledges without a replica that is away, where nothing can be agreed on without that replica's node
 * (Log-L9).
 *
 * 1. The leader asks whether it may go on alone.
 * 2. It notes on disk that other replicas may lack something.
 * 3. It asks again, and goes on.
 * 4. It clears the note when all replicas have everything.
 */

import type { PeerId } from '../../protocols/model/cluster.js';
import { excuse } from './channels.js';
import { type InputOf, leadingOf, log, type ReplicationDraft } from './draft.js';
import { NOTE_RETRY_TICKS } from './figures.js';
import { requiredChannels } from './leading.js';
import { isRequired } from './required.js';
import type { ReplicationState } from './state.js';

/** Goes on without a peer that cannot be made Dead, and proposes any other peer as Dead. */
export function leaderJudged(draft: ReplicationDraft, { isAlone, peer }: InputOf<'aloneJudged'>): void {
  const { ahead } = draft.state;
  if (!isAlone) proposeDead(draft, peer);
  // Another judgement follows when the write that is under way ends.
  else if (ahead.writing !== null) return;
  else if (ahead.isAhead === true) excuse(draft, peer);
  else note(draft, true);
}

/** A replica that does not lead yet has nothing to acknowledge, so it waits for a peer that cannot be made Dead. */
export function syncingJudged(draft: ReplicationDraft, { isAlone, peer }: InputOf<'aloneJudged'>): void {
  if (!isAlone) proposeDead(draft, peer);
}

function proposeDead(draft: ReplicationDraft, peer: PeerId): void {
  const { assignment, dying } = draft.state;
  if (assignment === null || dying.has(peer)) return;
  draft.state.dying = new Set(dying).add(peer);
  draft.effects.push({ kind: 'proposeDead', peer, from: assignment.replicas.get(peer) ?? null, term: assignment.term });
}

export function deathProposed(draft: ReplicationDraft, { error, peer }: InputOf<'deathProposed'>): void {
  draft.state.dying = new Set([...draft.state.dying].filter((each) => each !== peer));
  if (error !== null) log(draft, 'info', `that peer ${peer} is Dead is not agreed: ${error.detail}`);
}

export function aheadNoted(draft: ReplicationDraft, { isAhead }: InputOf<'aheadNoted'>): void {
  draft.state.ahead = { isAhead, writing: null, retryAt: 0 };
}

/** Asks again whether it may go on alone: peers may have come back or gone while the note was written. */
export function leaderNoted(draft: ReplicationDraft, input: InputOf<'aheadNoted'>): void {
  aheadNoted(draft, input);
  const { channels, run } = leadingOf(draft);
  for (const { peer, phase } of channels.values()) {
    if (phase.kind === 'Broken' && isRequired(draft.state, peer)) draft.effects.push({ kind: 'judgeAlone', run, peer });
  }
}

/** Keeps the old value of the note. The next judgement tries again to go on alone. */
export function noteFailed(draft: ReplicationDraft, { error, isAhead }: InputOf<'noteFailed'>): void {
  const { ahead, ticks } = draft.state;
  draft.state.ahead = { ...ahead, writing: null, retryAt: ticks + NOTE_RETRY_TICKS };
  log(draft, 'warn', `${isAhead ? 'it cannot go on alone' : 'that others have everything cannot be noted'}: ${error.detail}`);
}

/** Clears the note once all required replicas have everything. Runs at the end of a leader's step. */
export function driveNote(draft: ReplicationDraft): void {
  const { ahead, ticks } = draft.state;
  if (ahead.isAhead !== true || ahead.writing !== null || ticks < ahead.retryAt) return;
  const role = leadingOf(draft);
  const hasAll = requiredChannels(draft, role).every((channel) => {
    return channel?.phase.kind === 'Streaming' && channel.phase.logged.index >= role.last.index;
  });
  if (hasAll) note(draft, false);
}

/** Whether ticks are needed until clearing the note is tried again. */
export function waitsForNote({ ahead, ticks }: Pick<ReplicationState, 'ahead' | 'ticks'>): boolean {
  return ahead.isAhead === true && ahead.writing === null && ahead.retryAt > ticks;
}

function note(draft: ReplicationDraft, isAhead: boolean): void {
  draft.state.ahead = { ...draft.state.ahead, writing: isAhead };
  draft.effects.push({ kind: 'noteAhead', isAhead });
}

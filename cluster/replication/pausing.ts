/**
 * A leader that is about to hand its shard over takes no writes for a moment, so that none is under way when it stops leading. Requests
 * that wait on other nodes go to the next leader. A pause ends by itself if no other leader comes.
 */

import { answer, changeLeading, type InputOf, leadingOf, type ReplicationDraft, refuse } from './draft.js';
import { PAUSE_TICKS } from './figures.js';

/** Pauses writes. The caller is answered once all writes under way are answered. A second call makes the pause longer. */
export function pause(draft: ReplicationDraft, { caller }: InputOf<'pause'>): void {
  const waiting = leadingOf(draft).pause?.waiting ?? [];
  changeLeading(draft, { pause: { until: draft.state.ticks + PAUSE_TICKS, waiting: [...waiting, caller] } });
}

/** Ends the pause and refuses the callers that wait for it. */
export function resume(draft: ReplicationDraft): void {
  const { pause: known } = leadingOf(draft);
  if (known === null) return;
  const error = { code: 'unavailable', detail: 'the pause of the shard has ended', retryAfterMs: 1000 } as const;
  for (const caller of known.waiting) refuse(draft, caller, error);
  changeLeading(draft, { pause: null });
}

/** Answers callers of a pause once no write is under way, and ends a pause whose time is over. Runs at the end of a leader's step. */
export function drivePause(draft: ReplicationDraft): void {
  const { issued, pause: known, pending } = leadingOf(draft);
  if (known === null) return;
  if (draft.state.ticks >= known.until) {
    resume(draft);
    return;
  }
  if (known.waiting.length === 0 || issued.length > 0 || pending.length > 0) return;
  for (const caller of known.waiting) answer(draft, caller, true);
  changeLeading(draft, { pause: { ...known, waiting: [] } });
}

/** A replica that is to lead finds the end of its own log and, after a start, whether its view of the cluster is up to date. */

import type { LogTag } from '../../protocols/model/shard-log.js';
import { nextNumber, type ReplicationDraft, setRole } from './draft.js';
import { becomeLeading } from './leading.js';
import type { ShardAssignment } from './messages.js';
import { startSyncing } from './syncing.js';

/** Starts to locate the own log. delayTicks: 0 to begin now. */
export function startLocating(draft: ReplicationDraft, delayTicks: number): void {
  const { assignment, openedIn, ticks } = draft.state;
  const run = nextNumber(draft);
  // Everything is known of a term that began after this start (Log-L5).
  const barrier = assignment?.term !== openedIn;
  setRole(draft, { kind: 'Locating', run, last: null, barrier, retryAt: delayTicks === 0 ? null : ticks + delayTicks });
  if (delayTicks === 0) ask(draft);
}

export function locateAgain(draft: ReplicationDraft): void {
  const { role, ticks } = draft.state;
  if (role.kind !== 'Locating' || role.retryAt === null || ticks < role.retryAt) return;
  setRole(draft, { ...role, run: nextNumber(draft), retryAt: null });
  ask(draft);
}

export function located(draft: ReplicationDraft, found: { readonly last?: LogTag; readonly barrier?: true }): void {
  const { assignment, role } = draft.state;
  if (role.kind !== 'Locating' || assignment === null) return;
  const next = { ...role, ...found };
  setRole(draft, next);
  if (next.last === null || !next.barrier) return;
  lead(draft, next.last, assignment);
}

function lead(draft: ReplicationDraft, last: LogTag, { term }: ShardAssignment): void {
  const { state } = draft;
  if (last.term > term || state.heard > term) {
    // A later leader wrote here: the agreed state will name it.
    state.heard = Math.max(state.heard, last.term);
    setRole(draft, { kind: 'Following' });
    return;
  }
  // A replica with entries of this term led it already: it has everything before them, and no other replica has led since.
  if (last.term === term) becomeLeading(draft, last, new Map());
  else startSyncing(draft, last);
}

function ask(draft: ReplicationDraft): void {
  const { role } = draft.state;
  if (role.kind !== 'Locating') return;
  if (role.last === null) draft.effects.push({ kind: 'locate', run: role.run });
  if (!role.barrier) draft.effects.push({ kind: 'barrier', run: role.run });
}

/** Writes on the leader, which logs them on its own disk first. */

import { type ErrorFacts, outcomeOf } from '../../protocols/errors.js';
import { invariant } from '../../protocols/invariant.js';
import { type LogTag, type ShardEntry, TERM_GAP } from '../../protocols/model/shard-log.js';
import { assignmentOf, changeLeading, type InputOf, leadingOf, nextNumber, notLeading, type ReplicationDraft, refuse } from './draft.js';
import { entryAt } from './entry-window.js';
import { WRITE_BYTES_MAX, WRITES_MAX } from './figures.js';
import { requiredChannels } from './leading.js';
import type { WriteInput } from './messages.js';
import { withRecent } from './recent.js';
import { serving } from './required.js';
import type { IssuedWrite, Leading, LoggedWrite } from './state.js';

export function write(draft: ReplicationDraft, input: WriteInput): void {
  const error = refused(draft, input);
  if (error !== null) {
    refuse(draft, input.caller, error);
    return;
  }
  const role = leadingOf(draft);
  const number = nextNumber(draft);
  const bytes = input.operations.reduce((sum, operation) => sum + operation.byteLength, 0);
  const issued: IssuedWrite = { write: number, input, bytes, result: null };
  changeLeading(draft, { issued: [...role.issued, issued], bytes: role.bytes + bytes });
  const { assignment, self } = draft.state;
  const as = { peer: self, term: assignment?.term ?? 0, indexAfter: role.indexAfter };
  draft.effects.push({ kind: 'logWrite', run: role.run, write: number, as, input });
}

/** Refuses a write because another replica leads, or none does. */
export function refuseWrite(draft: ReplicationDraft, { caller }: WriteInput): void {
  const leader = draft.state.assignment?.leader ?? null;
  const detail = leader === null ? 'no replica of the shard is active' : `this replica does not lead the shard now, peer ${leader} should`;
  refuse(draft, caller, notLeading(detail));
}

function refused(draft: ReplicationDraft, { isCopy }: WriteInput): ErrorFacts | null {
  const role = leadingOf(draft);
  const assignment = assignmentOf(draft);
  if (role.pause !== null) return notLeading('the shard is about to get another leader');
  const active = serving(assignment);
  if (active < assignment.writeFactor && isCopy !== true) {
    const detail = `active replicas of the shard: ${active}, write_consistency_factor: ${assignment.writeFactor}: nothing was written to it`;
    return { code: 'unavailable', detail, retryAfterMs: 1000 };
  }
  if (role.issued.length + role.pending.length >= WRITES_MAX || role.bytes >= WRITE_BYTES_MAX) {
    return {
      code: 'busy',
      detail: `${role.issued.length + role.pending.length} writes wait for replicas of the shard`,
      retryAfterMs: 1000,
    };
  }
  // The gap of indexes before those of this term does not count.
  if (role.last.index - Math.max(doneIndex(draft, role), role.indexAfter) > TERM_GAP / 2) {
    return { code: 'busy', detail: 'a replica of the shard is too far behind', retryAfterMs: 1000 };
  }
  return null;
}

/** Takes results of the own replica in the order of the requests, so that the known entries have no gaps. */
export function logged(draft: ReplicationDraft, { entries, failure, write: number }: InputOf<'logged'>): void {
  noteResult(draft, number, { entries, failure });
  takeResults(draft);
}

/**
 * Takes a failed write of the own replica. Returns whether the own log has to be located again: it may have the entries (`unknown`), it has
 * entries of a later term (`conflict`), or it is not open (`unavailable`). Otherwise nothing of the write was logged.
 */
export function logFailed(draft: ReplicationDraft, { error, write: number }: InputOf<'logFailed'>): boolean {
  if (outcomeOf(error) === 'unknown' || error.code === 'conflict' || error.code === 'unavailable') return true;
  noteResult(draft, number, { error });
  takeResults(draft);
  return false;
}

function noteResult(draft: ReplicationDraft, number: number, result: IssuedWrite['result']): void {
  const issued = leadingOf(draft).issued.map((each) => (each.write === number ? { ...each, result } : each));
  changeLeading(draft, { issued });
}

function takeResults(draft: ReplicationDraft): void {
  const role = leadingOf(draft);
  const count = role.issued.findIndex(({ result }) => result === null);
  const done = count === -1 ? role.issued : role.issued.slice(0, count);
  const added: ShardEntry[] = [];
  const pending: LoggedWrite[] = [];
  let bytes = role.bytes;
  for (const { bytes: own, input, result } of done) {
    if (result === null) break;
    if ('error' in result) {
      bytes -= own;
      refuse(draft, input.caller, result.error);
      continue;
    }
    checkTags(draft, added.at(-1)?.tag ?? role.last, result.entries);
    added.push(...result.entries);
    const index = result.entries.at(-1)?.tag.index ?? 0;
    pending.push({ input, bytes: own, numbers: result.entries.map(({ tag }) => tag.index), index, failure: result.failure });
  }
  const last: LogTag = added.at(-1)?.tag ?? role.last;
  const recent = withRecent(role.recent, added, doneIndex(draft, role));
  changeLeading(draft, { issued: role.issued.slice(done.length), pending: [...role.pending, ...pending], bytes, last, recent });
}

/** Asserts that the new operations have the leader's term and ascending indexes after the leader's first one. */
function checkTags(draft: ReplicationDraft, last: LogTag, entries: readonly ShardEntry[]): void {
  const { indexAfter } = leadingOf(draft);
  const { term } = assignmentOf(draft);
  let before = last.index;
  for (const { tag } of entries) {
    const isNext = tag.index > before && tag.index > indexAfter;
    invariant(isNext, 'Log-L4', () => `operation ${tag.index} follows ${before}, of a leader that begins after ${indexAfter}`);
    invariant(tag.term === term, 'Log-L2', () => `operation ${tag.index} has term ${tag.term}, its leader ${term}`);
    before = tag.index;
  }
}

/** Frees the entries that every follower has, without waiting for the next write. */
export function forgetDone(draft: ReplicationDraft): void {
  const role = leadingOf(draft);
  const oldest = entryAt(role.recent.entries, 0);
  if (oldest === undefined) return;
  const index = doneIndex(draft, role);
  if (oldest.tag.index <= index) changeLeading(draft, { recent: withRecent(role.recent, [], index) });
}

/** The highest index that every streaming follower has; the end of the log if no follower is required. */
function doneIndex(draft: ReplicationDraft, role: Leading): number {
  let index = Number.POSITIVE_INFINITY;
  for (const channel of role.channels.values()) {
    if (channel.phase.kind === 'Streaming') index = Math.min(index, channel.phase.logged.index);
  }
  if (index === Number.POSITIVE_INFINITY) return requiredChannels(draft, role).length === 0 ? role.last.index : role.recent.after.index;
  return index;
}

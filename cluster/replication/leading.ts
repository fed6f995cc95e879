/** The leader's role: its channels follow the agreed state, and writes that are on every required replica are acknowledged. */

import { invariant } from '../../protocols/invariant.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import { type LogTag, TERM_GAP } from '../../protocols/model/shard-log.js';
import { assignmentOf, changeLeading, leadingOf, nextNumber, notLeading, type ReplicationDraft, refuse, setRole } from './draft.js';
import { EMPTY_WINDOW } from './entry-window.js';
import { endChannel } from './jobs.js';
import { inheritedTargets, isAgreedRequired, isRequired, isTarget, mustApply, othersOf, serving } from './required.js';
import { type Channel, type Leading, type LoggedWrite, newChannel } from './state.js';

/** Starts to lead. last: end of the own log. positions: ends of other replicas' logs, as far as they are known. */
export function becomeLeading(draft: ReplicationDraft, last: LogTag, positions: ReadonlyMap<PeerId, LogTag>): void {
  const { state } = draft;
  for (const [peer, { index }] of positions)
    invariant(index <= last.index, 'Log-L4', () => `it is to lead from ${last.index} on, and peer ${peer} has ${index}`);
  const inherited = new Set(inheritedTargets(state).filter((peer) => !state.required.has(peer)));
  state.required = new Set([...state.required, ...inherited]);
  const channels = new Map<PeerId, Channel>();
  for (const peer of othersOf(state)) {
    if (!isRequired(state, peer)) continue;
    const channel = newChannel(peer, state.assignment?.since.get(peer) ?? 0, positions.get(peer) ?? null);
    channels.set(peer, { ...channel, inherited: inherited.has(peer) });
  }
  const after = indexAfter(last, assignmentOf(draft).term);
  invariant(after >= last.index, 'Log-L4', () => `it is to give indexes after ${after}, and its log ends with ${last.index}`);
  setRole(draft, {
    kind: 'Leading',
    run: nextNumber(draft),
    last,
    indexAfter: after,
    recent: { after: last, entries: EMPTY_WINDOW, bytes: 0 },
    issued: [],
    pending: [],
    bytes: 0,
    channels,
    pause: null,
  });
}

/**
 * The index after which a new leader numbers its operations: beyond everything that an earlier leader may have written alone, from this
 * position or another one. That is two multiples of TERM_GAP for each term that it knows nothing of. A leader is never more than half a
 * TERM_GAP ahead of what all replicas have, so the operations of terms up to k end below floor(last) + 2 (k - last.term) + 1.5 multiples.
 * Before the first leader no replica has written, and a re-elected leader already has every entry of its term.
 */
export function indexAfter(last: LogTag, term: number): number {
  if (term <= 1 || last.term === term) return last.index;
  return (Math.floor(last.index / TERM_GAP) + 2 * (term - last.term)) * TERM_GAP - 1;
}

/** Opens channels to replicas that are required now, and ends those to replicas that get no entries any more. */
export function takeAssignment(draft: ReplicationDraft): void {
  const { state } = draft;
  const assignment = assignmentOf(draft);
  const role = leadingOf(draft);
  const channels = new Map<PeerId, Channel>();
  for (const peer of othersOf(state)) {
    const since = assignment.since.get(peer) ?? 0;
    const known = role.channels.get(peer);
    if (known !== undefined && known.since === since && (isAgreedRequired(assignment, peer) || isTarget(assignment, peer))) {
      channels.set(peer, revived(known, isRequired(state, peer)));
    } else if (isRequired(state, peer)) channels.set(peer, newChannel(peer, since, null));
  }
  changeLeading(draft, { channels });
  for (const channel of role.channels.values()) {
    if (channels.get(channel.peer)?.since === channel.since) continue;
    endChannel(draft, channel, notLeading(`peer ${channel.peer} has no replica that is written to any more`));
  }
  state.required = new Set([...state.required].filter((peer) => channels.has(peer) && !isAgreedRequired(assignment, peer)));
}

/** Acknowledges writes that are on every required replica. A write that still waits does not hold later ones up. */
export function acknowledge(draft: ReplicationDraft): void {
  const role = leadingOf(draft);
  const waitedFor = requiredChannels(draft, role);
  const waiting: LoggedWrite[] = [];
  let bytes = role.bytes;
  for (const write of role.pending) {
    if (!waitedFor.every((channel) => isExcused(draft, channel) || hasWrite(draft, channel, write))) {
      waiting.push(write);
      continue;
    }
    bytes -= write.bytes;
    answer(draft, write, waitedFor.filter((channel) => isExcused(draft, channel)).length);
  }
  if (waiting.length < role.pending.length) changeLeading(draft, { pending: waiting, bytes });
}

/** Channels that acknowledgements wait for; null for a required replica without a channel. */
export function requiredChannels(draft: ReplicationDraft, role: Leading): (Channel | null)[] {
  return othersOf(draft.state)
    .filter((peer) => isRequired(draft.state, peer))
    .map((peer) => role.channels.get(peer) ?? null);
}

function hasWrite(draft: ReplicationDraft, channel: Channel | null, { input, index }: LoggedWrite): boolean {
  if (channel === null || channel.phase.kind !== 'Streaming') return false;
  const { applied, logged } = channel.phase;
  if (logged.index < index) return false;
  return input.until === 'logged' || !mustApply(draft.state, channel.peer) || applied >= index;
}

/** Whether acknowledgements go on without this replica for now (Log-L9). */
function isExcused({ state }: ReplicationDraft, channel: Channel | null): boolean {
  return channel !== null && channel.excusedUntil !== null && state.ticks < channel.excusedUntil;
}

/** Acknowledges a write, or reports too few replicas. excused: number of required replicas that may lack the write. */
function answer(draft: ReplicationDraft, { failure, input, numbers }: LoggedWrite, excused: number): void {
  const { ahead, assignment } = draft.state;
  const isNoted = ahead.isAhead === true && ahead.writing !== false;
  invariant(excused === 0 || isNoted, 'Log-L9', `${excused} replicas may lack what is acknowledged, and the disk does not say so`);
  const left = assignment === null ? 0 : serving(assignment) - excused;
  const factor = input.isCopy === true ? 1 : (assignment?.writeFactor ?? 1);
  if (left < factor) {
    const detail =
      `the write is on ${left} active ${left === 1 ? 'replica' : 'replicas'} of the shard, and write_consistency_factor asks for ${factor}: ` +
      'send it again when more replicas are active';
    refuse(draft, input.caller, { code: 'unavailable', detail, retryAfterMs: 1000, outcome: 'unknown' });
    return;
  }
  if (excused > 0 && input.waitsForAll === true) {
    const detail = `a migration waits for every active replica of the shard, and ${excused} may lack what it has written: it tries again`;
    refuse(draft, input.caller, { code: 'unavailable', detail, retryAfterMs: 1000, outcome: 'unknown' });
    return;
  }
  draft.effects.push({ kind: 'acknowledge', input, numbers, failure });
}

/** The channel, probing again if it was idle and its replica is required now. */
function revived(channel: Channel, required: boolean): Channel {
  return required && channel.phase.kind === 'Idle' ? { ...channel, phase: { kind: 'Probing', position: null } } : channel;
}

/** What a replica does about its part in the shard's log: `step(state, input) -> {state, effects}`. No clock, no disk, no network. */

import type { ErrorFacts } from '../../protocols/errors.js';
import { answered, callFailed, fetched, fetchFailed, readDone, readFailed } from './answers.js';
import { driveAll, excuse } from './channels.js';
import { beginStep, type Draft, leftOpen, notLeading, type ReplicationStep, refuse, setRole } from './draft.js';
import { attach, compare, endChannel, fill, release, require } from './jobs.js';
import { takeAssignment } from './leading.js';
import { locateAgain, located, startLocating } from './locating.js';
import type { HeardCall, ReplicationInput, ShardAssignment } from './messages.js';
import { drivePause, pause, resume } from './pausing.js';
import { isAgreedRequired } from './required.js';
import type { ReplicationState } from './state.js';
import { driveSync, syncAnswered, syncCallFailed, tookOver } from './syncing.js';
import { logFailed, logged, write } from './writing.js';

/** What the own replica or consensus failed at is tried again after it. */
const RETRY_TICKS = 3;

export function step(state: ReplicationState, input: ReplicationInput): ReplicationStep {
  const draft = beginStep(state);
  take(draft, input);
  const { role } = draft.state;
  if (role.kind === 'Leading') {
    driveAll(draft);
    drivePause(draft);
  }
  if (role.kind === 'Syncing') driveSync(draft);
  if (needsTicks(draft.state) && !draft.state.ticking) {
    draft.state.ticking = true;
    draft.effects.push({ kind: 'tickLater' });
  }
  return { state: draft.state, effects: draft.effects };
}

/** Whether something waits for time to pass. */
export function needsTicks({ role, ticks }: Pick<ReplicationState, 'role' | 'ticks'>): boolean {
  switch (role.kind) {
    case 'Closed':
    case 'Following':
      return false;
    case 'Locating':
      return role.retryAt !== null;
    case 'Syncing':
      return true;
    case 'Leading':
      if (role.pause !== null) return true;
      return [...role.channels.values()].some(({ busy, phase, retryAt }) => {
        return busy !== null || phase.kind === 'Broken' || retryAt > ticks;
      });
    default:
      return role satisfies never;
  }
}

function take(draft: Draft, input: ReplicationInput): void {
  if ('run' in input && !isOfRole(draft.state, input.run)) return;
  const { state } = draft;
  switch (input.kind) {
    case 'opened':
      if (state.role.kind === 'Closed') takeRole(draft);
      break;
    case 'closed':
      standDown(draft, `the replica cannot be used: ${input.error.detail}`);
      setRole(draft, { kind: 'Closed' });
      break;
    case 'assigned':
      state.self = input.self;
      assign(draft, input.assignment, input.isSettled);
      break;
    case 'tick':
      state.ticks += 1;
      state.ticking = false;
      if (state.role.kind === 'Locating') locateAgain(draft);
      break;
    case 'write':
      write(draft, input);
      break;
    case 'missing':
      if (state.role.kind === 'Leading') draft.effects.push({ ...input, kind: 'findMissing' });
      else refuse(draft, input.caller, refusal(state));
      break;
    case 'called':
      answerCall(draft, input.caller, input.call);
      break;
    case 'attach':
    case 'compare':
    case 'fill':
    case 'require':
    case 'pause':
      if (state.role.kind !== 'Leading') refuse(draft, input.caller, refusal(state));
      else if (input.kind === 'attach') attach(draft, input);
      else if (input.kind === 'compare') compare(draft, input);
      else if (input.kind === 'fill') fill(draft, input);
      else if (input.kind === 'pause') pause(draft, input.caller);
      else require(draft, input);
      break;
    case 'release':
      release(draft, input.peer);
      break;
    case 'resume':
      if (state.role.kind === 'Leading') resume(draft);
      break;
    case 'located':
      located(draft, { last: input.last });
      break;
    case 'excused':
      excuse(draft, input.peer);
      break;
    case 'barrierPassed':
      assign(draft, input.assignment, true);
      // It may have told of another leader.
      if (isOfRole(state, input.run)) located(draft, { barrier: true });
      break;
    case 'locateFailed':
    case 'barrierFailed':
      if (state.role.kind === 'Locating') setRole(draft, { ...state.role, retryAt: state.ticks + RETRY_TICKS });
      draft.effects.push({ kind: 'log', level: 'info', text: `it cannot lead yet: ${input.error.detail}` });
      break;
    case 'logged':
      logged(draft, input.write, { entries: input.entries, failure: input.failure });
      break;
    case 'logFailed':
      if (logFailed(draft, input.write, input.error)) lookAgain(draft, input.error);
      break;
    case 'tookOver':
      tookOver(draft, input.last);
      break;
    case 'takeOverFailed':
      lookAgain(draft, input.error);
      break;
    case 'answered':
      if (state.role.kind === 'Syncing') syncAnswered(draft, input);
      else answered(draft, input);
      break;
    case 'callFailed':
      if (state.role.kind === 'Syncing') syncCallFailed(draft, input);
      else callFailed(draft, input);
      break;
    case 'readDone':
      readDone(draft, input);
      break;
    case 'readFailed':
      readFailed(draft, input);
      break;
    case 'fetched':
      fetched(draft, input);
      break;
    case 'fetchFailed':
      fetchFailed(draft, input);
      break;
    default:
      input satisfies never;
  }
}

function isOfRole({ role }: ReplicationState, run: number): boolean {
  return 'run' in role && role.run === run;
}

function assign(draft: Draft, assignment: ShardAssignment | null, isSettled: boolean): void {
  const { state } = draft;
  const before = state.assignment;
  state.assignment = assignment;
  if (assignment === null) {
    standDown(draft, 'the shard is gone');
    return;
  }
  if (!state.isSettled) state.openedIn = assignment.term;
  state.isSettled ||= isSettled;
  if (before?.term !== assignment.term) state.required = new Set();
  if (state.role.kind === 'Closed') return;
  if (before?.term === assignment.term && before.leader === assignment.leader && state.role.kind !== 'Following') {
    if (state.role.kind === 'Leading') takeAssignment(draft);
    return;
  }
  standDown(draft, `the shard's leader changes to peer ${assignment.leader ?? 'none'}`);
  takeRole(draft);
}

/** The role that the agreed state gives to an open replica. */
function takeRole(draft: Draft, delayTicks = 0): void {
  const { assignment, heard, self } = draft.state;
  const leads = assignment !== null && assignment.leader === self && self !== 0 && heard <= assignment.term;
  if (leads) startLocating(draft, delayTicks);
  else setRole(draft, { kind: 'Following' });
}

/** What is under way may be carried out by whoever leads next. */
function standDown(draft: Draft, reason: string): void {
  const { role } = draft.state;
  if (role.kind === 'Closed') return;
  if (role.kind === 'Leading') {
    for (const { input } of role.issued) refuse(draft, input.caller, leftOpen(reason));
    for (const { input } of role.pending) refuse(draft, input.caller, leftOpen(reason));
    for (const channel of role.channels.values()) endChannel(draft, channel, notLeading(reason));
    for (const caller of role.pause?.waiting ?? []) refuse(draft, caller, notLeading(reason));
  }
  setRole(draft, { kind: 'Following' });
}

/** Nobody knows what the own log has: it is asked again. */
function lookAgain(draft: Draft, error: ErrorFacts): void {
  draft.effects.push({ kind: 'log', level: 'warn', text: `it looks at its own log again: ${error.detail}` });
  standDown(draft, error.detail);
  takeRole(draft, RETRY_TICKS);
}

/** Log-L2: whoever calls with a lower term than that of a leader that is known leads no more. */
function answerCall(draft: Draft, caller: number, call: HeardCall): void {
  const { state } = draft;
  const known = Math.max(state.heard, state.assignment?.term ?? 0);
  // A position promises nothing, and whoever is late finds out by it.
  if (call.kind !== 'position' && call.kind !== 'entriesAfter' && call.term < known) {
    refuse(draft, caller, { code: 'conflict', detail: `the shard is in term ${known}, and term ${call.term} is over` });
    return;
  }
  if (call.term > state.heard) {
    state.heard = call.term;
    const { role } = state;
    if (role.kind !== 'Closed' && role.kind !== 'Following' && call.term > (state.assignment?.term ?? 0)) {
      standDown(draft, `a leader of term ${call.term} has called`);
    }
  }
  if (state.role.kind === 'Closed') refuse(draft, caller, { code: 'unavailable', detail: 'the replica is not open', retryAfterMs: 1000 });
  else if (isForTargets(call) && state.assignment !== null && isAgreedRequired(state.assignment, state.self))
    refuse(draft, caller, {
      code: 'unavailable',
      detail: 'the replica waits for no transfer, as far as its node knows',
      retryAfterMs: 100,
    });
  else draft.effects.push({ kind: 'carryOut', caller, call });
}

/** What a transfer begins with would undo what is acknowledged where it comes late, when the replica is Active again. */
function isForTargets({ kind }: HeardCall): boolean {
  return kind === 'resetLog' || kind === 'rewindLog' || kind === 'applySettings';
}

function refusal({ assignment, role, self }: ReplicationState): ErrorFacts {
  if (role.kind === 'Closed') return notLeading('the replica is not open');
  if (assignment?.leader === self) return notLeading('the replica is about to lead, and finds out what the others have');
  return notLeading(`peer ${assignment?.leader ?? 'none'} leads the shard`);
}

/** The step of a replica's part in the log of its shard: `step(state, input) -> {state, effects}`. No clock, no disk, no network. */

import type { ErrorFacts } from '../../protocols/errors.js';
import { invariant } from '../../protocols/invariant.js';
import { decideInRow, type Row } from '../../protocols/machine.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import { aheadNoted, deathProposed, driveNote, leaderJudged, leaderNoted, noteFailed, syncingJudged, waitsForNote } from './alone.js';
import { answered, callFailed, fetched, fetchFailed, readDone, readFailed } from './answers.js';
import { driveAll } from './channels.js';
import {
  beginStep,
  type InputOf,
  leftOpen,
  log,
  notLeading,
  type ReplicationDraft,
  type ReplicationStep,
  refuse,
  setRole,
} from './draft.js';
import { RETRY_TICKS } from './figures.js';
import { attach, compare, endChannel, fill, release, require } from './jobs.js';
import { takeAssignment } from './leading.js';
import { locateAgain, located, startLocating } from './locating.js';
import type { HeardCall, LogCaller, ReplicationInput, ShardAssignment } from './messages.js';
import { drivePause, pause, resume } from './pausing.js';
import { isAgreedRequired } from './required.js';
import type { Leading, ReplicationRole, ReplicationState } from './state.js';
import { driveSync, syncAnswered, syncCallFailed, tookOver } from './syncing.js';
import { logFailed, logged, refuseWrite, write } from './writing.js';

export function stepReplication(state: ReplicationState, input: ReplicationInput): ReplicationStep {
  // Drop answers that an earlier role asked for (Log-L13).
  if ('run' in input && !isOfRole(state, input.run)) return { state, effects: [] };
  const draft = beginStep(state);
  decideInRow<ReplicationInput, ReplicationDraft, void>(REPLICATION_TABLE[state.role.kind], draft, input);
  const { role } = draft.state;
  if (role.kind === 'Leading') {
    driveAll(draft);
    drivePause(draft);
    driveNote(draft);
  }
  if (role.kind === 'Syncing') driveSync(draft);
  if (needsTicks(draft.state) && !draft.state.ticking) {
    draft.state.ticking = true;
    draft.effects.push({ kind: 'tickLater' });
  }
  checkStep(state, draft.state);
  return { state: draft.state, effects: draft.effects };
}

/** Whether the state waits for a tick. */
function needsTicks(state: ReplicationState): boolean {
  const { role, ticks } = state;
  switch (role.kind) {
    case 'Closed':
    case 'Following':
      return false;
    case 'Locating':
      return role.retryAt !== null;
    case 'Syncing':
      return true;
    case 'Leading':
      if (role.pause !== null || waitsForNote(state)) return true;
      return [...role.channels.values()].some(({ busy, phase, retryAt }) => {
        return busy !== null || phase.kind === 'Broken' || retryAt > ticks;
      });
    default:
      return role satisfies never;
  }
}

type Inputs<Kind extends ReplicationInput['kind']> = Pick<Row<ReplicationInput, ReplicationDraft, void>, Kind>;

/** Inputs that only a leader accepts: all other roles refuse them. */
const REFUSE_REQUESTS: Inputs<'write' | 'missing' | 'attach' | 'compare' | 'fill' | 'require' | 'pause' | 'release' | 'resume'> = {
  write: refuseWrite,
  missing: refuseRequest,
  attach: refuseRequest,
  compare: refuseRequest,
  fill: refuseRequest,
  require: refuseRequest,
  pause: refuseRequest,
  release: stay,
  resume: stay,
};

/** Answers to questions that this role has not asked. `step` has dropped answers to earlier roles, so each of these breaks Log-L13. */
const UNASKED_BY_ALL: Inputs<
  | 'located'
  | 'locateFailed'
  | 'barrierPassed'
  | 'barrierFailed'
  | 'logged'
  | 'logFailed'
  | 'tookOver'
  | 'takeOverFailed'
  | 'answered'
  | 'callFailed'
  | 'readDone'
  | 'readFailed'
  | 'fetched'
  | 'fetchFailed'
  | 'aloneJudged'
> = {
  located: unasked,
  locateFailed: unasked,
  barrierPassed: unasked,
  barrierFailed: unasked,
  logged: unasked,
  logFailed: unasked,
  tookOver: unasked,
  takeOverFailed: unasked,
  answered: unasked,
  callFailed: unasked,
  readDone: unasked,
  readFailed: unasked,
  fetched: unasked,
  fetchFailed: unasked,
  aloneJudged: unasked,
};

/** Inputs that every role handles in the same way. */
const OF_EACH: Inputs<'closed' | 'tick' | 'called' | 'aheadNoted' | 'noteFailed' | 'deathProposed'> = {
  closed,
  tick,
  called,
  aheadNoted,
  noteFailed,
  deathProposed,
};

/** The transition table, roles × inputs. */
export const REPLICATION_TABLE: { readonly [Kind in ReplicationRole['kind']]: Row<ReplicationInput, ReplicationDraft, void> } = {
  Closed: {
    ...UNASKED_BY_ALL,
    ...OF_EACH,
    ...REFUSE_REQUESTS,
    opened: takeRole,
    closed: stay,
    assigned: remember,
    called: calledWhileClosed,
  },
  Following: { ...UNASKED_BY_ALL, ...OF_EACH, ...REFUSE_REQUESTS, opened: stay, assigned: assignFollower },
  Locating: {
    ...UNASKED_BY_ALL,
    ...OF_EACH,
    ...REFUSE_REQUESTS,
    opened: stay,
    assigned: assignCandidate,
    tick: tickLocating,
    located: locatedOwn,
    locateFailed: retryLocating,
    barrierPassed,
    barrierFailed: retryLocating,
  },
  Syncing: {
    ...UNASKED_BY_ALL,
    ...OF_EACH,
    ...REFUSE_REQUESTS,
    opened: stay,
    assigned: assignCandidate,
    tookOver,
    takeOverFailed: lookAgain,
    answered: syncAnswered,
    callFailed: syncCallFailed,
    aloneJudged: syncingJudged,
  },
  Leading: {
    ...UNASKED_BY_ALL,
    ...OF_EACH,
    opened: stay,
    assigned: assignLeader,
    write,
    missing: findMissing,
    attach,
    compare,
    fill,
    require,
    pause,
    release,
    resume,
    logged,
    logFailed: lookAgainUnlessRefused,
    answered,
    callFailed,
    readDone,
    readFailed,
    fetched,
    fetchFailed,
    aloneJudged: leaderJudged,
    aheadNoted: leaderNoted,
  },
};

function isOfRole({ role }: Pick<ReplicationState, 'role'>, run: number): boolean {
  return 'run' in role && role.run === run;
}

function stay(): void {}

function unasked(draft: ReplicationDraft, { kind }: ReplicationInput): void {
  invariant(false, 'Log-L13', `a replica that is ${draft.state.role.kind} has asked for nothing that is ${kind}`);
}

function closed(draft: ReplicationDraft, { error }: InputOf<'closed'>): void {
  standDown(draft, `the replica cannot be used: ${error.detail}`);
  setRole(draft, { kind: 'Closed' });
}

function tick(draft: ReplicationDraft): void {
  draft.state.ticks += 1;
  draft.state.ticking = false;
}

function tickLocating(draft: ReplicationDraft): void {
  tick(draft);
  locateAgain(draft);
}

function refuseRequest(
  draft: ReplicationDraft,
  { caller }: InputOf<'missing' | 'attach' | 'compare' | 'fill' | 'require' | 'pause'>,
): void {
  refuse(draft, caller, refusal(draft.state));
}

function findMissing(draft: ReplicationDraft, input: InputOf<'missing'>): void {
  draft.effects.push({ ...input, kind: 'findMissing' });
}

function locatedOwn(draft: ReplicationDraft, { last }: InputOf<'located'>): void {
  located(draft, { last });
}

function barrierPassed(draft: ReplicationDraft, { assignment, run }: InputOf<'barrierPassed'>): void {
  assignCandidate(draft, { assignment, isSettled: true });
  // The assignment may name another leader, which ends this role.
  if (isOfRole(draft.state, run)) located(draft, { barrier: true });
}

function retryLocating(draft: ReplicationDraft, { error }: InputOf<'locateFailed' | 'barrierFailed'>): void {
  const { role, ticks } = draft.state;
  if (role.kind === 'Locating') setRole(draft, { ...role, retryAt: ticks + RETRY_TICKS });
  log(draft, 'info', `it cannot lead yet: ${error.detail}`);
}

type Assigned = Pick<InputOf<'assigned'>, 'assignment' | 'isSettled'> & Partial<Pick<InputOf<'assigned'>, 'self'>>;

/** Takes over the assignment that this node knows now. Returns the one before. */
function remember(draft: ReplicationDraft, { assignment, isSettled, self }: Assigned): ShardAssignment | null {
  const { state } = draft;
  const before = state.assignment;
  state.self = self ?? state.self;
  state.assignment = assignment;
  if (assignment === null) return before;
  if (!state.isSettled) state.openedIn = assignment.term;
  state.isSettled ||= isSettled;
  if (before?.term !== assignment.term) state.required = new Set();
  return before;
}

function assignFollower(draft: ReplicationDraft, input: Assigned): void {
  remember(draft, input);
  if (input.assignment === null) return;
  takeRole(draft);
}

function assignCandidate(draft: ReplicationDraft, input: Assigned): void {
  const before = remember(draft, input);
  if (!leadsOn(before, input.assignment)) changeRole(draft, input.assignment);
}

function assignLeader(draft: ReplicationDraft, input: Assigned): void {
  const before = remember(draft, input);
  if (leadsOn(before, input.assignment)) takeAssignment(draft);
  else changeRole(draft, input.assignment);
}

function leadsOn(before: ShardAssignment | null, now: ShardAssignment | null): boolean {
  return before !== null && now !== null && before.term === now.term && before.leader === now.leader;
}

function changeRole(draft: ReplicationDraft, assignment: ShardAssignment | null): void {
  if (assignment === null) {
    standDown(draft, 'the shard is gone');
    return;
  }
  standDown(draft, `the shard's leader changes to peer ${assignment.leader ?? 'none'}`);
  takeRole(draft);
}

/** Takes the role that the agreed state gives to an open replica. */
function takeRole(draft: ReplicationDraft): void {
  takeRoleAfter(draft, 0);
}

function takeRoleAfter(draft: ReplicationDraft, delayTicks: number): void {
  const { assignment, heard, self } = draft.state;
  const leads = assignment !== null && assignment.leader === self && heard <= assignment.term;
  if (leads) startLocating(draft, delayTicks);
  else setRole(draft, { kind: 'Following' });
}

/** Stops leading. The outcome of writes under way is unknown: the next leader may take them over. */
function standDown(draft: ReplicationDraft, reason: string): void {
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

function lookAgainUnlessRefused(draft: ReplicationDraft, input: InputOf<'logFailed'>): void {
  if (logFailed(draft, input)) lookAgain(draft, input);
}

/** Locates the own log again after an error that leaves its end unknown. */
function lookAgain(draft: ReplicationDraft, { error }: { readonly error: ErrorFacts }): void {
  log(draft, 'warn', `it looks at its own log again: ${error.detail}`);
  standDown(draft, error.detail);
  takeRoleAfter(draft, RETRY_TICKS);
}

function called(draft: ReplicationDraft, { call, caller }: InputOf<'called'>): void {
  const { state } = draft;
  if (!hear(draft, caller, call)) return;
  if (isForTargets(call) && state.assignment !== null && isAgreedRequired(state.assignment, state.self)) {
    const detail = 'the replica waits for no transfer, as far as its node knows';
    refuse(draft, caller, { code: 'unavailable', detail, retryAfterMs: 100 });
    return;
  }
  if (call.kind === 'resetLog' || call.kind === 'rewindLog') state.resets += 1;
  draft.effects.push({ kind: 'carryOut', caller, call });
}

function calledWhileClosed(draft: ReplicationDraft, { call, caller }: InputOf<'called'>): void {
  if (!hear(draft, caller, call)) return;
  refuse(draft, caller, { code: 'unavailable', detail: 'the replica is not open', retryAfterMs: 1000 });
}

/**
 * Takes over the caller's term, or refuses a caller whose term is lower than the highest known one (Log-L2). Returns false if the call was
 * refused.
 */
function hear(draft: ReplicationDraft, caller: LogCaller, call: HeardCall): boolean {
  const { state } = draft;
  const agreed = state.assignment?.term ?? 0;
  const known = Math.max(state.heard, agreed);
  // Positions and entries are told to any caller: they promise nothing, and a late leader learns from them that its term is over.
  if (call.kind !== 'position' && call.kind !== 'entriesAfter' && call.term < known) {
    refuse(draft, caller, { code: 'conflict', detail: `the shard is in term ${known}, and term ${call.term} is over` });
    return false;
  }
  if (call.term <= state.heard) return true;
  state.heard = call.term;
  const mayLead = state.role.kind !== 'Closed' && state.role.kind !== 'Following';
  if (mayLead && call.term > agreed) standDown(draft, `a leader of term ${call.term} has called`);
  return true;
}

/**
 * Whether the call is allowed only on the target of a transfer. If it came late, when the replica is Active again, it would undo
 * acknowledged operations.
 */
function isForTargets({ kind }: HeardCall): boolean {
  return kind === 'resetLog' || kind === 'rewindLog' || kind === 'applySettings';
}

function refusal({ assignment, role, self }: ReplicationState): ErrorFacts {
  if (role.kind === 'Closed') return notLeading('the replica is not open');
  if (assignment?.leader === self) return notLeading('the replica is about to lead, and finds out what the others have');
  return notLeading(`peer ${assignment?.leader ?? 'none'} leads the shard`);
}

/** Asserts what every step promises, whatever its input. */
function checkStep(before: ReplicationState, after: ReplicationState): void {
  const { assignment, heard, role, self } = after;
  invariant(heard >= before.heard, 'Log-L2', () => `term ${heard} is heard after term ${before.heard}`);
  if (role.kind === 'Closed' || role.kind === 'Following') return;
  invariant(assignment?.leader === self, 'Log-L2', () => `peer ${self} is ${role.kind}, and ${assignment?.leader} leads`);
  invariant(heard <= assignment.term, 'Log-L2', () => `it is ${role.kind} in term ${assignment.term}, and has heard term ${heard}`);
  if (role.kind === 'Leading') checkLeader(before, self, role);
}

function checkLeader(before: ReplicationState, self: PeerId, { channels, last, pending, recent, run }: Leading): void {
  invariant(recent.after.index <= last.index, 'Log-L1', () => `entries after ${recent.after.index} of a log that ends with ${last.index}`);
  const waiting = pending.at(-1)?.index ?? 0;
  invariant(waiting <= last.index, 'Log-L3', () => `operation ${waiting} waits for others, and the own log ends with ${last.index}`);
  invariant(!channels.has(self), 'Log-L7', 'a leader has a channel to itself');
  if (before.role.kind === 'Leading' && before.role.run === run) {
    const known = before.role.last;
    invariant(last.index >= known.index && last.term >= known.term, 'Log-L1', () => `the log ends with ${last.index} after ${known.index}`);
  }
  for (const { peer, phase } of channels.values()) {
    if (phase.kind !== 'Streaming') continue;
    const { applied, logged } = phase;
    invariant(applied <= logged.index, 'Log-L7', () => `peer ${peer} has applied ${applied}, and logged ${logged.index}`);
  }
}

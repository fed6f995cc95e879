/**
 * Proposals from their beginning until they are applied. A proposal that may have been lost is proposed again under the same sequence, so
 * that it is applied once; see `ProposedCommand`. An error whose `outcome` is `unknown` leaves it open.
 */

import type { ProposalResult } from '../../../cluster/apply/apply.js';
import { mayTakeLeads } from '../../../cluster/apply/lead-taking.js';
import type { MembershipChange, ProposalOutcome, RefusalReason, RequestId } from '../../../cluster/raft/messages.js';
import { encodeCommand } from '../../../cluster/state/command-codec.js';
import type { ClusterCommand } from '../../../cluster/state/commands.js';
import { type ErrorFacts, errorFacts } from '../../../protocols/errors.js';
import type { Membership } from '../../../protocols/model/cluster.js';
import type { OwnProposal, ProposalCall, ProposalCaller, ProposalWhat } from '../state.js';
import type { ConsensusDraft } from './draft.js';
import { newReplicasOf, prepare, retryOfRefused, type Submission } from './prepare.js';
import { isLeaderless, noLeader, refusedNow } from './readiness.js';
import { read } from './reads.js';
import { settle } from './settling.js';

/** Ticks until a refused proposal is tried again. */
const RETRY_TICKS = 2;

/**
 * Begins a proposal. isCaughtUp: everything that was committed before the request is executed here. fromTick: the earliest tick of the
 * first try.
 */
export function submit(
  draft: ConsensusDraft,
  submission: Submission,
  caller: ProposalCaller,
  deadlineTick: number,
  { isCaughtUp = false, fromTick = draft.member.ticks }: { readonly isCaughtUp?: boolean; readonly fromTick?: number } = {},
): void {
  const { agreed, calls, identity } = draft.member;
  const refused = isOutside(caller) ? refusedNow(draft.member) : null;
  if (refused !== null) {
    refuseCaller(draft, caller, refused);
    return;
  }
  let operation: ClusterCommand;
  try {
    operation = prepare(submission, agreed, draft.member.settings);
  } catch (error) {
    // The request may be about something that this node has not heard of yet.
    const facts = errorFacts(error);
    if (isCaughtUp || caller.kind !== 'caller' || facts.code === 'unsupported') refuseCaller(draft, caller, facts);
    else read(draft, caller.replyTo, deadlineTick, { kind: 'submit', submission, caller });
    return;
  }
  const sequence = calls.lastSequence + 1;
  const doneBelow = Math.min(sequence, ...calls.proposals.flatMap(({ what }) => (what.kind === 'operation' ? [what.sequence] : [])));
  const bytes = encodeCommand({ origin: identity.peerId, session: identity.starts, sequence, doneBelow, command: operation });
  draft.changeCalls({ lastSequence: sequence });
  add(draft, { kind: 'operation', submission, operation, sequence, bytes }, caller, deadlineTick, fromTick);
}

export function proposeMembership(draft: ConsensusDraft, change: MembershipChange, caller: ProposalCaller, deadlineTick: number): void {
  const refused = isOutside(caller) ? refusedNow(draft.member) : null;
  if (refused !== null) {
    refuseCaller(draft, caller, refused);
    return;
  }
  add(draft, { kind: 'membership', change }, caller, deadlineTick, draft.member.ticks);
}

function add(draft: ConsensusDraft, what: ProposalWhat, caller: ProposalCaller, deadlineTick: number, retryTick: number): void {
  const { calls } = draft.member;
  const call: ProposalCall = { what, caller, deadlineTick, attempt: null, retryTick, uncertain: false };
  draft.changeCalls({ proposals: [...calls.proposals, call] });
  proposeWaiting(draft);
}

/** Gives Raft the proposals that have no try under way. */
export function proposeWaiting(draft: ConsensusDraft): void {
  const { outbox, raft, sessionWrite, ticks } = draft.member;
  if (raft.leader === null || outbox.pending.some(({ number }) => number <= sessionWrite)) return;
  for (const call of draft.member.calls.proposals) {
    // An earlier round of this loop may have ended it.
    if (call.attempt !== null || call.retryTick > ticks || !draft.member.calls.proposals.includes(call)) continue;
    const id = draft.member.calls.lastRequest + 1;
    draft.changeCalls({ lastRequest: id });
    replace(draft, call, { ...call, attempt: { id, accepted: null } });
    const { what } = call;
    const proposal = what.kind === 'operation' ? ({ kind: 'operation', bytes: what.bytes } as const) : what;
    draft.raft({ kind: 'propose', id, proposal });
  }
}

/** Notes the answer of the leader, or of Raft here, to a try. */
export function noteProposed(draft: ConsensusDraft, id: RequestId, outcome: ProposalOutcome): void {
  const call = draft.member.calls.proposals.find(({ attempt }) => attempt?.id === id);
  if (call === undefined) return;
  if (outcome.kind === 'accepted') {
    replace(draft, call, { ...call, attempt: { id, accepted: outcome } });
    // The proposal may have been applied here before this answer came.
    noteAgreed(draft);
    return;
  }
  const { reason } = outcome;
  if (reason === 'tooLarge' || reason === 'membershipInvalid') {
    end(draft, call, (caller) => refuseCaller(draft, caller, refusal(reason)));
    return;
  }
  // `noLeader` also stands for a lost answer.
  const uncertain = call.uncertain || reason === 'noLeader';
  replace(draft, call, { ...call, attempt: null, retryTick: draft.member.ticks + RETRY_TICKS, uncertain });
}

/** Ends this session's proposals that were applied, by their outcomes and their entries' indexes. */
export function finishAll(draft: ConsensusDraft, results: readonly (ProposalResult & { readonly index: number })[]): void {
  for (const { index, outcome, sequence } of results) {
    const call = draft.member.calls.proposals.find(({ what }) => what.kind === 'operation' && what.sequence === sequence);
    if (call === undefined || call.what.kind !== 'operation') continue;
    const { operation, submission } = call.what;
    end(draft, call, (caller) => {
      if (outcome.kind === 'done') {
        const answer = operation.kind === 'deleteCollection' ? outcome.changed : true;
        answerAgreed(draft, caller, call.deadlineTick, index, answer, operation);
        return;
      }
      const { ticks, upkeep } = draft.member;
      const retry = retryOfRefused(submission, outcome.error.reason);
      if (retry !== 'never' && ticks < call.deadlineTick) {
        submit(draft, submission, caller, call.deadlineTick, {
          isCaughtUp: true,
          fromTick: retry === 'atOnce' ? ticks : ticks + RETRY_TICKS,
        });
        return;
      }
      // Activation is tried again after a pause.
      if (caller.kind === 'activation') draft.change({ upkeep: { ...upkeep, activateTick: ticks + RETRY_TICKS } });
      refuseCaller(draft, caller, outcome.error);
    });
  }
}

/** Ends membership changes that are in force, and tries proposals again that should be in the log by now and are not. */
export function noteAgreed(draft: ConsensusDraft): void {
  const { appliedIndex } = draft.member.agreed;
  let lost = false;
  for (const call of draft.member.calls.proposals) {
    const accepted = call.attempt?.accepted ?? null;
    if (accepted === null || accepted.index > appliedIndex) continue;
    if (call.what.kind === 'membership' && holds(call.what.change, draft.member.agreed.membership)) {
      end(draft, call, (caller) => answerAgreed(draft, caller, call.deadlineTick, accepted.index, true, null));
    } else {
      // A snapshot may include the outcome.
      replace(draft, call, { ...call, attempt: null, uncertain: true });
      lost = true;
    }
  }
  if (lost) proposeWaiting(draft);
}

/** Tries all proposals again after a change of leader or term: an earlier leader may have lost them. */
export function tryAllAnew(draft: ConsensusDraft): void {
  const { calls, raft } = draft.member;
  const proposals = calls.proposals.map((call) => {
    const accepted = call.attempt?.accepted ?? null;
    return accepted === null || accepted.term === raft.term
      ? { ...call, retryTick: 0 }
      : { ...call, attempt: null, uncertain: true, retryTick: 0 };
  });
  draft.changeCalls({ proposals });
}

/** Refuses proposals whose time is over. */
export function dropLateProposals(draft: ConsensusDraft): void {
  const { calls, raft, ticks } = draft.member;
  for (const call of calls.proposals) {
    const leaderless = isOutside(call.caller) && isLeaderless(draft.member);
    if (call.deadlineTick > ticks && !leaderless) continue;
    const uncertain = call.uncertain || call.attempt !== null;
    const why: ErrorFacts =
      raft.leader === null
        ? noLeader()
        : { code: 'timeout', detail: 'the cluster did not confirm the change in time: retry, or raise `timeout`' };
    if (uncertain) noteOpen(draft, call);
    const error: ErrorFacts = uncertain ? { code: 'timeout', detail: why.detail } : { ...why, outcome: 'none' };
    end(draft, call, (caller) => refuseCaller(draft, caller, error));
  }
}

function noteOpen(draft: ConsensusDraft, { what }: ProposalCall): void {
  const { calls, identity } = draft.member;
  if (what.kind === 'operation' && mayTakeLeads(what.operation, identity.peerId))
    draft.changeCalls({ lastOpen: Math.max(calls.lastOpen, what.sequence) });
}

/** Whether a membership already has what the change asks for. */
export function holds(change: MembershipChange, membership: Membership): boolean {
  const peerId = 'member' in change ? change.member.peerId : change.peerId;
  const member = membership.find((other) => other.peerId === peerId);
  switch (change.kind) {
    case 'addLearner':
    case 'announce':
      return member !== undefined && member.uri === change.member.uri && member.version === change.member.version;
    case 'promote':
      return member?.voter === true;
    case 'remove':
      return member === undefined;
    default:
      return change satisfies never;
  }
}

/** Whether consensus has a proposal of its own of this kind under way. */
export function isUnderWay({ member }: ConsensusDraft, kind: OwnProposal): boolean {
  return member.calls.proposals.some(({ caller }) => caller.kind === kind);
}

export function refuseCaller(draft: ConsensusDraft, caller: ProposalCaller, error: ErrorFacts): void {
  if ('replyTo' in caller) draft.refuse(caller.replyTo, error);
}

function answerAgreed(
  draft: ConsensusDraft,
  caller: ProposalCaller,
  deadlineTick: number,
  index: number,
  answer: boolean,
  command: ClusterCommand | null,
): void {
  if (caller.kind === 'removal' || caller.kind === 'replacement') draft.acts.afterMark(draft, caller, deadlineTick);
  else if (caller.kind === 'caller') {
    const { replyTo, settles } = caller;
    if (!settles) {
      draft.reply(replyTo, answer);
      return;
    }
    const awaitsReplicas = command !== null && newReplicasOf(command) !== null;
    settle(draft, {
      index,
      replyTo,
      answer,
      deadlineTick,
      collection: command === null ? null : collectionOf(command),
      awaitsReplicas,
    });
  } else if (caller.kind === 'peer') {
    const { clusterId, membership } = draft.member.agreed;
    const { member, replyTo } = caller;
    const answers = {
      joined: { kind: 'joined', clusterId, uri: member.uri, members: membership },
      announced: { kind: 'announced' },
    } as const;
    draft.emit({ kind: 'reply', replyTo, answer: answers[caller.reply] });
  }
}

function collectionOf(command: ClusterCommand): string | null {
  if ('name' in command) return command.name;
  return 'collection' in command ? command.collection : null;
}

/** Whether a caller waits for the proposal, with a deadline. */
function isOutside(caller: ProposalCaller): boolean {
  return 'replyTo' in caller;
}

function refusal(reason: Extract<RefusalReason, 'tooLarge' | 'membershipInvalid'>): ErrorFacts {
  if (reason === 'tooLarge')
    return { code: 'wrongInput', detail: 'the change is too large for one entry of the consensus log: split the request' };
  return { code: 'wrongInput', detail: 'the peer is no longer part of the cluster, or it is the last voter' };
}

function replace(draft: ConsensusDraft, call: ProposalCall, next: ProposalCall): void {
  draft.changeCalls({ proposals: draft.member.calls.proposals.map((other) => (other === call ? next : other)) });
}

function end(draft: ConsensusDraft, call: ProposalCall, answer: (caller: ProposalCaller) => void): void {
  draft.changeCalls({ proposals: draft.member.calls.proposals.filter((other) => other !== call) });
  answer(call.caller);
}

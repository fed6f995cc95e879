/** Rafts with one rule broken on purpose, around the production code: the walk has to find each of them. */

import { entryBytes } from '../../../cluster/raft/log.js';
import type { RaftEffect, RaftInput } from '../../../cluster/raft/messages.js';
import type { RaftState } from '../../../cluster/raft/state.js';
import { stepRaft } from '../../../cluster/raft/step.js';
import { lastIndex } from './invariants.js';
import type { Step } from './network.js';

type Stepped = ReturnType<Step>;

/** By what they do; `story`: the one of `test/scenarios/raft` that finds it, where it takes a rare course of events. */
export const MISTAKES: Readonly<Record<string, { readonly step: Step; readonly story?: string }>> = {
  'sends before it has persisted': { step: (state, input) => sentFirst(stepRaft(state, input)) },
  'forgets on a crash whom it voted for': { step: (state, input) => withoutVote(stepRaft(state, input)), story: 'election-one-vote' },
  'votes twice in a term': { step: (state, input) => stepRaft(votesAgain(state, input), input) },
  'commits entries of earlier terms by counting': { step: (state, input) => committedByCount(stepRaft(state, input)), story: 'figure-8' },
  'appends without a look at the entry before': { step: (state, input) => stepRaft(state, agreeing(state, input)) },
  'lets everyone lead who asks': { step: (state, input) => stepRaft(state, asIfUpToDate(state, input)) },
  'answers reads without asking a quorum': { step: (state, input) => readAtOnce(stepRaft(state, input)), story: 'read-index' },
};

function sentFirst({ state, effects }: Stepped): Stepped {
  const sends = effects.filter((effect) => effect.kind === 'send');
  return { state, effects: [...sends, ...effects.filter((effect) => effect.kind !== 'send')] };
}

function withoutVote({ state, effects }: Stepped): Stepped {
  const forgetful = effects.map((effect): RaftEffect => {
    if (effect.kind !== 'persist' || effect.write.hardState === null) return effect;
    return { ...effect, write: { ...effect.write, hardState: { ...effect.write.hardState, votedFor: null } } };
  });
  return { state, effects: forgetful };
}

function votesAgain(state: RaftState, input: RaftInput): RaftState {
  return input.kind === 'receive' && input.message.kind === 'vote' && state.role.kind === 'Follower' ? { ...state, votedFor: null } : state;
}

/** What the paper's figure 8 warns of: an entry of an earlier term counts as committed once a majority has it. */
function committedByCount({ state, effects }: Stepped): Stepped {
  const { role } = state;
  if (role.kind !== 'Leader') return { state, effects };
  const matches = state.membership
    .filter((member) => member.voter)
    .map(({ peerId }) => (peerId === state.config.peerId ? state.persistedIndex : (role.progress.get(peerId)?.matchIndex ?? 0)))
    .sort((a, b) => b - a);
  const commitIndex = matches[matches.length >> 1] ?? 0;
  const counted = state.log.entries.filter((entry) => entry.index > state.commitIndex && entry.index <= commitIndex);
  if (counted.length === 0 || counted.at(-1)?.term === state.term) return { state, effects };
  const uncommittedBytes = counted.reduce((bytes, entry) => bytes - entryBytes(entry), role.uncommittedBytes);
  return { state: { ...state, commitIndex, role: { ...role, uncommittedBytes } }, effects };
}

function agreeing(state: RaftState, input: RaftInput): RaftInput {
  if (input.kind !== 'receive' || input.message.kind !== 'append' || input.message.prevIndex > lastIndex(state.log)) return input;
  const { prevIndex } = input.message;
  const before = state.log.entries.find((entry) => entry.index === prevIndex);
  return before === undefined ? input : { ...input, message: { ...input.message, prevTerm: before.term } };
}

function asIfUpToDate(state: RaftState, input: RaftInput): RaftInput {
  if (input.kind !== 'receive' || (input.message.kind !== 'vote' && input.message.kind !== 'preVote')) return input;
  return { ...input, message: { ...input.message, lastIndex: lastIndex(state.log), lastTerm: state.term } };
}

/** The leader counts itself as confirmed. */
function readAtOnce({ state, effects }: Stepped): Stepped {
  const { role } = state;
  if (role.kind !== 'Leader') return { state, effects };
  const ready: RaftEffect[] = [];
  const reads = role.reads.filter((read) => {
    if (read.kind === 'verdict' || read.from !== state.config.peerId || read.index === null) return true;
    ready.push({ kind: 'readReady', id: read.id, index: read.index });
    return false;
  });
  return ready.length === 0 ? { state, effects } : { state: { ...state, role: { ...role, reads } }, effects: [...effects, ...ready] };
}

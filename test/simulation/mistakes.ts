/** Rules that nodes break on purpose, outside of their own code, to see that the simulation finds it. */

import type { StepRaft } from '../../actors/consensus/cluster-api.js';
import type { RaftEffect, RaftMessage } from '../../cluster/raft/messages.js';
import type { RaftState } from '../../cluster/raft/state.js';
import { stepRaft } from '../../cluster/raft/step.js';
import type { Mistakes } from './node.js';

type Append = Extract<RaftMessage, { kind: 'append' }>;

/** Writes count as done before they are on disk. */
export const NO_PRE_PERSIST: Mistakes = { acknowledgesEarly: true };

/** Writes of points are answered before the log has them. */
export const EARLY_ANSWERS: Mistakes = { engine: { answersEarly: true } };

/** Replicas pass over an operation now and then. */
export const SKIPPED_TAGS: Mistakes = { engine: { skipsOneIn: 25 } };

/** What is logged and meets a lack of memory or descriptors is passed over, as if that were a fault of the operation (Op-O5). */
export const PASSED_OVER: Mistakes = { engine: { passesOver: true } };

/** Points that are older than a log that has begun anew are changed as if they were not. */
export const TRUSTED_STALE: Mistakes = { engine: { trustsStale: true } };

/** Transfers end before their target has the points. */
export const EMPTY_TARGETS: Mistakes = { engine: { sameDigests: true } };

/** Targets are told to have the writes that come while they are filled, and get none. */
export const LOST_LAST_WRITES: Mistakes = {
  calls: (agreed, to, call) => {
    if (call.kind !== 'append') return null;
    const last = call.entries.at(-1)?.tag;
    const shard = agreed?.collections.get(call.shard.collection)?.shards.get(call.shard.shardId);
    return last === undefined || shard?.replicas.get(to) !== 'Partial' ? null : { kind: 'position', last, base: call.previous };
  },
};

/** Shards that are resharded take copies for written that are lost on their way. */
export const LOST_COPIES: Mistakes = {
  calls: (_agreed, _to, call) => {
    if (call.kind !== 'write' || call.fence === undefined || call.operation !== 'upsertPoints') return null;
    return { kind: 'written', numbers: call.operations.map(() => 1), status: 'completed', usage: null };
  },
};

/** Copies that a shard has got count before it has its part of the ring, and what it has given away counts on. */
export const SHOWN_COPIES: Mistakes = { engine: { hidesNothing: true } };

/** A node that starts has forgotten how far it had applied. */
export const FORGOTTEN_APPLIED: Mistakes = { forgetsApplied: true };

/** One of two goes on alone without knowing that the other one has ended. */
export const SILENCE_AS_END: Mistakes = { silenceRefuses: true };

/** One of two that has acknowledged something alone, or lacks something, is counted on not to have. */
export const EMPTY_PLEDGES: Mistakes = { pledgesAll: true };

/** A peer votes for whoever asks. */
export const DOUBLE_VOTE: Mistakes = {
  raftStep: (state, input) => {
    if (input.kind !== 'receive' || input.message.kind !== 'vote' || state.role.kind === 'Leader') return stepRaft(state, input);
    return stepRaft({ ...state, votedFor: null, leader: null }, input);
  },
};

/**
 * A leader commits whatever a majority has. So that old entries arrive before the one of its own term, each message carries one
 * entry, which is allowed.
 */
export const COMMIT_FROM_OLD_TERM: Mistakes = {
  raftStep: (before, input) => {
    const { state, effects } = stepRaft({ ...before, config: { ...before.config, appendBytesMax: 1 } }, input);
    return withOldCommit(state, effects);
  },
};

function withOldCommit(state: RaftState, effects: readonly RaftEffect[]): ReturnType<StepRaft> {
  if (state.role.kind !== 'Leader') return { state, effects };
  const { progress } = state.role;
  const voters = state.membership.filter((member) => member.voter);
  const matched = voters
    .map(({ peerId }) => (peerId === state.config.peerId ? state.persistedIndex : (progress.get(peerId)?.matchIndex ?? 0)))
    .sort((one, other) => other - one);
  const majority = matched[voters.length >> 1] ?? 0;
  const first = state.log.entries[0]?.index ?? 0;
  const entries = state.log.entries.slice(state.commitIndex + 1 - first, majority + 1 - first);
  if (majority <= state.commitIndex || entries.length === 0 || state.appliedIndex !== state.commitIndex) return { state, effects };
  return { state: { ...state, commitIndex: majority, appliedIndex: majority }, effects: [...effects, { kind: 'apply', entries }] };
}

// ------------------------------------------------------------------ promises that the nodes' own code checks

/** A peer forgets now and then which entries are committed. */
export const FORGOTTEN_COMMIT: Mistakes = {
  raftStep: (state, input) => {
    const floor = state.log.snapshot?.index ?? 0;
    const forgets = input.kind === 'receive' && input.message.kind === 'append' && state.appliedIndex > floor + 20;
    return stepRaft(forgets ? { ...state, commitIndex: floor } : state, input);
  },
};

/** An entry that is committed is not applied. */
export const SKIPPED_ENTRY: Mistakes = {
  raftStep: (before, input) => {
    const { state, effects } = stepRaft(before, input);
    const skips = before.appliedIndex > 20;
    return {
      state,
      effects: effects.map((effect) => (skips && effect.kind === 'apply' ? { ...effect, entries: effect.entries.slice(1) } : effect)),
    };
  },
};

/** A leader sends another entry in the place of one that its followers may have committed. */
export const REWRITTEN_ENTRY: Mistakes = {
  raftStep: withAppends((message) => {
    const { entries, prevIndex, prevTerm, term } = message;
    if (prevTerm === 0 || prevTerm === term) return message;
    const other = { index: prevIndex, term, payload: { kind: 'empty' } } as const;
    return { ...message, prevIndex: prevIndex - 1, entries: [other, ...entries] };
  }),
};

/** A leader leaves out an entry where it sends several. */
export const MISSING_ENTRY: Mistakes = {
  raftStep: withAppends((message) => ({ ...message, entries: message.entries.filter((_entry, at) => at !== 1) })),
};

/** A leader that changes the membership leaves out another peer as well. */
export const TWO_MEMBERS_AT_ONCE: Mistakes = {
  raftStep: withAppends((message) => ({
    ...message,
    entries: message.entries.map((entry) => {
      if (entry.payload.kind !== 'membership' || entry.payload.membership.length < 5) return entry;
      return { ...entry, payload: { ...entry.payload, membership: entry.payload.membership.slice(0, -2) } };
    }),
  })),
};

/** Raft, with `append` messages changed on their way out. */
function withAppends(change: (message: Append) => Append): StepRaft {
  return (before, input) => {
    const { state, effects } = stepRaft(before, input);
    const changed = effects.map((effect) => {
      if (effect.kind !== 'send' && effect.kind !== 'sendEarly') return effect;
      return { ...effect, messages: effect.messages.map((message) => (message.kind === 'append' ? change(message) : message)) };
    });
    return { state, effects: changed };
  };
}

/** Starts a peer's Raft from what is on its disk. */

import type { StoredConsensus } from '../../protocols/model/consensus.js';
import type { RaftConfig } from './config.js';
import { begin, finish, type RaftStep } from './draft.js';
import { preCampaign } from './election.js';
import { lastIndex, lastTerm, membershipAt } from './log.js';
import { isVoter } from './membership.js';
import { FOLLOWER, restartElectionTimer } from './roles.js';
import type { RaftLog, RaftState } from './state.js';

/**
 * The first step of a peer. Its effects restore the snapshot and apply again all entries that were applied or are known to be committed.
 * The only voter campaigns at once, as it waits for no other peer. seed: any integer; peers should have different ones.
 */
export function startRaft(config: RaftConfig, stored: StoredConsensus, seed: number): RaftStep {
  const draft = begin(sleeping(config, stored, seed));
  restartElectionTimer(draft);
  const { membership } = draft.state;
  if (isVoter(membership, config.peerId) && membership.filter((member) => member.voter).length === 1) preCampaign(draft);
  return finish(draft);
}

function sleeping(config: RaftConfig, stored: StoredConsensus, seed: number): RaftState {
  const log = logOf(stored);
  const last = lastIndex(log);
  const { membership, index } = membershipAt(log, last);
  const { snapshot } = log;
  return {
    config,
    term: Math.max(stored.hardState.term, lastTerm(log)),
    votedFor: stored.hardState.votedFor,
    leader: null,
    role: FOLLOWER,
    log,
    commitIndex: Math.min(last, Math.max(stored.hardState.commit, stored.applied, snapshot?.index ?? 0)),
    appliedIndex: 0,
    membership,
    membershipIndex: index,
    elapsedTicks: 0,
    electionAfterTicks: config.electionTicks,
    randomState: seed,
    writes: 0,
    persistedWrites: 0,
    writesUnderWay: [],
    persistedIndex: last,
    pendingRestore: snapshot === null ? null : { snapshot, write: 0 },
    belonged: false,
    incoming: null,
    gone: null,
    forwarded: new Map(),
  };
}

/** Entries may begin before the snapshot's end; then the first one only gives the term before the next one. */
function logOf({ snapshot, entries }: StoredConsensus): RaftLog {
  const first = entries[0];
  const end = snapshot?.index ?? 0;
  const last = entries.at(-1);
  if (first === undefined || last === undefined || last.index < end) return { snapshot, entries: [], termBefore: snapshot?.term ?? 0 };
  if (first.index === 1) return { snapshot, entries, termBefore: 0 };
  if (first.index === end + 1) return { snapshot, entries, termBefore: snapshot?.term ?? 0 };
  return { snapshot, entries: entries.slice(1), termBefore: first.term };
}

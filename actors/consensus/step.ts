/** The step of consensus: states × messages. */

import type { ErrorFacts } from '../../protocols/errors.js';
import { decide, ignore, type Of, type Row, type Table } from '../../protocols/machine.js';
import { become, type Step, unreachable } from '../runtime/behaviour.js';
import { backOff, breakDown, orBroken } from './leaving.js';
import { stepMember } from './member.js';
import type { ConsensusEffect, ConsensusMessage } from './messages.js';
import { settled } from './proposals/outbox.js';
import { askToJoin, becomeFounder, becomeJoined, beginLoaded } from './startup.js';
import {
  type BrokenConsensus,
  type ConsensusState,
  type JoiningConsensus,
  type MemberConsensus,
  type Settings,
  type StartingConsensus,
  startingConsensus,
} from './state.js';

type ConsensusStep = Step<ConsensusState, ConsensusEffect>;
type MessageOf<Kind extends ConsensusMessage['kind']> = Of<ConsensusMessage, Kind>;
type NoMember = Exclude<ConsensusState, MemberConsensus>;

/** A node that is not a member: each request is refused with the reason. */
const REFUSE_ALL: Row<ConsensusMessage, NoMember, ConsensusStep> = {
  loaded: ignore,
  loadFailed: ignore,
  adopted: ignore,
  adoptFailed: ignore,
  listenFailed: ignore,
  joined: ignore,
  joinFailed: ignore,
  retry: ignore,
  tick: ignore,
  received: ignore,
  connectionChanged: ignore,
  peerUnreachable: ignore,
  pledged: ignore,
  ended: ignore,
  requested: refuseOutside,
  written: ignore,
  writeFailed: ignore,
  carriedOut: ignore,
  replicasDied: ignore,
  diskFilled: ignore,
  announceAnswered: ignore,
  handOver: ignore,
  submit: refuseOutside,
  barrier: refuseOutside,
  removePeer: refuseOutside,
  recover: refuseOutside,
};

/** A member's row is in `member.ts`: its functions work on a draft of the next state. */
export const CONSENSUS_TABLE: Table<NoMember, ConsensusMessage, ConsensusStep> = {
  Starting: { ...REFUSE_ALL, loaded: beginLoaded, loadFailed: breakDown, adopted: foundCluster, adoptFailed: breakDown },
  Joining: {
    ...REFUSE_ALL,
    listenFailed: breakDown,
    joined: becomeJoined,
    joinFailed: waitToJoin,
    retry: askAgain,
    written: noteWritten,
    writeFailed: breakDown,
  },
  // If the removal cannot be written, the leader tells it again after the next start.
  Removed: REFUSE_ALL,
  Broken: { ...REFUSE_ALL, retry: startAgain },
};

export function startConsensus(settings: Settings): ConsensusStep {
  return become<ConsensusState, ConsensusEffect>(startingConsensus(settings), { kind: 'load' });
}

export function stepConsensus(state: ConsensusState, message: ConsensusMessage): ConsensusStep {
  return orBroken(state, () => (state.kind === 'Member' ? stepMember(state, message) : decide(CONSENSUS_TABLE, state, message)));
}

function foundCluster(state: StartingConsensus): ConsensusStep {
  return state.founding === null ? become(state) : becomeFounder(state, state.founding);
}

function startAgain({ failures, settings }: BrokenConsensus): ConsensusStep {
  return become<ConsensusState, ConsensusEffect>(startingConsensus(settings, failures), { kind: 'load' });
}

function noteWritten(state: JoiningConsensus, { number }: MessageOf<'written'>): ConsensusStep {
  const { effects, outbox } = settled(state.outbox, number);
  const next = { ...state, outbox };
  const asked = outbox.pending.length === 0 ? [askToJoin(next)] : [];
  return become<ConsensusState, ConsensusEffect>(next, ...effects, ...asked);
}

const JOIN_RETRY_MS_MIN = 250;
const JOIN_RETRY_MS_MAX = 4000;
/**
 * Number of tries, over almost eight seconds, after which a node believes that its address is that of a member: one that has just ended may
 * still count as connected for four.
 */
const TAKEN_TRIES = 6;

function waitToJoin(state: JoiningConsensus, { error }: MessageOf<'joinFailed'>): ConsensusStep {
  const failures = state.failures + 1;
  const text = `this node cannot join the cluster yet and keeps trying (--bootstrap): ${error.detail}`;
  const next = { ...state, failures, error, logged: text };
  // The same reason is logged once, as the tries go on until an operator removes the cause.
  const logged: ConsensusEffect[] = state.logged === text ? [] : [{ kind: 'log', level: 'warn', text }];
  if (error.reason === 'addressTaken' && failures >= TAKEN_TRIES)
    return become<ConsensusState, ConsensusEffect>(next, { kind: 'giveUp', error });
  const delayMs = backOff(failures, JOIN_RETRY_MS_MIN, JOIN_RETRY_MS_MAX);
  return become<ConsensusState, ConsensusEffect>(next, ...logged, { kind: 'retryLater', delayMs });
}

function askAgain(state: JoiningConsensus): ConsensusStep {
  return become<ConsensusState, ConsensusEffect>(state, askToJoin(state));
}

function refuseOutside(
  state: NoMember,
  { replyTo }: MessageOf<'requested' | 'submit' | 'barrier' | 'removePeer' | 'recover'>,
): ConsensusStep {
  return become<ConsensusState, ConsensusEffect>(state, { kind: 'refuse', replyTo, error: whyNot(state) });
}

/** The error for requests to a node that is not a member. */
function whyNot(state: NoMember): ErrorFacts {
  switch (state.kind) {
    case 'Starting':
      return { code: 'unavailable', detail: 'the node is starting', retryAfterMs: 1000 };
    case 'Joining': {
      const why = state.error === null ? '' : `: ${state.error.detail}`;
      return { code: 'unavailable', detail: `the node is joining a cluster through ${state.settings.bootstrap}${why}`, retryAfterMs: 1000 };
    }
    case 'Removed':
      return state.error;
    case 'Broken':
      return { code: 'unavailable', detail: `the node cannot take part in its cluster: ${state.error.detail}`, retryAfterMs: 1000 };
    default:
      return unreachable(state);
  }
}

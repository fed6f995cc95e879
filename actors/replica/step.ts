/** What a replica does about each message in each state. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { ReplicaStats } from '../../storage/threads/messages.js';
import { become, type Step, unreachable } from '../runtime/behaviour.js';
import type { InstallMessage, ReplicaEffect, ReplicaMessage, WriteMessage, WritePartMessage } from './messages.js';
import {
  type ActiveReplica,
  active,
  closing,
  type DeadReplica,
  dead,
  type HeldAnswer,
  type InitializingReplica,
  initializing,
  type ListenerReplica,
  missingIndexes,
  type PartialReplica,
  type ReplicaState,
} from './state.js';

type ReplicaStep = Step<ReplicaState, ReplicaEffect>;
type Writable = ActiveReplica | PartialReplica | ListenerReplica;
type MessageOf<Kind extends ReplicaMessage['kind']> = Extract<ReplicaMessage, { kind: Kind }>;

/** The states in which a message means something, and the move it leads to. `ignore` and `refuse` are decisions, too. */
export type ReplicaMove =
  | 'ignore'
  | 'becomeActive'
  | 'becomeDead'
  | 'openAgain'
  | 'considerStats'
  | 'keepConfig'
  | 'configure'
  | 'write'
  | 'refuse'
  | 'answerWhenIndexed'
  | 'answerNow'
  | 'noteOptimizer'
  | 'install'
  | 'close'
  | 'finish';

/** States × messages. What the engine says about an earlier opening, or after the end, is ignored. */
export const REPLICA_MOVES: Readonly<Record<ReplicaState['kind'], Readonly<Record<ReplicaMessage['kind'], ReplicaMove>>>> = {
  Initializing: {
    opened: 'becomeActive',
    openFailed: 'becomeDead',
    failed: 'becomeDead',
    retry: 'ignore',
    stats: 'considerStats',
    configure: 'keepConfig',
    write: 'refuse',
    writePart: 'refuse',
    indexCreated: 'answerNow',
    optimizerGaveUp: 'ignore',
    install: 'refuse',
    close: 'close',
    closed: 'ignore',
  },
  Active: {
    opened: 'ignore',
    openFailed: 'ignore',
    failed: 'becomeDead',
    retry: 'ignore',
    stats: 'considerStats',
    configure: 'configure',
    write: 'write',
    writePart: 'write',
    indexCreated: 'answerWhenIndexed',
    optimizerGaveUp: 'noteOptimizer',
    install: 'install',
    close: 'close',
    closed: 'ignore',
  },
  Partial: {
    opened: 'ignore',
    openFailed: 'ignore',
    failed: 'becomeDead',
    retry: 'ignore',
    stats: 'considerStats',
    configure: 'configure',
    write: 'write',
    writePart: 'write',
    indexCreated: 'answerWhenIndexed',
    optimizerGaveUp: 'noteOptimizer',
    install: 'install',
    close: 'close',
    closed: 'ignore',
  },
  Listener: {
    opened: 'ignore',
    openFailed: 'ignore',
    failed: 'becomeDead',
    retry: 'ignore',
    stats: 'considerStats',
    configure: 'configure',
    write: 'write',
    writePart: 'write',
    indexCreated: 'answerWhenIndexed',
    optimizerGaveUp: 'noteOptimizer',
    install: 'install',
    close: 'close',
    closed: 'ignore',
  },
  Dead: {
    opened: 'ignore',
    openFailed: 'ignore',
    failed: 'ignore',
    retry: 'openAgain',
    stats: 'considerStats',
    configure: 'keepConfig',
    write: 'refuse',
    writePart: 'refuse',
    indexCreated: 'answerNow',
    optimizerGaveUp: 'ignore',
    install: 'install',
    close: 'close',
    closed: 'ignore',
  },
  Closing: {
    opened: 'ignore',
    openFailed: 'ignore',
    failed: 'ignore',
    retry: 'ignore',
    stats: 'ignore',
    configure: 'refuse',
    write: 'refuse',
    writePart: 'refuse',
    indexCreated: 'answerNow',
    optimizerGaveUp: 'ignore',
    install: 'refuse',
    close: 'ignore',
    closed: 'finish',
  },
};

export function startReplica(config: CollectionConfig): ReplicaStep {
  return become<ReplicaState, ReplicaEffect>(initializing(config, 0, null), { kind: 'announce', reason: null }, { kind: 'open' });
}

export function stepReplica(state: ReplicaState, message: ReplicaMessage): ReplicaStep {
  const move = REPLICA_MOVES[state.kind][message.kind];
  // The table above says which states and messages reach a move, so the casts below only repeat it.
  switch (move) {
    case 'ignore':
      return become(state);
    case 'becomeActive':
      return becomeActive(state as InitializingReplica, (message as MessageOf<'opened'>).stats);
    case 'becomeDead':
      return becomeDead(state as InitializingReplica | Writable, (message as MessageOf<'failed' | 'openFailed'>).error);
    case 'openAgain':
      return openAgain(state as DeadReplica);
    case 'considerStats':
      return considerStats(state, (message as MessageOf<'stats'>).stats);
    case 'keepConfig':
      return keepConfig(state as InitializingReplica | DeadReplica, message as MessageOf<'configure'>);
    case 'configure':
      return configure(state as Writable, message as MessageOf<'configure'>);
    case 'write':
      return become<ReplicaState, ReplicaEffect>(state, { kind: 'write', write: message as WriteMessage | WritePartMessage });
    case 'refuse':
      return become<ReplicaState, ReplicaEffect>(state, {
        kind: 'refuse',
        replyTo: (message as WriteMessage | WritePartMessage | InstallMessage | MessageOf<'configure'>).replyTo,
        error: refusal(state),
      });
    case 'answerWhenIndexed':
      return answerWhenIndexed(state as Writable, message as MessageOf<'indexCreated'>);
    case 'answerNow':
      return answerNow(state, message as MessageOf<'indexCreated'>);
    case 'noteOptimizer':
      return become<ReplicaState, ReplicaEffect>(state, {
        kind: 'optimizerGaveUp',
        error: (message as MessageOf<'optimizerGaveUp'>).error,
      });
    case 'install':
      return install(state as Writable | DeadReplica, message as InstallMessage);
    case 'close':
      return close(state);
    case 'finish':
      return become<ReplicaState, ReplicaEffect>(state, { kind: 'tellClosedAndStop' });
    default:
      return unreachable(move);
  }
}

function becomeActive(state: InitializingReplica, stats: ReplicaStats): ReplicaStep {
  const configured: ReplicaEffect[] = state.configChanged ? [{ kind: 'configure', config: state.config, replyTo: null }] : [];
  return become<ReplicaState, ReplicaEffect>(
    active(state.config),
    { kind: 'announce', reason: null },
    { kind: 'startOptimizer' },
    ...configured,
    { kind: 'considerStats', stats },
    { kind: 'tellOpened' },
  );
}

function becomeDead(state: InitializingReplica | Writable, error: ErrorFacts): ReplicaStep {
  const failures = state.kind === 'Initializing' ? state.failures + 1 : 1;
  const held = state.kind === 'Initializing' ? [] : state.heldAnswers;
  const refused = held.map(({ answer }): ReplicaEffect => ({ kind: 'refuse', replyTo: answer.replyTo, error: unavailable(error) }));
  return become<ReplicaState, ReplicaEffect>(
    dead(state.config, error, failures),
    { kind: 'announce', reason: unavailable(error) },
    ...refused,
    { kind: 'stopOptimizer' },
    { kind: 'retryLater', attempt: failures },
    { kind: 'tellDied', error },
  );
}

function openAgain(state: DeadReplica): ReplicaStep {
  return become<ReplicaState, ReplicaEffect>(initializing(state.config, state.failures, state.reason), { kind: 'open' });
}

/** It serves nothing until it is open with its new files. */
function install(state: Writable | DeadReplica, message: InstallMessage): ReplicaStep {
  const next = initializing(state.config, 0, null);
  const held = state.kind === 'Dead' ? [] : state.heldAnswers;
  const refused = held.map(({ answer }): ReplicaEffect => ({ kind: 'refuse', replyTo: answer.replyTo, error: refusal(next) }));
  return become<ReplicaState, ReplicaEffect>(
    next,
    { kind: 'announce', reason: refusal(next) },
    ...refused,
    { kind: 'stopOptimizer' },
    {
      kind: 'install',
      install: message,
    },
  );
}

function considerStats(state: ReplicaState, stats: ReplicaStats): ReplicaStep {
  const consider: ReplicaEffect = { kind: 'considerStats', stats };
  if (!isWritable(state) || state.heldAnswers.length === 0) return become<ReplicaState, ReplicaEffect>(state, consider);
  const { ready, waiting } = splitHeld(state.heldAnswers, stats);
  if (ready.length === 0) return become<ReplicaState, ReplicaEffect>(state, consider);
  const answers = ready.map(({ answer }): ReplicaEffect => ({ kind: 'answer', answer }));
  return become<ReplicaState, ReplicaEffect>({ ...state, heldAnswers: waiting }, ...answers, consider);
}

function keepConfig(state: InitializingReplica | DeadReplica, { config, replyTo }: MessageOf<'configure'>): ReplicaStep {
  const kept = state.kind === 'Dead' ? { ...state, config } : { ...state, config, configChanged: true };
  return become<ReplicaState, ReplicaEffect>(kept, { kind: 'configured', replyTo });
}

function configure(state: Writable, { config, replyTo }: MessageOf<'configure'>): ReplicaStep {
  return become<ReplicaState, ReplicaEffect>({ ...state, config }, { kind: 'configure', config, replyTo });
}

function answerWhenIndexed(state: Writable, message: MessageOf<'indexCreated'>): ReplicaStep {
  const missing = message.stats === null ? [] : missingIndexes(message.stats);
  if (missing.length === 0) return answerNow(state, message);
  const held: HeldAnswer = { answer: message.answer, missing };
  return become<ReplicaState, ReplicaEffect>({ ...state, heldAnswers: [...state.heldAnswers, held] });
}

function answerNow(state: ReplicaState, message: MessageOf<'indexCreated'>): ReplicaStep {
  return become<ReplicaState, ReplicaEffect>(state, { kind: 'answer', answer: message.answer });
}

function close(state: ReplicaState): ReplicaStep {
  const held = isWritable(state) ? state.heldAnswers : [];
  const answers = held.map(({ answer }): ReplicaEffect => ({ kind: 'answer', answer }));
  const reason = refusal(closing());
  return become<ReplicaState, ReplicaEffect>(closing(), { kind: 'announce', reason }, { kind: 'stopOptimizer' }, ...answers, {
    kind: 'close',
  });
}

/** Why a write is refused in a state that takes none. */
function refusal(state: ReplicaState): ErrorFacts {
  switch (state.kind) {
    case 'Dead':
      return unavailable(state.reason);
    case 'Initializing':
      if (state.reason !== null) return unavailable(state.reason);
      return { code: 'unavailable', detail: 'the replica is being opened', retryAfterMs: 1000 };
    case 'Closing':
      return { code: 'unavailable', detail: 'the replica is being closed' };
    case 'Active':
    case 'Partial':
    case 'Listener':
      return { code: 'unavailable', detail: `the replica is ${state.kind}` };
    default:
      return unreachable(state);
  }
}

function unavailable(reason: ErrorFacts): ErrorFacts {
  return { code: 'unavailable', detail: `the replica is Dead: ${reason.detail}` };
}

function isWritable(state: ReplicaState): state is Writable {
  return state.kind === 'Active' || state.kind === 'Partial' || state.kind === 'Listener';
}

/** Held answers whose index files are all there now, or whose segments are gone, and the others. */
function splitHeld(held: readonly HeldAnswer[], stats: ReplicaStats): { ready: HeldAnswer[]; waiting: HeldAnswer[] } {
  const missing = new Set(missingIndexes(stats).map((index) => `${index.segment}/${index.field}`));
  const ready: HeldAnswer[] = [];
  const waiting: HeldAnswer[] = [];
  for (const answer of held) {
    const waits = answer.missing.some((index) => missing.has(`${index.segment}/${index.field}`));
    (waits ? waiting : ready).push(answer);
  }
  return { ready, waiting };
}

/** What a replica does about each message in each state. */

import type { ErrorFacts } from '../../protocols/errors.js';
import { decide, ignore, type Of, type Table } from '../../protocols/machine.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { ReplicaStats } from '../../storage/threads/messages.js';
import { become, type Step } from '../runtime/behaviour.js';
import type { ReplicaEffect, ReplicaMessage } from './messages.js';
import {
  type ClosingReplica,
  closingReplica,
  type FailedReplica,
  failedReplica,
  type HeldAnswer,
  missingIndexes,
  type OpeningReplica,
  openingReplica,
  type ReplicaLife,
  type ServingReplica,
  servingReplica,
} from './state.js';

type ReplicaStep = Step<ReplicaLife, ReplicaEffect>;
/** The states that refuse requests. */
type Refusing = Exclude<ReplicaLife, ServingReplica>;
type Requests = Of<ReplicaMessage, 'configure' | 'install'>;

/** States × messages. What the engine says about an earlier opening, or after the end, is ignored. */
export const REPLICA_TABLE: Table<ReplicaLife, ReplicaMessage, ReplicaStep> = {
  Opening: {
    opened: becomeServing,
    openFailed: failOpening,
    failed: failOpening,
    retry: ignore,
    stats: passStats,
    configure: keepConfig,
    indexCreated: answerNow,
    optimizerStopped: ignore,
    install: refuse,
    close: closeNow,
    closed: ignore,
  },
  Serving: {
    opened: ignore,
    openFailed: ignore,
    failed: failServing,
    retry: ignore,
    stats: answerIndexed,
    configure,
    indexCreated: answerWhenIndexed,
    optimizerStopped: noteOptimizer,
    install: installOverOpen,
    close: answerAndClose,
    closed: ignore,
  },
  Failed: {
    opened: ignore,
    openFailed: ignore,
    failed: ignore,
    retry: openAgain,
    stats: passStats,
    configure: keepConfigOfFailed,
    indexCreated: answerNow,
    optimizerStopped: ignore,
    install: installOverFailed,
    close: closeNow,
    closed: ignore,
  },
  Closing: {
    opened: ignore,
    openFailed: ignore,
    failed: ignore,
    retry: ignore,
    stats: ignore,
    configure: refuse,
    indexCreated: answerNow,
    optimizerStopped: ignore,
    install: refuse,
    close: ignore,
    closed: finish,
  },
};

export function startReplica(config: CollectionConfig): ReplicaStep {
  return become<ReplicaLife, ReplicaEffect>(
    openingReplica(config, 0, null),
    { kind: 'announce', state: 'Opening', reason: null },
    { kind: 'open', isDamaged: false },
  );
}

export function stepReplica(state: ReplicaLife, message: ReplicaMessage): ReplicaStep {
  return decide(REPLICA_TABLE, state, message);
}

function becomeServing(state: OpeningReplica, { stats }: Of<ReplicaMessage, 'opened'>): ReplicaStep {
  const configured: ReplicaEffect[] = state.configChanged ? [{ kind: 'configure', config: state.config, replyTo: null }] : [];
  return become<ReplicaLife, ReplicaEffect>(
    servingReplica(state.config),
    { kind: 'announce', state: 'Serving', reason: null },
    { kind: 'startOptimizer' },
    ...configured,
    { kind: 'considerStats', stats },
    { kind: 'tellOpened' },
  );
}

function failOpening(state: OpeningReplica, { error }: Of<ReplicaMessage, 'openFailed' | 'failed'>): ReplicaStep {
  return becomeFailed(failedReplica(state.config, error, state.failures + 1), []);
}

function failServing(state: ServingReplica, { error }: Of<ReplicaMessage, 'failed'>): ReplicaStep {
  return becomeFailed(failedReplica(state.config, error, 1), state.heldAnswers);
}

function becomeFailed(next: FailedReplica, held: readonly HeldAnswer[]): ReplicaStep {
  const { failures, reason } = next;
  return become<ReplicaLife, ReplicaEffect>(
    next,
    { kind: 'announce', state: 'Failed', reason: unavailable(reason) },
    ...refuseHeld(held, unavailable(reason)),
    { kind: 'stopOptimizer' },
    { kind: 'retryLater', attempt: failures },
    { kind: 'tellFailed', error: reason },
  );
}

function openAgain(state: FailedReplica): ReplicaStep {
  const isDamaged = state.reason.reason === 'damaged';
  return become<ReplicaLife, ReplicaEffect>(openingReplica(state.config, state.failures, state.reason), { kind: 'open', isDamaged });
}

function installOverOpen(state: ServingReplica, message: Of<ReplicaMessage, 'install'>): ReplicaStep {
  return install(openingReplica(state.config, 0, null), state.heldAnswers, message);
}

function installOverFailed(state: FailedReplica, message: Of<ReplicaMessage, 'install'>): ReplicaStep {
  return install(openingReplica(state.config, 0, null), [], message);
}

/** It serves nothing until it is open with its new files. */
function install(next: OpeningReplica, held: readonly HeldAnswer[], message: Of<ReplicaMessage, 'install'>): ReplicaStep {
  return become<ReplicaLife, ReplicaEffect>(
    next,
    { kind: 'announce', state: 'Opening', reason: refusal(next) },
    ...refuseHeld(held, refusal(next)),
    { kind: 'stopOptimizer' },
    { kind: 'install', install: message },
  );
}

function passStats(state: ReplicaLife, { stats }: Of<ReplicaMessage, 'stats'>): ReplicaStep {
  return become<ReplicaLife, ReplicaEffect>(state, { kind: 'considerStats', stats });
}

function answerIndexed(state: ServingReplica, message: Of<ReplicaMessage, 'stats'>): ReplicaStep {
  const { ready, waiting } = splitHeld(state.heldAnswers, message.stats);
  if (ready.length === 0) return passStats(state, message);
  const answers = ready.map(({ answer }): ReplicaEffect => ({ kind: 'answer', answer }));
  return become<ReplicaLife, ReplicaEffect>(servingReplica(state.config, waiting), ...answers, {
    kind: 'considerStats',
    stats: message.stats,
  });
}

function keepConfig(state: OpeningReplica, { config, replyTo }: Of<ReplicaMessage, 'configure'>): ReplicaStep {
  return become<ReplicaLife, ReplicaEffect>({ ...state, config, configChanged: true }, { kind: 'configured', replyTo });
}

function keepConfigOfFailed(state: FailedReplica, { config, replyTo }: Of<ReplicaMessage, 'configure'>): ReplicaStep {
  return become<ReplicaLife, ReplicaEffect>({ ...state, config }, { kind: 'configured', replyTo });
}

function configure(state: ServingReplica, { config, replyTo }: Of<ReplicaMessage, 'configure'>): ReplicaStep {
  return become<ReplicaLife, ReplicaEffect>({ ...state, config }, { kind: 'configure', config, replyTo });
}

function refuse(state: Refusing, { replyTo }: Requests): ReplicaStep {
  return become<ReplicaLife, ReplicaEffect>(state, { kind: 'refuse', replyTo, error: refusal(state) });
}

function answerWhenIndexed(state: ServingReplica, message: Of<ReplicaMessage, 'indexCreated'>): ReplicaStep {
  const missing = message.stats === null ? [] : missingIndexes(message.stats);
  if (missing.length === 0) return answerNow(state, message);
  const held: HeldAnswer = { answer: message.answer, missing };
  return become<ReplicaLife, ReplicaEffect>({ ...state, heldAnswers: [...state.heldAnswers, held] });
}

function answerNow(state: ReplicaLife, { answer }: Of<ReplicaMessage, 'indexCreated'>): ReplicaStep {
  return become<ReplicaLife, ReplicaEffect>(state, { kind: 'answer', answer });
}

function noteOptimizer(state: ServingReplica, { error }: Of<ReplicaMessage, 'optimizerStopped'>): ReplicaStep {
  return become<ReplicaLife, ReplicaEffect>(state, { kind: 'showStoppedOptimizer', error });
}

function closeNow(): ReplicaStep {
  return close([]);
}

function answerAndClose(state: ServingReplica): ReplicaStep {
  return close(state.heldAnswers.map(({ answer }): ReplicaEffect => ({ kind: 'answer', answer })));
}

function close(answers: readonly ReplicaEffect[]): ReplicaStep {
  const next = closingReplica();
  return become<ReplicaLife, ReplicaEffect>(
    next,
    { kind: 'announce', state: 'Closing', reason: refusal(next) },
    { kind: 'stopOptimizer' },
    ...answers,
    { kind: 'close' },
  );
}

function finish(state: ClosingReplica): ReplicaStep {
  return become<ReplicaLife, ReplicaEffect>(state, { kind: 'tellClosedAndStop' });
}

function refusal(state: Refusing): ErrorFacts {
  if (state.kind === 'Closing') return { code: 'unavailable', detail: 'the replica is being closed' };
  if (state.reason !== null) return unavailable(state.reason);
  return { code: 'unavailable', detail: 'the replica is being opened', retryAfterMs: 1000 };
}

function unavailable(reason: ErrorFacts): ErrorFacts {
  return { code: 'unavailable', detail: `the replica is Dead: ${reason.detail}` };
}

function refuseHeld(held: readonly HeldAnswer[], error: ErrorFacts): ReplicaEffect[] {
  return held.map(({ answer }) => ({ kind: 'refuse', replyTo: answer.replyTo, error }));
}

/** Held answers whose index files are all there now, or whose segments are gone, and the others. */
function splitHeld(held: readonly HeldAnswer[], stats: ReplicaStats): { ready: HeldAnswer[]; waiting: HeldAnswer[] } {
  if (held.length === 0) return { ready: [], waiting: [] };
  const missing = new Set(missingIndexes(stats).map((index) => `${index.segment}/${index.field}`));
  const ready: HeldAnswer[] = [];
  const waiting: HeldAnswer[] = [];
  for (const answer of held) {
    const waits = answer.missing.some((index) => missing.has(`${index.segment}/${index.field}`));
    (waits ? waiting : ready).push(answer);
  }
  return { ready, waiting };
}

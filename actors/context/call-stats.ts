/** Statistics of calls between this node and its peers, by kind: counts by outcome, and durations. */

import { type AnswerCall, type DataAnswer, type DataCall, LostAnswer, NotReached, type PeerCalls } from '../../cluster/data-messages.js';
import { type ErrorCode, errorFacts } from '../../protocols/errors.js';
import type { Clock } from '../runtime/ports.js';
import { Durations } from './durations.js';

/** lost: the call was sent, and whether it was executed is unknown. unreached: there was no connection. Otherwise the peer's answer. */
export type CallOutcome = 'ok' | 'lost' | 'unreached' | ErrorCode;

export interface CallCounts {
  readonly kind: DataCall['kind'];
  readonly outcome: CallOutcome;
  readonly durations: Durations;
}

export class CallStats {
  readonly #byKind = new Map<DataCall['kind'], Map<CallOutcome, Durations>>();

  record(kind: DataCall['kind'], outcome: CallOutcome, milliseconds: number, dateMs: number): void {
    const byOutcome = this.#byKind.get(kind) ?? new Map<CallOutcome, Durations>();
    this.#byKind.set(kind, byOutcome);
    const durations = byOutcome.get(outcome) ?? new Durations();
    byOutcome.set(outcome, durations);
    durations.add(milliseconds, dateMs);
  }

  /** The counts; kinds and outcomes in the order of their names. */
  counts(): CallCounts[] {
    return sorted(this.#byKind).flatMap(([kind, byOutcome]) =>
      sorted(byOutcome).map(([outcome, durations]) => ({ kind, outcome, durations })),
    );
  }
}

/** made: calls by this node. answered: calls that this node has answered for peers. */
export interface PeerCallStats {
  readonly made: CallStats;
  readonly answered: CallStats;
}

/** preciseMs: time of the finest clock available, in milliseconds. */
export interface Stopwatch {
  readonly clock: Clock;
  readonly preciseMs: () => number;
}

export function countedCalls(calls: PeerCalls, stats: CallStats, watch: Stopwatch): PeerCalls {
  return { call: (peer, call, timeoutMs) => counted(stats, watch, call, () => calls.call(peer, call, timeoutMs)) };
}

export function countedAnswers(answer: AnswerCall, stats: CallStats, watch: Stopwatch): AnswerCall {
  return (from, call) => counted(stats, watch, call, () => answer(from, call));
}

async function counted(
  stats: CallStats,
  { clock, preciseMs }: Stopwatch,
  { kind }: DataCall,
  run: () => Promise<DataAnswer>,
): Promise<DataAnswer> {
  const beganMs = preciseMs();
  try {
    const answer = await run();
    stats.record(kind, 'ok', preciseMs() - beganMs, clock.dateMs());
    return answer;
  } catch (error) {
    stats.record(kind, outcomeOf(error), preciseMs() - beganMs, clock.dateMs());
    throw error;
  }
}

function outcomeOf(error: unknown): CallOutcome {
  if (error instanceof LostAnswer) return 'lost';
  return error instanceof NotReached ? 'unreached' : errorFacts(error).code;
}

function sorted<Name extends string, Value>(map: ReadonlyMap<Name, Value>): [Name, Value][] {
  return [...map].sort(([one], [other]) => (one < other ? -1 : 1));
}

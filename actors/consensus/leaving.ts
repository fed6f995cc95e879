/** Ends membership: the log fails, or the cluster removes this node. */

import { type ErrorFacts, errorFacts, TroupeError } from '../../protocols/errors.js';
import { NO_WRITE } from '../../protocols/model/consensus.js';
import { become, type Step } from '../runtime/behaviour.js';
import type { ConsensusEffect } from './messages.js';
import type { ConsensusDraft } from './proposals/draft.js';
import { broken, type ConsensusState, removed } from './state.js';

type ConsensusStep = Step<ConsensusState, ConsensusEffect>;

const RELOAD_MS_MIN = 1000;
const RELOAD_MS_MAX = 30_000;

/** Drops volatile state as a crash does; the disk is read again later. */
export function breakDown(state: ConsensusState, { error }: { readonly error: ErrorFacts }): ConsensusStep {
  const failures = state.kind === 'Starting' ? state.failures + 1 : 1;
  const next = broken(state.settings, error, failures);
  return become<ConsensusState, ConsensusEffect>(
    next,
    { kind: 'log', level: 'error', text: `this node cannot take part in the cluster: ${error.detail}` },
    ...dismissed(state, { code: 'unavailable', detail: error.detail }),
    { kind: 'retryLater', delayMs: backOff(failures, RELOAD_MS_MIN, RELOAD_MS_MAX) },
  );
}

export function becomeRemoved(draft: ConsensusDraft): ConsensusStep {
  const { agreed, settings } = draft.member;
  const identity = { ...draft.member.identity, removed: true };
  const own = { kind: 'remove', peerId: identity.peerId } as const;
  for (const { caller, what } of draft.member.calls.proposals) {
    if (what.kind === 'membership' && what.change.kind === 'remove' && what.change.peerId === own.peerId && caller.kind === 'caller')
      draft.reply(caller.replyTo, true);
  }
  draft.write({ ...NO_WRITE, identity }, null);
  const next = removed(settings, identity, agreed);
  draft.emit(...dismissed(draft.member, next.error), { kind: 'setPeers', uris: new Map() });
  draft.emit({ kind: 'log', level: 'warn', text: next.error.detail });
  return { state: next, effects: draft.effects };
}

/** Refuses all waiting callers. */
function dismissed(state: ConsensusState, error: ErrorFacts): ConsensusEffect[] {
  if (state.kind !== 'Member') return [];
  const { proposals, reads, recovery, settling } = state.calls;
  const open: ErrorFacts = { ...error, outcome: 'unknown' };
  const effects: ConsensusEffect[] = [];
  for (const { replyTo } of settling) effects.push({ kind: 'refuse', replyTo, error: open });
  for (const { replyTo } of reads) effects.push({ kind: 'refuse', replyTo, error });
  for (const { attempt, caller, uncertain } of proposals) {
    const isOpen = attempt !== null || uncertain;
    if ('replyTo' in caller) effects.push({ kind: 'refuse', replyTo: caller.replyTo, error: isOpen ? open : error });
  }
  if (recovery !== null) effects.push({ kind: 'refuse', replyTo: recovery.replyTo, error });
  return effects;
}

/** Runs a step; if this release cannot read stored or received data, the node breaks down instead of going on with a part of it. */
export function orBroken(state: ConsensusState, run: () => ConsensusStep): ConsensusStep {
  try {
    return run();
  } catch (error) {
    if (error instanceof TroupeError) return breakDown(state, { error: errorFacts(error) });
    throw error;
  }
}

/** The pause before the next try, in milliseconds. failures: consecutive failures, 1 or more. */
export function backOff(failures: number, min: number, max: number): number {
  return Math.min(max, min * 2 ** (failures - 1));
}

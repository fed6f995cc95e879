/** The actor of backups: looks at the date now and then, and has the plans whose turn it is carried out. */

import { type ActorContext, type Behaviour, become } from '../runtime/behaviour.js';
import type { BackupBoard } from './board.js';
import type { BackupsEffect, BackupsMessage } from './messages.js';
import type { BackupPlan } from './plan.js';
import { type BackupParts, runTurn, surveyBackups } from './run.js';
import { type BackupsState, type LastTurn, type PlanStatus, startingBackups } from './state.js';
import { stepBackups } from './step.js';

export interface BackupsProps extends Omit<BackupParts, 'log'> {
  readonly plans: readonly BackupPlan[];
  readonly board: BackupBoard;
}

type BackupsContext = ActorContext<BackupsProps, BackupsMessage>;

/** Of a clock that is never set: so a date that was set is seen soon. */
export const BACKUP_LOOK_MS = 15_000;

export function backupsBehaviour(): Behaviour<BackupsProps, BackupsState, BackupsMessage, BackupsEffect> {
  return {
    kind: 'backups',
    start: ({ plans }) => become<BackupsState, BackupsEffect>(startingBackups(plans), { kind: 'survey', plans }),
    step: stepBackups,
    perform,
    summarize,
    facts: (_, state) => factsOf(state),
  };
}

function perform(effect: BackupsEffect, context: BackupsContext): void {
  const { clock, log, props } = context;
  const parts = { ...props, log };
  switch (effect.kind) {
    case 'survey': {
      const surveyed = (newest: ReadonlyMap<string, number>): BackupsMessage => ({ kind: 'surveyed', newest, dateMs: clock.dateMs() });
      context.settle(surveyBackups(parts, effect.plans), surveyed, () => surveyed(new Map()));
      return;
    }
    case 'wakeLater':
      context.after(BACKUP_LOOK_MS, { kind: 'woke' });
      return;
    case 'askDate':
      context.report({ kind: 'look', dateMs: clock.dateMs() });
      return;
    case 'backUp': {
      const { plan } = effect;
      const begunMs = clock.nowMs();
      context.settle(
        runTurn(parts, plan),
        (outcome) => ({ kind: 'ended', outcome, dateMs: clock.dateMs(), durationMs: clock.nowMs() - begunMs }),
        ({ detail }) => ({
          kind: 'ended',
          outcome: { made: 0, bytes: 0, removed: 0, failures: [detail] },
          dateMs: clock.dateMs(),
          durationMs: clock.nowMs() - begunMs,
        }),
      );
      return;
    }
    case 'show':
      props.board.plans = effect.plans;
      return;
    default:
      effect satisfies never;
  }
}

/** For each plan its next turn, and what its last one has done. */
function factsOf(state: BackupsState): Readonly<Record<string, string | number>> {
  if (state.kind === 'Starting') return { plans: state.plans.length };
  const plans = state.plans.flatMap((status) =>
    Object.entries(planFacts(status)).map(([key, value]) => [`${status.plan.name} ${key}`, value]),
  );
  return { ...Object.fromEntries(plans), ...(state.kind === 'Working' ? { running: state.running } : {}) };
}

function planFacts({ failures, last, lastSuccessMs, nextMs }: PlanStatus): Record<string, string | number> {
  return {
    next: shownDate(nextMs),
    ...(lastSuccessMs === null ? {} : { lastSuccess: shownDate(lastSuccessMs) }),
    ...(last === null ? {} : turnFacts(last)),
    failures,
  };
}

function turnFacts({ bytes, dateMs, durationMs, failures, made, removed }: LastTurn): Record<string, string | number> {
  const [failure] = failures;
  return {
    last: shownDate(dateMs),
    lastResult: failure === undefined ? 'ok' : `${failure}${failures.length === 1 ? '' : ` (and ${failures.length - 1} more)`}`,
    lastSnapshots: made,
    lastBytes: bytes,
    lastRemoved: removed,
    lastSeconds: Math.round(durationMs / 1000),
  };
}

function shownDate(dateMs: number): string {
  return new Date(dateMs).toISOString();
}

function summarize(message: BackupsMessage): string {
  switch (message.kind) {
    case 'surveyed':
      return `${message.newest.size} plans have backups`;
    case 'woke':
      return '';
    case 'look':
      return shownDate(message.dateMs);
    case 'ended':
      return `${message.outcome.made} made, ${message.outcome.removed} removed, ${message.outcome.failures.length} failed`;
  }
}

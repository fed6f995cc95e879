/** The step of the actor of backups: whose turn it is. */

import { decide, ignore, type Of, type Table } from '../../protocols/machine.js';
import { become, type Step } from '../runtime/behaviour.js';
import { nextAfter } from './cron.js';
import type { BackupsEffect, BackupsMessage } from './messages.js';
import {
  type BackupsState,
  type PlanStatus,
  type StartingBackups,
  type WaitingBackups,
  type WorkingBackups,
  waitingBackups,
  workingBackups,
} from './state.js';

type BackupsStep = Step<BackupsState, BackupsEffect>;

export const BACKUPS_TABLE: Table<BackupsState, BackupsMessage, BackupsStep> = {
  Starting: { surveyed: beginWaiting, woke: ignore, look: ignore, ended: ignore },
  Waiting: { surveyed: ignore, woke: askDate, look: beginWhatIsDue, ended: ignore },
  Working: { surveyed: ignore, woke: askDate, look: goOnWorking, ended: endTurn },
};

const SMALL_STEP_MS = 3_600_000;

export function stepBackups(state: BackupsState, message: BackupsMessage): BackupsStep {
  return decide(BACKUPS_TABLE, state, message);
}

function beginWaiting({ plans }: StartingBackups, { dateMs, newest }: Of<BackupsMessage, 'surveyed'>): BackupsStep {
  const known = plans.map((plan): PlanStatus => {
    const made = newest.get(plan.name) ?? null;
    // A turn that was missed while the node was down is made up.
    const nextMs = nextAfter(plan.schedule, made === null ? dateMs : Math.min(made, dateMs));
    return { plan, nextMs, lastSuccessMs: made, failures: 0, last: null };
  });
  return become<BackupsState, BackupsEffect>(waitingBackups(known, dateMs), { kind: 'show', plans: known }, { kind: 'wakeLater' });
}

function askDate(state: WaitingBackups | WorkingBackups): BackupsStep {
  return become<BackupsState, BackupsEffect>(state, { kind: 'askDate' });
}

function beginWhatIsDue(state: WaitingBackups, { dateMs }: Of<BackupsMessage, 'look'>): BackupsStep {
  const { effects, state: next } = beginDue(afterDateStep(state, dateMs), dateMs);
  return { state: next, effects: [...effects, { kind: 'wakeLater' }] };
}

function goOnWorking(state: WorkingBackups, { dateMs }: Of<BackupsMessage, 'look'>): BackupsStep {
  return become<BackupsState, BackupsEffect>(workingBackups(afterDateStep(state, dateMs), dateMs, state.running), { kind: 'wakeLater' });
}

function endTurn(state: WorkingBackups, { dateMs, durationMs, outcome }: Of<BackupsMessage, 'ended'>): BackupsStep {
  const plans = afterDateStep(state, dateMs).map((status): PlanStatus => {
    if (status.plan.name !== state.running) return status;
    const isFailed = outcome.failures.length > 0;
    return {
      ...status,
      // Its turns in the meantime are left out (Backup-T3).
      nextMs: nextAfter(status.plan.schedule, dateMs),
      lastSuccessMs: isFailed ? status.lastSuccessMs : dateMs,
      failures: status.failures + (isFailed ? 1 : 0),
      last: { ...outcome, dateMs, durationMs },
    };
  });
  const { effects, state: next } = beginDue(plans, dateMs);
  return { state: next, effects: [{ kind: 'show', plans: next.plans }, ...effects] };
}

/** Begins the plan that has waited longest, if any is due (Backup-T1). */
function beginDue(plans: readonly PlanStatus[], dateMs: number): Step<WaitingBackups | WorkingBackups, BackupsEffect> {
  const due = plans.filter(({ nextMs }) => nextMs <= dateMs).sort((one, other) => one.nextMs - other.nextMs)[0];
  if (due === undefined) return { state: waitingBackups(plans, dateMs), effects: [] };
  const { plan } = due;
  const counted = plans.map((status) => (status === due ? { ...status, nextMs: nextAfter(plan.schedule, dateMs) } : status));
  return { state: workingBackups(counted, dateMs, plan.name), effects: [{ kind: 'backUp', plan }] };
}

/** Counts the next turns anew where the date was set back (Backup-T2). */
function afterDateStep(state: WaitingBackups | WorkingBackups, dateMs: number): readonly PlanStatus[] {
  if (state.dateMs - dateMs <= SMALL_STEP_MS) return state.plans;
  return state.plans.map((status) => ({ ...status, nextMs: nextAfter(status.plan.schedule, dateMs) }));
}

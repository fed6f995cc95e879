/** Decides what follows a crash: a restart after a growing delay, or giving up to the parent. */

export interface RestartPolicy {
  readonly delayMinMs: number;
  readonly delayMaxMs: number;
  /** After this long without a crash the delay starts at its minimum again. */
  readonly calmMs: number;
  /** With this many crashes within `windowMs` the actor's parent has to decide. */
  readonly crashesMax: number;
  readonly windowMs: number;
}

export const DEFAULT_RESTART_POLICY: RestartPolicy = {
  delayMinMs: 100,
  delayMaxMs: 30_000,
  calmMs: 60_000,
  crashesMax: 10,
  windowMs: 300_000,
};

export interface CrashHistory {
  /** Times of the crashes within the window, oldest first. */
  readonly crashesMs: readonly number[];
  /** Crashes since the last calm time. */
  readonly streak: number;
}

export const NO_CRASHES: CrashHistory = { crashesMs: [], streak: 0 };

export type RestartDecision = { readonly kind: 'restart'; readonly delayMs: number } | { readonly kind: 'escalate' };

/** The history with a crash at `nowMs`, and what to do about it. */
export function decideRestart(
  history: CrashHistory,
  nowMs: number,
  policy: RestartPolicy,
): { history: CrashHistory; decision: RestartDecision } {
  const last = history.crashesMs.at(-1);
  const calm = last === undefined || nowMs - last >= policy.calmMs + restartDelayMs(history.streak, policy);
  const streak = calm ? 1 : history.streak + 1;
  const crashesMs = [...history.crashesMs.filter((time) => nowMs - time < policy.windowMs), nowMs];
  const next = { crashesMs, streak };
  if (crashesMs.length >= policy.crashesMax) return { history: next, decision: { kind: 'escalate' } };
  return { history: next, decision: { kind: 'restart', delayMs: restartDelayMs(streak, policy) } };
}

/** Delay after the `streak`-th crash in a row (from 1): doubling from the minimum to the maximum. */
export function restartDelayMs(streak: number, policy: { readonly delayMinMs: number; readonly delayMaxMs: number }): number {
  if (streak <= 0) return 0;
  return Math.min(policy.delayMaxMs, policy.delayMinMs * 2 ** Math.min(streak - 1, 30));
}

/** `delayMs` moved by up to a fifth either way, so that many actors don't return in one moment. `random` in [0, 1). */
export function jittered(delayMs: number, random: number): number {
  return Math.round(delayMs * (0.8 + 0.4 * random));
}

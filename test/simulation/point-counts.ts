/** How many points a count may have found, from what clients know of each of them. */

import type { PointCall } from './point-model.js';

export interface CountCall {
  readonly points: readonly number[];
  readonly called: number;
  readonly answered: number;
  readonly count: number;
  /** It takes in everything that was acknowledged before it began. */
  readonly complete: boolean;
}

/** What a count tells against the calls, by point, or null. */
export function wrongCount(count: CountCall, callsOf: (point: number) => readonly PointCall[]): string | null {
  const least = count.complete ? count.points.filter((point) => isSurelyThere(callsOf(point), count)).length : 0;
  const most = count.points.filter((point) => mayBeThere(callsOf(point), count)).length;
  if (count.count >= least && count.count <= most) return null;
  return `events ${count.called} to ${count.answered}: a count gave ${count.count}, and there were ${least} to ${most} points`;
}

/** It was put before the count, and nobody may have deleted it until the end of the count. */
function isSurelyThere(calls: readonly PointCall[], { answered, called }: CountCall): boolean {
  const deletes = calls.filter(({ operation }) => operation.kind === 'delete');
  return calls.some(
    (put) =>
      put.operation.kind === 'put' &&
      put.answered < called &&
      !deletes.some((other) => other.answered > put.called && other.called < answered),
  );
}

/** It was put, and, as far as the count takes it in, not deleted after that. */
function mayBeThere(calls: readonly PointCall[], { answered, called, complete }: CountCall): boolean {
  const deletes = calls.filter(({ operation }) => operation.kind === 'delete');
  return calls.some(
    (put) =>
      put.operation.kind === 'put' &&
      put.called < answered &&
      !(complete && deletes.some((other) => other.called > put.answered && other.answered < called)),
  );
}

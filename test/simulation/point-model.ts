/** One point as clients should see it: a value that is put, changed where it is there, which leaves what was put as it is, and deleted. */

import type { Call, Model } from './linearizable.js';

export type PointOperation =
  | { readonly kind: 'put'; readonly value: string }
  /** Refused where there is no point. */
  | { readonly kind: 'change'; readonly value: string }
  /** Nothing happens where there is no point. */
  | { readonly kind: 'touch'; readonly value: string }
  | { readonly kind: 'delete' }
  | { readonly kind: 'read' };

export type PointAnswer =
  | { readonly kind: 'done' }
  /** The point that was to be changed is not there. */
  | { readonly kind: 'none' }
  | ({ readonly kind: 'seen' } & PointState);

/** value: null where there is no point. put: what it had before it was changed. */
export interface PointState {
  readonly value: string | null;
  readonly put: string | null;
}

export const NO_POINT: PointState = { value: null, put: null };

export const pointModel: Model<PointState, PointOperation, PointAnswer> = {
  start: NO_POINT,
  step(state, operation, answer) {
    switch (operation.kind) {
      case 'read':
        return answer === null || (answer.kind === 'seen' && isSame(answer, state)) ? state : null;
      case 'put':
        return { value: operation.value, put: operation.value };
      case 'delete':
        return NO_POINT;
      case 'touch':
        return state.value === null ? state : { ...state, value: operation.value };
      case 'change': {
        const isThere = state.value !== null;
        if (answer !== null && isThere !== (answer.kind === 'done')) return null;
        return isThere ? { ...state, value: operation.value } : state;
      }
      default:
        return operation satisfies never;
    }
  },
  key: ({ put, value }) => `${value} ${put}`,
};

function isSame(one: PointState, other: PointState): boolean {
  return one.value === other.value && one.put === other.put;
}

export interface PointCall extends Call<PointOperation, PointAnswer> {
  readonly id: number;
  /** Of a read; see `PROMISES`. */
  readonly promise: 'weak' | 'complete' | 'linearizable';
  /** Is on disk, and will be applied some time. */
  readonly acknowledged: boolean;
}

/**
 * What a read tells against the calls, or null: every value was written by a call that had begun, and, but for weak reads, no other
 * write came after it and was acknowledged before the read began.
 */
export function missedWrite(calls: readonly PointCall[]): string | null {
  const writes = calls.filter(({ operation }) => operation.kind !== 'read');
  for (const read of calls) {
    if (read.operation.kind !== 'read' || read.answer?.kind !== 'seen') continue;
    const { value } = read.answer;
    const sources = writes.filter((write) => writtenBy(write) === value && write.called <= read.answered && write.answer?.kind !== 'none');
    if (sources.length === 0 && value !== null) return `a read gave ${value}, which nobody had written`;
    if (read.promise === 'weak') continue;
    // Before all writes there was no point; what was touched may not have been there.
    const ends = sources.map((write) => write.answered);
    if (value === null) ends.push(-1);
    const newest = Math.max(...ends);
    const missed = writes.find(
      (write) =>
        write.operation.kind !== 'touch' &&
        write.answer?.kind === 'done' &&
        write.called > newest &&
        write.answered < read.called &&
        writtenBy(write) !== value,
    );
    if (missed !== undefined) return `a read gave ${value} after ${JSON.stringify(missed.operation)} was acknowledged`;
  }
  return null;
}

function writtenBy({ operation }: PointCall): string | null {
  return 'value' in operation ? operation.value : null;
}

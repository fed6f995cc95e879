/** Sorts in portions, between which others may have their turn. */

import type { IsOver } from './slices.js';

/** Values that are sorted at once. */
const RUN = 256;

/**
 * The values in ascending order; equal ones stay in theirs. compare: less than 0 if the first one comes before the other. beginPortion: begins what
 * is done between two pauses, and returns a function that says when that is over.
 */
export function* sorting(
  values: readonly number[],
  compare: (one: number, other: number) => number,
  beginPortion: () => IsOver,
): Generator<null, readonly number[]> {
  let isOver = beginPortion();
  let runs: number[][] = [];
  for (let from = 0; from < values.length; from += RUN) {
    runs.push(values.slice(from, from + RUN).sort(compare));
    if (!isOver()) continue;
    yield null;
    isOver = beginPortion();
  }
  while (runs.length > 1) {
    const merged: number[][] = [];
    for (let at = 0; at < runs.length; at += 2) {
      merged.push(mergedRuns(runs[at] as number[], runs[at + 1] ?? [], compare));
      if (!isOver()) continue;
      yield null;
      isOver = beginPortion();
    }
    runs = merged;
  }
  return runs[0] ?? [];
}

function mergedRuns(one: readonly number[], other: readonly number[], compare: (one: number, other: number) => number): number[] {
  const merged: number[] = [];
  let [at, otherAt] = [0, 0];
  while (at < one.length && otherAt < other.length) {
    const [value, otherValue] = [one[at] as number, other[otherAt] as number];
    if (compare(value, otherValue) <= 0) {
      merged.push(value);
      at++;
    } else {
      merged.push(otherValue);
      otherAt++;
    }
  }
  for (; at < one.length; at++) merged.push(one[at] as number);
  for (; otherAt < other.length; otherAt++) merged.push(other[otherAt] as number);
  return merged;
}

/** How many rows pass a filter, as far as indexes tell by their counts, without looking at rows. Pure. */

import type { EstimatedMatches } from '../../protocols/model/explanation.js';
import type { Condition, Filter } from '../../protocols/model/filter.js';

/** What an index says of one condition; null: nothing. */
export type BoundsOf = (condition: Condition) => { readonly min: number; readonly max: number } | null;

/** Of `rows` rows, deleted ones included. Conditions are taken to have nothing to do with one another. */
export function estimateMatches(filter: Filter, rows: number, boundsOf: BoundsOf): EstimatedMatches {
  const one = (condition: Condition): EstimatedMatches => estimateCondition(condition, rows, boundsOf);
  let all: EstimatedMatches = { min: rows, expected: rows, max: rows };
  for (const condition of filter.must) all = both(all, one(condition), rows);
  for (const condition of filter.mustNot) all = both(all, not(one(condition), rows), rows);
  if (filter.should.length > 0) all = both(all, some(filter.should.map(one), rows), rows);
  if (filter.minShould !== null) {
    const { conditions, minCount } = filter.minShould;
    all = both(all, atLeast(conditions.map(one), minCount, rows), rows);
  }
  return { ...all, expected: Math.round(all.expected) };
}

/** As `estimateMatches`, of one condition. */
export function estimateCondition(condition: Condition, rows: number, boundsOf: BoundsOf): EstimatedMatches {
  if (condition.kind === 'filter') return estimateMatches(condition.filter, rows, boundsOf);
  if (condition.kind === 'hasId') {
    const max = Math.min(rows, condition.ids.length);
    return { min: 0, expected: max, max };
  }
  const bounds = boundsOf(condition);
  if (bounds === null) return { min: 0, expected: Math.round(rows / 2), max: rows };
  return { ...bounds, expected: Math.round((bounds.min + bounds.max) / 2) };
}

function both(a: EstimatedMatches, b: EstimatedMatches, rows: number): EstimatedMatches {
  return {
    min: Math.max(0, a.min + b.min - rows),
    expected: rows === 0 ? 0 : (a.expected * b.expected) / rows,
    max: Math.min(a.max, b.max),
  };
}

function not({ min, expected, max }: EstimatedMatches, rows: number): EstimatedMatches {
  return { min: rows - max, expected: rows - expected, max: rows - min };
}

function some(all: readonly EstimatedMatches[], rows: number): EstimatedMatches {
  if (rows === 0) return { min: 0, expected: 0, max: 0 };
  const missed = all.reduce((share, { expected }) => share * (1 - expected / rows), 1);
  return {
    min: all.reduce((most, { min }) => Math.max(most, min), 0),
    expected: rows * (1 - missed),
    max: Math.min(
      rows,
      all.reduce((sum, { max }) => sum + max, 0),
    ),
  };
}

function atLeast(all: readonly EstimatedMatches[], minCount: number, rows: number): EstimatedMatches {
  if (minCount <= 1) return minCount <= 0 ? { min: rows, expected: rows, max: rows } : some(all, rows);
  // Each row that passes is in so many of the sets.
  const total = all.reduce((sum, { max }) => sum + max, 0);
  const max = Math.min(rows, Math.floor(total / minCount));
  return { min: 0, expected: max / 2, max };
}

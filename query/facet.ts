/** Counts of payload values: which of them an answer shows, and in which order. */

import type { FieldSchema } from '../protocols/model/collection.js';
import type { TermValue } from './filter/lookup.js';

export interface FacetHit {
  readonly value: TermValue;
  /** Points that have the value. */
  readonly count: number;
}

/** Whether values of a field with this index can be counted: where they can be matched. Source: scenario facet. */
export function canFacet({ type, params }: FieldSchema): boolean {
  return type === 'keyword' || type === 'uuid' || type === 'bool' || (type === 'integer' && params?.lookup !== false);
}

/** The `limit` most frequent values, the most frequent first, smaller values first among equally frequent ones. */
export function topValues(counts: ReadonlyMap<TermValue, number>, limit: number): FacetHit[] {
  const roomy = 2 * limit + 1024;
  let best: FacetHit[] = [];
  let least = 0;
  for (const [value, count] of counts) {
    if (count < least) continue;
    best.push({ value, count });
    if (best.length < roomy) continue;
    best = best.sort(byRank).slice(0, limit);
    least = best.at(-1)?.count ?? 0;
  }
  return best.sort(byRank).slice(0, limit);
}

function byRank(a: FacetHit, b: FacetHit): number {
  return b.count - a.count || compareValues(a.value, b.value);
}

/** Order of values of one index: numbers by size, false before true, texts by code points. */
export function compareValues(a: TermValue, b: TermValue): number {
  if (typeof a === 'string' && typeof b === 'string') return compareTexts(a, b);
  return a < b ? -1 : a > b ? 1 : 0;
}

function compareTexts(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at++) {
    const one = a.charCodeAt(at);
    const other = b.charCodeAt(at);
    if (one !== other) return unitRank(one) - unitRank(other);
  }
  return a.length - b.length;
}

/** Halves of surrogate pairs stand for code points behind all others. */
function unitRank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}

/** Which postings of a sealed index answer a part of a lookup: runs of them, found by search. */

import type { GeoArea, Range } from '../../../protocols/model/filter.js';
import { writeIdWords } from '../../../protocols/model/point-id.js';
import type { LookupPart, TermValue } from '../../../query/filter/lookup.js';
import { areaCells } from '../../../query/geo/cells.js';
import { FLAG_ROUNDED, isNumeric } from '../index-layout.js';
import type { IndexParts } from './parts.js';

/** Postings from <= position < to. */
export interface Run {
  readonly from: number;
  readonly to: number;
}

/** Runs that answer a part, ascending and apart. `rounded`: rows beside those meant may be among them. */
export interface Runs {
  readonly runs: readonly Run[];
  readonly rounded: boolean;
}

export const EXACT_MAX = 2 ** 53;
const NO_RUN: Run = { from: 0, to: 0 };

/** The runs of a part that speaks of values. */
export function runsOf(index: IndexParts, part: Extract<LookupPart, { kind: 'values' | 'except' | 'range' }>): Runs {
  if (part.kind === 'range') return numberRuns(index, part.range);
  const found = valueRuns(index, part.values);
  if (part.kind === 'values') return found;
  return found.rounded
    ? { runs: [{ from: 0, to: index.entries }], rounded: true }
    : { runs: gaps(found.runs, index.entries), rounded: false };
}

/** Runs of places in the cells of an area. */
export function cellRuns(index: IndexParts, area: GeoArea): Run[] {
  return areaCells(area).flatMap((range) => numberRuns(index, range).runs);
}

/** The run of a term of a dictionary; an empty one when the index has no such term. */
export function termRun(index: IndexParts, value: TermValue): Run {
  const term = findTerm(index, value);
  return term === undefined ? NO_RUN : { from: index.starts.at(term), to: index.starts.at(term + 1) };
}

/** Runs of postings between `runs` (which are ascending and apart). */
export function gaps(runs: readonly Run[], entries: number): Run[] {
  const between: Run[] = [];
  let from = 0;
  for (const run of runs) {
    if (run.from > from) between.push({ from, to: run.from });
    from = run.to;
  }
  if (from < entries) between.push({ from, to: entries });
  return between;
}

function valueRuns(index: IndexParts, values: readonly TermValue[]): Runs {
  const runs: Run[] = [];
  let rounded = false;
  for (const value of values) {
    const found = isNumeric(index.schema.type)
      ? numberRun(index, value as number | bigint)
      : { run: termRun(index, value), rounded: false };
    if (found.run.to > found.run.from) {
      runs.push(found.run);
      rounded ||= found.rounded;
    }
  }
  runs.sort((a, b) => a.from - b.from);
  // A value may be listed twice.
  return { runs: runs.filter((run, at) => at === 0 || run.from !== (runs[at - 1] as Run).from), rounded };
}

function numberRun(index: IndexParts, value: number | bigint): { run: Run; rounded: boolean } {
  const number = Number(value);
  const representable = typeof value === 'number' || BigInt(number) === value;
  const rounded = isRounded(index, number);
  if (!representable && !rounded) return { run: NO_RUN, rounded: false };
  return { run: { from: firstNumber(index, number, false), to: firstNumber(index, number, true) }, rounded };
}

/** Whether an integer that was rounded may be filed under this number. */
function isRounded(index: IndexParts, number: number): boolean {
  return (index.flags & FLAG_ROUNDED) !== 0 && Math.abs(number) >= EXACT_MAX;
}

function numberRuns(index: IndexParts, range: Range): Runs {
  let from = 0;
  let to = index.entries;
  let rounded = false;
  const bound = (value: number | undefined, isLower: boolean, isOpen: boolean): void => {
    if (value === undefined) return;
    const inclusive = !isOpen || isRounded(index, value);
    rounded ||= isRounded(index, value);
    if (isLower) from = Math.max(from, firstNumber(index, value, !inclusive));
    else to = Math.min(to, firstNumber(index, value, inclusive));
  };
  bound(range.gt, true, true);
  bound(range.gte, true, false);
  bound(range.lt, false, true);
  bound(range.lte, false, false);
  return { runs: from < to ? [{ from, to }] : [], rounded };
}

/** Position of the first posting whose number is `value` or more (`behind`: more). */
export function firstNumber({ numbers, entries }: IndexParts, value: number, behind: boolean): number {
  let low = 0;
  let high = entries;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const number = numbers.at(middle);
    if (number < value || (behind && number === value)) low = middle + 1;
    else high = middle;
  }
  return low;
}

function findTerm(index: IndexParts, value: TermValue): number | undefined {
  switch (index.schema.type) {
    case 'bool': {
      const term = (value === true ? 1 : 0) - index.firstBoolean;
      return term >= 0 && term < index.terms ? term : undefined;
    }
    case 'uuid': {
      const words = new Uint32Array(4);
      writeIdWords(String(value), words, 0);
      return search(index.terms, (term) => compareWords(index.uuids.slice(term * 4, term * 4 + 4), words));
    }
    default: {
      const key = Buffer.from(String(value), 'utf8');
      return search(index.terms, (term) => compareText(index.textOf(term), key));
    }
  }
}

/** compare: sign of term - value. */
function search(terms: number, compare: (term: number) => number): number | undefined {
  let low = 0;
  let high = terms;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const order = compare(middle);
    if (order === 0) return middle;
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return undefined;
}

function compareWords(words: Uint32Array, other: Uint32Array): number {
  for (let i = 0; i < 4; i++) {
    const a = words[i] as number;
    const b = other[i] as number;
    if (a !== b) return a < b ? -1 : 1;
  }
  return 0;
}

function compareText(text: Uint8Array, key: Uint8Array): number {
  const length = Math.min(text.length, key.length);
  for (let i = 0; i < length; i++) {
    const order = (text[i] as number) - (key[i] as number);
    if (order !== 0) return order;
  }
  return text.length - key.length;
}

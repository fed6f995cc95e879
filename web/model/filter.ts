/** Conditions that are entered in a form, as a filter of the API. */

import { literal } from './literal.js';

export interface FormCondition {
  readonly field: string;
  readonly operator: string;
  readonly value: string;
}

export const OPERATORS: readonly string[] = ['is', 'is not', '<', '≤', '>', '≥', 'has the words', 'is empty', 'is there'];

const BOUNDS: Readonly<Record<string, string>> = { '<': 'lt', '≤': 'lte', '>': 'gt', '≥': 'gte' };

/** Points have to meet all of them; null for none. */
export function formFilter(conditions: readonly FormCondition[]): object | null {
  if (conditions.length === 0) return null;
  const must: object[] = [];
  const mustNot: object[] = [];
  for (const { field, operator, value } of conditions) {
    const bound = BOUNDS[operator];
    if (bound !== undefined) must.push({ key: field, range: { [bound]: boundOf(value) } });
    else if (operator === 'has the words') must.push({ key: field, match: { text: value } });
    else if (operator === 'is empty') must.push({ is_empty: { key: field } });
    else if (operator === 'is there') mustNot.push({ is_empty: { key: field } });
    else (operator === 'is' ? must : mustNot).push({ key: field, match: { value: literal(value) } });
  }
  return { ...(must.length > 0 ? { must } : {}), ...(mustNot.length > 0 ? { must_not: mustNot } : {}) };
}

/** A number, or a date as it is written. */
function boundOf(text: string): number | string {
  const number = Number(text);
  return text.trim() !== '' && Number.isFinite(number) ? number : text;
}

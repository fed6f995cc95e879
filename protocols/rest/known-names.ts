/** Refuses names that an object does not have, and says which one may be meant. */

import { TroupeError } from '../errors.js';
import { bodyPath, type JsonObject } from './fields.js';

/** What people write who know other query languages, without `$` and `_`. */
const OTHER_WORDS: Readonly<Record<string, string>> = {
  above: 'gt',
  after: 'gt',
  before: 'lt',
  below: 'lt',
  eq: 'value',
  equals: 'value',
  from: 'gte',
  greater: 'gt',
  greaterthan: 'gt',
  greaterthanorequal: 'gte',
  in: 'any',
  k: 'limit',
  less: 'lt',
  lessthan: 'lt',
  lessthanorequal: 'lte',
  like: 'text',
  max: 'lte',
  min: 'gte',
  nin: 'except',
  notin: 'except',
  to: 'lte',
  top: 'limit',
  topk: 'limit',
  until: 'lt',
};

/** A name that differs in more than half of its letters is no misspelling. */
const DISTANCE_MAX_OF_LENGTH = 0.5;

/** path: how messages name the object. Errors: `malformedBody` for a name that is not among `known`. */
export function refuseUnknown(object: JsonObject, known: readonly string[], path: string): void {
  for (const name of Object.keys(object)) if (!known.includes(name)) throw unknownName(name, known, path);
}

export function unknownName(name: string, known: readonly string[], path: string): TroupeError {
  const meant = nearestName(name, known);
  const hint = meant === null ? '' : ` (did you mean \`${meant}\`?)`;
  const list = known.map((one) => `\`${one}\``).join(', ');
  return new TroupeError('malformedBody', `\`${bodyPath(path)}\`: unknown field \`${name}\`${hint}, expected one of ${list}`);
}

/** The known name that `name` most likely stands for; null when none is near. */
export function nearestName(name: string, known: readonly string[]): string | null {
  const plain = name.toLowerCase().replace(/[$_]/g, '');
  const other = Object.hasOwn(OTHER_WORDS, plain) ? OTHER_WORDS[plain] : undefined;
  if (other !== undefined && known.includes(other)) return other;
  let nearest: string | null = null;
  let least = Number.POSITIVE_INFINITY;
  for (const one of known) {
    const distance = editDistance(plain, one.replaceAll('_', ''));
    if (distance < least && distance <= Math.max(plain.length, one.length) * DISTANCE_MAX_OF_LENGTH) {
      nearest = one;
      least = distance;
    }
  }
  return nearest;
}

/** Letters to put in, take out or replace (Levenshtein). Only the first ones count: names are short, what is sent may not be. */
export function editDistance(first: string, second: string): number {
  const a = first.slice(0, 64);
  const b = second.slice(0, 64);
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}

/** Decodes which parts of a point an answer carries: `with_payload` and `with_vector`. */

import { TroupeError } from '../errors.js';
import type { PayloadSelector, VectorSelector } from '../model/filter.js';
import { parsePath, printPath } from '../model/json-path.js';
import type { JsonValue } from '../model/payload.js';
import { isObject } from './fields.js';

export const ALL: { readonly kind: 'all' } = { kind: 'all' };
export const NONE: { readonly kind: 'none' } = { kind: 'none' };

/** The selector of `with_payload`; `byDefault` when the value is null or absent. Errors: `malformedBody`. */
export function decodePayloadSelector(value: unknown, byDefault: PayloadSelector, path = 'with_payload'): PayloadSelector {
  if (value === undefined || value === null) return byDefault;
  if (typeof value === 'boolean') return value ? ALL : NONE;
  if (Array.isArray(value)) return { kind: 'include', keys: keysOf(value, path) };
  if (isObject(value as JsonValue)) {
    const names = Object.keys(value as object);
    const name = names[0];
    if (names.length === 1 && (name === 'include' || name === 'exclude')) {
      return { kind: name, keys: keysOf((value as Record<string, unknown>)[name], `${path}.${name}`) };
    }
  }
  throw refused(path, 'a boolean, an array of strings, or an object with an include/exclude field');
}

/** The selector of `with_vector`; `byDefault` when the value is absent (null is refused, as the API has it). Errors: `malformedBody`. */
export function decodeVectorSelector(value: unknown, byDefault: VectorSelector, path = 'with_vector'): VectorSelector {
  if (value === undefined) return byDefault;
  if (typeof value === 'boolean') return value ? ALL : NONE;
  if (Array.isArray(value) && value.every((name) => typeof name === 'string')) return { kind: 'names', names: value };
  throw refused(path, 'a boolean, or an array of strings');
}

/** Canonical texts of payload paths. */
function keysOf(value: unknown, path: string): string[] {
  if (!Array.isArray(value)) throw refused(path, 'an array of strings');
  return value.map((key, index) => {
    const steps = typeof key === 'string' ? parsePath(key) : undefined;
    if (steps === undefined) throw refused(`${path}[${index}]`, 'a payload path like `a`, `a.b` or `a[].b`');
    return printPath(steps);
  });
}

function refused(path: string, wanted: string): TroupeError {
  return new TroupeError('malformedBody', `\`${path}\`: Expected ${wanted}`);
}

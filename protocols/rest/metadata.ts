/** Metadata of a collection: whatever its owner wants to keep with it. */

import { TroupeError } from '../errors.js';
import { stringifyJson } from '../json.js';
import type { Payload } from '../model/payload.js';
import { type Fields, isObject, wrongType } from './fields.js';

/** Every change of a collection is written, and told to the workers, with all of its settings. */
const LENGTH_MAX = 1 << 20;

/** Errors: `malformedBody`. */
export function decodeMetadata(fields: Fields): Payload | undefined {
  const value = fields.value('metadata');
  if (value === undefined || isObject(value)) return value;
  throw wrongType('metadata', value, 'a map');
}

/** Keys that are given replace those that were there, and null takes one away. Errors: `wrongInput` when it is too much together. */
export function mergeMetadata(current: Payload | undefined, change: Payload | undefined): Payload | undefined {
  if (change === undefined) return current;
  const merged = new Map(Object.entries(current ?? {}));
  for (const [key, value] of Object.entries(change)) {
    if (value === null) merged.delete(key);
    else merged.set(key, value);
  }
  const metadata = Object.fromEntries(merged);
  const { length } = stringifyJson(metadata);
  if (length <= LENGTH_MAX) return metadata;
  throw new TroupeError(
    'wrongInput',
    `metadata would have ${length} characters, ${LENGTH_MAX} at most; take keys away by setting them to null`,
  );
}

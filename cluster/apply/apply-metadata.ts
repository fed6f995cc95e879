/** Small values that users keep in the agreed state, under keys of their own. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { CommandOf } from '../state/commands.js';
import type { ClusterState } from '../state/state.js';
import { type Change, done, refused, unchanged, wrongInput } from './change.js';

/** Every node keeps all values in memory and writes them with each snapshot of the agreed state, so they are few and small. */
export const METADATA_KEYS_MAX = 1000;
export const METADATA_KEY_BYTES_MAX = 256;
/** Of one value, and of all keys and values together, as JSON. */
export const METADATA_VALUE_BYTES_MAX = 64 << 10;
export const METADATA_BYTES_MAX = 1 << 20;

export function setMetadata(state: ClusterState, { key, value }: CommandOf<'setMetadata'>): Change {
  const { metadata } = state;
  if (value === (metadata.get(key) ?? null)) return unchanged(state);
  const next = new Map(metadata);
  if (value === null) next.delete(key);
  else next.set(key, value);
  const error = value === null ? null : (refusedValue(key, value) ?? refusedSum(next));
  return error === null ? done({ ...state, metadata: next }) : refused(state, error);
}

function refusedValue(key: string, value: string): ErrorFacts | null {
  if (bytesOf(key) > METADATA_KEY_BYTES_MAX)
    return wrongInput(`the key has ${bytesOf(key)} bytes, and a key of the cluster's metadata can have ${METADATA_KEY_BYTES_MAX}`);
  if (bytesOf(value) <= METADATA_VALUE_BYTES_MAX) return null;
  return wrongInput(
    `the value has ${bytesOf(value)} bytes, and a value of the cluster's metadata can have ${METADATA_VALUE_BYTES_MAX}: keep larger ones in points`,
  );
}

function refusedSum(metadata: ReadonlyMap<string, string>): ErrorFacts | null {
  if (metadata.size > METADATA_KEYS_MAX)
    return wrongInput(`the cluster's metadata have ${METADATA_KEYS_MAX} keys, and more are not kept: delete one first`);
  let bytes = 0;
  for (const [key, value] of metadata) bytes += bytesOf(key) + bytesOf(value);
  if (bytes <= METADATA_BYTES_MAX) return null;
  return wrongInput(`the cluster's metadata would have ${bytes} bytes, and can have ${METADATA_BYTES_MAX}: delete keys first`);
}

function bytesOf(text: string): number {
  return Buffer.byteLength(text, 'utf8');
}

/** A request body as decoders take it: a JSON value, with the vectors taken out where that was worth it. */

import { parseJson } from '../json.js';
import type { JsonValue } from '../model/payload.js';
import { scanVectors } from './vector-scan.js';

export interface RequestValue {
  readonly value: JsonValue;
  /** Not null: each list of numbers at the place of a vector is `[n]` and stands for `vectors[n]`. Sparse vectors stay as they are. */
  readonly vectors: readonly Float32Array[] | null;
}

/** Gets what is left for the parser, before it runs, and how many vectors were taken out. */
export type CheckJson = (json: Uint8Array | string, vectors: number) => void;

/** The value of JSON bytes; vectors are read from the bytes where they stand. A value passes as it is. Errors: `malformedBody`, and those of `check`. */
export function scannedBody(body: Uint8Array | RequestValue | null, check?: CheckJson): RequestValue {
  const scanned = body instanceof Uint8Array ? scanVectors(body) : null;
  if (scanned === null) return plainBody(body, check);
  check?.(scanned.text, scanned.vectors.length);
  return { value: parseJson(scanned.text), vectors: scanned.vectors };
}

/** The value of JSON bytes that hold no vectors. A value passes as it is. Errors: as `scannedBody`. */
export function plainBody(body: Uint8Array | RequestValue | null, check?: CheckJson): RequestValue {
  if (body !== null && !(body instanceof Uint8Array)) return body;
  if (body !== null) check?.(body, 0);
  return { value: parseJson(body ?? ''), vectors: null };
}

/**
 * Reads query vectors straight from the bytes of a request: flat number arrays at the places where vectors stand are
 * taken out as Float32Arrays, and what is left is a short text for the JSON parser. On a body of 784 floats this costs
 * some two fifths of `JSON.parse` (see `test/protocols/rest/vector-scan.test.ts` for what must come out the same).
 */

import { isUtf8 } from 'node:buffer';
import { ByteScanner, OPEN_LIST, OPEN_OBJECT, type ScannedBody } from './byte-scan.js';

/** Keys of a request whose value may be a vector, and the key below them that may hold it instead. */
const VECTOR_KEYS: Readonly<Record<string, string>> = { query: 'nearest', vector: 'vector' };
const BATCH_KEY = 'searches';

/**
 * The body without its vectors, or null when there is nothing to gain (no vector, or something unexpected).
 * Every flat array of numbers at `query`, `query.nearest`, `vector`, `vector.vector`, and at the same places of each
 * object of `searches`, is taken out. Values beyond a float32 come as infinities.
 */
export function scanVectors(bytes: Uint8Array): ScannedBody | null {
  if (!isUtf8(bytes)) return null;
  const scanner = new ByteScanner(bytes);
  if (!scanRequest(scanner, true) || scanner.vectors.length === 0) return null;
  return scanner.rest();
}

function scanRequest(scanner: ByteScanner, mayHoldBatch: boolean): boolean {
  return scanner.members((key) => {
    const inner = Object.hasOwn(VECTOR_KEYS, key) ? VECTOR_KEYS[key] : undefined;
    if (inner !== undefined) return scanVectorOr(scanner, inner);
    if (mayHoldBatch && key === BATCH_KEY && scanner.peek() === OPEN_LIST) return scanner.items(() => scanRequest(scanner, false));
    return scanner.skipValue();
  });
}

/** A vector, or an object that holds one at `inner`, or anything else. */
function scanVectorOr(scanner: ByteScanner, inner: string): boolean {
  const next = scanner.peek();
  if (next === OPEN_LIST) return scanner.vector();
  if (next !== OPEN_OBJECT) return scanner.skipValue();
  return scanner.members((key) => (key === inner && scanner.peek() === OPEN_LIST ? scanner.vector() : scanner.skipValue()));
}

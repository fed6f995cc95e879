/**
 * Reads the vectors of points straight from the bytes of a write request: those of `points` and `batch` are taken out as
 * Float32Arrays, also within the operations of a batch of them. Ids, payloads and everything else stay in the text.
 */

import { isUtf8 } from 'node:buffer';
import { ByteScanner, OPEN_LIST, OPEN_OBJECT, type ScannedBody } from './byte-scan.js';

/** Keys of a batch of operations that carry points. */
const POINT_OPERATIONS: ReadonlySet<string> = new Set(['upsert', 'update_vectors']);

/**
 * The body without the dense and multivectors of its points, or null when there is none, or anything but lists of numbers,
 * lists of these and objects stands where a vector should. Wherever a body that comes back has a list of one number at the
 * place of a vector, it was taken out. Sparse vectors are left to the parser: a float32 could not hold their indices.
 * listed: the body is a list of operations.
 */
export function scanPoints(bytes: Uint8Array, listed: boolean): ScannedBody | null {
  if (!isUtf8(bytes)) return null;
  const scanner = new ByteScanner(bytes);
  const known = listed ? scanOperations(scanner) : scanBody(scanner);
  if (!known || scanner.remarkable || scanner.vectors.length === 0) return null;
  return scanner.rest();
}

function scanOperations(scanner: ByteScanner): boolean {
  const operation = (key: string): boolean => (POINT_OPERATIONS.has(key) ? scanBody(scanner) : scanner.skipValue());
  return scanner.members((key) => (key === 'operations' ? scanner.items(() => scanner.members(operation)) : scanner.skipValue()));
}

function scanBody(scanner: ByteScanner): boolean {
  const pointField = (key: string): boolean => (key === 'vector' ? scanVectors(scanner) : scanner.skipValue());
  return scanner.members((key) => {
    if (key === 'points') return scanner.items(() => scanner.members(pointField));
    if (key === 'batch') return scanColumns(scanner);
    return scanner.skipValue();
  });
}

/** The batch form: a list of vectors, or of such lists by name. */
function scanColumns(scanner: ByteScanner): boolean {
  return scanner.members((key) => {
    if (key !== 'vectors') return scanner.skipValue();
    if (scanner.peek() === OPEN_LIST) return scanner.items(() => scanVectors(scanner));
    return scanner.members(() => scanner.items(() => scanVector(scanner)));
  });
}

/** What a point has for its vector: a list, or vectors by name. */
function scanVectors(scanner: ByteScanner): boolean {
  return scanner.peek() === OPEN_OBJECT ? scanner.members(() => scanVector(scanner)) : scanVector(scanner);
}

/** A list of numbers or of such lists, of which something must be taken out; sparse vectors and texts stay as they are. */
function scanVector(scanner: ByteScanner): boolean {
  if (scanner.peek() === OPEN_OBJECT) return scanner.skipValue();
  const before = scanner.vectors.length;
  return scanner.inputList() && scanner.vectors.length > before;
}

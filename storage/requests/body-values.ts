/**
 * Refuses bodies with so many JSON values that reading them would hold a thread for long, or take all of its heap: a body of 30 MB may be 10
 * million empty objects. The numbers of vectors do not count, as they are read without the parser. Each value but the first stands behind a comma
 * or a bracket, so counting these outside of strings counts the values; a short text is not looked at.
 */

import { getHeapStatistics } from 'node:v8';
import { TroupeError } from '../../protocols/errors.js';
import { countValueMarks } from '../../protocols/rest/byte-scan.js';

/** Measured: two seconds of a thread for so many objects. */
const READ_VALUES_MAX = 1_000_000;
const WRITE_VALUES_MAX = 4_000_000;

/**
 * An object takes 56 bytes and its place in a list 8. Half of a heap is left for the rest, since the parser cannot be interrupted: a thread
 * whose heap is full in the middle of it ends the process.
 */
const HEAP_BYTES_PER_VALUE = 128;
/**
 * A vector takes as much as so many values, with what is decoded around it. Measured: 800 to 970 bytes for each of 100,000 queries of a batch, in
 * whose text stand 4 to 6 marks.
 */
const VALUES_PER_VECTOR = 5;

/** Smaller ones become little. */
const LARGE_BODY_BYTES = 1 << 20;
/**
 * Usual bodies become three times as much, with their text. Measured: 104 MB of 31 MB with 95,000 points, 51 of 14 MB with objects in one another.
 * They have a mark each eight bytes at most; those that have more are of small objects and lists.
 */
const BECOMES = 3;
const USUAL_BYTES_PER_MARK = 8;
const BYTES_PER_VALUE = 64;

export type BodyPurpose = 'read' | 'write';

/** Bytes that a large body becomes when it is decoded, about. 0: little. */
export function decodedBytes(purpose: BodyPurpose, body: Uint8Array | null): number {
  if (body === null || body.length < LARGE_BODY_BYTES) return 0;
  const values = Math.min(countValueMarks(body), valuesMax(purpose, heapBytes));
  return BECOMES * body.length + BYTES_PER_VALUE * Math.max(0, values - Math.floor(body.length / USUAL_BYTES_PER_MARK));
}

/** The most values that a body may have. heapBytes: of the thread that reads it. vectors: that it has beside them. */
export function valuesMax(purpose: BodyPurpose, heapBytes: number, vectors = 0): number {
  const most = purpose === 'read' ? READ_VALUES_MAX : WRITE_VALUES_MAX;
  return Math.max(0, Math.min(most, Math.floor(heapBytes / HEAP_BYTES_PER_VALUE) - vectors * VALUES_PER_VECTOR));
}

/** json: what the parser gets, without vectors that are read by themselves; vectors: how many these are. Errors: `bodyTooLarge`. */
export function checkValues(purpose: BodyPurpose, json: Uint8Array | string, vectors = 0): void {
  const max = valuesMax(purpose, heapBytes, vectors);
  if (json.length <= max) return;
  const count = countValueMarks(typeof json === 'string' ? Buffer.from(json) : json);
  if (count > max) throw tooMany(purpose, count, max, vectors);
}

const heapBytes = getHeapStatistics().heap_size_limit;

function tooMany(purpose: BodyPurpose, count: number, max: number, vectors: number): TroupeError {
  const detail =
    `the body has ${count} commas and brackets between its JSON values, and a ${purpose} may have ${max} here` +
    `${vectors === 0 ? '' : ` beside ${vectors} vectors`}: ` +
    (purpose === 'write' ? 'send the points in several requests' : 'ask in several requests');
  return new TroupeError('bodyTooLarge', detail);
}

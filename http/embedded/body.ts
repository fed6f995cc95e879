/**
 * Bodies of callers in the same process, as JSON. Vectors may be Float32Arrays: their numbers are printed as the shortest text that is read back as the same
 * float32, which is about half as long as that of the same numbers as float64.
 */

import { TroupeError } from '../../protocols/errors.js';
import { stringifyJson } from '../../protocols/json.js';
import { printVector } from '../../storage/answers/float-text.js';

const ROOM_BYTES_MAX = 1 << 20;
const COMMA = 0x2c;

/** Bytes in a buffer of their own, which may be given to another thread. Errors: `malformedBody` when nested too deeply. */
export function encodeBody(body: unknown): Uint8Array {
  try {
    return holdsVectors(body) ? new BodyWriter().written(body) : new TextEncoder().encode(stringifyJson(body));
  } catch (error) {
    if (error instanceof RangeError) throw new TroupeError('malformedBody', 'recursion limit exceeded', { cause: error });
    throw error;
  }
}

function holdsVectors(value: unknown): boolean {
  if (value === null || typeof value !== 'object') return false;
  if (value instanceof Float32Array) return true;
  if (Array.isArray(value)) {
    // Nearly all lists are lists of numbers, but those of examples have ids and vectors.
    for (const item of value) if (typeof item === 'object' && holdsVectors(item)) return true;
    return false;
  }
  for (const key of Object.keys(value)) if (holdsVectors((value as Record<string, unknown>)[key])) return true;
  return false;
}

/** Kept between bodies, unless one was large. */
let room = Buffer.alloc(1 << 14);

/** Values that hold vectors are written part by part, all others at once. */
class BodyWriter {
  private bytes = room;
  private end = 0;

  written(body: unknown): Uint8Array {
    this.value(body);
    if (this.bytes.length <= ROOM_BYTES_MAX) room = this.bytes;
    return new Uint8Array(this.bytes.subarray(0, this.end));
  }

  private value(value: unknown): void {
    if (value instanceof Float32Array) this.vector(value);
    else if (!holdsVectors(value)) this.text(stringifyJson(value));
    else if (Array.isArray(value)) this.list(value);
    else this.members(Object.entries(value as object));
  }

  private list(values: readonly unknown[]): void {
    this.text('[');
    values.forEach((value, at) => {
      if (at > 0) this.text(',');
      this.value(value);
    });
    this.text(']');
  }

  /** Those that are undefined are left out, as in any JSON. */
  private members(entries: readonly (readonly [string, unknown])[]): void {
    let before = '{';
    for (const [key, value] of entries) {
      if (value === undefined) continue;
      this.text(`${before}${JSON.stringify(key)}:`);
      this.value(value);
      before = ',';
    }
    this.text('}');
  }

  private vector(values: Float32Array): void {
    this.text('[');
    printVector(values, (bytes, start, end) => {
      this.reserve(end - start);
      this.end += bytes.copy(this.bytes, this.end, start, end);
    });
    // Of the last number.
    if (this.bytes[this.end - 1] === COMMA) this.end--;
    this.text(']');
  }

  private text(text: string): void {
    this.reserve(text.length * 3);
    this.end += this.bytes.write(text, this.end, 'utf8');
  }

  private reserve(bytes: number): void {
    const needed = this.end + bytes;
    if (needed <= this.bytes.length) return;
    const larger = Buffer.alloc(Math.max(needed, this.bytes.length * 2));
    this.bytes.copy(larger, 0, 0, this.end);
    this.bytes = larger;
  }
}

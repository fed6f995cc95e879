/**
 * Reads query vectors straight from the bytes of a request: flat number arrays at the places where vectors stand are
 * taken out as Float32Arrays, and what is left is a short text for the JSON parser. On a body of 784 floats this costs
 * some two fifths of `JSON.parse` (see `test/protocols/rest/vector-scan.test.ts` for what must come out the same).
 *
 * The scan is no judge of JSON: wherever the bytes are not what it knows it gives up, and the whole body goes to the
 * parser, which finds the error and says where it is.
 */

import { isUtf8 } from 'node:buffer';

/** What is left of a body, and the vectors taken out: `[3]` stands in the text where `vectors[3]` was. */
export interface ScannedBody {
  readonly text: string;
  readonly vectors: readonly Float32Array[];
}

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
  const scanner = new Scanner(bytes);
  if (!scanner.request(true) || scanner.vectors.length === 0) return null;
  return { text: scanner.rest(), vectors: scanner.vectors };
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const BACKSLASH = 0x5c;

class Scanner {
  readonly vectors: Float32Array[] = [];
  private at = 0;
  /** Ends of what is copied to the rest so far, and the rest. */
  private copied = 0;
  private pieces = '';

  constructor(private readonly bytes: Uint8Array) {}

  /** Steps over one request object. False: give up. */
  request(mayHoldBatch: boolean): boolean {
    return this.members((key) => {
      const inner = VECTOR_KEYS[key];
      if (inner !== undefined) return this.vectorOr(inner);
      if (mayHoldBatch && key === BATCH_KEY && this.peek() === OPEN_LIST) return this.requests();
      return this.skipValue();
    });
  }

  rest(): string {
    return this.pieces + textOf(this.bytes, this.copied, this.bytes.length);
  }

  private requests(): boolean {
    this.at++;
    if (this.peek() === CLOSE_LIST) {
      this.at++;
      return true;
    }
    for (;;) {
      if (!this.request(false)) return false;
      const next = this.peek();
      this.at++;
      if (next === CLOSE_LIST) return true;
      if (next !== COMMA) return false;
    }
  }

  /** A vector, or an object that holds one at `inner`, or anything else. */
  private vectorOr(inner: string): boolean {
    const next = this.peek();
    if (next === OPEN_LIST) return this.vector();
    if (next !== OPEN_OBJECT) return this.skipValue();
    return this.members((key) => (key === inner && this.peek() === OPEN_LIST ? this.vector() : this.skipValue()));
  }

  private vector(): boolean {
    const start = this.at;
    const end = readFloats(this.bytes, start + 1);
    if (end < 0) return false;
    this.at = end;
    if (floatCount === 0) return true;
    this.pieces += `${textOf(this.bytes, this.copied, start)}[${this.vectors.length}]`;
    this.copied = end;
    this.vectors.push(floats.slice(0, floatCount));
    return true;
  }

  private members(value: (key: string) => boolean): boolean {
    if (this.peek() !== OPEN_OBJECT) return false;
    this.at++;
    if (this.peek() === CLOSE_OBJECT) {
      this.at++;
      return true;
    }
    for (;;) {
      if (this.peek() !== QUOTE) return false;
      const start = this.at + 1;
      if (!this.skipString()) return false;
      const key = textOf(this.bytes, start, this.at - 1);
      if (key.includes('\\') || this.peek() !== COLON) return false;
      this.at++;
      if (!value(key)) return false;
      const next = this.peek();
      this.at++;
      if (next === CLOSE_OBJECT) return true;
      if (next !== COMMA) return false;
    }
  }

  /** The next byte that is no white space, which is not taken; -1 at the end. */
  private peek(): number {
    const { bytes } = this;
    for (;;) {
      const byte = bytes[this.at];
      if (byte === undefined) return -1;
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return byte;
      this.at++;
    }
  }

  /** Steps over any value by its brackets alone. */
  private skipValue(): boolean {
    const { bytes } = this;
    let depth = 0;
    this.peek();
    for (;;) {
      const byte = bytes[this.at];
      if (byte === undefined) return false;
      if (byte === QUOTE) {
        if (!this.skipString()) return false;
        continue;
      }
      if (byte === OPEN_LIST || byte === OPEN_OBJECT) depth++;
      else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) {
        if (depth === 0) return true;
        depth--;
      } else if (byte === COMMA && depth === 0) return true;
      this.at++;
    }
  }

  private skipString(): boolean {
    const { bytes } = this;
    for (let at = this.at + 1; at < bytes.length; at++) {
      const byte = bytes[at];
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) {
        this.at = at + 1;
        return true;
      }
    }
    return false;
  }
}

function textOf(bytes: Uint8Array, from: number, to: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString('utf8');
}

// ------------------------------------------------------------------ numbers

/** Longest vector that is scanned; longer ones go to the parser. */
const FLOATS_MAX = 65_536;
/** Filled by `readFloats`: the numbers of the last array and how many. */
const floats = new Float32Array(FLOATS_MAX);
let floatCount = 0;

/** Powers of ten that a double holds exactly. */
const POWERS = Float64Array.from({ length: 23 }, (_, exponent) => 10 ** exponent);
/** A mantissa below this is exact. */
const EXACT = 2 ** 53;
/** More digits than this leave the fast way. */
const DIGITS_MAX = 19;

const double = new Float64Array(1);
const doubleWords = new Uint32Array(double.buffer);

/**
 * Reads the numbers of a flat array whose bracket stands before `start` into `floats`. Returns the place behind the
 * closing bracket, or -1 for anything but plain JSON numbers.
 */
function readFloats(bytes: Uint8Array, start: number): number {
  let at = start;
  let count = 0;
  let byte = bytes[at] as number;
  for (;;) {
    while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) byte = bytes[++at] as number;
    if (byte === CLOSE_LIST && count === 0) break;
    const numberStart = at;
    const negative = byte === 0x2d;
    if (negative) byte = bytes[++at] as number;
    let digit = byte - 0x30;
    if (!(digit >= 0 && digit <= 9)) return -1;
    let mantissa = 0;
    let firstDigit = at;
    if (digit === 0) byte = bytes[++at] as number;
    else {
      do {
        mantissa = mantissa * 10 + digit;
        byte = bytes[++at] as number;
        digit = byte - 0x30;
      } while (digit >= 0 && digit <= 9);
    }
    let digits = at - firstDigit;
    let scale = 0;
    if (byte === 0x2e) {
      byte = bytes[++at] as number;
      digit = byte - 0x30;
      firstDigit = at;
      if (!(digit >= 0 && digit <= 9)) return -1;
      do {
        mantissa = mantissa * 10 + digit;
        byte = bytes[++at] as number;
        digit = byte - 0x30;
      } while (digit >= 0 && digit <= 9);
      scale = at - firstDigit;
      digits += scale;
    }
    let value: number;
    if (byte === 0x65 || byte === 0x45 || digits > DIGITS_MAX || scale > 22) {
      at = numberEnd(bytes, at);
      if (at < 0) return -1;
      byte = bytes[at] as number;
      value = Number(textOf(bytes, numberStart, at));
      if (!Number.isFinite(value)) return -1;
    } else {
      value = mantissa / (POWERS[scale] as number);
      // A long mantissa was rounded on the way. That cannot be seen in the float32, unless it lies halfway between two.
      if (mantissa >= EXACT && isNearHalfway(value)) value = Math.abs(Number(textOf(bytes, numberStart, at)));
      if (negative) value = -value;
    }
    if (count === FLOATS_MAX) return -1;
    floats[count++] = value;
    while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) byte = bytes[++at] as number;
    if (byte === COMMA) {
      byte = bytes[++at] as number;
      continue;
    }
    if (byte === CLOSE_LIST) break;
    return -1;
  }
  floatCount = count;
  return at + 1;
}

/** The end of a number whose mantissa's digits were read: steps over an exponent. -1 when there is no valid one. */
function numberEnd(bytes: Uint8Array, start: number): number {
  let at = start;
  if (bytes[at] !== 0x65 && bytes[at] !== 0x45) return at;
  at++;
  if (bytes[at] === 0x2b || bytes[at] === 0x2d) at++;
  const first = at;
  while ((bytes[at] as number) >= 0x30 && (bytes[at] as number) <= 0x39) at++;
  return at === first ? -1 : at;
}

/** Whether the 29 bits that a float32 drops are so close to one half that an error of some units could turn the rounding. */
function isNearHalfway(value: number): boolean {
  double[0] = value;
  const dropped = (doubleWords[0] as number) & 0x1fff_ffff;
  return dropped > 0x0fff_ffe0 && dropped < 0x1000_0020;
}

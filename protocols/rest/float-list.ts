/**
 * Reads a flat list of JSON numbers straight from bytes as float32 values, the same ones that `JSON.parse` and rounding
 * would give. Text of few digits takes exact arithmetic: a mantissa below 2^53 and a power of ten up to 22 are doubles
 * without error, so one division or product rounds once. Everything else is left to `Number`.
 */

const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const CLOSE_OBJECT = 0x7d;
const COMMA = 0x2c;
const MINUS = 0x2d;
const PLUS = 0x2b;
const POINT = 0x2e;
const ZERO = 0x30;

/** Longest list that is read; longer ones go to the parser. */
const FLOATS_MAX = 65_536;
/** Powers of ten that a double holds exactly. */
const POWERS = Float64Array.from({ length: 23 }, (_, exponent) => 10 ** exponent);
const POWER_MAX = 22;
/** A mantissa below this is exact. */
const EXACT = 2 ** 53;
/** More significant digits than this leave the fast way. */
const DIGITS_MAX = 19;
/** More places behind the point leave the fast way: they may lead to a float32 of fewer bits. */
const SCALE_MAX = 37;
/** The parser reads texts with such numbers otherwise (see `protocols/json.ts`). */
const LONG_INTEGER_DIGITS = 16;
const LARGE_EXPONENT_DIGITS = 3;

const double = new Float64Array(1);
const doubleWords = new Uint32Array(double.buffer);

/** Room for one list after the other. */
export class FloatList {
  /** The numbers of the last list are the first `count` of these. */
  readonly values = new Float32Array(FLOATS_MAX);
  count = 0;
  /** The last list had a number that makes the parser read its whole text to the letter: a long integer or a large exponent. */
  remarkable = false;

  /**
   * Reads the list whose bracket opens at `start`. Returns the place behind the closing bracket, or -1 for anything but
   * plain JSON numbers within a double, and for a list behind the last closing brace, which no complete body has.
   */
  read(bytes: Uint8Array, start: number): number {
    // Stays in one piece, long as it is: the hot loop of every upload, in which a call per number costs time.
    const { values } = this;
    this.remarkable = false;
    // A brace stops every loop below, so none of them looks behind the end, which would slow them down for good.
    if (bytes[start] !== OPEN_LIST || bytes.lastIndexOf(CLOSE_OBJECT) < start) return -1;
    let at = start + 1;
    let count = 0;
    let byte = bytes[at] as number;
    for (;;) {
      while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) byte = bytes[++at] as number;
      if (byte === CLOSE_LIST && count === 0) break;
      if (count === FLOATS_MAX) return -1;
      const numberStart = at;
      const negative = byte === MINUS;
      if (negative) byte = bytes[++at] as number;
      let digit = byte - ZERO;
      if (digit >>> 0 > 9) return -1;
      let mantissa = digit;
      // A zero before the point is none of the significant digits.
      let digits = 0;
      byte = bytes[++at] as number;
      if (digit !== 0) {
        for (digit = byte - ZERO; digit >>> 0 <= 9; digit = byte - ZERO) {
          mantissa = mantissa * 10 + digit;
          byte = bytes[++at] as number;
        }
        digits = at - numberStart - (negative ? 1 : 0);
        if (digits >= LONG_INTEGER_DIGITS) this.remarkable = true;
      }
      if ((byte === COMMA || byte === CLOSE_LIST) && digits < LONG_INTEGER_DIGITS) {
        values[count++] = negative ? -mantissa : mantissa;
        if (byte === CLOSE_LIST) break;
        byte = bytes[++at] as number;
        continue;
      }
      let scale = 0;
      if (byte === POINT) {
        const point = at;
        byte = bytes[++at] as number;
        for (digit = byte - ZERO; digit >>> 0 <= 9; digit = byte - ZERO) {
          mantissa = mantissa * 10 + digit;
          byte = bytes[++at] as number;
        }
        scale = at - point - 1;
        if (scale === 0) return -1;
        digits += scale;
      }
      if (byte === 0x65 || byte === 0x45) {
        const end = exponentEnd(bytes, at);
        if (end < 0) return -1;
        const exponent = exponentAt(bytes, at, end);
        if (exponent === LARGE_EXPONENT) this.remarkable = true;
        scale -= exponent;
        at = end;
        byte = bytes[at] as number;
      }
      let value: number;
      if (digits > DIGITS_MAX || scale > SCALE_MAX || scale < -POWER_MAX) {
        value = numberOf(bytes, numberStart, at);
        if (!Number.isFinite(value)) return -1;
      } else {
        value = scaled(mantissa, scale);
        // What was rounded more than once cannot be told from that in the float32, unless it lies halfway between two.
        if ((mantissa >= EXACT || scale > POWER_MAX) && isNearHalfway(value)) value = Math.abs(numberOf(bytes, numberStart, at));
        if (negative) value = -value;
      }
      values[count++] = value;
      while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) byte = bytes[++at] as number;
      if (byte === CLOSE_LIST) break;
      if (byte !== COMMA) return -1;
      byte = bytes[++at] as number;
    }
    this.count = count;
    return at + 1;
  }
}

/** The mantissa with its point `scale` places further left. */
function scaled(mantissa: number, scale: number): number {
  if (scale < 0) return mantissa * (POWERS[-scale] as number);
  if (scale <= POWER_MAX) return mantissa / (POWERS[scale] as number);
  return mantissa / (POWERS[POWER_MAX] as number) / (POWERS[scale - POWER_MAX] as number);
}

/** Stands for exponents of three digits or more: beyond every power, so that `Number` reads them. */
const LARGE_EXPONENT = 1000;

/** The end of the exponent whose letter stands at `start`, -1 when it has no digits. */
function exponentEnd(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  if (bytes[at] === PLUS || bytes[at] === MINUS) at++;
  const first = at;
  while ((bytes[at] as number) >= ZERO && (bytes[at] as number) <= 0x39) at++;
  return at === first ? -1 : at;
}

/** The exponent whose letter stands at `start`. */
function exponentAt(bytes: Uint8Array, start: number, end: number): number {
  const sign = bytes[start + 1];
  let at = sign === PLUS || sign === MINUS ? start + 2 : start + 1;
  if (end - at >= LARGE_EXPONENT_DIGITS) return sign === MINUS ? -LARGE_EXPONENT : LARGE_EXPONENT;
  let exponent = 0;
  for (; at < end; at++) exponent = exponent * 10 + (bytes[at] as number) - ZERO;
  return sign === MINUS ? -exponent : exponent;
}

function numberOf(bytes: Uint8Array, from: number, to: number): number {
  return Number(Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString('latin1'));
}

/** Whether the 29 bits that a float32 drops are so close to one half that an error of some units could turn the rounding. */
function isNearHalfway(value: number): boolean {
  double[0] = value;
  const dropped = (doubleWords[0] as number) & 0x1fff_ffff;
  return dropped > 0x0fff_ffe0 && dropped < 0x1000_0020;
}

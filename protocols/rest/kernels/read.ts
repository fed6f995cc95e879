/**
 * Reads JSON numbers, a comma between each two, as float32: the same values that `JSON.parse` and rounding would give.
 *
 * The digits, up to 19 of them, make an integer of 64 bits, which is multiplied by a power of ten. Each of the two and their
 * product are rounded, so the double lies within two units of the number, and the float32 is right unless the double lies
 * near the middle between two float32. Then, and with more digits, the caller reads the number's text.
 */

/** The list was read to its closing bracket. */
const DONE: i32 = 0;
/** The text ended before the list did: the number at `numberStart` has to be read again with more text. */
const MORE: i32 = 1;
/** The caller has to read the number from `numberStart` to `position`. */
const HARD: i32 = 2;
/** The text is no plain list of numbers. */
const STRANGE: i32 = 3;

const CLOSE_LIST: u32 = 0x5d;
const COMMA: u32 = 0x2c;
const MINUS: u32 = 0x2d;
const PLUS: u32 = 0x2b;
const POINT: u32 = 0x2e;
const ZERO: u32 = 0x30;

/** The parser reads texts with such numbers otherwise (see `protocols/json.ts`). */
const LONG_INTEGER_DIGITS: usize = 16;
const LARGE_EXPONENT_DIGITS: usize = 3;
const DIGITS_MAX: usize = 19;
const SCALE_MAX: i32 = 37;
const SCALE_MIN: i32 = -22;

/** f64: 10^22 down to 10^-37. */
let powers: usize = 0;
/** u64 [16]: 10^0 to 10^15. */
let wholePowers: usize = 0;

let position: usize = 0;
let numberStart: usize = 0;
let written: usize = 0;
let remarkable: bool = false;

/** Where reading stopped. After `HARD` the end of the number. */
export function positionOf(): usize {
  return position;
}

export function numberStartOf(): usize {
  return numberStart;
}

/** End of the numbers that were written. */
export function writtenOf(): usize {
  return written;
}

/** Whether one of the numbers since `startList` is a long integer or has a large exponent. */
export function isRemarkable(): bool {
  return remarkable;
}

export function startList(newPowers: usize, newWholePowers: usize): void {
  powers = newPowers;
  wholePowers = newWholePowers;
  remarkable = false;
}

// @ts-ignore: decorator
@inline
function isSpace(byte: u32): bool {
  return byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09;
}

// @ts-ignore: decorator
@inline
function isDigit(byte: u32): bool {
  return byte - ZERO <= 9;
}

/** Sixteen bytes of the text as digits; of those that are none, the values are above 9. */
// @ts-ignore: decorator
@inline
function digitsAt(at: usize): v128 {
  return i8x16.sub(v128.load(at), i8x16.splat(<i8>ZERO));
}

/** A bit for each of sixteen values that is no digit. */
// @ts-ignore: decorator
@inline
function strangers(values: v128): u32 {
  return <u32>i8x16.bitmask(i8x16.gt_u(values, i8x16.splat(9)));
}

/** The number that the first `count` of these digits are: zeros move in before them. */
// @ts-ignore: decorator
@inline
function numberOfFirst(digits: v128, count: usize): u64 {
  const places = i8x16.sub(i8x16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), i8x16.splat(<i8>(16 - count)));
  return numberOf(i8x16.swizzle(digits, places));
}

/** The number that sixteen digits are, the first of which comes first: neighbours are put together, in four steps. */
// @ts-ignore: decorator
@inline
function numberOf(digits: v128): u64 {
  const pairs = i16x8.add(i16x8.mul(v128.and(digits, i16x8.splat(0xff)), i16x8.splat(10)), i16x8.shr_u(digits, 8));
  const fours = i32x4.dot_i16x8_s(pairs, i16x8(100, 1, 100, 1, 100, 1, 100, 1));
  const eights = i32x4.dot_i16x8_s(i16x8.narrow_i32x4_s(fours, fours), i16x8(10_000, 1, 10_000, 1, 10_000, 1, 10_000, 1));
  return <u64>i32x4.extract_lane(eights, 0) * 100_000_000 + <u64>i32x4.extract_lane(eights, 1);
}

/** What stands where reading goes on. */
const FIRST: i32 = 0;
const BEHIND_NUMBER: i32 = 2;

/**
 * Reads on at `at` and writes to `out` (f32), which has room for as many numbers as the text can hold. The text ends at
 * `end`, where a zero byte stands.
 * place: FIRST at the beginning of a list, 1 at a number, BEHIND_NUMBER at a comma or the end of the list.
 */
export function scanFloats(at: usize, end: usize, out: usize, place: i32): i32 {
  // Stays in one piece, long as it is: the hot loop of every upload.
  let byte: u32;
  if (place == BEHIND_NUMBER) {
    while (isSpace((byte = load<u8>(at)))) at++;
    if (byte == CLOSE_LIST) return stop(DONE, at + 1, out);
    if (byte != COMMA) return stop(at >= end ? MORE : STRANGE, at, out - 4);
    at++;
  }
  let first = place == FIRST;
  for (;;) {
    numberStart = at;
    while (isSpace((byte = load<u8>(at)))) at++;
    if (byte == CLOSE_LIST && first) break;
    first = false;
    // Without a branch: signs are hard to foretell.
    const negative = byte == MINUS;
    at += <usize>negative;
    byte = load<u8>(at);
    if (!isDigit(byte)) return stop(at >= end ? MORE : STRANGE, at, out);
    const wholeStart = at;
    let mantissa = <u64>(byte - ZERO);
    let digits: usize = 0;
    byte = load<u8>(++at);
    if (mantissa != 0) {
      for (; isDigit(byte); byte = load<u8>(++at)) mantissa = mantissa * 10 + (byte - ZERO);
      digits = at - wholeStart;
      if (digits >= LONG_INTEGER_DIGITS) remarkable = true;
    }
    if ((byte == COMMA || byte == CLOSE_LIST) && digits < LONG_INTEGER_DIGITS) {
      store<u32>(out, reinterpret<u32>(<f32>mantissa) | ((<u32>negative) << 31));
      out += 4;
      if (byte == CLOSE_LIST) break;
      at++;
      continue;
    }
    let scale: i32 = 0;
    if (byte == POINT) {
      const fraction = ++at;
      let sixteen = digitsAt(at);
      let others = strangers(sixteen);
      while (others == 0) {
        mantissa = mantissa * 10_000_000_000_000_000 + numberOf(sixteen);
        at += 16;
        sixteen = digitsAt(at);
        others = strangers(sixteen);
      }
      const left = <usize>ctz(others);
      mantissa = mantissa * load<u64>(wholePowers + (left << 3)) + numberOfFirst(sixteen, left);
      at += left;
      byte = load<u8>(at);
      digits += at - fraction;
      scale = <i32>(at - fraction);
      if (scale == 0) return stop(at >= end ? MORE : STRANGE, at, out);
    }
    if (byte == 0x65 || byte == 0x45) {
      byte = load<u8>(++at);
      const below = byte == MINUS;
      if (below || byte == PLUS) byte = load<u8>(++at);
      const start = at;
      let exponent: i32 = 0;
      for (; isDigit(byte); byte = load<u8>(++at)) exponent = min(exponent * 10 + <i32>(byte - ZERO), 1000);
      if (at == start) return stop(at >= end ? MORE : STRANGE, at, out);
      if (at - start >= LARGE_EXPONENT_DIGITS) {
        if (!below) remarkable = true;
        exponent = 1000;
      }
      scale -= below ? -exponent : exponent;
    }
    // The number may go on behind the end.
    if (at >= end) return stop(MORE, at, out);
    // Zeros before the first other digit are none of the significant ones.
    if (digits > DIGITS_MAX && load<u8>(wholeStart) == ZERO) digits -= zerosFrom(wholeStart + 2);
    if (digits > DIGITS_MAX || scale > SCALE_MAX || scale < SCALE_MIN) return stop(HARD, at, out);
    const value = <f64>mantissa * load<f64>(powers + ((<usize>(scale - SCALE_MIN)) << 3));
    if (isNearHalfway(value)) return stop(HARD, at, out);
    store<u32>(out, reinterpret<u32>(<f32>value) | ((<u32>negative) << 31));
    out += 4;
    while (isSpace(byte)) byte = load<u8>(++at);
    if (byte == CLOSE_LIST) break;
    if (byte != COMMA) return stop(at >= end ? MORE : STRANGE, at, out - 4);
    at++;
  }
  return stop(DONE, at + 1, out);
}

const QUOTE: u32 = 0x22;
const BACKSLASH: u32 = 0x5c;
const OPEN_LIST: u32 = 0x5b;
const OPEN_OBJECT: u32 = 0x7b;

let inString: bool = false;
let isEscaped: bool = false;

/** A new text begins. */
export function startMarks(): void {
  inString = false;
  isEscaped = false;
}

/** Commas and opening brackets outside of strings, from `at` to `end`, which goes on where the piece before has ended. */
export function countMarks(at: usize, end: usize): u32 {
  let count: u32 = 0;
  while (at < end) {
    if (at + 16 <= end && !isEscaped) {
      const bytes = v128.load(at);
      // Sixteen at once where no string begins or ends.
      if (!v128.any_true(inString ? v128.or(equal(bytes, QUOTE), equal(bytes, BACKSLASH)) : equal(bytes, QUOTE))) {
        if (!inString) count += marksIn(bytes);
        at += 16;
        continue;
      }
    }
    for (const stop = min(at + 16, end); at < stop; at++) {
      const byte = <u32>load<u8>(at);
      if (inString) {
        if (isEscaped) isEscaped = false;
        else if (byte == BACKSLASH) isEscaped = true;
        else if (byte == QUOTE) inString = false;
      } else if (byte == QUOTE) inString = true;
      else count += <u32>(byte == COMMA || byte == OPEN_LIST || byte == OPEN_OBJECT);
    }
  }
  return count;
}

// @ts-ignore: decorator
@inline
function equal(bytes: v128, byte: u32): v128 {
  return i8x16.eq(bytes, i8x16.splat(<i8>byte));
}

/** Commas and opening brackets among sixteen bytes. */
// @ts-ignore: decorator
@inline
function marksIn(bytes: v128): u32 {
  // The two brackets differ in one bit.
  const brackets = equal(v128.or(bytes, i8x16.splat(<i8>(OPEN_OBJECT ^ OPEN_LIST))), OPEN_OBJECT);
  return popcnt(i8x16.bitmask(v128.or(brackets, equal(bytes, COMMA))));
}

function stop(outcome: i32, at: usize, out: usize): i32 {
  position = at;
  written = out;
  return outcome;
}

function zerosFrom(at: usize): usize {
  const start = at;
  while (load<u8>(at) == ZERO) at++;
  return at - start;
}

/** Whether the 29 bits that a float32 drops are so close to one half that an error of some units could turn the rounding. */
// @ts-ignore: decorator
@inline
function isNearHalfway(value: f64): bool {
  const dropped = <u32>(reinterpret<u64>(value) & 0x1fff_ffff);
  return dropped > 0x0fff_ffe0 && dropped < 0x1000_0020;
}

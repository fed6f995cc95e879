/**
 * Shortest decimal text of float32 numbers, as JSON has it: of the decimals that read back as the number those with
 * fewest digits, of these the nearest one, and of two as near the larger one.
 *
 * Source: Schubfach (Giulietti, «The Schubfach way to render doubles», 2021), with a 64-bit power of ten times at most 30
 * bits. The form is that of JavaScript: no exponent from 1e-6 below 1e21.
 */

/** Powers of ten from 10^POWER_MIN, 64 bits each, rounded up: written by `floatPrinter` in `vectors/own-kernels.ts`. */
let powers: usize = 0;
/** Text of 00 to 99. */
let pairs: usize = 0;

const POWER_MIN: i32 = -31;

const MINUS: u8 = 0x2d;
const PLUS: u8 = 0x2b;
const COMMA: u8 = 0x2c;
const POINT: u8 = 0x2e;
const ZERO: u8 = 0x30;
const EXPONENT: u8 = 0x65;

export function setPrintTables(newPowers: usize, newPairs: usize): void {
  powers = newPowers;
  pairs = newPairs;
}

/** Writes `count` numbers (f32 at `values`) to `out`, a comma behind each: 18 bytes each at most. Returns the end of the text. */
export function printFloats(values: usize, count: u32, out: usize): usize {
  const end = values + ((<usize>count) << 2);
  for (let at = values; at < end; at += 4) {
    out = printFloat(load<f32>(at), out);
    store<u8>(out++, COMMA);
  }
  return out;
}

function printFloat(value: f32, out: usize): usize {
  const bits = reinterpret<u32>(value);
  const magnitude = abs(value);
  if (magnitude == 0) {
    store<u8>(out, ZERO);
    return out + 1;
  }
  if ((bits & 0x7f80_0000) == 0x7f80_0000) {
    // null
    store<u32>(out, 0x6c6c_756e);
    return out + 4;
  }
  if ((bits >> 31) != 0) store<u8>(out++, MINUS);
  if (magnitude < 1e7 && magnitude == floor(magnitude)) {
    const whole = <u32>magnitude;
    return writeDigits(whole, digitsOf(whole), out);
  }
  return printMagnitude(bits & 0x7fff_ffff, out);
}

/** A number above zero, by its bits: finds the decimal and writes it. */
function printMagnitude(bits: u32, out: usize): usize {
  const biased = <i32>(bits >> 23);
  const fraction = bits & 0x7f_ffff;
  // The number is c * 2^q.
  const c = biased != 0 ? fraction | 0x80_0000 : fraction;
  const q = max(biased, 1) - 150;
  // The number below a power of two is nearer than the one above.
  const close = fraction == 0 && biased > 1;
  // floor(log10(2^q)), of three quarters of it where the interval is that wide only.
  let k = (q * 1262611 - (close ? 524031 : 0)) >> 22;
  const power = load<u64>(powers + ((<usize>(-k - POWER_MIN)) << 3));
  // 2^q / 10^k lies in 1..13.4: the power's 64 bits shifted by 1 to 4.
  const shift = <u32>(q + ((-k * 1741647) >> 19) + 1);
  const odd = c & 1;
  const value = scaled(power, (c << 2) << shift);
  const low = scaled(power, ((c << 2) - (close ? 1 : 2)) << shift) + odd;
  const high = scaled(power, ((c << 2) + 2) << shift) - odd;
  const down = value >> 2;
  let digits: u32;
  const down10 = (down / 10) * 10;
  const up10 = down10 + 10;
  const down10In = low <= down10 << 2;
  const up10In = up10 << 2 <= high;
  if (down10In != up10In) {
    digits = down10In ? down10 : up10;
  } else {
    const downIn = low <= down << 2;
    const upIn = (down + 1) << 2 <= high;
    if (downIn != upIn) digits = downIn ? down : down + 1;
    else digits = value < (down << 2) + 2 ? down : down + 1;
  }
  for (let tenth = digits / 10; tenth * 10 == digits; tenth = digits / 10) {
    digits = tenth;
    k++;
  }
  return writeDecimal(digits, k, out);
}

/** power * factor / 2^64, its last bit set where something was cut off. factor: below 2^30. */
// @ts-ignore: decorator
@inline
function scaled(power: u64, factor: u32): u32 {
  const product = (power >> 32) * <u64>factor + (((power & 0xffff_ffff) * <u64>factor) >> 32);
  return <u32>(product >> 32) | <u32>(<u32>product != 0);
}

/** digits * 10^exponent; digits does not end in zero. */
function writeDecimal(digits: u32, exponent: i32, out: usize): usize {
  const count = digitsOf(digits);
  // Digits before the point.
  const whole = <i32>count + exponent;
  if (whole > 0 && whole <= 21) {
    if (exponent < 0) {
      writeDigits(digits, count, out + 1);
      const point = out + <usize>whole;
      for (let at = out; at < point; at++) store<u8>(at, load<u8>(at, 1));
      store<u8>(point, POINT);
      return out + 1 + <usize>count;
    }
    const end = writeDigits(digits, count, out);
    memory.fill(end, ZERO, <usize>exponent);
    return end + <usize>exponent;
  }
  if (whole > -6 && whole <= 0) {
    // 0.000000
    store<u64>(out, 0x3030_3030_3030_2e30);
    return writeDigits(digits, count, out + 2 + <usize>-whole);
  }
  let end = writeDigits(digits, count, out + 1);
  store<u8>(out, load<u8>(out, 1));
  store<u8>(out, POINT, 1);
  if (count == 1) end = out + 1;
  store<u8>(end, EXPONENT);
  store<u8>(end, whole > 0 ? PLUS : MINUS, 1);
  const size = <u32>abs(whole - 1);
  return writeDigits(size, digitsOf(size), end + 2);
}

/** Writes a number that has `count` digits. Returns their end. */
function writeDigits(value: u32, count: u32, out: usize): usize {
  const end = out + <usize>count;
  let at = end;
  while (value >= 100) {
    const rest = value / 100;
    at -= 2;
    store<u16>(at, load<u16>(pairs + ((<usize>(value - rest * 100)) << 1)));
    value = rest;
  }
  if (value >= 10) store<u16>(at - 2, load<u16>(pairs + ((<usize>value) << 1)));
  else store<u8>(at - 1, <u8>value + ZERO);
  return end;
}

function digitsOf(value: u32): u32 {
  if (value < 10000) return value < 100 ? (value < 10 ? 1 : 2) : value < 1000 ? 3 : 4;
  if (value < 100_000_000) return value < 1_000_000 ? (value < 100_000 ? 5 : 6) : value < 10_000_000 ? 7 : 8;
  return value < 1_000_000_000 ? 9 : 10;
}

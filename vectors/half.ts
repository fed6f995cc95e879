/** Two-byte floats: float16 (5 exponent bits, 10 fraction bits) and bfloat16 (8 and 7). Rounding is to nearest, ties to even. */

const floats = new Float32Array(1);
const words = new Uint32Array(floats.buffer);

/** What the last bit of a fraction is worth, by exponent. */
const unitOf = Float64Array.from({ length: 31 }, (_, exponent) => 2 ** (exponent - 25));

/** Bits of the nearest float16; beyond 65504 (rounded) infinity. */
export function toHalf(value: number): number {
  floats[0] = value;
  const bits = words[0] as number;
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fff_ffff;
  if (magnitude > 0x7f80_0000) return sign | 0x7e00;
  if (magnitude >= 0x4780_0000) return sign | 0x7c00;
  if (magnitude >= 0x3880_0000) return sign | roundShift(magnitude - 0x3800_0000, 13);
  // Subnormal: the fraction with its hidden bit, in units of 2^-24.
  const shift = 126 - (magnitude >>> 23);
  return shift > 24 ? sign : sign | roundShift((magnitude & 0x7f_ffff) | 0x80_0000, shift);
}

/** The number that float16 bits stand for. */
export function fromHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >>> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY;
  return sign * (1024 + fraction) * (unitOf[exponent] as number);
}

/** Bits of the nearest bfloat16. */
export function toBfloat(value: number): number {
  floats[0] = value;
  const bits = words[0] as number;
  if ((bits & 0x7fff_ffff) > 0x7f80_0000) return (bits >>> 16) | 0x40;
  return roundShift(bits, 16);
}

/** The number that bfloat16 bits stand for. */
export function fromBfloat(bits: number): number {
  words[0] = (bits << 16) >>> 0;
  return floats[0] as number;
}

/** Writes float16 bits of `values` to `out` from element `outIndex`. */
export function encodeHalf(values: Float32Array, out: Uint16Array, outIndex = 0): void {
  for (let index = 0; index < values.length; index++) out[outIndex + index] = toHalf(values[index] as number);
}

/** The numbers that float16 bits stand for. */
export function decodeHalf(bits: Uint16Array): Float32Array {
  const values = new Float32Array(bits.length);
  for (let index = 0; index < bits.length; index++) values[index] = fromHalf(bits[index] as number);
  return values;
}

/** Writes bfloat16 bits of `values` to `out` from element `outIndex`. */
export function encodeBfloat(values: Float32Array, out: Uint16Array, outIndex = 0): void {
  for (let index = 0; index < values.length; index++) out[outIndex + index] = toBfloat(values[index] as number);
}

/** The numbers that bfloat16 bits stand for. */
export function decodeBfloat(bits: Uint16Array): Float32Array {
  const values = new Float32Array(bits.length);
  for (let index = 0; index < bits.length; index++) values[index] = fromBfloat(bits[index] as number);
  return values;
}

/** `value` (32 bits) without its last `shift` bits, rounded to nearest, ties to even. shift in 1..24. */
function roundShift(value: number, shift: number): number {
  const kept = value >>> shift;
  const rest = (value & ((1 << shift) - 1)) >>> 0;
  const half = 2 ** (shift - 1);
  return rest > half || (rest === half && (kept & 1) === 1) ? kept + 1 : kept;
}

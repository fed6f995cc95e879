/**
 * Sixteen bytes of four rows at a time: decoding of stored components and one step of a metric.
 *
 * Element and metric are type parameters, so that the compiler folds every choice and each kernel is a straight loop:
 * - metric M: u8 = dot, u16 = minus squared Euclidean, u32 = minus Manhattan;
 * - element E: f32, u16 = float16, i16 = bfloat16, u8, i8, u64 = 8-bit codes as the floats that they stand for.
 */

const HALF_MAGNITUDE: u32 = 0x8fff_e000;

/** 2^112: what is missing in the exponent when float16 bits stand in the place of float32 bits. Subnormals come out right too. */
const HALF_SCALE: f32 = 5.192296858534828e33;

/** Parts of four components in 16 bytes of an element. */
// @ts-ignore: decorator
@inline
export function partsOf<E>(): i32 {
  if (isFloat<E>()) return 1;
  if (sizeof<E>() == 2) return 2;
  return 4;
}

/** Components 4 * part .. 4 * part + 3 of the 16 bytes `raw`, as f32. scale, origin: of codes. */
// @ts-ignore: decorator
@inline
export function decodePart<E>(raw: v128, part: i32, scale: v128, origin: v128): v128 {
  if (isFloat<E>()) return raw;
  if (sizeof<E>() == 2) {
    if (isSigned<E>()) {
      return i32x4.shl(part == 0 ? i32x4.extend_low_i16x8_u(raw) : i32x4.extend_high_i16x8_u(raw), 16);
    }
    const wide = part == 0 ? i32x4.extend_low_i16x8_s(raw) : i32x4.extend_high_i16x8_s(raw);
    return f32x4.mul(v128.and(i32x4.shl(wide, 13), i32x4.splat(HALF_MAGNITUDE)), f32x4.splat(HALF_SCALE));
  }
  if (isSigned<E>()) {
    const half = part < 2 ? i16x8.extend_low_i8x16_s(raw) : i16x8.extend_high_i8x16_s(raw);
    return f32x4.convert_i32x4_s((part & 1) == 0 ? i32x4.extend_low_i16x8_s(half) : i32x4.extend_high_i16x8_s(half));
  }
  const half = part < 2 ? i16x8.extend_low_i8x16_u(raw) : i16x8.extend_high_i8x16_u(raw);
  const whole = f32x4.convert_i32x4_s((part & 1) == 0 ? i32x4.extend_low_i16x8_u(half) : i32x4.extend_high_i16x8_u(half));
  return sizeof<E>() == 8 ? f32x4.add(f32x4.mul(whole, scale), origin) : whole;
}

/** `sum` with four more components of row and query. */
// @ts-ignore: decorator
@inline
export function addPart<M>(sum: v128, row: v128, query: v128): v128 {
  if (sizeof<M>() == 1) return f32x4.add(sum, f32x4.mul(row, query));
  const difference = f32x4.sub(row, query);
  if (sizeof<M>() == 2) return f32x4.add(sum, f32x4.mul(difference, difference));
  return f32x4.add(sum, f32x4.abs(difference));
}

/** `sum` (i32x4) with eight more codes (as i16) of row and query. */
// @ts-ignore: decorator
@inline
export function addCodes<M>(sum: v128, row: v128, query: v128): v128 {
  if (sizeof<M>() == 1) return i32x4.add(sum, i32x4.dot_i16x8_s(row, query));
  const difference = i16x8.sub(row, query);
  if (sizeof<M>() == 2) return i32x4.add(sum, i32x4.dot_i16x8_s(difference, difference));
  return i32x4.add(sum, i32x4.extadd_pairwise_i16x8_u(i16x8.abs(difference)));
}

/** Lane sums of four f32x4, as one f32x4. */
// @ts-ignore: decorator
@inline
export function sumsOf(a: v128, b: v128, c: v128, d: v128): v128 {
  const ab = f32x4.add(v128.shuffle<f32>(a, b, 0, 4, 1, 5), v128.shuffle<f32>(a, b, 2, 6, 3, 7));
  const cd = f32x4.add(v128.shuffle<f32>(c, d, 0, 4, 1, 5), v128.shuffle<f32>(c, d, 2, 6, 3, 7));
  return f32x4.add(v128.shuffle<f32>(ab, cd, 0, 1, 4, 5), v128.shuffle<f32>(ab, cd, 2, 3, 6, 7));
}

/** Lane sums of four i32x4, as one f32x4. Lanes fit in 32 bits (the query was cut for that), their sums need not. */
// @ts-ignore: decorator
@inline
export function codeSums(a: v128, b: v128, c: v128, d: v128): v128 {
  return sumsOf(f32x4.convert_i32x4_s(a), f32x4.convert_i32x4_s(b), f32x4.convert_i32x4_s(c), f32x4.convert_i32x4_s(d));
}

/** Scores without NaN (which would break every comparison) and without minus zero (which would break ties). */
// @ts-ignore: decorator
@inline
export function tidyScores(scores: v128): v128 {
  const positive = f32x4.add(scores, f32x4.splat(0));
  return v128.bitselect(positive, f32x4.splat(f32.NEGATIVE_INFINITY), f32x4.eq(scores, scores));
}

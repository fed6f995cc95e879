/**
 * MaxSim of rows that hold several vectors each, by their 8-bit codes and several vectors of the query at once: a row's codes
 * are widened once for two of them.
 */

import { expiredAfter, lookFirst } from './host';
import { addCodes, sumsOf, tidyScores } from './lanes';
import { countScored } from './score';

/** Bytes that are compared between two looks at the time limit, each vector of the query with each of a row: some 30 microseconds of work. */
const LOOK_BYTES: usize = 262144;

/**
 * Adds to each of `count` sums (f32) what `vectors` vectors of the query, an even number, make of the row. rows, offsets: as in `maxSim`.
 * codes: u8 [vectors of all rows, stride], the matrix set last. queries: i16 [vectors, stride], as `writeCodeQuery` writes them. scales: f32
 * [vectors / 2, 4]: factors of two, then their constants. metric: 0 dot, 1 L2, 2 L1. -1: the time limit has passed.
 */
export function maxSimCodes(
  metric: i32,
  rows: usize,
  count: u32,
  offsets: usize,
  codes: usize,
  stride: usize,
  queries: usize,
  scales: usize,
  vectors: u32,
  sums: usize,
): i32 {
  if (metric == 0) return addRows<u8>(rows, count, offsets, codes, stride, queries, scales, vectors, sums);
  if (metric == 1) return addRows<u16>(rows, count, offsets, codes, stride, queries, scales, vectors, sums);
  return addRows<u32>(rows, count, offsets, codes, stride, queries, scales, vectors, sums);
}

function addRows<M>(
  rows: usize,
  count: u32,
  offsets: usize,
  codes: usize,
  stride: usize,
  queries: usize,
  scales: usize,
  vectors: u32,
  sums: usize,
): i32 {
  lookFirst();
  for (let index: u32 = 0; index < count; index++) {
    const at = (<usize>index) << 2;
    const row = offsets + ((<usize>load<u32>(rows + at)) << 2);
    const from = load<u32>(row);
    const to = load<u32>(row, 4);
    // Only a row without vectors has none, and it is never asked for.
    if (from == to) continue;
    if (expiredAfter(<usize>(to - from) * vectors * stride, LOOK_BYTES)) return -1;
    countScored((to - from) * vectors);
    const first = codes + <usize>from * stride;
    const last = codes + <usize>(to - 1) * stride;
    let sum = load<f32>(sums + at);
    for (let vector: u32 = 0; vector < vectors; vector += 2) {
      const best = bestOfTwo<M>(first, last, stride, queries + <usize>vector * (stride << 1));
      const scale = scales + ((<usize>vector) << 3);
      const scaled = tidyScores(f32x4.add(f32x4.mul(best, v128.load64_zero(scale)), v128.load64_zero(scale, 8)));
      sum += f32x4.extract_lane(scaled, 0) + f32x4.extract_lane(scaled, 1);
    }
    store<f32>(sums + at, sum);
  }
  return 0;
}

/** The best sum of codes that one of the vectors first..last has with each of two vectors of the query: lanes 0 and 1. */
// @ts-ignore: decorator
@inline
function bestOfTwo<M>(first: usize, last: usize, stride: usize, query: usize): v128 {
  let bestA = worst<M>();
  let bestB = bestA;
  for (let a = first; a <= last; a += stride << 2) {
    // The last vector stands in for those behind it.
    const b = min(a + stride, last);
    const c = min(b + stride, last);
    const d = min(c + stride, last);
    let a0 = i32x4.splat(0);
    let b0 = i32x4.splat(0);
    let c0 = i32x4.splat(0);
    let d0 = i32x4.splat(0);
    let a1 = i32x4.splat(0);
    let b1 = i32x4.splat(0);
    let c1 = i32x4.splat(0);
    let d1 = i32x4.splat(0);
    for (let at: usize = 0; at < stride; at += 8) {
      const one = v128.load(query + (at << 1));
      const other = v128.load(query + ((at + stride) << 1));
      let raw = v128.load_ext<u8>(a + at);
      a0 = addCodes<M>(a0, raw, one);
      a1 = addCodes<M>(a1, raw, other);
      raw = v128.load_ext<u8>(b + at);
      b0 = addCodes<M>(b0, raw, one);
      b1 = addCodes<M>(b1, raw, other);
      raw = v128.load_ext<u8>(c + at);
      c0 = addCodes<M>(c0, raw, one);
      c1 = addCodes<M>(c1, raw, other);
      raw = v128.load_ext<u8>(d + at);
      d0 = addCodes<M>(d0, raw, one);
      d1 = addCodes<M>(d1, raw, other);
    }
    bestA = better<M>(bestA, floatSums(a0, b0, c0, d0));
    bestB = better<M>(bestB, floatSums(a1, b1, c1, d1));
  }
  const halves = better<M>(v128.shuffle<f32>(bestA, bestB, 0, 1, 4, 5), v128.shuffle<f32>(bestA, bestB, 2, 3, 6, 7));
  return better<M>(v128.shuffle<f32>(halves, halves, 0, 2, 0, 2), v128.shuffle<f32>(halves, halves, 1, 3, 1, 3));
}

/** Lanes fit in 32 bits (the query was cut for that), their sums need not. */
// @ts-ignore: decorator
@inline
function floatSums(a: v128, b: v128, c: v128, d: v128): v128 {
  return sumsOf(f32x4.convert_i32x4_s(a), f32x4.convert_i32x4_s(b), f32x4.convert_i32x4_s(c), f32x4.convert_i32x4_s(d));
}

/** Products are better when large, distances when small. */
// @ts-ignore: decorator
@inline
function better<M>(one: v128, other: v128): v128 {
  return sizeof<M>() == 1 ? f32x4.pmax(one, other) : f32x4.pmin(one, other);
}

// @ts-ignore: decorator
@inline
function worst<M>(): v128 {
  return f32x4.splat(sizeof<M>() == 1 ? f32.NEGATIVE_INFINITY : -f32.NEGATIVE_INFINITY);
}

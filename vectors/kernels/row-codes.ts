/**
 * Codes of 8 bits with a scale for each row, for rows that come one by one, of which nobody knows the range. They tell what a row scores at most, so that a scan
 * reads the originals of those alone that may be among the best: it finds the same rows with the same scores as one by originals, to the bit.
 *
 * A row `x` is `scale * code` and a rest as long as `lost`. So `q · x` is at most `scale * unit * Σ + lost * |q| + length * slack`, where `Σ` is the product of the codes with
 * the query's, in steps of `unit`; `slack` is what the query loses to its steps, and all rounding, for a row of length 1.
 */

import { expiredAfter, LOOK_BYTES } from './host';
import { addCodes, codeSums } from './lanes';
import { countLeftOut } from './score';

/** i8 [rows, stride], stride a multiple of 16. */
let codes: usize = 0;
let stride: usize = 0;
/** f32 [rows, 4]: scale, lost, length, square of the length. */
let facts: usize = 0;
/** Rows from 0 that have codes; 0: none are used. */
let coded: u32 = 0;
/** i16 [stride]. */
let query: usize = 0;
/** What a row scores at most: gain * (scale * unit * Σ + lost * reach + length * slack) + square * weight + constant. */
let unit: f32 = 0;
let reach: f32 = 0;
let slack: f32 = 0;
let gain: f32 = 0;
let weight: f32 = 0;
let constant: f32 = 0;

/** Rows whose codes were read since these were set, and those of them that were not left out. */
let asked: u32 = 0;
let stayed: u32 = 0;
/** After so many it shows whether codes pay. */
const ASKED_MIN: u32 = 1024;

const FACTS_BYTES: usize = 16;
const CODE_MAX: f32 = 127;
/** Squares of lengths between which neither they nor squares of what codes lose leave the range of f32. */
const SQUARE_MIN: f32 = 1e-20;
const SQUARE_MAX: f32 = 1e30;
/** More than a sum of squares in f32 may be short of. */
const LOST_MORE: f32 = 1.001;

/** Until `forgetRowCodes`, scans of the matrix set last use these. */
export function setRowCodes(
  newCodes: usize,
  newStride: usize,
  newFacts: usize,
  newCoded: u32,
  newQuery: usize,
  newUnit: f32,
  newReach: f32,
  newSlack: f32,
  newGain: f32,
  newWeight: f32,
  newConstant: f32,
): void {
  codes = newCodes;
  stride = newStride;
  facts = newFacts;
  coded = newCoded;
  query = newQuery;
  unit = newUnit;
  reach = newReach;
  slack = newSlack;
  gain = newGain;
  weight = newWeight;
  constant = newConstant;
  asked = 0;
  stayed = 0;
}

export function forgetRowCodes(): void {
  coded = 0;
}

export function hasRowCodes(): bool {
  return coded != 0;
}

/** Leaves those out of a list of rows that score less than `least`, as their codes tell, up to the first without codes. rows: u32 [count]. Returns how many are left. */
export function leaveOut(rows: usize, count: u32, least: f32): u32 {
  const last = f32x4.splat(least);
  let left = rows;
  let index: u32 = 0;
  for (; index + 4 <= count; index += 4) {
    const at = rows + ((<usize>index) << 2);
    const a = load<u32>(at);
    const b = load<u32>(at, 4);
    const c = load<u32>(at, 8);
    const d = load<u32>(at, 12);
    if (max(max(a, b), max(c, d)) >= coded) break;
    const isLess = i32x4.bitmask(f32x4.lt(mostOf(a, b, c, d), last));
    // Without a branch; a score that is no number is not less.
    store<u32>(left, a);
    left += (<usize>(~isLess & 1)) << 2;
    store<u32>(left, b);
    left += (<usize>(~isLess & 2)) << 1;
    store<u32>(left, c);
    left += <usize>(~isLess & 4);
    store<u32>(left, d);
    left += (<usize>(~isLess & 8)) >> 1;
  }
  const stay = <u32>((left - rows) >> 2);
  countLeftOut(index - stay, <usize>index * (stride + FACTS_BYTES));
  asked += index;
  stayed += stay;
  // Where most of them stay, as rows are long and close together, their codes are read for nothing.
  if (asked >= ASKED_MIN && stayed * 2 > asked) coded = 0;
  memory.copy(left, rows + ((<usize>index) << 2), (<usize>(count - index)) << 2);
  return stay + count - index;
}

/** What four rows score at most. */
// @ts-ignore: decorator
@inline
function mostOf(rowA: u32, rowB: u32, rowC: u32, rowD: u32): v128 {
  let a = codes + <usize>rowA * stride;
  let b = codes + <usize>rowB * stride;
  let c = codes + <usize>rowC * stride;
  let d = codes + <usize>rowD * stride;
  let sumA = i32x4.splat(0);
  let sumB = i32x4.splat(0);
  let sumC = i32x4.splat(0);
  let sumD = i32x4.splat(0);
  for (let q = query, end = query + 2 * stride; q < end; q += 32, a += 16, b += 16, c += 16, d += 16) {
    let part = v128.load(q);
    sumA = addCodes<u8>(sumA, v128.load_ext<i8>(a), part);
    sumB = addCodes<u8>(sumB, v128.load_ext<i8>(b), part);
    sumC = addCodes<u8>(sumC, v128.load_ext<i8>(c), part);
    sumD = addCodes<u8>(sumD, v128.load_ext<i8>(d), part);
    part = v128.load(q, 16);
    sumA = addCodes<u8>(sumA, v128.load_ext<i8>(a, 8), part);
    sumB = addCodes<u8>(sumB, v128.load_ext<i8>(b, 8), part);
    sumC = addCodes<u8>(sumC, v128.load_ext<i8>(c, 8), part);
    sumD = addCodes<u8>(sumD, v128.load_ext<i8>(d, 8), part);
  }
  const products = f32x4.mul(codeSums(sumA, sumB, sumC, sumD), f32x4.splat(unit));
  // Facts of four rows, turned from rows to columns.
  const factsA = v128.load(facts + <usize>rowA * FACTS_BYTES);
  const factsB = v128.load(facts + <usize>rowB * FACTS_BYTES);
  const factsC = v128.load(facts + <usize>rowC * FACTS_BYTES);
  const factsD = v128.load(facts + <usize>rowD * FACTS_BYTES);
  const lowAB = v128.shuffle<i32>(factsA, factsB, 0, 4, 1, 5);
  const lowCD = v128.shuffle<i32>(factsC, factsD, 0, 4, 1, 5);
  const highAB = v128.shuffle<i32>(factsA, factsB, 2, 6, 3, 7);
  const highCD = v128.shuffle<i32>(factsC, factsD, 2, 6, 3, 7);
  const scales = v128.shuffle<i32>(lowAB, lowCD, 0, 1, 4, 5);
  const losts = v128.shuffle<i32>(lowAB, lowCD, 2, 3, 6, 7);
  const lengths = v128.shuffle<i32>(highAB, highCD, 0, 1, 4, 5);
  const squares = v128.shuffle<i32>(highAB, highCD, 2, 3, 6, 7);
  let most = f32x4.mul(scales, products);
  most = f32x4.add(most, f32x4.mul(losts, f32x4.splat(reach)));
  most = f32x4.add(most, f32x4.mul(lengths, f32x4.splat(slack)));
  most = f32x4.mul(most, f32x4.splat(gain));
  return f32x4.add(f32x4.add(most, f32x4.mul(squares, f32x4.splat(weight))), f32x4.splat(constant));
}

/**
 * Codes rows from `from` below `to`. originals: f32 [rows, rowStride bytes], zeros behind the end of each. out, outStride, outFacts: as `codes`, `stride` and `facts`, zeros
 * before. -1: the time limit has passed, and some may have no codes.
 */
export function encodeRows(from: u32, to: u32, originals: usize, rowStride: usize, out: usize, outStride: usize, outFacts: usize): i32 {
  for (let row = from; row < to; row++) {
    if (expiredAfter(rowStride, LOOK_BYTES)) return -1;
    encodeRow(originals + <usize>row * rowStride, rowStride, out + <usize>row * outStride, outFacts + <usize>row * FACTS_BYTES);
  }
  return 0;
}

function encodeRow(row: usize, bytes: usize, out: usize, factsOut: usize): void {
  const end = row + bytes;
  let largest = f32x4.splat(0);
  let squares = f32x4.splat(0);
  for (let at = row; at < end; at += 16) {
    const part = v128.load(at);
    largest = f32x4.pmax(largest, f32x4.abs(part));
    squares = f32x4.add(squares, f32x4.mul(part, part));
  }
  const square = sumOf(squares);
  largest = f32x4.pmax(largest, v128.shuffle<i32>(largest, largest, 2, 3, 0, 1));
  largest = f32x4.pmax(largest, v128.shuffle<i32>(largest, largest, 1, 0, 3, 2));
  const most = f32x4.extract_lane(largest, 0);
  // Beyond that, or no numbers: whoever asks for it has to look at the original.
  if (!(square < SQUARE_MAX) || (square < SQUARE_MIN && most != 0)) {
    v128.store(factsOut, f32x4.splat(f32.POSITIVE_INFINITY));
    return;
  }
  const scale = most / CODE_MAX;
  const scales = f32x4.splat(scale);
  const inverses = f32x4.splat(scale > 0 ? 1 / scale : 0);
  let rests = f32x4.splat(0);
  for (let at = row; at < end; at += 16, out += 4) {
    const part = v128.load(at);
    const code = i32x4.trunc_sat_f32x4_s(f32x4.nearest(f32x4.mul(part, inverses)));
    const narrow = i16x8.narrow_i32x4_s(code, code);
    const bytes = i8x16.narrow_i16x8_s(narrow, narrow);
    store<i32>(out, i32x4.extract_lane(bytes, 0));
    const kept = i32x4.extend_low_i16x8_s(i16x8.extend_low_i8x16_s(bytes));
    const rest = f32x4.sub(part, f32x4.mul(f32x4.convert_i32x4_s(kept), scales));
    rests = f32x4.add(rests, f32x4.mul(rest, rest));
  }
  store<f32>(factsOut, scale);
  store<f32>(factsOut, sqrt(sumOf(rests)) * LOST_MORE, 4);
  store<f32>(factsOut, sqrt(square), 8);
  store<f32>(factsOut, square, 12);
}

// @ts-ignore: decorator
@inline
function sumOf(parts: v128): f32 {
  const halves = f32x4.add(parts, v128.shuffle<i32>(parts, parts, 2, 3, 0, 1));
  return f32x4.extract_lane(halves, 0) + f32x4.extract_lane(halves, 1);
}

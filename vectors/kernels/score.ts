/**
 * Scores of a list of rows under the matrix and query set last. Rows are taken four at a time with an accumulator each:
 * a walk jumps through memory, and four rows on their way at once hide most of the waiting.
 */

import { addCodes, addPart, codeSums, decodePart, partsOf, sumsOf, tidyScores } from './lanes';
import { scoreBits, scoreBitsByNumbers, scoreHalfBytes, scoreProduct } from './quantized';
import { forgetRowCodes } from './row-codes';

/** Kinds of kernels: 3 * element + metric, elements f32, f16, bf16, u8, i8, code, decoded; `code` with a far query under L2; quantized rows. */
const CODE_L2_FAR: i32 = 21;
const BITS_2: i32 = 22;
const BITS_4: i32 = 23;
const BITS_8: i32 = 24;
const HALF_BYTES_DOT: i32 = 25;
const HALF_BYTES_L1: i32 = 26;
const PRODUCT: i32 = 27;

let kind: i32 = 0;
let matrixOffset: usize = 0;
let matrixStride: usize = 0;
/** Bytes of a row that count: a multiple of 16; of quantized rows: those of the codes. */
let rowBytes: usize = 0;
let query: usize = 0;
/**
 * Codes: score = factor * sum + constant; with a far query factor * sum of squares + cross * sum of products + constant. Decoded codes:
 * component = factor * code + constant.
 */
let factor: f32 = 1;
let cross: f32 = 0;
let constant: f32 = 0;

let scored: u32 = 0;
/** Bytes of the rows that were scored under earlier matrices, and how many of `scored` they are. */
let scoredBytes: f64 = 0;
let weighed: u32 = 0;

export function setMatrix(
  newKind: i32,
  offset: usize,
  stride: usize,
  bytes: usize,
  queryOffset: usize,
  newFactor: f32,
  newCross: f32,
  newConstant: f32,
): void {
  weigh();
  forgetRowCodes();
  kind = newKind;
  matrixOffset = offset;
  matrixStride = stride;
  rowBytes = bytes;
  query = queryOffset;
  factor = newFactor;
  cross = newCross;
  constant = newConstant;
}

/** From one row of the matrix set last to the next. */
export function bytesOfRow(): u32 {
  return <u32>matrixStride;
}

/** Bytes before a query that `keepQuery` has kept. */
export const QUERY_HEAD: usize = 16;

/** Keeps the query set last, of so many bytes, and how it is scored. */
export function keepQuery(at: usize, bytes: usize): void {
  store<i32>(at, kind);
  store<f32>(at, factor, 4);
  store<f32>(at, cross, 8);
  store<f32>(at, constant, 12);
  memory.copy(at + QUERY_HEAD, query, bytes);
}

/** Takes a kept query for the matrix set last. */
// @ts-ignore: decorator
@inline
export function useQuery(at: usize): void {
  kind = load<i32>(at);
  factor = load<f32>(at, 4);
  cross = load<f32>(at, 8);
  constant = load<f32>(at, 12);
  query = at + QUERY_HEAD;
}

export function takeScored(): u32 {
  weigh();
  const count = scored;
  scored = 0;
  weighed = 0;
  return count;
}

/** Rows of the matrix set last that another kernel scores. */
export function countScored(rows: u32): void {
  scored += rows;
}

/** Counts rows that were left out as scored, with the bytes of codes that were read to know which. */
export function countLeftOut(rows: u32, bytes: usize): void {
  weigh();
  scored += rows;
  weighed += rows;
  scoredBytes += <f64>bytes;
}

/** Bytes of the rows scored since the last call, in whole lanes. */
export function takeScoredBytes(): f64 {
  weigh();
  const bytes = scoredBytes;
  scoredBytes = 0;
  return bytes;
}

function weigh(): void {
  scoredBytes += <f64>(scored - weighed) * <f64>rowBytes;
  weighed = scored;
}

/** Writes to `out` (f32 [count]) the scores of the rows at `rows` (u32 [count]). Both must have room for a multiple of four. */
export function scoreRows(rows: usize, count: u32, out: usize): void {
  if (count == 0) return;
  scored += count;
  // The last batch is filled with its own last row: its bytes are in the cache anyway.
  const last = load<u32>(rows + ((<usize>count - 1) << 2));
  for (let fill = count; (fill & 3) != 0; fill++) store<u32>(rows + ((<usize>fill) << 2), last);
  const end = rows + ((<usize>((count + 3) & ~3)) << 2);
  switch (kind) {
    case 0: return scoreFloats<f32, u8>(rows, end, out);
    case 1: return scoreFloats<f32, u16>(rows, end, out);
    case 2: return scoreFloats<f32, u32>(rows, end, out);
    case 3: return scoreFloats<u16, u8>(rows, end, out);
    case 4: return scoreFloats<u16, u16>(rows, end, out);
    case 5: return scoreFloats<u16, u32>(rows, end, out);
    case 6: return scoreFloats<i16, u8>(rows, end, out);
    case 7: return scoreFloats<i16, u16>(rows, end, out);
    case 8: return scoreFloats<i16, u32>(rows, end, out);
    case 9: return scoreFloats<u8, u8>(rows, end, out);
    case 10: return scoreFloats<u8, u16>(rows, end, out);
    case 11: return scoreFloats<u8, u32>(rows, end, out);
    case 12: return scoreFloats<i8, u8>(rows, end, out);
    case 13: return scoreFloats<i8, u16>(rows, end, out);
    case 14: return scoreFloats<i8, u32>(rows, end, out);
    case 15: return scoreCodes<u8>(rows, end, out);
    case 16: return scoreCodes<u16>(rows, end, out);
    case 17: return scoreCodes<u32>(rows, end, out);
    case 18: return scoreFloats<u64, u8>(rows, end, out);
    case 19: return scoreFloats<u64, u16>(rows, end, out);
    case 20: return scoreFloats<u64, u32>(rows, end, out);
    case CODE_L2_FAR: return scoreFarCodes(rows, end, out);
    case BITS_2: return scoreBits<u8>(rows, end, out, matrixOffset, matrixStride, rowBytes, query, factor, cross, constant);
    case BITS_4: return scoreBits<u16>(rows, end, out, matrixOffset, matrixStride, rowBytes, query, factor, cross, constant);
    case BITS_8: return scoreBitsByNumbers(rows, end, out, matrixOffset, matrixStride, rowBytes, query, factor, cross, constant);
    case HALF_BYTES_DOT: return scoreHalfBytes<u8>(rows, end, out, matrixOffset, matrixStride, rowBytes, query, factor, cross, constant);
    case HALF_BYTES_L1: return scoreHalfBytes<u32>(rows, end, out, matrixOffset, matrixStride, rowBytes, query, factor, cross, constant);
    case PRODUCT: return scoreProduct(rows, end, out, matrixOffset, matrixStride, rowBytes, query);
    default: unreachable();
  }
}

/** Rows whose first bytes are asked for before the first of them is scored. */
const TOUCH_GROUP: u32 = 32;

/** Where touched bytes end up, so that no compiler takes the loads for useless. */
let touched: u32 = 0;

export function lastTouched(): u32 {
  return touched;
}

/** Takes what was loaded only to have it in the cache. */
// @ts-ignore: decorator
@inline
export function noteTouched(sum: u32): void {
  touched = sum;
}

/**
 * As `scoreRows` for rows that lie far apart: the first two cache lines of each are asked for at once, after which the
 * processor fetches the lines that follow. Measured on walks over 60k rows of 784 codes, with and
 * without in shuffled turns: 6 to 10 % less time (medians of 24 passes, see vectors/README.md).
 */
export function scoreScattered(rows: usize, count: u32, out: usize): void {
  for (let from: u32 = 0; from < count; from += TOUCH_GROUP) {
    const start = rows + ((<usize>from) << 2);
    const groupCount = min(TOUCH_GROUP, count - from);
    let sum: u32 = 0;
    for (let index: u32 = 0; index < groupCount; index++) {
      const row = rowAt(start, index);
      sum += load<u32>(row) + load<u32>(row + min<usize>(64, rowBytes - 4));
    }
    noteTouched(sum);
    scoreRows(start, groupCount, out + ((<usize>from) << 2));
  }
}

// @ts-ignore: decorator
@inline
function rowAt(rows: usize, index: usize): usize {
  return matrixOffset + <usize>load<u32>(rows + (index << 2)) * matrixStride;
}

function scoreFloats<E, M>(rows: usize, end: usize, out: usize): void {
  const bytes = rowBytes;
  const queryStart = query;
  const scale = f32x4.splat(factor);
  const origin = f32x4.splat(constant);
  for (; rows < end; rows += 16, out += 16) {
    let a = rowAt(rows, 0);
    let b = rowAt(rows, 1);
    let c = rowAt(rows, 2);
    let d = rowAt(rows, 3);
    const stop = a + bytes;
    let q = queryStart;
    let sumA = f32x4.splat(0);
    let sumB = f32x4.splat(0);
    let sumC = f32x4.splat(0);
    let sumD = f32x4.splat(0);
    while (a < stop) {
      const rawA = v128.load(a);
      const rawB = v128.load(b);
      const rawC = v128.load(c);
      const rawD = v128.load(d);
      let part = v128.load(q);
      sumA = addPart<M>(sumA, decodePart<E>(rawA, 0, scale, origin), part);
      sumB = addPart<M>(sumB, decodePart<E>(rawB, 0, scale, origin), part);
      sumC = addPart<M>(sumC, decodePart<E>(rawC, 0, scale, origin), part);
      sumD = addPart<M>(sumD, decodePart<E>(rawD, 0, scale, origin), part);
      if (partsOf<E>() > 1) {
        part = v128.load(q, 16);
        sumA = addPart<M>(sumA, decodePart<E>(rawA, 1, scale, origin), part);
        sumB = addPart<M>(sumB, decodePart<E>(rawB, 1, scale, origin), part);
        sumC = addPart<M>(sumC, decodePart<E>(rawC, 1, scale, origin), part);
        sumD = addPart<M>(sumD, decodePart<E>(rawD, 1, scale, origin), part);
      }
      if (partsOf<E>() > 2) {
        part = v128.load(q, 32);
        sumA = addPart<M>(sumA, decodePart<E>(rawA, 2, scale, origin), part);
        sumB = addPart<M>(sumB, decodePart<E>(rawB, 2, scale, origin), part);
        sumC = addPart<M>(sumC, decodePart<E>(rawC, 2, scale, origin), part);
        sumD = addPart<M>(sumD, decodePart<E>(rawD, 2, scale, origin), part);
        part = v128.load(q, 48);
        sumA = addPart<M>(sumA, decodePart<E>(rawA, 3, scale, origin), part);
        sumB = addPart<M>(sumB, decodePart<E>(rawB, 3, scale, origin), part);
        sumC = addPart<M>(sumC, decodePart<E>(rawC, 3, scale, origin), part);
        sumD = addPart<M>(sumD, decodePart<E>(rawD, 3, scale, origin), part);
      }
      a += 16;
      b += 16;
      c += 16;
      d += 16;
      q += partsOf<E>() * 16;
    }
    const sums = sumsOf(sumA, sumB, sumC, sumD);
    v128.store(out, tidyScores(sizeof<M>() == 1 ? sums : f32x4.neg(sums)));
  }
}

function scoreCodes<M>(rows: usize, end: usize, out: usize): void {
  const bytes = rowBytes;
  const queryStart = query;
  for (; rows < end; rows += 16, out += 16) {
    let a = rowAt(rows, 0);
    let b = rowAt(rows, 1);
    let c = rowAt(rows, 2);
    let d = rowAt(rows, 3);
    const stop = a + bytes;
    let q = queryStart;
    let sumA = i32x4.splat(0);
    let sumB = i32x4.splat(0);
    let sumC = i32x4.splat(0);
    let sumD = i32x4.splat(0);
    while (a < stop) {
      let part = v128.load(q);
      sumA = addCodes<M>(sumA, v128.load_ext<u8>(a), part);
      sumB = addCodes<M>(sumB, v128.load_ext<u8>(b), part);
      sumC = addCodes<M>(sumC, v128.load_ext<u8>(c), part);
      sumD = addCodes<M>(sumD, v128.load_ext<u8>(d), part);
      part = v128.load(q, 16);
      sumA = addCodes<M>(sumA, v128.load_ext<u8>(a, 8), part);
      sumB = addCodes<M>(sumB, v128.load_ext<u8>(b, 8), part);
      sumC = addCodes<M>(sumC, v128.load_ext<u8>(c, 8), part);
      sumD = addCodes<M>(sumD, v128.load_ext<u8>(d, 8), part);
      a += 16;
      b += 16;
      c += 16;
      d += 16;
      q += 32;
    }
    v128.store(out, tidyScores(f32x4.add(f32x4.mul(codeSums(sumA, sumB, sumC, sumD), f32x4.splat(factor)), f32x4.splat(constant))));
  }
}

/**
 * L2 where a component of the query lies so far outside the codes that squared differences would leave 32 bits: by
 * |c - q|² = Σc² - 2Σcq + |q|², with the query scaled to 16 bits.
 */
function scoreFarCodes(rows: usize, end: usize, out: usize): void {
  const bytes = rowBytes;
  for (; rows < end; rows += 4, out += 4) {
    const row = rowAt(rows, 0);
    let squares = i32x4.splat(0);
    let products = i32x4.splat(0);
    for (let at: usize = 0; at < bytes; at += 8) {
      const codes = v128.load_ext<u8>(row + at);
      squares = i32x4.add(squares, i32x4.dot_i16x8_s(codes, codes));
      products = i32x4.add(products, i32x4.dot_i16x8_s(codes, v128.load(query + (at << 1))));
    }
    const scores = codeSums(squares, products, squares, products);
    const score = f32x4.extract_lane(scores, 0) * factor + f32x4.extract_lane(scores, 1) * cross + constant;
    store<f32>(out, f32x4.extract_lane(tidyScores(f32x4.splat(score)), 0));
  }
}

/**
 * Scores of quantized rows, four at a time as in `score`: bits and half bytes that are multiplied with an integer query,
 * and numbers of centroids that are looked up in the query's tables.
 *
 * Rows of bits and half bytes end in two f32 behind their codes, factor and bias, so that one row says how long it is:
 * score = factor of the row * (factor * sum + cross) + bias of the row + constant. See `vectors/quantizers/levels.ts`.
 */

import { addCodes, addPart, sumsOf, tidyScores } from './lanes';

/** Bytes of the table of one part: a score for each of 256 centroids. */
const TABLE_BYTES: usize = 1024;
const CENTROIDS: u32 = 256;

/**
 * Σ u b over the bits b of a row, with the query's u in two's complement, cut into layers of bits: for each 16 bytes of a
 * row the query has one 16 bytes per layer, lowest first. Bits of the query behind the row's last are 0, so whatever
 * follows a row in memory may be read with it.
 * L, layers: u8 = 2, u16 = 4. bytes: codes of a row, a multiple of 4.
 */
export function scoreBits<L>(
  rows: usize,
  end: usize,
  out: usize,
  base: usize,
  stride: usize,
  bytes: usize,
  query: usize,
  factor: f32,
  cross: f32,
  constant: f32,
): void {
  for (; rows < end; rows += 16, out += 16) {
    const a = base + <usize>load<u32>(rows) * stride;
    const b = base + <usize>load<u32>(rows, 4) * stride;
    const c = base + <usize>load<u32>(rows, 8) * stride;
    const d = base + <usize>load<u32>(rows, 12) * stride;
    let q = query;
    let sumA = i32x4.splat(0);
    let sumB = i32x4.splat(0);
    let sumC = i32x4.splat(0);
    let sumD = i32x4.splat(0);
    for (let at: usize = 0; at < bytes; at += 16) {
      const rowA = v128.load(a + at);
      const rowB = v128.load(b + at);
      const rowC = v128.load(c + at);
      const rowD = v128.load(d + at);
      // The highest layer of a number in two's complement counts as negative.
      let layer = v128.load(q + layersOf<L>() * 16 - 16);
      let highA = i8x16.neg(i8x16.popcnt(v128.and(rowA, layer)));
      let highB = i8x16.neg(i8x16.popcnt(v128.and(rowB, layer)));
      let highC = i8x16.neg(i8x16.popcnt(v128.and(rowC, layer)));
      let highD = i8x16.neg(i8x16.popcnt(v128.and(rowD, layer)));
      for (let step: usize = 2; step <= layersOf<L>(); step++) {
        layer = v128.load(q + (layersOf<L>() - step) * 16);
        highA = addLayer(highA, rowA, layer);
        highB = addLayer(highB, rowB, layer);
        highC = addLayer(highC, rowC, layer);
        highD = addLayer(highD, rowD, layer);
      }
      sumA = i32x4.add(sumA, i32x4.extadd_pairwise_i16x8_s(i16x8.extadd_pairwise_i8x16_s(highA)));
      sumB = i32x4.add(sumB, i32x4.extadd_pairwise_i16x8_s(i16x8.extadd_pairwise_i8x16_s(highB)));
      sumC = i32x4.add(sumC, i32x4.extadd_pairwise_i16x8_s(i16x8.extadd_pairwise_i8x16_s(highC)));
      sumD = i32x4.add(sumD, i32x4.extadd_pairwise_i16x8_s(i16x8.extadd_pairwise_i8x16_s(highD)));
      q += layersOf<L>() * 16;
    }
    const sums = floatSums(sumA, sumB, sumC, sumD);
    v128.store(out, rowScores(sums, a + bytes, b + bytes, c + bytes, d + bytes, factor, cross, constant));
  }
}

// @ts-ignore: decorator
@inline
function layersOf<L>(): usize {
  return sizeof<L>() == 1 ? 2 : 4;
}

/** The next lower layer joins: what was summed counts twice. */
// @ts-ignore: decorator
@inline
function addLayer(sum: v128, row: v128, layer: v128): v128 {
  return i8x16.add(i8x16.add(sum, sum), i8x16.popcnt(v128.and(row, layer)));
}

/** Bytes of a row whose sums of numbers of 8 bits stay within 16: 16 times 16 numbers a lane. */
const NARROW_BYTES: usize = 256;

/**
 * As `scoreBits` with numbers of 8 bits, whole: for each 16 bytes of a row the query has eight times 16 numbers, those
 * that the highest bits of the bytes count first. Eight layers would take twice as long: counting bits takes many steps.
 */
export function scoreBitsByNumbers(
  rows: usize,
  end: usize,
  out: usize,
  base: usize,
  stride: usize,
  bytes: usize,
  query: usize,
  factor: f32,
  cross: f32,
  constant: f32,
): void {
  for (; rows < end; rows += 16, out += 16) {
    const a = base + <usize>load<u32>(rows) * stride;
    const b = base + <usize>load<u32>(rows, 4) * stride;
    const c = base + <usize>load<u32>(rows, 8) * stride;
    const d = base + <usize>load<u32>(rows, 12) * stride;
    let q = query;
    let sumA = i32x4.splat(0);
    let sumB = i32x4.splat(0);
    let sumC = i32x4.splat(0);
    let sumD = i32x4.splat(0);
    for (let from: usize = 0; from < bytes; from += NARROW_BYTES) {
      const to = min(bytes, from + NARROW_BYTES);
      let narrowA = i16x8.splat(0);
      let narrowB = i16x8.splat(0);
      let narrowC = i16x8.splat(0);
      let narrowD = i16x8.splat(0);
      for (let at = from; at < to; at += 16) {
        let rowA = v128.load(a + at);
        let rowB = v128.load(b + at);
        let rowC = v128.load(c + at);
        let rowD = v128.load(d + at);
        for (const next = q + 128; q < next; q += 16) {
          const numbers = v128.load(q);
          narrowA = addNumbers(narrowA, rowA, numbers);
          narrowB = addNumbers(narrowB, rowB, numbers);
          narrowC = addNumbers(narrowC, rowC, numbers);
          narrowD = addNumbers(narrowD, rowD, numbers);
          rowA = i8x16.add(rowA, rowA);
          rowB = i8x16.add(rowB, rowB);
          rowC = i8x16.add(rowC, rowC);
          rowD = i8x16.add(rowD, rowD);
        }
      }
      sumA = i32x4.add(sumA, i32x4.extadd_pairwise_i16x8_s(narrowA));
      sumB = i32x4.add(sumB, i32x4.extadd_pairwise_i16x8_s(narrowB));
      sumC = i32x4.add(sumC, i32x4.extadd_pairwise_i16x8_s(narrowC));
      sumD = i32x4.add(sumD, i32x4.extadd_pairwise_i16x8_s(narrowD));
    }
    const sums = floatSums(sumA, sumB, sumC, sumD);
    v128.store(out, rowScores(sums, a + bytes, b + bytes, c + bytes, d + bytes, factor, cross, constant));
  }
}

/** The numbers of the bytes whose highest bit is set. */
// @ts-ignore: decorator
@inline
function addNumbers(sum: v128, row: v128, numbers: v128): v128 {
  return i16x8.add(sum, i16x8.extadd_pairwise_i8x16_s(v128.and(i8x16.lt_s(row, i8x16.splat(0)), numbers)));
}

/**
 * Rows of half bytes, each the number of one of 16 levels (i8 [16] at `query`); component 2 i lies in the lower half of
 * byte i. The query follows as i16, for each 16 bytes of a row those of the lower halves, then those of the upper ones.
 * M: u8 = products, u32 = differences. bytes: a multiple of 16.
 */
export function scoreHalfBytes<M>(
  rows: usize,
  end: usize,
  out: usize,
  base: usize,
  stride: usize,
  bytes: usize,
  query: usize,
  factor: f32,
  cross: f32,
  constant: f32,
): void {
  const levels = v128.load(query);
  for (; rows < end; rows += 16, out += 16) {
    const a = base + <usize>load<u32>(rows) * stride;
    const b = base + <usize>load<u32>(rows, 4) * stride;
    const c = base + <usize>load<u32>(rows, 8) * stride;
    const d = base + <usize>load<u32>(rows, 12) * stride;
    let q = query + 16;
    let sumA = i32x4.splat(0);
    let sumB = i32x4.splat(0);
    let sumC = i32x4.splat(0);
    let sumD = i32x4.splat(0);
    for (let at: usize = 0; at < bytes; at += 16, q += 64) {
      sumA = addHalfBytes<M>(sumA, v128.load(a + at), levels, q);
      sumB = addHalfBytes<M>(sumB, v128.load(b + at), levels, q);
      sumC = addHalfBytes<M>(sumC, v128.load(c + at), levels, q);
      sumD = addHalfBytes<M>(sumD, v128.load(d + at), levels, q);
    }
    const sums = floatSums(sumA, sumB, sumC, sumD);
    v128.store(out, rowScores(sums, a + bytes, b + bytes, c + bytes, d + bytes, factor, cross, constant));
  }
}

// @ts-ignore: decorator
@inline
function addHalfBytes<M>(sum: v128, row: v128, levels: v128, query: usize): v128 {
  const low = i8x16.swizzle(levels, v128.and(row, i8x16.splat(15)));
  const high = i8x16.swizzle(levels, i8x16.shr_u(row, 4));
  sum = addCodes<M>(sum, i16x8.extend_low_i8x16_s(low), v128.load(query));
  sum = addCodes<M>(sum, i16x8.extend_high_i8x16_s(low), v128.load(query, 16));
  sum = addCodes<M>(sum, i16x8.extend_low_i8x16_s(high), v128.load(query, 32));
  return addCodes<M>(sum, i16x8.extend_high_i8x16_s(high), v128.load(query, 48));
}

/** Rows of `parts` bytes, each the number of a centroid: the sum of what the part's table says. */
export function scoreProduct(rows: usize, end: usize, out: usize, base: usize, stride: usize, parts: usize, tables: usize): void {
  for (; rows < end; rows += 16, out += 16) {
    const a = base + <usize>load<u32>(rows) * stride;
    const b = base + <usize>load<u32>(rows, 4) * stride;
    const c = base + <usize>load<u32>(rows, 8) * stride;
    const d = base + <usize>load<u32>(rows, 12) * stride;
    let table = tables;
    let sumA: f32 = 0;
    let sumB: f32 = 0;
    let sumC: f32 = 0;
    let sumD: f32 = 0;
    for (let part: usize = 0; part < parts; part++, table += TABLE_BYTES) {
      sumA += load<f32>(table + ((<usize>load<u8>(a + part)) << 2));
      sumB += load<f32>(table + ((<usize>load<u8>(b + part)) << 2));
      sumC += load<f32>(table + ((<usize>load<u8>(c + part)) << 2));
      sumD += load<f32>(table + ((<usize>load<u8>(d + part)) << 2));
    }
    v128.store(out, tidyScores(f32x4(sumA, sumB, sumC, sumD)));
  }
}

/**
 * Writes the tables of a query: for each part the score of its 256 centroids.
 * codebook: f32 [parts, partDim, 256]; query: f32 [parts * partDim]; metric: 0 dot, 1 l2, 2 l1; out: f32 [parts, 256].
 */
export function fillTables(codebook: usize, query: usize, parts: u32, partDim: u32, metric: i32, out: usize): void {
  if (metric == 0) return fill<u8>(codebook, query, parts, partDim, out);
  if (metric == 1) return fill<u16>(codebook, query, parts, partDim, out);
  return fill<u32>(codebook, query, parts, partDim, out);
}

function fill<M>(codebook: usize, query: usize, parts: u32, partDim: u32, out: usize): void {
  for (let part: u32 = 0; part < parts; part++) {
    for (let lane: usize = 0; lane < TABLE_BYTES; lane += 16) {
      let sum = f32x4.splat(0);
      for (let index: u32 = 0; index < partDim; index++) {
        const centroids = v128.load(codebook + <usize>index * TABLE_BYTES + lane);
        sum = addPart<M>(sum, centroids, v128.load32_splat(query + ((<usize>index) << 2)));
      }
      v128.store(out + lane, sizeof<M>() == 1 ? sum : f32x4.neg(sum));
    }
    codebook += <usize>partDim * TABLE_BYTES;
    query += (<usize>partDim) << 2;
    out += TABLE_BYTES;
  }
}

/**
 * Writes the number of the centroid nearest to each of `count` sub-vectors, the smaller of equally near ones.
 * values: f32, `stride` bytes from one to the next; codebook: f32 [partDim, 256]; out: u8, `outStride` bytes apart.
 */
export function nearestCentroids(
  values: usize,
  count: u32,
  stride: usize,
  codebook: usize,
  partDim: u32,
  out: usize,
  outStride: usize,
): void {
  for (let index: u32 = 0; index < count; index++, values += stride, out += outStride) {
    let best = f32x4.splat(f32.POSITIVE_INFINITY);
    let bestNumber = i32x4.splat(0);
    let number = i32x4(0, 1, 2, 3);
    for (let lane: usize = 0; lane < TABLE_BYTES; lane += 16) {
      let sum = f32x4.splat(0);
      for (let at: u32 = 0; at < partDim; at++) {
        const centroids = v128.load(codebook + <usize>at * TABLE_BYTES + lane);
        sum = addPart<u16>(sum, centroids, v128.load32_splat(values + ((<usize>at) << 2)));
      }
      const nearer = f32x4.lt(sum, best);
      best = v128.bitselect(sum, best, nearer);
      bestNumber = v128.bitselect(number, bestNumber, nearer);
      number = i32x4.add(number, i32x4.splat(4));
    }
    store<u8>(out, smallestLane(best, bestNumber));
  }
}

/** Number of the lane with the smallest distance, the smaller number of equal ones. */
function smallestLane(distances: v128, numbers: v128): u32 {
  let best = f32x4.extract_lane(distances, 0);
  let number = <u32>i32x4.extract_lane(numbers, 0);
  const distance1 = f32x4.extract_lane(distances, 1);
  const number1 = <u32>i32x4.extract_lane(numbers, 1);
  if (distance1 < best || (distance1 == best && number1 < number)) {
    best = distance1;
    number = number1;
  }
  const distance2 = f32x4.extract_lane(distances, 2);
  const number2 = <u32>i32x4.extract_lane(numbers, 2);
  if (distance2 < best || (distance2 == best && number2 < number)) {
    best = distance2;
    number = number2;
  }
  const distance3 = f32x4.extract_lane(distances, 3);
  const number3 = <u32>i32x4.extract_lane(numbers, 3);
  if (distance3 < best || (distance3 == best && number3 < number)) number = number3;
  return number & (CENTROIDS - 1);
}

// @ts-ignore: decorator
@inline
function floatSums(a: v128, b: v128, c: v128, d: v128): v128 {
  return sumsOf(f32x4.convert_i32x4_s(a), f32x4.convert_i32x4_s(b), f32x4.convert_i32x4_s(c), f32x4.convert_i32x4_s(d));
}

/** Scores from sums; `a` to `d`: where factor and bias of the rows are. */
// @ts-ignore: decorator
@inline
function rowScores(sums: v128, a: usize, b: usize, c: usize, d: usize, factor: f32, cross: f32, constant: f32): v128 {
  const factors = f32x4(load<f32>(a), load<f32>(b), load<f32>(c), load<f32>(d));
  const biases = f32x4(load<f32>(a, 4), load<f32>(b, 4), load<f32>(c, 4), load<f32>(d, 4));
  const products = f32x4.add(f32x4.mul(sums, f32x4.splat(factor)), f32x4.splat(cross));
  return tidyScores(f32x4.add(f32x4.add(f32x4.mul(factors, products), biases), f32x4.splat(constant)));
}

/**
 * Nearest rows of many rows at once, by squared Euclidean distance of 8-bit codes: all pairs within small groups of near rows, many of which a row is in
 * (PiPNN: Rubel et al., 2026, arXiv 2602.21247). A pair costs a fraction of what it costs in a search, as rows of a group are in the caches, eight pairs are
 * scored at a time, and each counts for both of its rows.
 *
 * - **Pairs-P1** of each row the `k` nearest rows that it has met are kept, in a heap with the farthest at its root. A pair that is met in a second group
 *   has the same key as before and is not kept twice.
 */

import { keyOf, push, replaceRoot, scoreOf } from './heap';

/** u8 [rows, stride], stride a multiple of 16, zeros behind the end of each row. */
let codes: usize = 0;
let stride: usize = 0;
/** u8 [rows of a group + 4, stride]: the rows of a group, so that they lie together. */
let block: usize = 0;
/** i32 for each of them: the square of its length. */
let squares: usize = 0;
/** f32 for each of them: a row that is as near or farther is not kept. */
let bounds: usize = 0;
/** i16 [2, stride]: the two rows that are compared with the others. */
let query: usize = 0;
/** i64 [rows, k]: the heap of each row. */
let heaps: usize = 0;
/** u32 [rows]: keys in each heap. */
let counts: usize = 0;
let k: u32 = 0;

export function setPairs(
  newCodes: usize,
  newStride: usize,
  newBlock: usize,
  newSquares: usize,
  newBounds: usize,
  newQuery: usize,
  newHeaps: usize,
  newCounts: usize,
  newK: u32,
): void {
  codes = newCodes;
  stride = newStride;
  block = newBlock;
  squares = newSquares;
  bounds = newBounds;
  query = newQuery;
  heaps = newHeaps;
  counts = newCounts;
  k = newK;
}

/**
 * Writes to `out` (u32 [count, each]) which of the leaders are nearest to each row, the nearest first. leaders, rows: u32 [leaderCount], u32 [count].
 * each: leaderCount at most. best: i32 [each].
 */
export function nearestLeaders(leaders: usize, leaderCount: u32, rows: usize, count: u32, each: u32, best: usize, out: usize): void {
  gather(leaders, leaderCount);
  const last = (<usize>(each - 1)) << 2;
  for (let index: u32 = 0; index < count; index++, out += (<usize>each) << 2) {
    aim(query, codes + <usize>load<u32>(rows + ((<usize>index) << 2)) * stride);
    for (let at: usize = 0; at <= last; at += 4) store<i32>(best + at, i32.MIN_VALUE);
    for (let number: u32 = 0; number < leaderCount; number += 4) {
      const scores = scoresOf(number);
      const nearer = i32x4.bitmask(i32x4.gt_s(scores, i32x4.splat(load<i32>(best + last))));
      if (nearer & 1) insert(i32x4.extract_lane(scores, 0), number, last, best, out);
      if (nearer & 2) insert(i32x4.extract_lane(scores, 1), number + 1, last, best, out);
      if (nearer & 4) insert(i32x4.extract_lane(scores, 2), number + 2, last, best, out);
      if (nearer & 8) insert(i32x4.extract_lane(scores, 3), number + 3, last, best, out);
    }
  }
}

/** Puts a leader among the best so far, which are sorted, unless others have taken its place. */
function insert(score: i32, number: u32, last: usize, best: usize, out: usize): void {
  if (score <= load<i32>(best + last)) return;
  let at = last;
  for (; at > 0 && score > load<i32>(best + at - 4); at -= 4) {
    store<i32>(best + at, load<i32>(best + at - 4));
    store<u32>(out + at, load<u32>(out + at - 4));
  }
  store<i32>(best + at, score);
  store<u32>(out + at, number);
}

/** Has the rows of a group meet each other (Pairs-P1). rows: u32 [count], each once. */
export function meetAll(rows: usize, count: u32): void {
  gather(rows, count);
  for (let index: u32 = 0; index < count; index++) setBound(index, load<u32>(rows + ((<usize>index) << 2)));
  const second = query + (stride << 1);
  for (let index: u32 = 0; index + 1 < count; index += 2) {
    const from = block + <usize>index * stride;
    aim(query, from);
    aim(second, from + stride);
    const own = bounds + ((<usize>index) << 2);
    const square = squares + ((<usize>index) << 2);
    for (let number = (index + 1) & ~3; number < count; number += 4) {
      const a = block + <usize>number * stride;
      const b = a + stride;
      const c = b + stride;
      const d = c + stride;
      let firstA = i32x4.splat(0);
      let firstB = i32x4.splat(0);
      let firstC = i32x4.splat(0);
      let firstD = i32x4.splat(0);
      let secondA = i32x4.splat(0);
      let secondB = i32x4.splat(0);
      let secondC = i32x4.splat(0);
      let secondD = i32x4.splat(0);
      for (let at: usize = 0; at < stride; at += 8) {
        const one = v128.load(query + (at << 1));
        const other = v128.load(second + (at << 1));
        let part = v128.load_ext<u8>(a + at);
        firstA = i32x4.add(firstA, i32x4.dot_i16x8_s(one, part));
        secondA = i32x4.add(secondA, i32x4.dot_i16x8_s(other, part));
        part = v128.load_ext<u8>(b + at);
        firstB = i32x4.add(firstB, i32x4.dot_i16x8_s(one, part));
        secondB = i32x4.add(secondB, i32x4.dot_i16x8_s(other, part));
        part = v128.load_ext<u8>(c + at);
        firstC = i32x4.add(firstC, i32x4.dot_i16x8_s(one, part));
        secondC = i32x4.add(secondC, i32x4.dot_i16x8_s(other, part));
        part = v128.load_ext<u8>(d + at);
        firstD = i32x4.add(firstD, i32x4.dot_i16x8_s(one, part));
        secondD = i32x4.add(secondD, i32x4.dot_i16x8_s(other, part));
      }
      const theirs = v128.load(squares + ((<usize>number) << 2));
      const theirBounds = v128.load(bounds + ((<usize>number) << 2));
      let products = i32x4.sub(i32x4.shl(laneSums(firstA, firstB, firstC, firstD), 1), theirs);
      let scores = f32x4.convert_i32x4_s(i32x4.sub(products, i32x4.splat(load<i32>(square))));
      let nearer = i32x4.bitmask(v128.or(f32x4.gt(scores, f32x4.splat(load<f32>(own))), f32x4.gt(scores, theirBounds)));
      if (nearer) meetFour(scores, nearer, rows, index, number, count);
      if (index + 2 > count) continue;
      products = i32x4.sub(i32x4.shl(laneSums(secondA, secondB, secondC, secondD), 1), theirs);
      scores = f32x4.convert_i32x4_s(i32x4.sub(products, i32x4.splat(load<i32>(square, 4))));
      nearer = i32x4.bitmask(v128.or(f32x4.gt(scores, f32x4.splat(load<f32>(own, 4))), f32x4.gt(scores, theirBounds)));
      if (nearer) meetFour(scores, nearer, rows, index + 1, number, count);
    }
  }
}

/** One row of a group and those of four others whose bit is set. */
function meetFour(scores: v128, bits: i32, rows: usize, index: u32, number: u32, count: u32): void {
  if (bits & 1) meet(f32x4.extract_lane(scores, 0), rows, index, number, count);
  if (bits & 2) meet(f32x4.extract_lane(scores, 1), rows, index, number + 1, count);
  if (bits & 4) meet(f32x4.extract_lane(scores, 2), rows, index, number + 2, count);
  if (bits & 8) meet(f32x4.extract_lane(scores, 3), rows, index, number + 3, count);
}

function meet(score: f32, rows: usize, index: u32, number: u32, count: u32): void {
  // Pairs of these have been met, or are of a row that is not there.
  if (number <= index || number >= count) return;
  const row = load<u32>(rows + ((<usize>index) << 2));
  const other = load<u32>(rows + ((<usize>number) << 2));
  if (score > load<f32>(bounds + ((<usize>index) << 2))) {
    keep(row, score, other);
    setBound(index, row);
  }
  if (score > load<f32>(bounds + ((<usize>number) << 2))) {
    keep(other, score, row);
    setBound(number, other);
  }
}

function keep(row: u32, score: f32, other: u32): void {
  const key = keyOf(score, other);
  const heap = heaps + ((<usize>row * k) << 3);
  const count = load<u32>(counts + ((<usize>row) << 2));
  const end = heap + ((<usize>count) << 3);
  for (let at = heap; at < end; at += 16) {
    const equal = i64x2.eq(v128.load(at), i64x2.splat(key));
    // Of the last two, the second may be none.
    if (v128.any_true(equal) && (at + 16 <= end || i64x2.extract_lane(equal, 0) != 0)) return;
  }
  if (count == k) {
    replaceRoot<u8>(heap, count, key);
    return;
  }
  push<u8>(heap, count, key);
  store<u32>(counts + ((<usize>row) << 2), count + 1);
}

/** Keeps with a row of the group how near others have to be. */
// @ts-ignore: decorator
@inline
function setBound(index: u32, row: u32): void {
  const isFull = load<u32>(counts + ((<usize>row) << 2)) == k;
  store<f32>(bounds + ((<usize>index) << 2), isFull ? scoreOf(load<i64>(heaps + ((<usize>row * k) << 3))) : f32.NEGATIVE_INFINITY);
}

/** Copies rows to the block, and zeros as far as four rows at a time are read. */
function gather(rows: usize, count: u32): void {
  for (let index: u32 = 0; index < count; index++) {
    const from = codes + <usize>load<u32>(rows + ((<usize>index) << 2)) * stride;
    memory.copy(block + <usize>index * stride, from, stride);
    let sums = i32x4.splat(0);
    for (let at: usize = 0; at < stride; at += 8) {
      const part = v128.load_ext<u8>(from + at);
      sums = i32x4.add(sums, i32x4.dot_i16x8_s(part, part));
    }
    store<i32>(squares + ((<usize>index) << 2), i32x4.extract_lane(laneSums(sums, sums, sums, sums), 0));
  }
  const end = (count + 4) & ~3;
  memory.fill(block + <usize>count * stride, 0, <usize>(end - count) * stride);
  // So that none of them is ever near.
  for (let index = count; index < end; index++) {
    store<i32>(squares + ((<usize>index) << 2), FAR);
    store<f32>(bounds + ((<usize>index) << 2), f32.POSITIVE_INFINITY);
  }
}

/** Farther than any row: 16,384 components of 255 make a square that is smaller. */
const FAR: i32 = 0x3fff_ffff;

/** Makes a row a query. */
// @ts-ignore: decorator
@inline
function aim(to: usize, from: usize): void {
  for (let at: usize = 0; at < stride; at += 8) v128.store(to + (at << 1), v128.load_ext<u8>(from + at));
}

/** How near four rows of the block are to the first query: minus the square of the distance, but for the query's own part. */
// @ts-ignore: decorator
@inline
function scoresOf(number: u32): v128 {
  const a = block + <usize>number * stride;
  const b = a + stride;
  const c = b + stride;
  const d = c + stride;
  let sumA = i32x4.splat(0);
  let sumB = i32x4.splat(0);
  let sumC = i32x4.splat(0);
  let sumD = i32x4.splat(0);
  for (let at: usize = 0; at < stride; at += 8) {
    const part = v128.load(query + (at << 1));
    sumA = i32x4.add(sumA, i32x4.dot_i16x8_s(part, v128.load_ext<u8>(a + at)));
    sumB = i32x4.add(sumB, i32x4.dot_i16x8_s(part, v128.load_ext<u8>(b + at)));
    sumC = i32x4.add(sumC, i32x4.dot_i16x8_s(part, v128.load_ext<u8>(c + at)));
    sumD = i32x4.add(sumD, i32x4.dot_i16x8_s(part, v128.load_ext<u8>(d + at)));
  }
  return i32x4.sub(i32x4.shl(laneSums(sumA, sumB, sumC, sumD), 1), v128.load(squares + ((<usize>number) << 2)));
}

/** Lane sums of four i32x4, as one i32x4. */
// @ts-ignore: decorator
@inline
function laneSums(a: v128, b: v128, c: v128, d: v128): v128 {
  const ab = i32x4.add(v128.shuffle<i32>(a, b, 0, 4, 1, 5), v128.shuffle<i32>(a, b, 2, 6, 3, 7));
  const cd = i32x4.add(v128.shuffle<i32>(c, d, 0, 4, 1, 5), v128.shuffle<i32>(c, d, 2, 6, 3, 7));
  return i32x4.add(v128.shuffle<i32>(ab, cd, 0, 1, 4, 5), v128.shuffle<i32>(ab, cd, 2, 3, 6, 7));
}

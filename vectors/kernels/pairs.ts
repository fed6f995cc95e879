/**
 * Nearest rows of many rows at once, by squared Euclidean distance of 8-bit codes: all pairs within small groups of near rows, many of which a row is in
 * (PiPNN: Rubel et al., 2026, arXiv 2602.21247). A pair costs a fraction of what it costs in a search, as rows of a group are in the caches, eight pairs are
 * scored at a time, and each counts for both of its rows.
 *
 * - **Pairs-P1** of each row the `k` nearest rows that it has met are kept, in no order. A pair that is met in a second group is not kept twice.
 *   To look at all for an equal row and for the farthest one takes 0.7 of the CPU of a heap (12 instead of 17.5 µs a row), as a processor cannot
 *   foretell the way through a heap.
 * - **Pairs-P2** where several threads have groups meet, each with a place of its own to do so, rows that are kept of a row change under its lock alone. What is
 *   kept is the same, whoever comes first, but for rows that are equally near.
 */

/** u8 [rows, stride], stride a multiple of 16, zeros behind the end of each row. */
let codes: usize = 0;
let stride: usize = 0;
/** u8 [rows of a group + 4, stride]: the rows of a group, so that they lie together. */
let block: usize = 0;
/** i32 for each of them: the square of its length. */
let squares: usize = 0;
/** f32 for each of them: a row that is as near or farther is not kept. */
let bounds: usize = 0;
/** i16 [2, stride]: the two rows that are compared with the others; behind them i32 [2, 4]: `multiply`. */
let query: usize = 0;
/** For each row u32 [k], the rows that are kept of it or NO_ROW, and f32 [k], how near each is: minus the square of the distance, or minus infinity. */
let near: usize = 0;
let k4: usize = 0;
/** For each row u32: 1 while a thread changes what is kept of it; 0: no other thread has groups meet. */
let locks: usize = 0;

/** A lock is held for some 50 ns. Who still waits for it after so many looks leaves the processor for so many nanoseconds. */
const LOOKS_MAX = 2000;
const LOCKED_OUT_NS = 50_000;

/** Stands where no row is kept. */
export const NO_ROW: u32 = 0xffff_ffff;

/** newK: a multiple of 4. newLocks: zeros, or 0. */
export function setPairs(
  newCodes: usize,
  newStride: usize,
  newBlock: usize,
  newSquares: usize,
  newBounds: usize,
  newQuery: usize,
  newNear: usize,
  newK: u32,
  newLocks: usize,
): void {
  codes = newCodes;
  stride = newStride;
  block = newBlock;
  squares = newSquares;
  bounds = newBounds;
  query = newQuery;
  near = newNear;
  k4 = (<usize>newK) << 2;
  locks = newLocks;
}

/** Has rows from `from` below `to` keep no other. */
export function keepNone(from: u32, to: u32): void {
  for (let at = near + <usize>from * 2 * k4, end = near + <usize>to * 2 * k4; at < end; at += 2 * k4) {
    memory.fill(at, 0xff, k4);
    for (let score = at + k4; score < at + 2 * k4; score += 16) v128.store(score, f32x4.splat(f32.NEGATIVE_INFINITY));
  }
}

/**
 * Writes to `out` (u32 [count, each]) which of the leaders are nearest to each row, the nearest first. leaders, rows: u32 [leaderCount], u32 [count].
 * each: leaderCount at most. best: i32 [2, each].
 */
export function nearestLeaders(leaders: usize, leaderCount: u32, rows: usize, count: u32, each: u32, best: usize, out: usize): void {
  gather(leaders, leaderCount);
  const last = (<usize>(each - 1)) << 2;
  const products = query + (stride << 2);
  for (let index: u32 = 0; index < count; index += 2, rows += 8, out += 2 * (last + 4)) {
    const isAlone = index + 1 == count;
    aim(query, codes + <usize>load<u32>(rows) * stride);
    if (!isAlone) aim(query + (stride << 1), codes + <usize>load<u32>(rows, 4) * stride);
    for (let at: usize = 0; at < 2 * (last + 4); at += 4) store<i32>(best + at, i32.MIN_VALUE);
    for (let number: u32 = 0; number < leaderCount; number += 4) {
      multiply(number);
      const theirs = v128.load(squares + ((<usize>number) << 2));
      place(i32x4.sub(i32x4.shl(v128.load(products), 1), theirs), number, last, best, out);
      if (!isAlone) place(i32x4.sub(i32x4.shl(v128.load(products, 16), 1), theirs), number, last, best + last + 4, out + last + 4);
    }
  }
}

/** Puts those of four leaders among the best of a row so far that are near enough. */
// @ts-ignore: decorator
@inline
function place(scores: v128, number: u32, last: usize, best: usize, out: usize): void {
  const nearer = i32x4.bitmask(i32x4.gt_s(scores, i32x4.splat(load<i32>(best + last))));
  if (nearer & 1) insert(i32x4.extract_lane(scores, 0), number, last, best, out);
  if (nearer & 2) insert(i32x4.extract_lane(scores, 1), number + 1, last, best, out);
  if (nearer & 4) insert(i32x4.extract_lane(scores, 2), number + 2, last, best, out);
  if (nearer & 8) insert(i32x4.extract_lane(scores, 3), number + 3, last, best, out);
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
  for (let index: u32 = 0; index < count; index++) setBound(index, nearOf(rows, index));
  const products = query + (stride << 2);
  for (let index: u32 = 0; index + 1 < count; index += 2) {
    const from = block + <usize>index * stride;
    aim(query, from);
    aim(query + (stride << 1), from + stride);
    const own = bounds + ((<usize>index) << 2);
    const square = squares + ((<usize>index) << 2);
    for (let number = (index + 1) & ~3; number < count; number += 4) {
      multiply(number);
      const theirs = v128.load(squares + ((<usize>number) << 2));
      const theirBounds = v128.load(bounds + ((<usize>number) << 2));
      let scores = scoresOf(v128.load(products), theirs, load<i32>(square));
      let nearer = i32x4.bitmask(v128.or(f32x4.gt(scores, f32x4.splat(load<f32>(own))), f32x4.gt(scores, theirBounds)));
      if (nearer) meetFour(scores, nearer, rows, index, number, count);
      if (index + 2 > count) continue;
      scores = scoresOf(v128.load(products, 16), theirs, load<i32>(square, 4));
      nearer = i32x4.bitmask(v128.or(f32x4.gt(scores, f32x4.splat(load<f32>(own, 4))), f32x4.gt(scores, theirBounds)));
      if (nearer) meetFour(scores, nearer, rows, index + 1, number, count);
    }
  }
}

/** Minus the squares of distances. */
// @ts-ignore: decorator
@inline
function scoresOf(products: v128, theirs: v128, own: i32): v128 {
  return f32x4.convert_i32x4_s(i32x4.sub(i32x4.sub(i32x4.shl(products, 1), theirs), i32x4.splat(own)));
}

/** One row of a group and those of four others whose bit is set. */
function meetFour(scores: v128, bits: i32, rows: usize, index: u32, number: u32, count: u32): void {
  if (bits & 1) meet(f32x4.extract_lane(scores, 0), rows, index, number, count);
  if (bits & 2) meet(f32x4.extract_lane(scores, 1), rows, index, number + 1, count);
  if (bits & 4) meet(f32x4.extract_lane(scores, 2), rows, index, number + 2, count);
  if (bits & 8) meet(f32x4.extract_lane(scores, 3), rows, index, number + 3, count);
}

// @ts-ignore: decorator
@inline
function meet(score: f32, rows: usize, index: u32, number: u32, count: u32): void {
  // Pairs of these have been met, or are of a row that is not there.
  if (number <= index || number >= count) return;
  if (score > load<f32>(bounds + ((<usize>index) << 2))) keep(rows, index, score, number);
  if (score > load<f32>(bounds + ((<usize>number) << 2))) keep(rows, number, score, index);
}

/** Keeps one row of the group with another, in place of the farthest, if it is not there. */
// @ts-ignore: decorator
@inline
function keep(rows: usize, index: u32, score: f32, number: u32): void {
  if (locks == 0) return keepAlone(rows, index, score, number);
  const lock = locks + ((<usize>load<u32>(rows + ((<usize>index) << 2))) << 2);
  acquire(lock);
  // Another thread may have kept nearer ones.
  setBound(index, nearOf(rows, index));
  if (score > load<f32>(bounds + ((<usize>index) << 2))) keepAlone(rows, index, score, number);
  atomic.store<u32>(lock, 0);
}

function acquire(lock: usize): void {
  for (let looks = 1; atomic.cmpxchg<u32>(lock, 0, 1) != 0; looks++) {
    if (looks % LOOKS_MAX == 0) atomic.wait<i32>(lock, 1, LOCKED_OUT_NS);
  }
}

function keepAlone(rows: usize, index: u32, score: f32, number: u32): void {
  const list = nearOf(rows, index);
  const scores = list + k4;
  const other = load<u32>(rows + ((<usize>number) << 2));
  const wanted = i32x4.splat(other);
  let equal = i32x4.splat(0);
  for (let at = list; at < scores; at += 16) equal = v128.or(equal, i32x4.eq(v128.load(at), wanted));
  if (v128.any_true(equal)) return;
  const bound = f32x4.splat(load<f32>(bounds + ((<usize>index) << 2)));
  let at = scores;
  let farthest = 0;
  for (; ; at += 16) {
    farthest = i32x4.bitmask(f32x4.eq(v128.load(at), bound));
    if (farthest) break;
  }
  at += (<usize>ctz(farthest)) << 2;
  store<f32>(at, score);
  store<u32>(at - k4, other);
  setBound(index, list);
}

/** The rows that are kept of one of a group. */
// @ts-ignore: decorator
@inline
function nearOf(rows: usize, index: u32): usize {
  return near + <usize>load<u32>(rows + ((<usize>index) << 2)) * 2 * k4;
}

/** Keeps with a row of the group how near others have to be: nearer than the farthest that is kept. */
// @ts-ignore: decorator
@inline
function setBound(index: u32, list: usize): void {
  const end = list + 2 * k4;
  let lowest = v128.load(list + k4);
  for (let at = list + k4 + 16; at < end; at += 16) lowest = f32x4.pmin(lowest, v128.load(at));
  lowest = f32x4.pmin(lowest, v128.shuffle<i32>(lowest, lowest, 2, 3, 0, 1));
  lowest = f32x4.pmin(lowest, v128.shuffle<i32>(lowest, lowest, 1, 0, 3, 2));
  store<f32>(bounds + ((<usize>index) << 2), f32x4.extract_lane(lowest, 0));
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

/** Writes the products of both queries with four rows of the block behind the queries. */
// @ts-ignore: decorator
@inline
function multiply(number: u32): void {
  const second = query + (stride << 1);
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
  const products = query + (stride << 2);
  v128.store(products, laneSums(firstA, firstB, firstC, firstD));
  v128.store(products, laneSums(secondA, secondB, secondC, secondD), 16);
}

/** Lane sums of four i32x4, as one i32x4. */
// @ts-ignore: decorator
@inline
function laneSums(a: v128, b: v128, c: v128, d: v128): v128 {
  const ab = i32x4.add(v128.shuffle<i32>(a, b, 0, 4, 1, 5), v128.shuffle<i32>(a, b, 2, 6, 3, 7));
  const cd = i32x4.add(v128.shuffle<i32>(c, d, 0, 4, 1, 5), v128.shuffle<i32>(c, d, 2, 6, 3, 7));
  return i32x4.add(v128.shuffle<i32>(ab, cd, 0, 1, 4, 5), v128.shuffle<i32>(ab, cd, 2, 3, 6, 7));
}

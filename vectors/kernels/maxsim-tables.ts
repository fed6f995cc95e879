/**
 * MaxSim of rows that hold several vectors each, by product codes and eight vectors of the query at once: what a centroid is worth to each of
 * the eight lies in one place of 16 bytes, so that a byte of a row is looked up once for all of them.
 */

import { expiredAfter, lookFirst } from './host';
import { tidyScores } from './lanes';
import { countScored } from './score';

/** Bytes of a part's table of one vector of the query: f32 for each of 256 centroids. */
const TABLE_BYTES: usize = 1024;
/** Bytes of a part's table of eight: u16 [256, 8]. */
const PACKED_BYTES: usize = 4096;
/** What the numbers of all parts add up to at most, before rounding: that adds half a part's number each, and 16 bits hold it. */
const SUM_MAX: f32 = 65000;
/** Bytes of codes that are looked up between two looks at the time limit: some 20 microseconds of work. */
const LOOK_BYTES: usize = 32768;

/**
 * Writes the tables of one vector of the query as whole numbers: score of a centroid = step * number + the part's least.
 * tables: f32 [parts, 256], as `fillTables` writes them. lane: 0 to 7. packed: u16 [parts, 256, 8]. scales: f32 [2, 8]: steps, and sums of
 * the parts' least.
 */
export function packTables(tables: usize, parts: u32, lane: u32, packed: usize, scales: usize): void {
  let range: f32 = 0;
  let least: f32 = 0;
  for (let part: u32 = 0; part < parts; part++) {
    const table = tables + <usize>part * TABLE_BYTES;
    const low = lowest(table);
    range += highest(table) - low;
    least += low;
  }
  const step: f32 = range > 0 ? range / SUM_MAX : 1;
  store<f32>(scales + ((<usize>lane) << 2), step);
  store<f32>(scales + ((<usize>lane) << 2), least, 32);
  const half = f32x4.splat(0.5);
  const steps = f32x4.splat(step);
  for (let part: u32 = 0; part < parts; part++, tables += TABLE_BYTES) {
    const low = f32x4.splat(lowest(tables));
    let out = packed + <usize>part * PACKED_BYTES + ((<usize>lane) << 1);
    for (let at: usize = 0; at < TABLE_BYTES; at += 16, out += 64) {
      // A range beyond all numbers leaves no number here, and 0 in its place.
      const numbers = i32x4.trunc_sat_f32x4_u(f32x4.add(f32x4.div(f32x4.sub(v128.load(tables + at), low), steps), half));
      store<u16>(out, <u16>i32x4.extract_lane(numbers, 0));
      store<u16>(out, <u16>i32x4.extract_lane(numbers, 1), 16);
      store<u16>(out, <u16>i32x4.extract_lane(numbers, 2), 32);
      store<u16>(out, <u16>i32x4.extract_lane(numbers, 3), 48);
    }
  }
}

function lowest(table: usize): f32 {
  let low = v128.load(table);
  for (let at: usize = 16; at < TABLE_BYTES; at += 16) low = f32x4.min(low, v128.load(table + at));
  return min(min(f32x4.extract_lane(low, 0), f32x4.extract_lane(low, 1)), min(f32x4.extract_lane(low, 2), f32x4.extract_lane(low, 3)));
}

function highest(table: usize): f32 {
  let high = v128.load(table);
  for (let at: usize = 16; at < TABLE_BYTES; at += 16) high = f32x4.max(high, v128.load(table + at));
  return max(max(f32x4.extract_lane(high, 0), f32x4.extract_lane(high, 1)), max(f32x4.extract_lane(high, 2), f32x4.extract_lane(high, 3)));
}

/**
 * Adds to each of `count` sums (f32) what `vectors` vectors of the query, eight at most, make of the row. rows, offsets: as in `maxSim`.
 * codes: u8 [vectors of all rows, stride], stride a multiple of 4. packed: u16 [stride, 256, 8], 0 where there is no part or no vector;
 * scales: as `packTables` writes them, 0 where there is no vector. -1: the time limit has passed.
 */
export function maxSimTables(
  rows: usize,
  count: u32,
  offsets: usize,
  codes: usize,
  stride: usize,
  packed: usize,
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
    if (expiredAfter(<usize>(to - from) * stride, LOOK_BYTES)) return -1;
    countScored((to - from) * vectors);
    const last = codes + <usize>(to - 1) * stride;
    let best = i16x8.splat(0);
    for (let a = codes + <usize>from * stride; a <= last; a += stride << 1) {
      // The last vector stands in for the one behind it.
      const b = min(a + stride, last);
      let sumA = i16x8.splat(0);
      let sumB = i16x8.splat(0);
      let table = packed;
      for (let part: usize = 0; part < stride; part += 4, table += PACKED_BYTES * 4) {
        sumA = addFour(sumA, load<u32>(a + part), table);
        sumB = addFour(sumB, load<u32>(b + part), table);
      }
      best = i16x8.max_u(best, i16x8.max_u(sumA, sumB));
    }
    const low = scoresOf(f32x4.convert_i32x4_u(i32x4.extend_low_i16x8_u(best)), scales);
    const high = scoresOf(f32x4.convert_i32x4_u(i32x4.extend_high_i16x8_u(best)), scales + 16);
    const both = f32x4.add(low, high);
    const sum = f32x4.extract_lane(both, 0) + f32x4.extract_lane(both, 1) + (f32x4.extract_lane(both, 2) + f32x4.extract_lane(both, 3));
    store<f32>(sums + at, load<f32>(sums + at) + sum);
  }
  return 0;
}

/** What the centroids of four parts are worth, one part in each byte. */
// @ts-ignore: decorator
@inline
function addFour(sum: v128, four: u32, table: usize): v128 {
  sum = i16x8.add(sum, v128.load(table + ((<usize>(four & 255)) << 4)));
  sum = i16x8.add(sum, v128.load(table + <usize>((four >> 4) & 0xff0), PACKED_BYTES));
  sum = i16x8.add(sum, v128.load(table + <usize>((four >> 12) & 0xff0), PACKED_BYTES * 2));
  return i16x8.add(sum, v128.load(table + <usize>((four >> 20) & 0xff0), PACKED_BYTES * 3));
}

// @ts-ignore: decorator
@inline
function scoresOf(numbers: v128, scales: usize): v128 {
  return tidyScores(f32x4.add(f32x4.mul(numbers, v128.load(scales)), v128.load(scales, 32)));
}

/** The nearest of many clusters of 8-bit codes, by squared Euclidean distance: first the nearest groups of clusters, then the nearest cluster in these. */

import { addCodes, sumsOf } from './lanes';

/**
 * Writes to `out` (u32 [count]) the nearest cluster of each point. points: u8 [count, stride]; stride: a multiple of 16. query: i16 [stride], scratch.
 * groups: u8 [groupCount, stride]. firsts: u32 [groupCount + 1]; group g has the clusters from firsts[g] up to firsts[g + 1] of `clusters`, u8 [clusters,
 * stride]. looked: groups that are looked at, 1 to groupCount; with one group it is not asked for. best: f32 [looked], then u32 [looked].
 */
export function nearestClusters(
  points: usize,
  count: u32,
  stride: usize,
  query: usize,
  groups: usize,
  groupCount: u32,
  firsts: usize,
  clusters: usize,
  looked: u32,
  best: usize,
  out: usize,
): void {
  const numbers = best + ((<usize>looked) << 2);
  for (let point: u32 = 0; point < count; point++, points += stride, out += 4) {
    for (let at: usize = 0; at < stride; at += 8) v128.store(query + (at << 1), v128.load_ext<u8>(points + at));
    if (groupCount == 1) store<u32>(numbers, 0);
    else rankGroups(query, groups, groupCount, stride, looked, best, numbers);
    nearest = f32.POSITIVE_INFINITY;
    nearestNumber = 0;
    for (let rank: u32 = 0; rank < looked; rank++) {
      const group = firsts + ((<usize>load<u32>(numbers + ((<usize>rank) << 2))) << 2);
      nearestOf(query, clusters, load<u32>(group), load<u32>(group, 4), stride);
    }
    store<u32>(out, nearestNumber);
  }
}

let nearest: f32 = 0;
let nearestNumber: u32 = 0;

/** Looks for a nearer cluster from `from` up to `to`. */
function nearestOf(query: usize, clusters: usize, from: u32, to: u32, stride: usize): void {
  for (let number = from; number < to; number += 4) {
    const distances = fourDistances(query, clusters, number, to, stride);
    if (!v128.any_true(f32x4.lt(distances, f32x4.splat(nearest)))) continue;
    take(f32x4.extract_lane(distances, 0), number);
    take(f32x4.extract_lane(distances, 1), number + 1);
    take(f32x4.extract_lane(distances, 2), number + 2);
    take(f32x4.extract_lane(distances, 3), number + 3);
  }
}

// @ts-ignore: decorator
@inline
function take(distance: f32, number: u32): void {
  if (distance >= nearest) return;
  nearest = distance;
  nearestNumber = number;
}

/** The nearest groups, by insertion: they are few. */
function rankGroups(query: usize, groups: usize, count: u32, stride: usize, looked: u32, best: usize, numbers: usize): void {
  for (let rank: u32 = 0; rank < looked; rank++) store<f32>(best + ((<usize>rank) << 2), f32.POSITIVE_INFINITY);
  for (let number: u32 = 0; number < count; number += 4) {
    const distances = fourDistances(query, groups, number, count, stride);
    insert(f32x4.extract_lane(distances, 0), number, looked, best, numbers);
    if (number + 1 < count) insert(f32x4.extract_lane(distances, 1), number + 1, looked, best, numbers);
    if (number + 2 < count) insert(f32x4.extract_lane(distances, 2), number + 2, looked, best, numbers);
    if (number + 3 < count) insert(f32x4.extract_lane(distances, 3), number + 3, looked, best, numbers);
  }
}

// @ts-ignore: decorator
@inline
function insert(distance: f32, number: u32, looked: u32, best: usize, numbers: usize): void {
  let at = (<usize>(looked - 1)) << 2;
  if (distance >= load<f32>(best + at)) return;
  for (; at > 0 && distance < load<f32>(best + at - 4); at -= 4) {
    store<f32>(best + at, load<f32>(best + at - 4));
    store<u32>(numbers + at, load<u32>(numbers + at - 4));
  }
  store<f32>(best + at, distance);
  store<u32>(numbers + at, number);
}

/** Distances to the rows from `number` on; the last one before `to` stands in for those behind it. */
// @ts-ignore: decorator
@inline
function fourDistances(query: usize, rows: usize, number: u32, to: u32, stride: usize): v128 {
  const last = to - 1;
  const a = rows + <usize>number * stride;
  const b = rows + <usize>min(number + 1, last) * stride;
  const c = rows + <usize>min(number + 2, last) * stride;
  const d = rows + <usize>min(number + 3, last) * stride;
  let sumA = i32x4.splat(0);
  let sumB = i32x4.splat(0);
  let sumC = i32x4.splat(0);
  let sumD = i32x4.splat(0);
  for (let at: usize = 0; at < stride; at += 8) {
    const part = v128.load(query + (at << 1));
    sumA = addCodes<u16>(sumA, v128.load_ext<u8>(a + at), part);
    sumB = addCodes<u16>(sumB, v128.load_ext<u8>(b + at), part);
    sumC = addCodes<u16>(sumC, v128.load_ext<u8>(c + at), part);
    sumD = addCodes<u16>(sumD, v128.load_ext<u8>(d + at), part);
  }
  return sumsOf(f32x4.convert_i32x4_s(sumA), f32x4.convert_i32x4_s(sumB), f32x4.convert_i32x4_s(sumC), f32x4.convert_i32x4_s(sumD));
}

/**
 * Joining of two graphs of near neighbours (HNSW) into one: the rows of a smaller graph find the nearest rows of a larger one, which stays as it is
 * meanwhile, and what each row links to is chosen anew from what it had and what it found. All on 8-bit codes.
 *
 * - **Join-J1** a row begins its search at what its neighbours in the smaller graph have found before it (join sets: Lucene's merge of graphs), so a short
 *   list of results is enough; the first of them, and one whose neighbours have found nothing, comes down from the entry of the larger graph.
 * - **Join-J2** links are chosen as HNSW does (Malkov and Yashunin, 2016, algorithm 4): nearest first, and none to a row that is clearly nearer to one chosen
 *   before than to the row itself (the factor is that of Vamana: Subramanya et al., 2019). A row that joins keeps the links that it had, as long as what is chosen of the larger graph fits beside them.
 * - **Join-J3** rows of the larger graph get links back when all searches are done: all that came to a row are taken at once, and a choice is made only
 *   where they do not fit.
 * - **Join-J4** a row that has lost links gets as many of what those led to, chosen by Join-J2 beside the links that it has: a choice among all would leave it
 *   fewer than it had.
 */

import { hasBit } from './admission';
import {
  BATCH,
  batch,
  candidates,
  entryRow,
  level0Words,
  listOf,
  maxLevel,
  results,
  upperWords,
  visit,
  visited,
} from './graph';
import { dropRoot, keyOf, push, replaceRoot, rowOf, scoreOf } from './heap';
import { NO_ROW } from './pairs';
import { scoreRows, scoreScattered, setMatrix } from './score';

/** Part of a distance (of its square, of angles of 1 minus the cosine) below which another one is clearly less. */
const CLEARLY: f32 = <f32>(1 / 1.2);
/** Rows that neighbours found are enough to begin at. */
const SEEDS: u32 = 24;
/** `code` under dot products and L2: see `setMatrix`. */
const CODE_DOT: i32 = 15;
const CODE_L2: i32 = 16;

let codes: usize = 0;
let stride: usize = 0;
let dim: usize = 0;
/** Of a row, with the zeros behind its end. */
let codeBytes: usize = 0;
let query: usize = 0;
/** f32 [rows]: what makes each row as long as the others, of rows that are near by angle; 0: they are by distance. */
let lengths: usize = 0;
/** The code that stands for 0, where angles count. */
let zero: i16 = 0;

/** Bits of the rows of the larger graph. */
let joined: usize = 0;
let touched: usize = 0;

let touchedCount: u32 = 0;
let candidateCount: u32 = 0;
let resultCount: u32 = 0;
let batchCount: u32 = 0;
let bestKey: i64 = 0;

/**
 * The rows that graphs are over. newCodes: u8 [rows, newStride], zeros behind the end of each. newQuery: i16 [newDim padded]. newLengths: f32 [rows], filled by
 * `measureRows`, where rows are near by angle, newZero the code that stands for 0; 0: by Euclidean distance.
 */
export function setJoinCodes(newCodes: usize, newStride: usize, newDim: usize, newQuery: usize, newLengths: usize, newZero: i32): void {
  codes = newCodes;
  stride = newStride;
  dim = newDim;
  codeBytes = (newDim + 15) & ~15;
  query = newQuery;
  lengths = newLengths;
  zero = <i16>newZero;
}

/** Fills the lengths of rows from `from` below `to`. */
export function measureRows(from: u32, to: u32): void {
  for (let row = from; row < to; row++) {
    const start = codes + <usize>row * stride;
    let sums = f32x4.splat(0);
    for (let at: usize = 0; at < codeBytes; at += 8) {
      const part = i16x8.sub(v128.load_ext<u8>(start + at), i16x8.splat(zero));
      sums = f32x4.add(sums, f32x4.convert_i32x4_s(i32x4.dot_i16x8_s(part, part)));
    }
    const all = f32x4.extract_lane(sums, 0) + f32x4.extract_lane(sums, 1) + f32x4.extract_lane(sums, 2) + f32x4.extract_lane(sums, 3);
    const squares = all - <f32>((<i32>zero) * zero * <i32>(codeBytes - dim));
    store<f32>(lengths + ((<usize>row) << 2), squares > 0 ? <f32>1 / sqrt<f32>(squares) : 0);
  }
}

/** Beside the scratch of a walk, no bit of whose visited rows is set. newTouched: u32 [rows]. */
export function setJoinScratch(newJoined: usize, newTouched: usize): void {
  joined = newJoined;
  touched = newTouched;
}

/** Joins a row on one level that it has and the larger graph has. ef: results of its search. most: links that are chosen. */
export function joinRow(row: u32, level: u32, ef: u32, most: u32): void {
  aim(row);
  seek(row, level, ef);
  const list = listOf(row, level);
  const count = load<u32>(list);
  memory.copy(batch, list + 4, (<usize>count) << 2);
  scoreBatch(count, batch + ((<usize>BATCH) << 2));
  candidateCount = 0;
  pool(count);
  for (let at: u32 = 0; at < resultCount; at++) push<bool>(candidates, candidateCount++, load<i64>(results + ((<usize>at) << 3)));
  // Rows that were touched are of no use any more.
  const chosen = touched;
  choose(chosen, most);
  extend(list, count, chosen, limitOf(level));
}

/** Adds to a list of `had` links those chosen ones that are of the larger graph; where they do not fit, the list becomes the chosen ones. */
function extend(list: usize, had: u32, chosen: usize, limit: u32): void {
  const count = load<u32>(chosen);
  let fresh: u32 = 0;
  for (let at: u32 = 0; at < count; at++) fresh += <u32>hasBit(joined, load<u32>(chosen + ((<usize>at) << 2), 4));
  if (had + fresh > limit) {
    memory.copy(list, chosen, (<usize>(count + 1)) << 2);
    return;
  }
  let total = had;
  for (let at: u32 = 0; at < count; at++) {
    const row = load<u32>(chosen + ((<usize>at) << 2), 4);
    if (!hasBit(joined, row)) continue;
    store<u32>(list + ((<usize>total) << 2), row, 4);
    total++;
  }
  store<u32>(list, total);
}

/**
 * Links a row on one level that it has to those that are chosen (Join-J2) of the `k` rows at `near` (u32), behind which is how near each is (f32), as `pairs.ts`
 * keeps them; fewer than a batch. What it had goes.
 */
export function chooseLinks(row: u32, level: u32, near: usize, k: u32): void {
  const scores = near + ((<usize>k) << 2);
  candidateCount = 0;
  for (let at: usize = 0; at < (<usize>k) << 2; at += 4) {
    const other = load<u32>(near + at);
    if (other != NO_ROW) push<bool>(candidates, candidateCount++, keyOf(load<f32>(scores + at), other));
  }
  choose(listOf(row, level), limitOf(level));
}

/**
 * Adds the `count` rows at `incoming` (u32), none of them there, to the links of a row (Join-J3). With those it has they are fewer than a batch. Where they do not
 * fit, `most` of all are chosen.
 */
export function addLinks(row: u32, level: u32, incoming: usize, count: u32, most: u32): void {
  const list = listOf(row, level);
  const had = load<u32>(list);
  const limit = limitOf(level);
  const total = had + count;
  if (total <= limit) {
    memory.copy(list + 4 + ((<usize>had) << 2), incoming, (<usize>count) << 2);
    store<u32>(list, total);
    return;
  }
  aim(row);
  memory.copy(batch, list + 4, (<usize>had) << 2);
  memory.copy(batch + ((<usize>had) << 2), incoming, (<usize>count) << 2);
  scoreBatch(total, batch + ((<usize>BATCH) << 2));
  candidateCount = 0;
  pool(total);
  choose(list, most);
}

/** Adds up to `wanted` of the `count` rows at `incoming` (u32), none of them there, to the links of a row, which all stay (Join-J4). */
export function healLinks(row: u32, level: u32, incoming: usize, count: u32, wanted: u32): void {
  const list = listOf(row, level);
  const had = load<u32>(list);
  aim(row);
  memory.copy(batch, incoming, (<usize>count) << 2);
  scoreBatch(count, batch + ((<usize>BATCH) << 2));
  candidateCount = 0;
  pool(count);
  let left = sortCandidates();
  for (let at: u32 = 0; at < had; at++) left = thin(load<u32>(list + ((<usize>at) << 2), 4), 0, left);
  pick(list, had, min(limitOf(level), had + wanted), left);
}

// @ts-ignore: decorator
@inline
function limitOf(level: u32): u32 {
  return <u32>((level == 0 ? level0Words : upperWords) >> 2) - 1;
}

/** Makes a row the query. */
function aim(row: u32): void {
  const from = codes + <usize>row * stride;
  if (lengths == 0) {
    for (let at: usize = 0; at < codeBytes; at += 8) v128.store(query + (at << 1), v128.load_ext<u8>(from + at));
    setMatrix(CODE_L2, codes, stride, codeBytes, query, -1, 0, 0);
    return;
  }
  // (a - z)(b - z) = (a - z)b - z(a - z): products of codes, and a number that is the query's own.
  let sums = i32x4.splat(0);
  for (let at: usize = 0; at < codeBytes; at += 8) {
    const part = i16x8.sub(v128.load_ext<u8>(from + at), i16x8.splat(zero));
    v128.store(query + (at << 1), part);
    sums = i32x4.add(sums, i32x4.extadd_pairwise_i16x8_s(part));
  }
  let sum = i32x4.extract_lane(sums, 0) + i32x4.extract_lane(sums, 1) + i32x4.extract_lane(sums, 2) + i32x4.extract_lane(sums, 3);
  // What is behind the end counts for nothing.
  for (let at = dim; at < codeBytes; at++) {
    store<i16>(query + (at << 1), 0);
    sum += zero;
  }
  const length = load<f32>(lengths + ((<usize>row) << 2));
  setMatrix(CODE_DOT, codes, stride, codeBytes, query, length, 0, -(<f32>zero) * <f32>sum * length);
}

/** Scores the first `count` rows of the batch: `out` f32 [count]. */
function scoreBatch(count: u32, out: usize): void {
  scoreScattered(batch, count, out);
  toLengths(batch, count, out);
}

/** Makes of products those with rows of one length, where rows are near by angle. rows: u32 [count]. */
function toLengths(rows: usize, count: u32, out: usize): void {
  if (lengths == 0) return;
  for (let at: usize = 0; at < (<usize>count) << 2; at += 4)
    store<f32>(out + at, load<f32>(out + at) * load<f32>(lengths + ((<usize>load<u32>(rows + at)) << 2)));
}

/** The `ef` rows of the larger graph that a search finds nearest to the query, which is `row`, in `results`. */
function seek(row: u32, level: u32, ef: u32): void {
  candidateCount = 0;
  resultCount = 0;
  batchCount = 0;
  touchedCount = 0;
  bestKey = i64.MIN_VALUE;
  begin(row, level, ef);
  while (candidateCount > 0) {
    const key = load<i64>(candidates);
    if (resultCount == ef && key < load<i64>(results)) break;
    dropRoot<bool>(candidates, candidateCount--);
    open(rowOf(key), level, ef);
  }
  for (let at: u32 = 0; at < touchedCount; at++) {
    const seen = load<u32>(touched + ((<usize>at) << 2));
    store<u32>(visited + ((<usize>(seen >> 5)) << 2), 0);
  }
}

/** Join-J1. */
function begin(row: u32, level: u32, ef: u32): void {
  const list = listOf(row, level);
  const end = list + ((<usize>load<u32>(list)) << 2);
  for (let at = list; at < end && batchCount < SEEDS; at += 4) {
    const second = listOf(load<u32>(at, 4), level);
    const secondEnd = second + ((<usize>load<u32>(second)) << 2);
    for (let next = second; next < secondEnd; next += 4) {
      const found = load<u32>(next, 4);
      if (hasBit(joined, found)) collect(found, ef);
    }
  }
  absorb(ef);
  if (resultCount > 0) return;
  collect(entryRow, ef);
  absorb(ef);
  for (let above = maxLevel; above > level; above--) {
    for (;;) {
      const before = bestKey;
      open(rowOf(before), above, ef);
      if (bestKey == before) break;
    }
  }
}

/** Scores the neighbours of a row that were not seen. */
function open(row: u32, level: u32, ef: u32): void {
  const list = listOf(row, level);
  const end = list + ((<usize>load<u32>(list)) << 2);
  for (let at = list; at < end; at += 4) collect(load<u32>(at, 4), ef);
  absorb(ef);
}

// @ts-ignore: decorator
@inline
function collect(row: u32, ef: u32): void {
  store<u32>(batch + ((<usize>batchCount) << 2), row);
  batchCount += <u32>visit(row);
  if (batchCount == BATCH) absorb(ef);
}

function absorb(ef: u32): void {
  const scores = batch + ((<usize>BATCH) << 2);
  const count = batchCount;
  batchCount = 0;
  memory.copy(touched + ((<usize>touchedCount) << 2), batch, (<usize>count) << 2);
  touchedCount += count;
  scoreBatch(count, scores);
  for (let index: u32 = 0; index < count; index++) {
    const at = (<usize>index) << 2;
    const key = keyOf(load<f32>(scores + at), load<u32>(batch + at));
    if (key > bestKey) bestKey = key;
    if (resultCount < ef) push<u8>(results, resultCount++, key);
    else if (key > load<i64>(results)) replaceRoot<u8>(results, resultCount, key);
    else continue;
    push<bool>(candidates, candidateCount++, key);
  }
}

/** Takes the first `count` rows of the batch, which are scored, as candidates. */
function pool(count: u32): void {
  const scores = batch + ((<usize>BATCH) << 2);
  for (let index: u32 = 0; index < count; index++) {
    const at = (<usize>index) << 2;
    push<bool>(candidates, candidateCount++, keyOf(load<f32>(scores + at), load<u32>(batch + at)));
  }
}

/** Writes the links that are chosen from the candidates (Join-J2), which are used up. The query becomes another one. */
function choose(list: usize, limit: u32): void {
  pick(list, 0, limit, sortCandidates());
}

/** Takes all candidates off their heap: rows in `batch`, nearest first, how near each is in `results`. Returns how many. */
function sortCandidates(): u32 {
  let count: u32 = 0;
  for (; candidateCount > 0; count++) {
    const key = load<i64>(candidates);
    dropRoot<bool>(candidates, candidateCount--);
    store<u32>(batch + ((<usize>count) << 2), rowOf(key));
    store<f32>(results + ((<usize>count) << 2), scoreOf(key));
  }
  return count;
}

/** Adds to the `chosen` rows of a list, up to `limit`, of the `left` sorted candidates, none of which is nearer to one of those. */
function pick(list: usize, chosen: u32, limit: u32, left: u32): void {
  while (left > 0 && chosen < limit) {
    const row = load<u32>(batch);
    store<u32>(list + ((<usize>chosen) << 2), row, 4);
    chosen++;
    if (chosen < limit) left = thin(row, 1, left);
  }
  store<u32>(list, chosen);
}

/** Leaves out of the sorted candidates those before `from`, and those that are clearly nearer to a row than to the one they are for. Returns how many are left. */
function thin(row: u32, from: u32, to: u32): u32 {
  if (from == to) return 0;
  const lead: f32 = lengths == 0 ? 0 : 1;
  const between = batch + ((<usize>BATCH) << 2);
  const first = (<usize>from) << 2;
  aim(row);
  // They were scored a moment ago, so they are in the processor's caches.
  scoreRows(batch + first, to - from, between);
  toLengths(batch + first, to - from, between);
  let left: u32 = 0;
  for (let index: u32 = from; index < to; index++) {
    const at = (<usize>index) << 2;
    const near = load<f32>(results + at);
    if (load<f32>(between + at - first) > lead - (lead - near) * CLEARLY) continue;
    store<u32>(batch + ((<usize>left) << 2), load<u32>(batch + at));
    store<f32>(results + ((<usize>left) << 2), near);
    left++;
  }
  return left;
}

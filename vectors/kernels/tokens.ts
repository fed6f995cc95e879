/**
 * Rows whose vectors lie in lists (multivectors): for each vector of a query the codes of some lists are scored, and what the best of a row is above a floor
 * is added to the row's sum. Vectors of the row in no list that was looked at count as the floor does.
 */

import { admitted, hasBit } from './admission';
import { drain, keyOf, push, replaceRoot } from './heap';
import { expired } from './host';
import { scoreScattered } from './score';

/** Vectors scored at once: their scores stay in the first cache. */
const CHUNK: u32 = 512;
/** Chunks between two looks at the time limit. */
const CHUNKS_PER_CHECK: u32 = 8;

/** Rows found since `beginTokens`. */
let found: u32 = 0;
let chunks: u32 = 0;

/** Begins a query. visited: bitset of so many bytes. */
export function beginTokens(visited: usize, bytes: u32): void {
  memory.fill(visited, 0, bytes);
  found = 0;
  chunks = 0;
}

/**
 * Adds what the lists say of one vector of the query, the one set last with the codes. ranges: u32 [count, 2], from and to of each list within `items`,
 * u32 vectors, and `rowsOf`, u32 the row of each. chunk: u32 vectors [CHUNK], then f32 scores [CHUNK]. sums: f32 [rows, 2], a row's sum and the best
 * that this vector of the query has found in it. rows: u32, those found so far. raised: u32 [rows], for this call. -1: the time limit has passed.
 */
export function addTokens(
  ranges: usize,
  count: u32,
  items: usize,
  rowsOf: usize,
  floor: f32,
  chunk: usize,
  visited: usize,
  sums: usize,
  rows: usize,
  raised: usize,
): i32 {
  const scores = chunk + ((<usize>CHUNK) << 2);
  let raisedEnd = raised;
  for (let range: u32 = 0; range < count; range++) {
    const place = ranges + ((<usize>range) << 3);
    const to = load<u32>(place, 4);
    for (let from = load<u32>(place); from < to; from += CHUNK) {
      if (++chunks % CHUNKS_PER_CHECK == 0 && expired()) return -1;
      const size = min(CHUNK, to - from);
      memory.copy(chunk, items + ((<usize>from) << 2), (<usize>size) << 2);
      scoreScattered(chunk, size, scores);
      for (let at: u32 = 0; at < size; at++) {
        const row = load<u32>(rowsOf + ((<usize>(from + at)) << 2));
        const sum = sums + ((<usize>row) << 3);
        if (!hasBit(visited, row)) find(row, visited, sum, rows);
        const gain = load<f32>(scores + ((<usize>at) << 2)) - floor;
        const best = load<f32>(sum, 4);
        if (!(gain > best)) continue;
        if (best == 0) {
          store<u32>(raisedEnd, row);
          raisedEnd += 4;
        }
        store<f32>(sum, load<f32>(sum) + gain - best);
        store<f32>(sum, gain, 4);
      }
    }
  }
  for (let at = raised; at < raisedEnd; at += 4) store<f32>(sums + ((<usize>load<u32>(at)) << 3), 0, 4);
  return 0;
}

/** Notes a row that is met for the first time. Of one that does not count no gain is large enough. */
// @ts-ignore: decorator
@inline
function find(row: u32, visited: usize, sum: usize, rows: usize): void {
  const word = visited + ((<usize>(row >> 5)) << 2);
  store<u32>(word, load<u32>(word) | (1 << (row & 31)));
  store<f32>(sum, 0);
  if (!admitted(row)) {
    store<f32>(sum, f32.POSITIVE_INFINITY, 4);
    return;
  }
  store<f32>(sum, 0, 4);
  store<u32>(rows + ((<usize>found) << 2), row);
  found++;
}

/** The k rows with the largest sums. heap: i64 [k]; out: see `drain`; sums, rows: as of `addTokens`. */
export function bestByTokens(k: u32, sums: usize, rows: usize, heap: usize, out: usize): u32 {
  let size: u32 = 0;
  for (let at: u32 = 0; at < found; at++) {
    const row = load<u32>(rows + ((<usize>at) << 2));
    const key = keyOf(load<f32>(sums + ((<usize>row) << 3)), row);
    if (size < k) {
      push<u8>(heap, size, key);
      size++;
    } else if (key > load<i64>(heap)) {
      replaceRoot<u8>(heap, size, key);
    }
  }
  return drain(heap, size, k, out);
}

/** Exact search: the k best of a range of rows, or of a list of rows. */

import { admitted, alive, wordOf } from './admission';
import { drain, keyOf, push, replaceRoot, scoreOf } from './heap';
import { expiredAfter, LOOK_BYTES } from './host';
import { hasRowCodes, leaveOut } from './row-codes';
import { bytesOfRow, scoreRows, scoreScattered } from './score';

/** Rows scored between two steps of the heap at most: their scores stay in the first cache. */
const CHUNK: u32 = 512;

/** How many rows of the matrix set last to score between two steps of the heap, a multiple of 32. */
function rowsOfChunk(): u32 {
  return max<u32>(32, min<u32>(CHUNK, (LOOK_BYTES / max<u32>(1, bytesOfRow())) & ~31));
}

/** chunk: u32 rows [CHUNK], then f32 scores [CHUNK]; heap: i64 [k]; out: see `drain`. -1: the time limit has passed. */
export function scan(from: u32, to: u32, k: u32, chunk: usize, heap: usize, out: usize): i32 {
  const most = rowsOfChunk();
  let size: u32 = 0;
  let count: u32 = 0;
  for (let word = from >> 5; word << 5 < to; word++) {
    let value = wordOf(word, to);
    if (word << 5 < from) value &= 0xffff_ffff << (from & 31);
    for (; value != 0; value &= value - 1) {
      const row = (word << 5) + ctz(value);
      if (!alive(row)) continue;
      store<u32>(chunk + ((<usize>count) << 2), row);
      count++;
    }
    // A word adds 32 rows at most.
    if (count > most - 32) {
      if (timeIsUp(count)) return -1;
      size = keep(chunk, count, k, heap, size, false);
      count = 0;
    }
  }
  size = keep(chunk, count, k, heap, size, false);
  return drain(heap, size, k, out);
}

/** As `scan`, over the rows below `count`, whether they count or not. */
export function scanAll(total: u32, k: u32, chunk: usize, heap: usize, out: usize): i32 {
  const most = rowsOfChunk();
  let size: u32 = 0;
  for (let from: u32 = 0; from < total; from += most) {
    const count = min(most, total - from);
    if (timeIsUp(count)) return -1;
    for (let index: u32 = 0; index < count; index++) store<u32>(chunk + ((<usize>index) << 2), from + index);
    size = keep(chunk, count, k, heap, size, false);
  }
  return drain(heap, size, k, out);
}

/** As `scan`, over `count` rows at `rows` (u32, each once); those that don't count are left out. */
export function gather(rows: usize, total: u32, k: u32, chunk: usize, heap: usize, out: usize): i32 {
  const most = rowsOfChunk();
  let size: u32 = 0;
  let count: u32 = 0;
  for (let index: u32 = 0; index < total; index++) {
    const row = load<u32>(rows + ((<usize>index) << 2));
    if (!admitted(row)) continue;
    store<u32>(chunk + ((<usize>count) << 2), row);
    count++;
    if (count == most) {
      if (timeIsUp(count)) return -1;
      size = keep(chunk, count, k, heap, size, true);
      count = 0;
    }
  }
  size = keep(chunk, count, k, heap, size, true);
  return drain(heap, size, k, out);
}

/** Scores `total` rows at `rows` whether they count or not, and keeps the best k. */
export function rescore(rows: usize, total: u32, k: u32, chunk: usize, heap: usize, out: usize): i32 {
  const most = rowsOfChunk();
  let size: u32 = 0;
  for (let index: u32 = 0; index < total; index += most) {
    const count = min(most, total - index);
    if (timeIsUp(count)) return -1;
    memory.copy(chunk, rows + ((<usize>index) << 2), (<usize>count) << 2);
    size = keep(chunk, count, k, heap, size, true);
  }
  return drain(heap, size, k, out);
}

/** Writes to `out` (f32 [total]) the score of each of the `total` rows at `rows`, whether they count or not. -1: the time limit has passed. */
export function scoreEach(rows: usize, total: u32, chunk: usize, out: usize): i32 {
  const most = rowsOfChunk();
  const scores = chunk + ((<usize>CHUNK) << 2);
  for (let index: u32 = 0; index < total; index += most) {
    const count = min(most, total - index);
    if (timeIsUp(count)) return -1;
    const at = (<usize>index) << 2;
    memory.copy(chunk, rows + at, (<usize>count) << 2);
    scoreScattered(chunk, count, scores);
    memory.copy(out + at, scores, (<usize>count) << 2);
  }
  return 0;
}

/** Asked before `rows` rows are scored. */
function timeIsUp(rows: u32): bool {
  return expiredAfter(<usize>rows * bytesOfRow(), LOOK_BYTES);
}

/** Scores `count` rows and keeps the best k of them and of the heap's `size` keys. Returns the heap's new size. */
function keep(chunk: usize, count: u32, k: u32, heap: usize, size: u32, scattered: bool): u32 {
  if (size == k && hasRowCodes()) count = leaveOut(chunk, count, scoreOf(load<i64>(heap)));
  const scores = chunk + ((<usize>CHUNK) << 2);
  if (scattered) scoreScattered(chunk, count, scores);
  else scoreRows(chunk, count, scores);
  for (let index: u32 = 0; index < count; index++) {
    const at = (<usize>index) << 2;
    const key = keyOf(load<f32>(scores + at), load<u32>(chunk + at));
    if (size < k) {
      push<u8>(heap, size, key);
      size++;
    } else if (key > load<i64>(heap)) {
      replaceRoot<u8>(heap, size, key);
    }
  }
  return size;
}

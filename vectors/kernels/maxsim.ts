/** MaxSim of rows that hold several vectors each: how near the nearest of them comes to the query. */

import { expired } from './host';
import { scoreRows } from './score';

/** Vectors scored at once: their scores stay in the first cache. */
const CHUNK: u32 = 512;

/**
 * Adds to each of `count` sums (f32) the best score that the row's vectors have with the query set last.
 * rows: u32 [count]. offsets: u32; row r has the vectors offsets[r] <= vector < offsets[r + 1] of the matrix set last, one
 * at least. chunk: u32 vectors [CHUNK], then f32 scores [CHUNK]. -1: the time limit has passed.
 */
export function maxSim(rows: usize, count: u32, offsets: usize, chunk: usize, sums: usize): i32 {
  if (expired()) return -1;
  const scores = chunk + ((<usize>CHUNK) << 2);
  let best: f32 = f32.NEGATIVE_INFINITY;
  // The row whose vectors are put into the chunk, and the one whose scores are taken out.
  let adding: u32 = 0;
  let taking: u32 = 0;
  let vector = firstOf(rows, 0, offsets);
  while (taking < count) {
    let filled: u32 = 0;
    while (adding < count) {
      const end = endOf(rows, adding, offsets);
      while (vector < end && filled < CHUNK) {
        store<u32>(chunk + ((<usize>filled) << 2), vector++);
        filled++;
      }
      if (vector < end) break;
      adding++;
      if (adding < count) vector = firstOf(rows, adding, offsets);
    }
    // Only a row without vectors leaves a chunk empty.
    if (filled == 0) break;
    scoreRows(chunk, filled, scores);
    let at: u32 = 0;
    while (at < filled) {
      const left = endOf(rows, taking, offsets) - load<u32>(chunk + ((<usize>at) << 2));
      const end = min(filled, at + left);
      const isWhole = left <= filled - at;
      for (; at < end; at++) best = max<f32>(best, load<f32>(scores + ((<usize>at) << 2)));
      // The rest of its vectors is in the next chunk.
      if (!isWhole) break;
      const sum = sums + ((<usize>taking) << 2);
      store<f32>(sum, load<f32>(sum) + best);
      best = f32.NEGATIVE_INFINITY;
      taking++;
    }
  }
  return 0;
}

// @ts-ignore: decorator
@inline
function firstOf(rows: usize, index: u32, offsets: usize): u32 {
  return load<u32>(offsets + ((<usize>load<u32>(rows + ((<usize>index) << 2))) << 2));
}

// @ts-ignore: decorator
@inline
function endOf(rows: usize, index: u32, offsets: usize): u32 {
  return load<u32>(offsets + ((<usize>load<u32>(rows + ((<usize>index) << 2))) << 2) + 4);
}

/**
 * Ranks of rows by how near they are to several examples: what a walk with examples goes by. Rows are scored anew by the caller, so a rank need only
 * order them. Similarities are scores, higher is nearer.
 */

import { scoreScattered, useQuery } from './score';

/** Nearest to a positive, after these rows those that are as near to a negative: the farther from it, the better. */
const BEST_SCORE: u32 = 0;
/** By how many pairs' positives are nearer less how many negatives are, and then by the target, which is the first example. */
const DISCOVER: u32 = 1;
/** By the loss of all pairs. */
const CONTEXT: u32 = 2;

/** Rows that are ranked at once, at most. */
export const RANKED_MAX: u32 = 448;
const LIST_BYTES: usize = (<usize>RANKED_MAX) << 2;
/** Bits of a rank that hold its zone. */
const ZONE_SHIFT: i32 = 26;
const ZONE_BITS: i32 = 6;
/** As `MARGIN` in `query/discover.ts`. */
const MARGIN: f32 = 1.1920929e-7;

let form: u32 = 0;
let count: u32 = 0;
let positives: u32 = 0;
let queries: usize = 0;
let step: usize = 0;

/** The walk that follows goes by so many examples. newQueries: what `keepQuery` has kept, each `newStep` behind the last. newPositives: of `best_score`. */
export function setExamples(newForm: u32, newCount: u32, newPositives: u32, newQueries: usize, newStep: usize): void {
  form = newForm;
  count = newCount;
  positives = newPositives;
  queries = newQueries;
  step = newStep;
}

/** Writes to `out` (f32 [total]) the ranks of the rows at `rows` (u32 [total], RANKED_MAX at most). work: f32 [3, RANKED_MAX]. */
export function rankScattered(rows: usize, total: u32, work: usize, out: usize): void {
  if (form == BEST_SCORE) rankBest(rows, total, work, out);
  else if (form == DISCOVER) rankDiscovered(rows, total, work, out);
  else rankInContext(rows, total, work, out);
}

function rankBest(rows: usize, total: u32, work: usize, out: usize): void {
  const best = work + LIST_BYTES;
  const worst = best + LIST_BYTES;
  const bytes = (<usize>total) << 2;
  fillLowest(best, bytes);
  fillLowest(worst, bytes);
  for (let example: u32 = 0; example < count; example++) {
    score(example, rows, total, work);
    const list = example < positives ? best : worst;
    for (let at: usize = 0; at < bytes; at += 4) store<f32>(list + at, max(load<f32>(list + at), load<f32>(work + at)));
  }
  for (let at: usize = 0; at < bytes; at += 4) {
    const near = load<f32>(best + at);
    const far = load<f32>(worst + at);
    store<f32>(out + at, near > far ? zoned(1, near) : zoned(-1, -far));
  }
}

function rankDiscovered(rows: usize, total: u32, work: usize, out: usize): void {
  const negative = work + LIST_BYTES;
  const target = negative + LIST_BYTES;
  const bytes = (<usize>total) << 2;
  score(0, rows, total, target);
  memory.fill(out, 0, bytes);
  for (let pair: u32 = 1; pair + 1 < count; pair += 2) {
    score(pair, rows, total, work);
    score(pair + 1, rows, total, negative);
    for (let at: usize = 0; at < bytes; at += 4) {
      const near = load<f32>(work + at);
      const far = load<f32>(negative + at);
      store<i32>(out + at, load<i32>(out + at) + <i32>(near > far) - <i32>(near < far));
    }
  }
  for (let at: usize = 0; at < bytes; at += 4) store<f32>(out + at, zoned(load<i32>(out + at), load<f32>(target + at)));
}

function rankInContext(rows: usize, total: u32, work: usize, out: usize): void {
  const negative = work + LIST_BYTES;
  const bytes = (<usize>total) << 2;
  memory.fill(out, 0, bytes);
  for (let pair: u32 = 0; pair + 1 < count; pair += 2) {
    score(pair, rows, total, work);
    score(pair + 1, rows, total, negative);
    for (let at: usize = 0; at < bytes; at += 4) {
      const difference = load<f32>(work + at) - load<f32>(negative + at) - MARGIN;
      if (difference < 0) store<f32>(out + at, load<f32>(out + at) + difference / (1 - difference));
    }
  }
}

function score(example: u32, rows: usize, total: u32, out: usize): void {
  useQuery(queries + <usize>example * step);
  scoreScattered(rows, total, out);
}

function fillLowest(list: usize, bytes: usize): void {
  for (let at: usize = 0; at < bytes; at += 4) store<f32>(list + at, f32.NEGATIVE_INFINITY);
}

/**
 * A rank whose order is that of zones (-30 to 30), and within one that of similarities, to 17 bits. A sum of both would leave nothing of similarities near
 * 0, as of the shares of large distances. The bits are those of a number, as `keyOf` orders numbers.
 */
// @ts-ignore: decorator
@inline
function zoned(zone: i32, similarity: f32): f32 {
  const bits = reinterpret<i32>(similarity);
  const ordered = (zone << ZONE_SHIFT) + ((bits ^ ((bits >> 31) & 0x7fff_ffff)) >> ZONE_BITS);
  return reinterpret<f32>(ordered ^ ((ordered >> 31) & 0x7fff_ffff));
}

/**
 * Search of a graph of near neighbours (HNSW: Malkov and Yashunin, 2016), with rows that don't count walked through or,
 * under a narrow filter, jumped over (ACORN-1: Patel et al., 2024).
 *
 * - **Walk-W1** every row is scored at most once. Rows scored on upper levels start the search of level 0 with their scores.
 * - **Walk-W2** `candidates` and `results` have room for every row: a row enters each at most once.
 * - **Walk-W3** if fewer than `ef` results are found while more rows count, the graph has parts that the walk can't reach (or
 *   that the filter cuts off); the rows left over are scored one by one, so that a search is never short of results.
 * - **Walk-W4** with a spread, the walk ends as soon as the candidate to be opened lies so much farther away than the last of the wanted
 *   results (Adaptive Beam Search: arXiv 2505.15636), but not before there are `k`; and not later than with `2 * ef` results that are nearer
 *   (`1.25 * ef` in a wide walk with a filter). Rows that lie so far away when they are met enter no heap: the last of the wanted only comes nearer.
 * - **Walk-W5** a walk with examples begins at rows near to them, as ranks lead from one place to another only where rows between them are no worse, and
 *   ends as soon as no candidate has a better rank than the last result: many rows may have the best there is.
 * - **Walk-W6** on level 1 the best `WIDE` rows are opened, not the best alone: where clusters lie apart, the way from one to another leads by rows that are no
 *   nearer. Measured on 43,000 × 256 in 200 clusters, `ef` 16, 32, 64: recall .929, .960, .977 instead of .707, .834, .934, scored rows 261, 295, 325 instead of
 *   251, 326, 393; on 60,000 × 128 without clusters recall is the same, for 421, 648, 1,145 instead of 395, 627, 1,128.
 */

import { admitted, alive, isFiltered, wordOf } from './admission';
import { RANKED_MAX, rankScattered } from './examples';
import { BATCH, batch, candidates, entryRow, level0, level0Words, listOf, maxLevel, results, visit, visited } from './graph';
import { drain, dropRoot, keyOf, push, replaceRoot, rowOf, scoreOf } from './heap';
import { expired, HOPS_PER_CHECK } from './host';
import { noteTouched, scoreScattered } from './score';

/** Where the keys of the nearest results lie, behind a batch. */
const NEAREST_OFFSET: usize = (<usize>BATCH) << 3;

const NONE: u32 = 0xffff_ffff;

/** Rows that are opened on level 1 (Walk-W6). */
const WIDE: usize = 8;

let candidateCount: u32 = 0;
let resultCount: u32 = 0;
let resultMax: u32 = 0;
let rowCount: u32 = 0;
let batchCount: u32 = 0;
let batchMax: u32 = BATCH;
/** Rows are ranked by examples (Walk-W5). */
let byExamples: bool = false;
let bestKey: i64 = 0;
/** The best `wanted` results, the worst of them at the root. */
let nearestCount: u32 = 0;
let wanted: u32 = 0;
/** Of distances (of their squares, where scores are squares); 0: only ef ends a walk. */
let spread: f32 = 0;
/** A row's distance is `lead - score`. */
let lead: f32 = 0;
let resultMin: u32 = 0;
/** The walk has ended by Walk-W4. */
let spreadOut: bool = false;
/** Rows were scored that lie too far away to be opened (Walk-W4). */
let passedOver: bool = false;
/** Rows of level 0 whose neighbours were looked at. */
let hops: u32 = 0;

/** When walks end (Walk-W4). newWanted: 1 to 64. */
export function setWalkEnd(newWanted: u32, newSpread: f32, newLead: f32): void {
  wanted = newWanted;
  spread = newSpread;
  lead = newLead;
}

/** Since the last call. */
export function takeHops(): u32 {
  const count = hops;
  hops = 0;
  return count;
}

/**
 * The k best of the ef best rows that the walk finds, as `drain` writes them, in `results`. rows: rows of the segment;
 * k at most ef, ef at most `rows`. -1: the time limit has passed.
 */
export function walk(rows: u32, ef: u32, k: u32, narrow: bool): i32 {
  begin(rows, ef, k, narrow);
  if (entryRow == NONE) return 0;
  collect(entryRow);
  absorb();
  for (let level = maxLevel; level > 0; level--) descend(level);
  return finish(rows, ef, k, narrow);
}

/** As `walk` by the examples set last, beginning at the `count` rows at `seeds` (u32), which lie in none of the walk's lists. */
export function walkByExamples(rows: u32, seeds: usize, count: u32, ef: u32, k: u32, narrow: bool): i32 {
  begin(rows, ef, k, narrow);
  byExamples = true;
  batchMax = RANKED_MAX;
  for (let index: u32 = 0; index < count; index++) collect(load<u32>(seeds + ((<usize>index) << 2)));
  absorb();
  const found = finish(rows, ef, k, narrow);
  byExamples = false;
  batchMax = BATCH;
  return found;
}

function begin(rows: u32, ef: u32, k: u32, narrow: bool): void {
  memory.fill(visited, 0, (<usize>((rows + 31) >> 5)) << 2);
  rowCount = rows;
  candidateCount = 0;
  resultCount = 0;
  // A wide walk past a filter that shuts out the nearest rows pays for all of them: a few more results cost it much.
  resultMax = spread == 0 ? ef : min(narrow || !isFiltered() ? 2 * ef : ef + (ef >> 2), rows);
  resultMin = k;
  nearestCount = 0;
  spreadOut = false;
  passedOver = false;
  batchCount = 0;
  bestKey = i64.MIN_VALUE;
}

/** Level 0, from what was collected before. As `walk`. */
function finish(rows: u32, ef: u32, k: u32, narrow: bool): i32 {
  if (narrow ? jump() : stroll()) return -1;
  if (resultCount < ef && !spreadOut && !passedOver && scoreRest(rows)) return -1;
  // `drain` must not write over the heap that it reads.
  memory.copy(candidates, results, (<usize>resultCount) << 3);
  return drain(candidates, resultCount, k, results);
}

/** Goes to the best neighbour on a level as long as there is a better one; on level 1 it looks around there. */
function descend(level: u32): void {
  for (;;) {
    const before = bestKey;
    const list = listOf(rowOf(before), level);
    const count = load<u32>(list);
    for (let index: u32 = 1; index <= count; index++) collect(load<u32>(list + ((<usize>index) << 2)));
    absorb();
    if (bestKey == before) break;
  }
  if (level == 1) widen();
}

/** Opens the best rows on level 1 (Walk-W6), which stay candidates of level 0. */
function widen(): void {
  // There are no more candidates than rows, so behind them is room for those that are taken off.
  const end = candidates + ((<usize>rowCount) << 3);
  let opened: usize = 0;
  for (; opened < WIDE && candidateCount > 0; opened++) {
    const key = load<i64>(candidates);
    dropRoot<bool>(candidates, candidateCount--);
    store<i64>(end - (opened << 3), key);
    const list = listOf(rowOf(key), 1);
    const count = load<u32>(list);
    for (let index: u32 = 1; index <= count; index++) collect(load<u32>(list + ((<usize>index) << 2)));
    absorb();
  }
  for (let at: usize = 0; at < opened; at++) push<bool>(candidates, candidateCount++, load<i64>(end - (at << 3)));
}

/** Level 0: opens candidates, best first, until none can lead to a better result. True: the time limit has passed. */
function stroll(): bool {
  let hop: u32 = 1;
  for (; candidateCount > 0; hop++) {
    const key = load<i64>(candidates);
    if (isBeaten(key) || isSpreadOut(key)) break;
    if (hop % HOPS_PER_CHECK == 0 && expired()) return true;
    dropRoot<bool>(candidates, candidateCount--);
    const list = level0 + <usize>rowOf(key) * level0Words;
    const end = list + ((<usize>load<u32>(list)) << 2);
    for (let at = list; at < end; at += 4) collect(load<u32>(at, 4));
    absorb();
  }
  hops += hop - 1;
  return false;
}

/**
 * As `stroll`, over rows that count only; a neighbour that doesn't count is replaced by its own neighbours. The lists of all
 * these are asked for before the first is read, as `scoreScattered` does with rows.
 */
function jump(): bool {
  let hop: u32 = 1;
  for (; candidateCount > 0; hop++) {
    const key = load<i64>(candidates);
    if (isBeaten(key) || isSpreadOut(key)) break;
    if (hop % (HOPS_PER_CHECK / 4) == 0 && expired()) return true;
    dropRoot<bool>(candidates, candidateCount--);
    const list = level0 + <usize>rowOf(key) * level0Words;
    const end = list + ((<usize>load<u32>(list)) << 2);
    let sum: u32 = 0;
    for (let at = list; at < end; at += 4) {
      const row = load<u32>(at, 4);
      if (admitted(row)) {
        collect(row);
        continue;
      }
      const second = level0 + <usize>row * level0Words;
      sum += load<u32>(second) + load<u32>(second + min<usize>(64, level0Words - 4));
    }
    noteTouched(sum);
    for (let at = list; at < end; at += 4) {
      const row = load<u32>(at, 4);
      // Visited: its neighbours were looked at from another side.
      if (admitted(row) || !visit(row)) continue;
      const second = level0 + <usize>row * level0Words;
      const secondEnd = second + ((<usize>load<u32>(second)) << 2);
      for (let next = second; next < secondEnd; next += 4) {
        const far = load<u32>(next, 4);
        if (admitted(far)) collect(far);
      }
    }
    absorb();
  }
  hops += hop - 1;
  return false;
}

/** Whether there are as many results as wanted, and all of them better than this candidate. */
// @ts-ignore: decorator
@inline
function isBeaten(key: i64): bool {
  if (resultCount != resultMax) return false;
  const last = load<i64>(results);
  return key < last || (byExamples && key >> 32 == last >> 32);
}

/** Whether a walk that is to open this candidate has found enough (Walk-W4). */
// @ts-ignore: decorator
@inline
function isSpreadOut(key: i64): bool {
  spreadOut = lead - scoreOf(key) > reachOf();
  return spreadOut;
}

/** Scores the rows that count and were not visited (Walk-W3). True: the time limit has passed. */
function scoreRest(rows: u32): bool {
  for (let word: u32 = 0; word << 5 < rows; word++) {
    let value = wordOf(word, rows) & ~load<u32>(visited + ((<usize>word) << 2));
    for (; value != 0; value &= value - 1) {
      const row = (word << 5) + ctz(value);
      if (alive(row)) collect(row);
    }
    if (batchCount == 0 || (word & 127) != 127) continue;
    if (expired()) return true;
    absorb();
  }
  absorb();
  return false;
}

/** Puts a row in the batch unless it was visited. */
// @ts-ignore: decorator
@inline
function collect(row: u32): void {
  // Without a branch: whether a row was visited is hard to foretell.
  store<u32>(batch + ((<usize>batchCount) << 2), row);
  batchCount += <u32>visit(row);
  if (batchCount == batchMax) absorb();
}

/** Scores the batch and takes its rows as candidates and, those that count, as results. */
function absorb(): void {
  const scores = batch + ((<usize>BATCH) << 2);
  const count = batchCount;
  batchCount = 0;
  if (byExamples) rankScattered(batch, count, batch + ((<usize>RANKED_MAX) << 2), scores);
  else scoreScattered(batch, count, scores);
  const reach = reachOf();
  for (let index: u32 = 0; index < count; index++) {
    const at = (<usize>index) << 2;
    const row = load<u32>(batch + at);
    const score = load<f32>(scores + at);
    if (lead - score > reach) {
      passedOver = true;
      continue;
    }
    const key = keyOf(score, row);
    if (key > bestKey) bestKey = key;
    if (resultCount == resultMax) {
      if (key < load<i64>(results)) continue;
      push<bool>(candidates, candidateCount++, key);
      if (!admitted(row)) continue;
      replaceRoot<u8>(results, resultCount, key);
    } else {
      push<bool>(candidates, candidateCount++, key);
      if (!admitted(row)) continue;
      push<u8>(results, resultCount++, key);
    }
    if (spread != 0) keepNearest(key);
  }
}

/** A row farther away than this would end the walk before it is opened (Walk-W4), and be none of the wanted. */
// @ts-ignore: decorator
@inline
function reachOf(): f32 {
  if (spread == 0 || nearestCount < wanted || resultCount < resultMin) return f32.POSITIVE_INFINITY;
  return spread * (lead - scoreOf(load<i64>(batch + NEAREST_OFFSET)));
}

function keepNearest(key: i64): void {
  const nearest = batch + NEAREST_OFFSET;
  if (nearestCount < wanted) push<u8>(nearest, nearestCount++, key);
  else if (key > load<i64>(nearest)) replaceRoot<u8>(nearest, nearestCount, key);
}

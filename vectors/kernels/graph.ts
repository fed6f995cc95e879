/** The graph that kernels walk or join, and the scratch that they do it with. */

/** Rows of one batch to be scored, at most; `batch` holds as many rows and scores, and 64 keys behind them. */
export const BATCH: u32 = 1984;

export let level0: usize = 0;
export let level0Words: usize = 0;
export let upperIndex: usize = 0;
export let upper: usize = 0;
export let upperWords: usize = 0;
export let entryRow: u32 = 0;
export let maxLevel: u32 = 0;

export let visited: usize = 0;
export let candidates: usize = 0;
export let results: usize = 0;
export let batch: usize = 0;

export function setGraph(
  newLevel0: usize,
  m0: u32,
  newUpperIndex: usize,
  newUpper: usize,
  m: u32,
  newEntryRow: u32,
  newMaxLevel: u32,
): void {
  level0 = newLevel0;
  level0Words = (<usize>m0 + 1) << 2;
  upperIndex = newUpperIndex;
  upper = newUpper;
  upperWords = (<usize>m + 1) << 2;
  entryRow = newEntryRow;
  maxLevel = newMaxLevel;
}

export function setWalkScratch(newVisited: usize, newCandidates: usize, newResults: usize, neighbours: usize): void {
  visited = newVisited;
  candidates = newCandidates;
  results = newResults;
  batch = neighbours;
}

/** Where the neighbours of a row on a level that it has are: their number, then they. */
// @ts-ignore: decorator
@inline
export function listOf(row: u32, level: u32): usize {
  if (level == 0) return level0 + <usize>row * level0Words;
  return upper + ((<usize>load<u32>(upperIndex + ((<usize>row) << 2))) << 2) + <usize>(level - 1) * upperWords;
}

/** Marks a row as visited; false: it was already. */
// @ts-ignore: decorator
@inline
export function visit(row: u32): bool {
  const at = visited + ((<usize>(row >> 5)) << 2);
  const word = load<u32>(at);
  const bit: u32 = 1 << (row & 31);
  store<u32>(at, word | bit);
  return (word & bit) == 0;
}

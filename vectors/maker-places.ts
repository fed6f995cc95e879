/** Where a graph of pairs is made: what has to fit into one memory, for all threads that make it. */

import { JOIN_M0_MAX, JOIN_SCRATCH_ROWS } from './graph-joiner.js';
import { GROUP_ROWS_MAX, LEADERS_MAX, RANKED_ROWS } from './near-groups.js';
import { align16, align64, scratchLayout } from './scratch.js';

export interface MakerOptions {
  readonly rows: number;
  readonly dim: number;
  readonly m: number;
  readonly efConstruct: number;
  /** Threads that make it together, at most. */
  readonly threads: number;
}

/** Squares of the distances of longer rows leave 32 bits. */
const DIM_MAX = 16_384;
/** Half of fewer would be too few links for the upper levels. */
const M_MIN = 8;
const MEMORY_BYTES_MAX = 2 ** 32;
/** Groups that a row of one part is in, at most. */
export const GROUPS_MAX = 48;
/** Near rows that are kept for each link that a row has on upper levels; on level 0 it has twice as many. */
const NEAR_ROWS_OF_LINK = 3;
/** The row, and how near it is. */
const NEAR_ROW_BYTES = 8;
/** Upper levels that a row of level 1 is on, on average, at most: 1.1 to 1.3 by chance. */
const UPPER_LEVELS = 2;

/** Whether such a graph can be made: it fits in a memory, and numbers in 32 bits. */
export function canMake(options: MakerOptions): boolean {
  return options.dim <= DIM_MAX && options.m >= M_MIN && 2 * options.m <= JOIN_M0_MAX && placesOf(options).bytes <= MEMORY_BYTES_MAX;
}

/** Near rows that are kept of each row: more than it has links at most, as not all are chosen. A multiple of 4. */
export function nearRows(m: number): number {
  return (NEAR_ROWS_OF_LINK * m + 3) & ~3;
}

/** Bytes that near rows of a row take while its graph is made. */
export function nearRowsBytes(m: number): number {
  return NEAR_ROW_BYTES * nearRows(m);
}

/** Bytes of a row's list on level 0. */
export function listBytes(m: number): number {
  return 4 * (1 + 2 * m);
}

export type MakerPlaces = ReturnType<typeof placesOf>;
export type ThreadPlaces = ReturnType<typeof threadPlaces>;

/** Where everything is in the memory, in bytes. */
export function placesOf(options: MakerOptions) {
  const { dim, m, rows, threads } = options;
  const { bytesTaken, take } = taker(1024);
  const scratch = scratchLayout(Math.max(rows, JOIN_SCRATCH_ROWS), dim);
  const places = {
    scratch,
    codes: take(rows * align16(dim) + 64),
    near: take(rows * nearRowsBytes(m)),
    /** Pairs-P2. */
    locks: take(threads === 1 ? 0 : rows * 4),
    upperIndex: take(rows * 4),
    upper: take((rows / m) * UPPER_LEVELS * (1 + m) * 4),
    slot: take(scratch.bytes),
  };
  const own = Array.from({ length: threads }, () => threadPlaces(options, take));
  return { ...places, own, bytes: bytesTaken() };
}

/** What each thread has for itself. */
function threadPlaces({ dim }: MakerOptions, take: (bytes: number) => number) {
  const stride = align16(dim);
  const blockRows = Math.max(GROUP_ROWS_MAX, LEADERS_MAX) + 4;
  const scratch = scratchLayout(JOIN_SCRATCH_ROWS, dim);
  return {
    scratch,
    slot: take(scratch.bytes),
    block: take(blockRows * stride + 64),
    squares: take(blockRows * 4),
    bounds: take(blockRows * 4),
    queries: take(2 * stride * 2 + 32),
    group: take(blockRows * 4),
    ranking: take(RANKED_ROWS * 4),
    best: take(2 * GROUPS_MAX * 4),
    ranked: take(RANKED_ROWS * GROUPS_MAX * 4),
  };
}

function taker(from: number): { take(bytes: number): number; bytesTaken(): number } {
  let bytes = from;
  return {
    take(more) {
      const offset = bytes;
      bytes += align64(more);
      return offset;
    },
    bytesTaken: () => bytes,
  };
}

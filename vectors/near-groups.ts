/**
 * Small groups of near rows that overlap: each row is in several, so that most of its nearest rows are in one of them with it (PiPNN: Rubel et al., 2026,
 * arXiv 2602.21247). Rows gather around leaders, which are rows themselves: first in large parts, then within each part in groups. Pure.
 */

import { randomOrder } from './seeded.js';

/** So few rows are one group: each meets all others. */
export const GROUP_ROWS_MAX = 3072;
/** Rows of a group on average, and at most where rows are divided. */
const GROUP_ROWS = 256;
const DIVIDED_ROWS_MAX = 400;
/** Rows of a part on average. */
const PART_ROWS = 8000;
/** Parts that a row is in. */
const PARTS_EACH = 5;
/** More leaders cost more than what smaller parts save. */
export const LEADERS_MAX = 2048;
/** Groups that are still too large after so many divisions are cut anywhere. */
const DEPTH_MAX = 4;

/** Leaders of each row, the nearest first, by their numbers: u32 [rows, each]. */
export type RankLeaders = (leaders: Uint32Array, rows: Uint32Array, each: number) => Uint32Array;

/**
 * Parts of rows that are near each other, to be divided further one by one; so few rows are one part. A row is in `PARTS_EACH` of several. In shared memory.
 */
export async function nearParts(rows: Uint32Array, tools: GroupingTools): Promise<Uint32Array[]> {
  if (rows.length <= 1.5 * PART_ROWS) return [rows];
  return await new Division(tools).around(rows, PART_ROWS, PARTS_EACH, sharedRows);
}

/**
 * Groups of the rows of one of `parts` parts, of which each row is in about `groupsEach` in all. Rows of a group are in no order; it is never empty, and has
 * `GROUP_ROWS_MAX` rows at most.
 */
export async function* groupsOf(part: Uint32Array, parts: number, groupsEach: number, tools: GroupingTools): AsyncGenerator<Uint32Array> {
  if (part.length > GROUP_ROWS_MAX)
    yield* new Division(tools).divide(part, parts === 1 ? groupsEach : Math.max(1, Math.round(groupsEach / PARTS_EACH)), 0);
  else if (part.length > 0) yield part;
}

export interface GroupingTools {
  readonly rank: RankLeaders;
  /** [0, 1). */
  random(): number;
  /** Awaited now and then. */
  pause(): Promise<void>;
}

class Division {
  constructor(private readonly tools: GroupingTools) {}

  async *divide(rows: Uint32Array, wanted: number, depth: number): AsyncGenerator<Uint32Array> {
    if (rows.length <= DIVIDED_ROWS_MAX) yield rows;
    else if (depth === DEPTH_MAX) yield* this.cut(rows);
    // Rows that are alike all gather around the same leaders.
    else
      for (const group of await this.around(rows, GROUP_ROWS, wanted))
        if (group.length === rows.length) yield* this.cut(group);
        else yield* this.divide(group, 1, depth + 1);
  }

  /** The rows around each of some leaders that have any: a row is with the `wanted` leaders that are nearest to it, and a leader has `size` rows on average. */
  async around(rows: Uint32Array, size: number, wanted: number, makeRows = ownRows): Promise<Uint32Array[]> {
    const { pause, random, rank } = this.tools;
    const count = Math.min(LEADERS_MAX, Math.ceil((rows.length * wanted) / size));
    const each = Math.min(wanted, count);
    // One from each stretch of rows, so that no row is taken twice.
    const leaders = Uint32Array.from(
      { length: count },
      (_, number) => rows[Math.floor(((number + random()) * rows.length) / count)] as number,
    );
    const nearest = new Uint16Array(rows.length * each);
    for (let from = 0; from < rows.length; from += RANKED_ROWS) {
      await pause();
      nearest.set(rank(leaders, rows.subarray(from, from + RANKED_ROWS), each), from * each);
    }
    return gathered(rows, nearest, each, count, makeRows);
  }

  /** Groups of rows in any order: another one each time, so that groups that hold the same rows overlap. */
  private *cut(rows: Uint32Array): Generator<Uint32Array> {
    const order = randomOrder(rows.length, this.tools.random).map((at) => rows[at] as number);
    for (let from = 0; from < order.length; from += DIVIDED_ROWS_MAX) yield order.subarray(from, from + DIVIDED_ROWS_MAX);
  }
}

/** Rows that are ranked at a time. */
export const RANKED_ROWS = 1024;

/** The rows of each leader that has any. nearest: u16 [rows, each]: numbers of leaders. */
function gathered(
  rows: Uint32Array,
  nearest: Uint16Array,
  each: number,
  leaders: number,
  makeRows: (count: number) => Uint32Array,
): Uint32Array[] {
  const ends = new Uint32Array(leaders + 1);
  for (const number of nearest) ends[number + 1] = (ends[number + 1] as number) + 1;
  for (let number = 0; number < leaders; number++) ends[number + 1] = (ends[number + 1] as number) + (ends[number] as number);
  const all = makeRows(nearest.length);
  const starts = ends.slice(0, leaders);
  for (const [at, number] of nearest.entries()) {
    const place = ends[number] as number;
    all[place] = rows[Math.floor(at / each)] as number;
    ends[number] = place + 1;
  }
  return Array.from(starts, (start, number) => all.subarray(start, ends[number])).filter(({ length }) => length > 0);
}

function ownRows(count: number): Uint32Array {
  return new Uint32Array(count);
}

function sharedRows(count: number): Uint32Array {
  return new Uint32Array(new SharedArrayBuffer(4 * count));
}

/**
 * Ways out of clusters, for graphs in which each row is linked to its nearest ones alone. Where rows come one after the other, as in HNSW, the first ones are linked
 * far as there are few; here rows of upper levels stand for them.
 *
 * - **Bridge-B1** a row of level 1 keeps half of its links there on level 0, too, and each other row gets a quarter as many of those of its nearest
 *   neighbour on level 1.
 * - **Bridge-B2** every row can be reached from those of level 1, or from the entry: one of those that cannot is found near ones which can, and one of these is
 *   linked to it.
 */

import { type GraphJoiner, type JoinPlace, linkList, linksOf } from './graph-joiner.js';

/** Results of a search for rows that can be reached. */
const SEARCH_EF = 32;
const PASSES_MAX = 4;

export interface BridgedGraph {
  readonly words: Uint32Array;
  readonly lists: JoinPlace['lists'];
  readonly rows: Uint32Array;
  /** Those on level 1 and above. */
  readonly above: Uint32Array;
  readonly entryRow: number;
  readonly maxLevel: number;
}

/** Bridge-B1. Where a list is full, its last links make room. */
export function bridgeLevels({ above, lists, rows, words }: BridgedGraph): void {
  const isAbove = new Uint8Array(1 + highest(rows));
  for (const row of above) isAbove[row] = 1;
  for (const row of rows) {
    const list = linkList(words, lists, row, 0);
    const own = linksOf(words, lists, row, 0);
    const near = isAbove[row] === 1 ? row : own.find((link) => isAbove[link] === 1);
    if (near === undefined) continue;
    const far = linksOf(words, lists, near, 1).filter((link) => link !== row && !own.includes(link));
    const count = Math.min(far.length, near === row ? lists.m >>> 1 : lists.m >>> 3);
    const kept = Math.min(own.length, lists.m0 - count);
    // Rows with the same neighbour begin at different places of its list.
    for (let n = 0; n < count; n++) words[list + 1 + kept + n] = far[(row + n) % far.length] as number;
    words[list] = kept + count;
  }
}

/** Bridge-B2. */
export async function linkIslands(graph: BridgedGraph, joiner: GraphJoiner, pause: () => Promise<void>): Promise<void> {
  // A link that makes room for one to an island may have been the only one to others.
  for (let pass = 0; pass < PASSES_MAX; pass++) if ((await linkUnreached(graph, joiner, pause)) === 0) return;
}

/** Returns how many islands there were. */
async function linkUnreached(graph: BridgedGraph, joiner: GraphJoiner, pause: () => Promise<void>): Promise<number> {
  const { above, entryRow, lists, maxLevel, rows, words } = graph;
  const nearOf = (row: number) => linksOf(words, lists, row, 0);
  const reach = (starts: Uint32Array): void => {
    const waiting = Array.from(starts);
    joiner.mark(starts);
    for (let row = waiting.pop(); row !== undefined; row = waiting.pop())
      for (const link of nearOf(row)) {
        if (joiner.isMarked(link)) continue;
        joiner.mark(Uint32Array.of(link));
        waiting.push(link);
      }
  };
  joiner.unmark();
  joiner.begin({ rows: new Uint32Array(0), levels: new Int16Array(0), entryRow, maxLevel });
  if (rows.length > 0) reach(above.length > 0 ? above : Uint32Array.of(entryRow));
  /** Rows that lead to an island. */
  const leading = new Set<number>();
  let degrees: Uint32Array | null = null;
  let last = entryRow;
  let islands = 0;
  for (const row of rows) {
    if (joiner.isMarked(row)) continue;
    await pause();
    const canReach = (): Uint32Array => nearOf(row).filter((link) => joiner.isMarked(link));
    if (canReach().length === 0) joiner.seek(row, 0, SEARCH_EF);
    // Where all near ones do already, as rows are alike, islands are a chain.
    const place = canReach().find((link) => !leading.has(link)) ?? last;
    degrees ??= degreesOf(rows, nearOf);
    const list = linkList(words, lists, place, 0);
    const links = nearOf(place);
    if (links.length < lists.m0) {
      words[list] = links.length + 1;
      words[list + links.length + 1] = row;
    } else {
      // The row that most others lead to does without.
      const known = links.reduce((most, link) => ((degrees?.[link] as number) > (degrees?.[most] as number) ? link : most));
      degrees[known] = (degrees[known] as number) - 1;
      links[links.indexOf(known)] = row;
    }
    degrees[row] = (degrees[row] as number) + 1;
    leading.add(place);
    reach(Uint32Array.of(row));
    last = row;
    islands++;
  }
  return islands;
}

/** Links to each row. */
function degreesOf(rows: Uint32Array, nearOf: (row: number) => Uint32Array): Uint32Array {
  const degrees = new Uint32Array(1 + highest(rows));
  for (const row of rows) for (const link of nearOf(row)) degrees[link] = (degrees[link] as number) + 1;
  return degrees;
}

function highest(rows: Uint32Array): number {
  return rows.reduce((max, row) => Math.max(max, row), 0);
}

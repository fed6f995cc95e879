/** Points at random. */

import type { Filter } from '../../protocols/model/filter.js';
import { countBits, forEachBit } from '../../query/filter/bits.js';
import { samplePositions } from '../../query/matrix.js';
import type { Candidates } from './candidates.js';
import { liveBits } from './live-rows.js';
import type { FoundRow } from './points.js';
import type { ReplicaSnapshot } from './snapshot-view.js';

/**
 * `count` distinct rows, in random order, of those that pass (all of them when there are fewer).
 * candidates: the only rows to choose from; null: all. random: 0 <= n < 1.
 */
export function randomRows(
  snapshots: readonly ReplicaSnapshot[],
  count: number,
  filter: Filter | null,
  candidates: Candidates | null,
  random: () => number,
): FoundRow[] {
  const found = candidates === null ? rowsAtRandom(snapshots, filter, count, random) : chosenCandidates(candidates, count, random);
  // Positions come in ascending order, which is none of chance.
  for (let last = found.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [found[last], found[other]] = [found[other] as FoundRow, found[last] as FoundRow];
  }
  return found;
}

function rowsAtRandom(snapshots: readonly ReplicaSnapshot[], filter: Filter | null, count: number, random: () => number): FoundRow[] {
  const parts = snapshots.flatMap(({ segments }) => segments).map((view) => ({ view, bits: liveBits(view, filter) }));
  const total = parts.reduce((sum, { bits }) => sum + countBits(bits), 0);
  const chosen = samplePositions(total, count, random);
  const rows: FoundRow[] = [];
  let position = 0;
  for (const { view, bits } of parts) {
    forEachBit(bits, (row) => {
      if (position++ === chosen[rows.length]) rows.push({ view, row });
    });
  }
  return rows;
}

function chosenCandidates(candidates: Candidates, count: number, random: () => number): FoundRow[] {
  const rows = [...candidates].flatMap(([view, some]) => Array.from(some, (row) => ({ view, row })));
  return samplePositions(rows.length, count, random).map((at) => rows[at] as FoundRow);
}

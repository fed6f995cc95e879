/** Points at random. */

import type { Filter } from '../../../protocols/model/filter.js';
import { countBits, forEachBit } from '../../../query/filter/bits.js';
import { samplePositions, shuffled } from '../../../query/matrix.js';
import { explaining } from '../../explain/explainer.js';
import type { Candidates } from '../nearest/candidates.js';
import { liveBits, vectorBits } from '../snapshot/live-rows.js';
import type { ReplicaSnapshot } from '../snapshot/snapshot-view.js';
import type { FoundRow } from './points.js';

/** What rows a sample is drawn from. */
export interface RowSample {
  readonly count: number;
  readonly filter: Filter | null;
  /** Only rows with this vector; null: all. */
  readonly having: string | null;
  /** The only rows to choose from; null: all. */
  readonly candidates: Candidates | null;
}

/** `count` distinct rows, in random order, of those that pass (all of them when there are fewer). random: 0 <= n < 1. */
export function randomRows(snapshots: readonly ReplicaSnapshot[], sample: RowSample, random: () => number): FoundRow[] {
  const { count, filter, having, candidates } = sample;
  const found =
    candidates === null ? drawnRows(snapshots, filter, having, count, random).rows : chosenCandidates(candidates, count, random);
  return shuffled(found, random);
}

/** A sample, in no order of chance, and how many rows there were to choose from. having: only rows with this vector; null: all. */
export function drawnRows(
  snapshots: readonly ReplicaSnapshot[],
  filter: Filter | null,
  having: string | null,
  count: number,
  random: () => number,
): { rows: FoundRow[]; total: number } {
  const parts = snapshots
    .flatMap(({ segments }) => segments)
    .map((view) => {
      view.reader.deadline.claim({ kind: 'entries', count: view.rows });
      const bits = liveBits(view, filter);
      const note = explaining()?.of(view);
      note?.way('sample', 'Every row that passes has the same chance, so they are all counted first.');
      note?.mark('sample');
      return { view, bits: having === null ? bits : vectorBits(view, having, bits) };
    });
  const total = parts.reduce((sum, { bits }) => sum + countBits(bits), 0);
  const chosen = samplePositions(total, count, random);
  const rows: FoundRow[] = [];
  let position = 0;
  for (const { view, bits } of parts) {
    forEachBit(bits, (row) => {
      if (position++ === chosen[rows.length]) rows.push({ view, row });
    });
  }
  explaining()?.gave(rows);
  return { rows, total };
}

function chosenCandidates(candidates: Candidates, count: number, random: () => number): FoundRow[] {
  const rows = [...candidates].flatMap(([view, some]) => Array.from(some, (row) => ({ view, row })));
  return samplePositions(rows.length, count, random).map((at) => rows[at] as FoundRow);
}

/** Distance matrices: similarities between the points of a sample. */

import { compareIds } from '../../protocols/model/point-id.js';
import type { MatrixQuery } from '../../protocols/model/query.js';
import type { VectorValue } from '../../protocols/model/vector.js';
import { countBits, forEachBit } from '../../query/filter/bits.js';
import { nearestPositions, samplePositions } from '../../query/matrix.js';
import { liveBits, vectorBits } from './live-rows.js';
import type { FoundRow } from './points.js';
import type { DistanceMatrix } from './read-answer.js';
import { betterOf, scoreRows } from './search.js';
import type { ReplicaSnapshot, SegmentView } from './snapshot-view.js';
import { vectorSpace } from './vector-space.js';

/**
 * The matrix over a random sample of the points that pass and have the vector. random: 0 <= n < 1.
 * Errors: `wrongInput` for an unknown vector name; `timeout`.
 */
export function distanceMatrix(snapshots: readonly ReplicaSnapshot[], query: MatrixQuery, random: () => number): DistanceMatrix {
  const space = vectorSpace(snapshots, query.using);
  const sample = sampleRows(snapshots, query, random);
  if (sample.length < 2) return { ids: [], neighbours: [] };
  const better = betterOf(space.distance);
  const parts = partsOf(sample);
  const neighbours = sample.map(({ view, row }, own) => {
    view.reader.clock.check();
    const value = view.vectorOf(query.using, row) as VectorValue;
    const scores = new Float32Array(sample.length);
    for (const part of parts) {
      const found = scoreRows(part.view, space, value, part.rows);
      part.positions.forEach((position, i) => {
        scores[position] = found[i] as number;
      });
    }
    return nearestPositions(scores, own, query.limit, better).map((at) => ({ at, score: scores[at] as number }));
  });
  return { ids: sample.map(({ view, row }) => view.id(row)), neighbours };
}

/** Random live rows, in id order. */
function sampleRows(snapshots: readonly ReplicaSnapshot[], { filter, sample, using }: MatrixQuery, random: () => number): FoundRow[] {
  const candidates = snapshots
    .flatMap(({ segments }) => segments)
    .map((view) => ({ view, bits: vectorBits(view, using, liveBits(view, filter)) }));
  const total = candidates.reduce((sum, { bits }) => sum + countBits(bits), 0);
  const chosen = samplePositions(total, sample, random);
  const rows: FoundRow[] = [];
  let position = 0;
  let next = 0;
  for (const { view, bits } of candidates) {
    forEachBit(bits, (row) => {
      if (position++ !== chosen[next]) return;
      rows.push({ view, row });
      next++;
    });
  }
  return rows.sort((a, b) => compareIds(a.view.id(a.row), b.view.id(b.row)));
}

/** The sample's rows by segment, each with its place in the sample. */
function partsOf(sample: readonly FoundRow[]): { view: SegmentView; rows: Uint32Array; positions: number[] }[] {
  const positions = new Map<SegmentView, number[]>();
  sample.forEach(({ view }, at) => {
    const known = positions.get(view);
    if (known === undefined) positions.set(view, [at]);
    else known.push(at);
  });
  return [...positions].map(([view, at]) => ({ view, rows: Uint32Array.from(at, (one) => (sample[one] as FoundRow).row), positions: at }));
}

/** Distance matrices: similarities between the points of a sample. */

import { compareIds } from '../../../protocols/model/point-id.js';
import type { MatrixQuery } from '../../../protocols/model/query.js';
import type { VectorValue } from '../../../protocols/model/vector.js';
import { nearestPositions } from '../../../query/matrix.js';
import type { DistanceMatrix } from '../../answers/read-answer.js';
import { betterOf, scoreRows } from '../nearest/search.js';
import { partsOf } from '../snapshot/row-parts.js';
import type { ReplicaSnapshot } from '../snapshot/snapshot-view.js';
import { vectorSpace } from '../snapshot/vector-space.js';
import type { FoundRow } from './points.js';
import { drawnRows } from './sample.js';

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
    view.reader.deadline.check();
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
  const { rows } = drawnRows(snapshots, filter, using, sample, random);
  return rows.sort((a, b) => compareIds(a.view.id(a.row), b.view.id(b.row)));
}

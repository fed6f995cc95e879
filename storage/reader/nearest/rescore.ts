/** Nearest points among candidates. */

import type { VectorValue } from '../../../protocols/model/vector.js';
import { mergeRanked } from '../../../query/merge.js';
import { betterOf } from '../../../query/shown-score.js';
import { explaining } from '../../explain/explainer.js';
import type { PagedNode } from '../../walk/walk.js';
import type { ReplicaSnapshot } from '../snapshot/snapshot-view.js';
import { vectorSpace } from '../snapshot/vector-space.js';
import type { Candidates } from './candidates.js';
import { type Hit, hitOf } from './hit.js';
import { scoreRows, scoringWork } from './search.js';

/** The page of candidates nearest to a value, by exact scores; those without the vector are left out. */
export function nearestCandidates(
  snapshots: readonly ReplicaSnapshot[],
  node: PagedNode,
  value: VectorValue,
  candidates: Candidates,
): Hit[] {
  const space = vectorSpace(snapshots, node.using);
  const hits: Hit[] = [];
  for (const [view, rows] of candidates) {
    view.reader.deadline.check();
    view.reader.deadline.claim(scoringWork(view, space, value, rows.length, 1));
    explaining()?.of(view).way('candidates', 'Only points that the prefetches found may be found, so each of them is scored exactly.');
    const scores = scoreRows(view, space, value, rows);
    rows.forEach((row, at) => {
      const score = scores[at] as number;
      // Without a common index two sparse vectors have nothing to do with each other.
      if (!Number.isNaN(score) && !(score === 0 && space.kind === 'sparse')) hits.push(hitOf(view, row, score));
    });
  }
  return mergeRanked([hits], { ...node, better: betterOf(space.distance) });
}

/** Nearest points among candidates, and the ones of them that are unlike one another. */

import type { Mmr } from '../../../protocols/model/query.js';
import type { VectorValue } from '../../../protocols/model/vector.js';
import { mergeRanked } from '../../../query/merge.js';
import { selectDiverse } from '../../../query/mmr.js';
import { partsOf } from '../snapshot/row-parts.js';
import type { ReplicaSnapshot } from '../snapshot/snapshot-view.js';
import { vectorSpace } from '../snapshot/vector-space.js';
import type { Candidates, PagedNode } from './candidates.js';
import { type Hit, hitOf } from './hit.js';
import { betterOf, scoreRows } from './search.js';
import { similarScores } from './shown-score.js';

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
    const scores = scoreRows(view, space, value, rows);
    rows.forEach((row, at) => {
      const score = scores[at] as number;
      // Without a common index two sparse vectors have nothing to do with each other.
      if (!Number.isNaN(score) && !(score === 0 && space.kind === 'sparse')) hits.push(hitOf(view, row, score));
    });
  }
  return mergeRanked([hits], { ...node, better: betterOf(space.distance) });
}

/** The page of an order in which each point adds something to those before it. nearest: the candidates, best first. */
export function diverseHits(snapshots: readonly ReplicaSnapshot[], node: PagedNode, mmr: Mmr, nearest: readonly Hit[]): Hit[] {
  const space = vectorSpace(snapshots, node.using);
  const relevance = similarScores(
    space.distance,
    Float32Array.from(nearest, ({ score }) => score),
  );
  const parts = partsOf(nearest);
  const similarTo = (position: number): Float32Array => {
    const { view, row } = nearest[position] as Hit;
    view.reader.deadline.check();
    const value = view.vectorOf(node.using, row) as VectorValue;
    const similar = new Float32Array(nearest.length);
    for (const part of parts) {
      const scores = similarScores(space.distance, scoreRows(part.view, space, value, part.rows));
      part.positions.forEach((at, i) => {
        similar[at] = scores[i] as number;
      });
    }
    return similar;
  };
  const chosen = selectDiverse(relevance, mmr.diversity, node.offset + node.limit, similarTo);
  return chosen.slice(node.offset).map((at) => nearest[at] as Hit);
}

/** Points of several prefetches with one score each. */

import type { PointId } from '../../protocols/model/point-id.js';
import type { Scoring } from '../../protocols/model/query.js';
import { fuseDistributions, fuseRanks } from '../../query/fuse.js';
import { mergeRanked } from '../../query/merge.js';
import { finiteScore } from '../../query/shown-score.js';
import type { PagedNode, Prefetched, WalkHit } from './walk.js';

type FusionQuery = Extract<Scoring, { kind: 'rrf' | 'dbsf' }>;

/** The page of the points of all lists, by fused score. */
export function fusedPage<Hit extends WalkHit>(node: PagedNode, fusion: FusionQuery, lists: readonly Prefetched<Hit>[]): Hit[] {
  const scores = fusedScores(fusion, lists);
  const hits = [...newestHits(lists).values()].map((hit) => ({ ...hit, score: finiteScore(Math.fround(scores.get(hit.id) as number)) }));
  return mergeRanked([hits], { ...node, better: 'larger' });
}

/** One score for each point of the lists, which are best first. */
function fusedScores(fusion: FusionQuery, lists: readonly Prefetched<WalkHit>[]): Map<PointId, number> {
  if (fusion.kind === 'dbsf') return fuseDistributions(lists.map(({ hits, better }) => ({ points: hits, better })));
  return fuseRanks(
    lists.map(({ hits }) => hits.map(({ id }) => id)),
    fusion.k,
    fusion.weights,
  );
}

/** Each point once, in its newest version: it may stand in several lists, or several times in one (it was moved while they were read). */
export function newestHits<Hit extends WalkHit>(lists: readonly Prefetched<Hit>[]): Map<PointId, Hit> {
  const newest = new Map<PointId, Hit>();
  for (const { hits } of lists) {
    for (const hit of hits) {
      const known = newest.get(hit.id);
      if (known === undefined || hit.version > known.version) newest.set(hit.id, hit);
    }
  }
  return newest;
}

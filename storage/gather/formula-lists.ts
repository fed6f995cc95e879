/** The scores that prefetches gave, as a formula's level is told. */

import type { ScoredPoints } from '../threads/portion.js';
import { type GatheredHit, PointTable, pointsOf } from './hits.js';

/** By list; a point that a list repeats counts with its best score. */
export function formulaLists(lists: readonly (readonly GatheredHit[])[]): ScoredPoints[] {
  return lists.map((hits) => {
    const scores = new PointTable<number>();
    for (const hit of hits) if (scores.get(hit) === undefined) scores.set(hit.shard, hit.id, hit.score);
    const points = pointsOf(hits);
    const aligned = points.flatMap(({ shard, ids }) => ids.map((id) => scores.get({ shard: shard as number, id }) as number));
    return { points, scores: Float64Array.from(aligned) };
  });
}

/** Points at random, over all shards. */

import { samplePositions, shuffled } from '../../query/matrix.js';
import type { Hits } from '../threads/portion.js';
import { type GatheredHit, hitsFrom } from './hits.js';

/**
 * `count` points in random order, of portions that each drew as many. Each next one comes from a portion with the chance of how many of its points are left: so all
 * of them have the same chance.
 */
export function drawn(answers: readonly Hits[], count: number, random: () => number): GatheredHit[] {
  const parts = answers.map((answer) => ({ hits: hitsFrom(answer), left: answer.total, next: 0 }));
  let left = parts.reduce((sum, part) => sum + part.left, 0);
  const found: GatheredHit[] = [];
  while (found.length < count && left > 0) {
    let place = Math.floor(random() * left);
    const part = parts.find((one) => {
      if (place < one.left) return true;
      place -= one.left;
      return false;
    });
    const hit = part?.hits[part.next];
    if (part === undefined || hit === undefined) break;
    found.push(hit);
    part.next++;
    part.left--;
    left--;
  }
  return found;
}

/** The same of points that prefetches found, each of which may be found several times. */
export function drawnHits(hits: readonly GatheredHit[], count: number, random: () => number): GatheredHit[] {
  const points = [...new Map(hits.map((hit) => [`${hit.shard}/${typeof hit.id}/${hit.id}`, hit])).values()];
  const chosen = samplePositions(points.length, count, random).map((at) => points[at] as GatheredHit);
  return shuffled(chosen, random).map(({ id, shard, version }) => ({ id, shard, version, score: 1 }));
}

/** Points at random, over all shards. */

import { samplePositions } from '../../query/matrix.js';
import type { PagedNode } from '../reader/nearest/candidates.js';
import { shuffled } from '../reader/query/sample.js';
import type { Extras, Hits } from '../threads/portion.js';
import type { GatherContext } from './context.js';
import { type GatheredHit, hitsFrom } from './hits.js';

/** `count` distinct points in random order, of those that pass (all of them when there are fewer). */
export async function sampleHits(
  context: GatherContext,
  { filter, using, params }: Pick<PagedNode, 'filter' | 'using' | 'params'>,
  count: number,
  extras: Extras,
  having: string | null = null,
): Promise<GatheredHit[]> {
  const answers = await context.portions.ask(context.source, {
    kind: 'level',
    query: { kind: 'sample', having },
    using,
    filter,
    params,
    scoreThreshold: null,
    count,
    candidates: null,
    terms: null,
    extras,
  });
  return drawn(answers, count, context.random);
}

/** Each next one comes from a portion with the chance of how many of its points are left: so all of them have the same chance. */
function drawn(answers: readonly Hits[], count: number, random: () => number): GatheredHit[] {
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

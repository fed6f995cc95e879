/** Maximal marginal relevance: points that are near the query and unlike one another. */

import { runSteps, type Steps } from './steps.js';

const DIVERSITY_DEFAULT = 0.5;

/**
 * Positions of up to `count` candidates in the order they are chosen. Each time the one with the largest
 * `(1 - diversity) * relevance - diversity * (similarity to the most similar chosen one)` is taken, the first among
 * equals; the first choice goes by relevance alone.
 * relevance: Float32Array [candidates], larger is better, best first.
 * similarTo: similarities of all candidates to the one at a position, on the scale of `relevance`.
 * Source: Carbonell and Goldstein, «The use of MMR», 1998; scenario query-mmr.
 */
export function selectDiverse(
  relevance: Float32Array,
  diversity: number | null,
  count: number,
  similarTo: (position: number) => Float32Array,
): number[] {
  return runSteps(diverseSteps(relevance, diversity, count), similarTo);
}

/** The same; asked: the position that similarities are wanted to. */
export function* diverseSteps(relevance: Float32Array, diversity: number | null, count: number): Steps<number, Float32Array, number[]> {
  const apart = diversity ?? DIVERSITY_DEFAULT;
  const candidates = relevance.length;
  const chosen: number[] = [];
  const open = new Uint8Array(candidates).fill(1);
  const nearest = new Float32Array(candidates).fill(Number.NEGATIVE_INFINITY);
  for (let next = 0; chosen.length < Math.min(count, candidates); next = best(relevance, nearest, open, apart)) {
    chosen.push(next);
    open[next] = 0;
    if (chosen.length === count) break;
    const similar = yield next;
    for (let at = 0; at < candidates; at++) nearest[at] = Math.max(nearest[at] as number, similar[at] as number);
  }
  return chosen;
}

function best(relevance: Float32Array, nearest: Float32Array, open: Uint8Array, apart: number): number {
  let found = -1;
  let most = Number.NEGATIVE_INFINITY;
  for (let at = 0; at < relevance.length; at++) {
    if (open[at] === 0) continue;
    const gain = (1 - apart) * (relevance[at] as number) - apart * (nearest[at] as number);
    if (found >= 0 && !(gain > most)) continue;
    found = at;
    most = gain;
  }
  return found;
}

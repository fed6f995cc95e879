/** Scores as the API shows them: numbers, whatever vectors and weights were multiplied. */

import type { Distance } from '../protocols/model/collection.js';
import type { Page } from './merge.js';

const FLOAT32_MAX = 2 ** 128 - 2 ** 104;

/** Score as the API shows it: the distance itself where less is better. raw: higher is better (see `kernel-api.ts`). */
export function shownScore(distance: Distance, raw: number): number {
  switch (distance) {
    case 'Euclid':
      return finiteScore(Math.fround(Math.sqrt(-raw)), FLOAT32_MAX);
    case 'Manhattan':
      return finiteScore(-raw, FLOAT32_MAX);
    default:
      return finiteScore(raw);
  }
}

/** A score of codes, which are never quite right, as a distance can be: not below 0. */
export function possibleScore(distance: Distance, raw: number): number {
  return betterOf(distance) === 'smaller' ? Math.min(raw, 0) : raw;
}

/** Which shown scores are better. */
export function betterOf(distance: Distance): Page['better'] {
  return distance === 'Euclid' || distance === 'Manhattan' ? 'smaller' : 'larger';
}

/** Shown scores as similarities: higher is nearer, and Euclidean distances count squared. */
export function similarScores(distance: Distance, scores: Float32Array): Float32Array {
  if (distance === 'Manhattan') return scores.map((score) => -score);
  return distance === 'Euclid' ? scores.map((score) => Math.max(-score * score, -FLOAT32_MAX)) : scores;
}

/**
 * A score that JSON has a number for: beyond a float32 it is the largest one. NaN, which infinite terms leave that cancel
 * each other, is the worst: the lowest, if nothing else is given.
 */
export function finiteScore(score: number, worst = -FLOAT32_MAX): number {
  if (Math.abs(score) <= FLOAT32_MAX) return score;
  if (Number.isNaN(score)) return worst;
  return score > 0 ? FLOAT32_MAX : -FLOAT32_MAX;
}

/** Comparisons of answers with what a model says. Scores are equal within the error of float32; ties may stand in any order. */

import assert from 'node:assert/strict';
import { type Id, isSparse, type ModelPoint, type Payload, type Value } from './state.js';

export interface FoundPoint {
  readonly id: Id;
  readonly score?: number;
  readonly payload?: Payload | null;
  readonly vector?: { readonly [name: string]: Value };
}

/** All points that may be answers, with their scores; in any order. */
export interface Wanted {
  readonly scored: readonly (readonly [Id, number])[];
  readonly better: 'larger' | 'smaller';
  readonly limit: number;
  readonly offset: number;
  /** How far off scores may be besides; they may be small differences of large numbers. */
  readonly slack: number;
}

export function near(a: number, b: number, slack = 0): boolean {
  return a === b || Math.abs(a - b) <= slack + 2e-5 * Math.max(1, Math.abs(a), Math.abs(b));
}

/** The best scores, best first, of exactly these points: a wrong point has a wrong score or is none of them. */
export function compareRanked(found: readonly FoundPoint[], wanted: Wanted, what: string): void {
  const { limit, offset, better, slack } = wanted;
  const best = sorted(wanted).slice(offset, offset + limit);
  compareScores(found, wanted, best.length, what);
  found.forEach(({ score }, at) => {
    const [id, own] = best[at] as readonly [Id, number];
    assert.ok(near(score as number, own, slack), `${what}: ${score} at ${at}, not ${own} of ${id} (${better} is better)`);
  });
}

/** As many points as there are, all of those that may be answers, each once, with its true score, best first. */
export function compareApproximate(found: readonly FoundPoint[], wanted: Wanted, what: string): { hits: number; of: number } {
  const best = sorted(wanted).slice(wanted.offset, wanted.offset + wanted.limit);
  compareScores(found, wanted, best.length, what);
  const worst = best.at(-1)?.[1] ?? 0;
  const isHit = (score: number) => near(score, worst) || (wanted.better === 'larger' ? score > worst : score < worst);
  return { hits: found.filter(({ score }) => isHit(score as number)).length, of: best.length };
}

function compareScores(found: readonly FoundPoint[], { scored, better, slack }: Wanted, count: number, what: string): void {
  const scores = new Map(scored);
  assert.equal(found.length, count, `${what}: as many points`);
  assert.equal(new Set(found.map(({ id }) => id)).size, found.length, `${what}: a point came twice`);
  found.forEach(({ id, score }, at) => {
    const own = scores.get(id);
    assert.ok(own !== undefined, `${what}: ${id} is no answer`);
    assert.ok(near(score as number, own, slack), `${what}: ${id} has score ${own}, not ${score}`);
    const before = found[at - 1]?.score ?? score;
    assert.ok(
      better === 'larger' ? (before as number) >= (score as number) : (before as number) <= (score as number),
      `${what}: order at ${at}`,
    );
  });
}

function sorted({ scored, better }: Wanted): (readonly [Id, number])[] {
  return [...scored].sort(([, a], [, b]) => (better === 'larger' ? b - a : a - b));
}

/** The point as the model has it: payload and vectors, all of them. */
export function comparePoint(found: FoundPoint, wanted: ModelPoint, what: string): void {
  assert.deepEqual(found.payload, wanted.payload, `${what}: payload of ${found.id}`);
  assert.deepEqual(Object.keys(found.vector ?? {}).sort(), Object.keys(wanted.vectors).sort(), `${what}: vectors of ${found.id}`);
  for (const [name, value] of Object.entries(wanted.vectors)) {
    const given = found.vector?.[name] as Value;
    assert.ok(sameValue(given, value), `${what}: vector ${name} of ${found.id} is ${JSON.stringify(given)}, not ${JSON.stringify(value)}`);
  }
}

function sameValue(a: Value, b: Value): boolean {
  if (isSparse(a) || isSparse(b)) {
    return isSparse(a) && isSparse(b) && sameNumbers(a.indices, b.indices) && sameNumbers(a.values, b.values);
  }
  const [one, other] = [a.flat(), b.flat()];
  return Array.isArray(a[0]) === Array.isArray(b[0]) && a.length === b.length && sameNumbers(one, other);
}

function sameNumbers(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((x, at) => near(x, b[at] as number));
}

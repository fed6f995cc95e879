import assert from 'node:assert/strict';
import { test } from 'node:test';
import { distanceProfile, PROFILE_RANKS, walkEnd } from '../../vectors/walk-end.js';

/** Scores of rows whose squared distances grow with the power `power` of their rank. */
function scores(lead: number, power: number, first = 0.01): Float32Array {
  return Float32Array.from({ length: PROFILE_RANKS }, (_, rank) => lead - first * (rank + 1) ** power);
}

const near = (actual: number | undefined, expected: number): void =>
  assert.ok(actual !== undefined && Math.abs(actual - expected) < 1e-4, `${actual} instead of ${expected}`);

test('a walk ends at a part of the ratio between the distance of the ef-th row and that of the last wanted one', () => {
  const profile = distanceProfile('l2', [scores(0, 0.5), scores(0, 0.5, 7)]);
  near(walkEnd(profile, 10, 40)?.spread, 1 + 0.8 * (2 - 1));
  near(walkEnd(profile, 10, 64)?.spread, 1 + 0.7 * (Math.sqrt(6.4) - 1));
  near(walkEnd(profile, 1, 64)?.spread, 1 + 0.8 * (8 - 1));
});

test('distances grow beyond the profile as they do over its last doubling', () => {
  near(walkEnd(distanceProfile('l2', [scores(0, 0.5)]), 10, 1000)?.spread, 1 + 0.7 * (10 - 1));
});

test('a step near the end of the profile, where clusters end, is not taken to go on beyond it', () => {
  const stepped = scores(0, 0.5).map((score, rank) => (rank < 60 ? score : 4 * score));
  const profile = distanceProfile('l2', [Float32Array.from(stepped)]);
  // Over all six doublings squared distances grow 32 times, so by 2 ** (5 / 6) in the next one: less than by the step's 5.66.
  const growth = 4 * Math.sqrt(6.4) * 2 ** (5 / 6);
  near(walkEnd(profile, 10, 128)?.spread, 1 + 0.7 * (growth - 1));
});

test('scores of cosine tell distances by what they lack of 1', () => {
  near(walkEnd(distanceProfile('dot', [scores(1, 0.5, 0.001)]), 10, 40)?.spread, 1.8);
});

test('ef alone ends a walk for many results, with few candidates for each, and where no profile can be made', () => {
  const profile = distanceProfile('l2', [scores(0, 0.5)]);
  assert.equal(walkEnd(profile, 65, 1000), undefined);
  assert.equal(walkEnd(profile, 10, 19), undefined);
  assert.equal(walkEnd(profile, 0, 10), undefined);
  assert.equal(distanceProfile('l2', []), null);
  assert.equal(distanceProfile('l2', [scores(0, 0.5, 0)]), null, 'all rows are equal');
  assert.equal(
    distanceProfile('l2', [scores(0, 0.5), scores(0, 0.5).subarray(1), scores(0, 0.5).subarray(1)]),
    null,
    'most searches found too few',
  );
  assert.equal(distanceProfile('l2', [scores(0, 0.5).fill(Number.NEGATIVE_INFINITY, 60)]), null, 'distances are infinite');
  assert.equal(walkEnd(null, 10, 64), undefined);
});

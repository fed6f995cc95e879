import assert from 'node:assert/strict';
import { test } from 'node:test';
import { profileOf } from '../../../../storage/reader/nearest/profile-of.js';
import type { SegmentView, VectorReader } from '../../../../storage/reader/snapshot/snapshot-view.js';
import { PROFILE_RANKS } from '../../../../vectors/walk-end.js';

const matrix = { element: 'f32', metric: 'l2', offset: 0, stride: 16, dim: 4 } as const;
const kept = Array.from({ length: PROFILE_RANKS }, (_, rank) => rank / 10);

/** Nothing but its number of rows: who looks for more fails. */
function viewOf(rows: number): SegmentView {
  return { rows } as SegmentView;
}

function vectorWith(profile: readonly number[] | null): VectorReader {
  const graph = { profile };
  return { graph, layout: { graph } } as unknown as VectorReader;
}

test('a profile that a build has kept is taken without a search', () => {
  assert.equal(profileOf(viewOf(60_000), vectorWith(kept), matrix, 'Euclid'), kept);
  assert.equal(profileOf(viewOf(60_000), vectorWith(null), matrix, 'Euclid'), null, 'the build found that there is none');
});

test('a kept profile is left where scores tell no distances, or rows are few', () => {
  assert.equal(profileOf(viewOf(60_000), vectorWith(kept), matrix, 'Dot'), null);
  assert.equal(profileOf(viewOf(PROFILE_RANKS), vectorWith(kept), matrix, 'Euclid'), null);
});

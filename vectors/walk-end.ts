/**
 * When a walk has found enough, by how distances grow with rank in its graph. A walk with ef alone ends when the next candidate is farther away than
 * the ef-th best. That is, on average, `d(ef) / d(wanted)` times as far as the last wanted result; but queries differ, and a walk that
 * ends at this ratio itself takes little time over the easy ones and more over the hard ones. (Adaptive Beam Search: arXiv 2505.15636.)
 */

import type { Metric, WalkEnd } from './kernel-api.js';

/** Ranks of a profile. */
export const PROFILE_RANKS = 64;
/** The kernel has room for so many nearest results. */
const WANTED_MAX = 64;
/** Parts of the mean ratio at which recall is not lower than with ef alone: measured, see vectors/README.md. */
const SHARE_NEAR = 0.8;
const SHARE_FAR = 0.7;
/** Candidates for each wanted result from which on `SHARE_FAR` is enough, if so many results tell how far the last one is. */
const FAR_FROM = 5;
const FAR_WANTED_MIN = 5;
/** With fewer candidates for each wanted result the ratio is too near to 1 to save anything. */
const CANDIDATES_MIN = 2;

/** How distances grow: the mean logarithm of the distance (of its square for `dot` and `l2`) of the nearest row, the second, ... */
export type DistanceProfile = readonly number[];

/**
 * A profile of searches. ranked: of each, the scores of PROFILE_RANKS rows, best first, without the query's own.
 * Null: there is none, as distances are too small to tell, or not numbers.
 */
export function distanceProfile(metric: Metric, ranked: readonly Float32Array[]): DistanceProfile | null {
  const lead = metric === 'dot' ? 1 : 0;
  const profile = new Array<number>(PROFILE_RANKS).fill(0);
  let count = 0;
  for (const scores of ranked) {
    if (scores.length < PROFILE_RANKS || !(lead - (scores[0] as number) > DISTANCE_MIN)) continue;
    for (let rank = 0; rank < PROFILE_RANKS; rank++) profile[rank] = (profile[rank] as number) + Math.log(lead - (scores[rank] as number));
    count++;
  }
  if (count * 2 < ranked.length || count === 0) return null;
  const means = profile.map((sum) => sum / count);
  return means.every(Number.isFinite) ? means : null;
}

/** Below it distances are mostly errors of rounding. */
const DISTANCE_MIN = 1e-5;

/** Whether walks with `ef` for the best `wanted` rows may end by distance, so that a profile is of use. */
export function endsByDistance(wanted: number, ef: number): boolean {
  return wanted >= 1 && wanted <= WANTED_MAX && ef >= wanted * CANDIDATES_MIN;
}

/** The end of walks with `ef` for the best `wanted` rows; undefined: ef alone is to end them. */
export function walkEnd(profile: DistanceProfile | null, wanted: number, ef: number): WalkEnd | undefined {
  if (profile === null || !endsByDistance(wanted, ef)) return undefined;
  const ratio = Math.exp(growthAt(profile, ef) - growthAt(profile, wanted)) - 1;
  const spread = 1 + ratio * (ef < wanted * FAR_FROM || wanted < FAR_WANTED_MIN ? SHARE_NEAR : SHARE_FAR);
  return spread > 1 ? { wanted, spread } : undefined;
}

/**
 * Beyond the last rank distances are taken to grow as they do over the last doubling, but not faster than over all of them: where small clusters end
 * within the profile, their step would be taken to go on.
 */
function growthAt(profile: DistanceProfile, rank: number): number {
  const last = profile[PROFILE_RANKS - 1] as number;
  if (rank <= PROFILE_RANKS) return profile[rank - 1] as number;
  const lastDoubling = last - (profile[PROFILE_RANKS / 2 - 1] as number);
  const anyDoubling = (last - (profile[0] as number)) / Math.log2(PROFILE_RANKS);
  return last + Math.min(lastDoubling, anyDoubling) * Math.log2(rank / PROFILE_RANKS);
}

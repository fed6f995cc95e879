/** Merges ranked lists of several segments or replicas into one page of results. */

import { compareIds, type PointId } from '../protocols/model/point-id.js';

/** One found point, with the score as the API shows it. */
export interface RankedPoint {
  readonly id: PointId;
  readonly score: number;
  /** Operation number of the point's last change. */
  readonly version: number;
}

export interface Page {
  readonly limit: number;
  readonly offset: number;
  /** Scores equal to it or worse are left out. null: no threshold. */
  readonly scoreThreshold: number | null;
  /** Which scores are better: `smaller` for distances (Euclid, Manhattan). */
  readonly better: 'larger' | 'smaller';
}

/**
 * One page of all lists: best score first, ties by id. A point that stands in several lists (it was moved while they
 * were read) counts once, in its newest version. Lists need no order.
 */
export function mergeRanked<T extends RankedPoint>(lists: readonly (readonly T[])[], page: Page): T[] {
  const sign = page.better === 'larger' ? -1 : 1;
  const points = lists.length === 1 ? [...(lists[0] as readonly T[])] : newest(lists);
  const passed = page.scoreThreshold === null ? points : points.filter((point) => passes(point.score, page));
  passed.sort((a, b) => sign * (a.score - b.score) || compareIds(a.id, b.id));
  return passed.slice(page.offset, page.offset + page.limit);
}

/**
 * How many of each list are among the `keep` best of all, of equal ones those of an earlier list. lists: scores, each list best first; higher ones are
 * better, and none is NaN.
 */
export function countsOfBest(lists: readonly (readonly number[])[], keep: number): number[] {
  const counts = lists.map(() => 0);
  for (let left = keep; left > 0; left--) {
    let best = -1;
    let bestScore = Number.NEGATIVE_INFINITY;
    for (let at = 0; at < lists.length; at++) {
      const next = (lists[at] as readonly number[])[counts[at] as number];
      if (next === undefined || (best >= 0 && next <= bestScore)) continue;
      best = at;
      bestScore = next;
    }
    if (best < 0) break;
    counts[best] = (counts[best] as number) + 1;
  }
  return counts;
}

/** Scores are single floats, and so is the threshold they are compared with. */
function passes(score: number, page: Page): boolean {
  const threshold = Math.fround(page.scoreThreshold as number);
  return page.better === 'larger' ? score > threshold : score < threshold;
}

function newest<T extends RankedPoint>(lists: readonly (readonly T[])[]): T[] {
  const byId = new Map<PointId, T>();
  for (const list of lists) {
    for (const point of list) {
      const other = byId.get(point.id);
      if (other === undefined || point.version > other.version) byId.set(point.id, point);
    }
  }
  return [...byId.values()];
}

/** One level of a query on the shards of a portion. */

import { shuffled } from '../../../query/matrix.js';
import type { LevelAsk, ScoredPoints } from '../../threads/portion.js';
import type { PagedNode, ResolvedQuery } from '../../walk/walk.js';
import type { PrefetchedRows } from '../nearest/candidates.js';
import { type Hit, hitOf } from '../nearest/hit.js';
import { levelHits } from '../query/level.js';
import { drawnRows } from '../query/sample.js';
import type { Shards } from './shards.js';

export interface AskedHits {
  readonly hits: readonly Hit[];
  /** Of samples: points there were to choose from; else 0. */
  readonly total: number;
}

/** Errors: those of the way of scoring; `timeout`. */
export function askedHits(shards: Shards, ask: LevelAsk, random: () => number): AskedHits {
  const { query, filter, count } = ask;
  if (query.kind === 'sample') {
    const { rows, total } = drawnRows(shards.snapshots, filter, query.having, count, random);
    return { hits: shuffled(rows, random).map(({ view, row }) => hitOf(view, row, 1)), total };
  }
  const candidates = ask.candidates && shards.candidates(ask.candidates);
  const lists = query.kind === 'formula' ? query.lists.map((list) => prefetchedHere(shards, list)) : [];
  const resolved: ResolvedQuery = query.kind === 'formula' ? { kind: 'formula', formula: query.formula } : query;
  const level = { node: nodeOf(ask), query: resolved, lists, candidates };
  return { hits: levelHits(shards.scoredWith(ask.terms), level, random), total: 0 };
}

/** What a prefetch found of these shards. Formulas do not ask which scores are better. */
function prefetchedHere(shards: Shards, { points, scores }: ScoredPoints): PrefetchedRows {
  const hits = shards.found(points).map(({ view, row, at }) => hitOf(view, row, scores[at] as number));
  return { hits, better: 'larger' };
}

function nodeOf({ using, filter, params, scoreThreshold, count }: LevelAsk): PagedNode {
  return { prefetch: [], query: null, using, filter, params, scoreThreshold, limit: count, offset: 0, lookupFrom: null };
}

/** Makes filters of filters. */

import type { Filter } from '../../protocols/model/filter.js';
import type { PointId } from '../../protocols/model/point-id.js';

/** The filter that passes what both pass; null passes everything. */
export function bothFilters(a: Filter | null, b: Filter | null): Filter | null {
  if (a === null || b === null) return a ?? b;
  return {
    must: [
      { kind: 'filter', filter: a },
      { kind: 'filter', filter: b },
    ],
    should: [],
    mustNot: [],
    minShould: null,
  };
}

/** The filter without these points. */
export function withoutPoints(filter: Filter | null, ids: readonly PointId[]): Filter | null {
  if (ids.length === 0) return filter;
  return bothFilters(filter, { must: [], should: [], mustNot: [{ kind: 'hasId', ids }], minShould: null });
}

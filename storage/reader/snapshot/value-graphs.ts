/** Which graph over the rows of one payload value serves a filter. */

import type { Filter } from '../../../protocols/model/filter.js';
import { demandedValues } from '../../../query/filter/demanded.js';
import type { Graph } from '../../../vectors/kernel-api.js';
import type { SubgraphsLayout } from '../../segment/layout.js';
import type { SegmentView, VectorReader } from './snapshot-view.js';

/** The graph over the rows of one payload value. */
export interface ValueWalk {
  readonly graph: Graph;
  /** Rows in the graph, deleted ones included. */
  readonly rows: number;
  /** Whose they are, for people. */
  readonly of: string;
}

/** Graphs by field and value. */
export type ValueWalks = ReadonlyMap<string, ReadonlyMap<string, ValueWalk>>;

export function openValueWalks({ layers, values }: SubgraphsLayout): ValueWalks {
  const walks = new Map<string, Map<string, ValueWalk>>();
  for (const { field, value, rows, layer, entryRow, maxLevel } of values) {
    const byValue = walks.get(field) ?? new Map<string, ValueWalk>();
    const adjacency = layers[layer];
    if (adjacency === undefined) throw new Error(`${field} = ${value} has layer ${layer} of ${layers.length}`);
    byValue.set(value, { graph: { ...adjacency, entryRow, maxLevel }, rows, of: `${field} = ${value}` });
    walks.set(field, byValue);
  }
  return walks;
}

/** The smallest graph that has every row the filter lets through; null without one. */
export function valueWalkFor(view: SegmentView, { valueWalks }: VectorReader, filter: Filter | null): ValueWalk | null {
  if (valueWalks === null || valueWalks.size === 0 || filter === null) return null;
  let best: ValueWalk | null = null;
  for (const { key, value } of demandedValues(filter, (field) => view.fields.get(field))) {
    const found = valueWalks.get(key)?.get(String(value));
    if (found !== undefined && (best === null || found.rows < best.rows)) best = found;
  }
  return best;
}

/** A source whose graph a build can begin with, so that only the rows of the other sources are put into it. */

import type { KnownGraph } from '../../vectors/usearch-graph.js';
import type { GraphSettings } from '../segment/graph-settings.js';
import type { SegmentHandle } from '../segment/handle.js';
import type { VectorLayout } from '../segment/layout.js';
import { presentRows } from './matrix.js';
import { NOT_TAKEN, type Selection } from './select-rows.js';

/** A graph of fewer of the new rows than this saves too little. */
const SHARE_MIN = 0.3;

/**
 * The largest source's graph of a vector, its new rows as keys. null: it has none with these settings, some of its rows are not taken (they are deleted, or
 * go to another segment), or it is small. present: how many new rows have the vector.
 */
export function knownGraph(
  sources: readonly SegmentHandle[],
  { rowMaps }: Selection,
  name: string,
  settings: GraphSettings,
  present: number,
): KnownGraph | null {
  if (present === 0) return null;
  let best: KnownGraph | null = null;
  for (const [n, source] of sources.entries()) {
    const vector = source.layout.vectors.find((candidate) => candidate.name === name);
    if (source.kind !== 'sealed' || vector === undefined || !isBuiltWith(vector, settings)) continue;
    const rows = presentRows(source.memory, vector, source.rows);
    if (rows.length < SHARE_MIN * present || rows.length <= (best?.rows.length ?? 0)) continue;
    const newRowOf = new Uint32Array(rowMaps[n] as SharedArrayBuffer);
    const keys = rows.map((row) => newRowOf[row] as number);
    if (!keys.includes(NOT_TAKEN)) best = { memory: source.memory, layout: vector.graph, rows, keys };
  }
  return best;
}

function isBuiltWith(
  vector: VectorLayout,
  { m, efConstruct }: GraphSettings,
): vector is VectorLayout & { readonly graph: NonNullable<VectorLayout['graph']> } {
  const { graph } = vector;
  return graph !== null && graph.m === m && graph.efConstruct === efConstruct && graph.entryRow !== NOT_TAKEN;
}

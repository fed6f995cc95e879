/** Sources whose graphs a build can go on from, so that few of their rows are searched for neighbours again, or none. */

import type { GraphSettings } from '../segment/graph-settings.js';
import type { SegmentHandle } from '../segment/handle.js';
import type { GraphLayout, VectorLayout } from '../segment/layout.js';
import { presentRows } from './matrix.js';
import { NOT_TAKEN, type Selection } from './select-rows.js';

/**
 * Beyond this share of rows that were lost since all were linked, all are linked anew. Measured on 60,000 × 128: after 22 % recall is that of a new graph
 * for two fifths of its CPU, after 39 and 53 % it is 0.005 lower at `ef` 32 and 64.
 */
const LOST_MAX = 0.35;

/** A graph of one source. */
export interface KnownGraph {
  readonly memory: WebAssembly.Memory;
  readonly layout: GraphLayout;
  /** Rows of the source that are in it, ascending, and the highest level of each. */
  readonly rows: Uint32Array;
  readonly levels: Int16Array;
  /** u32 [rows of the source]: row of the new segment or `NOT_TAKEN`. */
  readonly newRowOf: Uint32Array;
  /** How many of its rows are taken. */
  readonly taken: number;
  /** Share that is lost with those that are not, 0..1. */
  readonly lost: number;
}

/** The sources' graphs of a vector that were built with these settings and are whole or nearly so, the largest first. */
export function knownGraphs(
  sources: readonly SegmentHandle[],
  { rowMaps }: Selection,
  name: string,
  settings: GraphSettings,
): KnownGraph[] {
  const known: KnownGraph[] = [];
  for (const [n, source] of sources.entries()) {
    const vector = source.layout.vectors.find((candidate) => candidate.name === name);
    if (source.kind !== 'sealed' || vector === undefined || !isBuiltWith(vector, settings)) continue;
    const rows = presentRows(source.memory, vector, source.rows);
    const newRowOf = new Uint32Array(rowMaps[n] as SharedArrayBuffer);
    const taken = rows.reduce((sum, row) => (newRowOf[row] === NOT_TAKEN ? sum : sum + 1), 0);
    const lost = 1 - (1 - (vector.graph.lost ?? 0)) * (taken / rows.length);
    if (taken === 0 || lost > LOST_MAX) continue;
    const levels = levelsOf(source.memory, vector.graph, rows);
    known.push({ memory: source.memory, layout: vector.graph, rows, levels, newRowOf, taken, lost });
  }
  return known.sort((one, other) => other.taken - one.taken);
}

function isBuiltWith(vector: VectorLayout, { m, efConstruct }: GraphSettings): vector is VectorLayout & { readonly graph: GraphLayout } {
  const { graph } = vector;
  return graph !== null && graph.m === m && graph.efConstruct === efConstruct && graph.entryRow !== NOT_TAKEN;
}

/** Each row's lists of the upper levels lie together, and nothing lies between those of two rows. */
function levelsOf({ buffer }: WebAssembly.Memory, { m, upperIndex, upperWords }: GraphLayout, rows: Uint32Array): Int16Array {
  const startOf = new Uint32Array(buffer, upperIndex, (rows.at(-1) as number) + 1);
  const starts = rows.map((row) => startOf[row] as number).filter((start) => start !== NOT_TAKEN);
  starts.sort();
  const endOf = new Map(Array.from(starts, (start, n) => [start, starts[n + 1] ?? upperWords]));
  return Int16Array.from(rows, (row) => {
    const start = startOf[row] as number;
    return start === NOT_TAKEN ? 0 : ((endOf.get(start) as number) - start) / (1 + m);
  });
}

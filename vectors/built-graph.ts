/** Graphs of near neighbours as they come from what builds them, and their way into the adjacency of a segment. */

import type { Graph } from './kernel-api.js';

/** Rows that stand for «none»: no entry, or no upper levels. */
export const NO_ROW = 0xffff_ffff;

export interface BuiltGraph {
  /** Nodes; slots are 0..size - 1. */
  readonly size: number;
  readonly m: number;
  readonly m0: number;
  readonly maxLevel: number;
  /** Slot where searches start; 0xffffffff in an empty graph. */
  readonly entry: number;
  /** Key that each slot's vector was added with: Uint32Array [size]. */
  readonly keys: Uint32Array;
  /** Highest level of each slot: Int16Array [size]. */
  readonly levels: Int16Array;
  /** Where its lists are, if in a memory of its own, which is of no use once they are written. */
  readonly memory?: WebAssembly.Memory;
  /** Neighbours (slots) of a slot on one of its levels. */
  neighbours(slot: number, level: number): Uint32Array;
}

/** What a segment's layout has to know of a graph: `VectorPlan.graph`. */
export interface GraphPlan {
  readonly m: number;
  readonly m0: number;
  readonly entryRow: number;
  readonly maxLevel: number;
  readonly upperWords: number;
}

/** Plan of the graph over rows. rowOfSlot: Uint32Array [size]; without it a slot's key is its row. */
export function graphPlan(graph: BuiltGraph, rowOfSlot: Uint32Array = graph.keys): GraphPlan {
  let upperLevels = 0;
  for (const level of graph.levels) upperLevels += level;
  return {
    m: graph.m,
    m0: graph.m0,
    entryRow: graph.size > 0 ? (rowOfSlot[graph.entry] as number) : NO_ROW,
    maxLevel: graph.maxLevel,
    upperWords: upperLevels * (1 + graph.m),
  };
}

/**
 * Writes the adjacency of `rows` rows into a memory. Rows without a node get no neighbours.
 * layout: made from `graphPlan`; rowOfSlot: Uint32Array [size], each row once; without it a slot's key is its row.
 */
export function writeGraph(
  graph: BuiltGraph,
  rowOfSlot: Uint32Array | undefined,
  memory: WebAssembly.Memory,
  layout: Graph,
  rows: number,
): void {
  const rowOf = rowOfSlot ?? graph.keys;
  const level0 = new Uint32Array(memory.buffer, layout.level0, rows * (1 + layout.m0)).fill(0);
  const upperIndex = new Uint32Array(memory.buffer, layout.upperIndex, rows).fill(NO_ROW);
  const { upperWords } = graphPlan(graph, rowOf);
  const upper = new Uint32Array(memory.buffer, layout.upper, upperWords).fill(0);
  writeNodes(graph, rowOf, { level0, upperIndex, upper, m0: layout.m0, m: layout.m }, rows, 0);
}

/**
 * Writes the adjacency of a graph over some of `rows` rows, its keys, beside that of other rows, which stays.
 * from: word of the upper levels where there is room. Returns the first word behind what it took.
 */
export function writeSubgraph(
  graph: BuiltGraph,
  memory: WebAssembly.Memory,
  layout: Omit<Graph, 'entryRow' | 'maxLevel'>,
  rows: number,
  from: number,
): number {
  const level0 = new Uint32Array(memory.buffer, layout.level0, rows * (1 + layout.m0));
  const upperIndex = new Uint32Array(memory.buffer, layout.upperIndex, rows);
  const end = from + graphPlan(graph).upperWords;
  const upper = new Uint32Array(memory.buffer, layout.upper, end).fill(0, from);
  for (const row of graph.keys) upperIndex[row] = NO_ROW;
  writeNodes(graph, graph.keys, { level0, upperIndex, upper, m0: layout.m0, m: layout.m }, rows, from);
  return end;
}

interface Lists {
  readonly level0: Uint32Array;
  readonly upperIndex: Uint32Array;
  readonly upper: Uint32Array;
  readonly m0: number;
  readonly m: number;
}

function writeNodes(graph: BuiltGraph, rowOf: Uint32Array, lists: Lists, rows: number, from: number): void {
  let upperNext = from;
  for (let slot = 0; slot < graph.size; slot++) {
    const row = rowOf[slot] as number;
    if (!(row < rows)) throw new RangeError(`graph: slot ${slot} has row ${row} of ${rows}`);
    writeList(lists.level0, row * (1 + lists.m0), graph.neighbours(slot, 0), rowOf);
    const levels = graph.levels[slot] as number;
    if (levels === 0) continue;
    lists.upperIndex[row] = upperNext;
    for (let level = 1; level <= levels; level++) {
      writeList(lists.upper, upperNext, graph.neighbours(slot, level), rowOf);
      upperNext += 1 + lists.m;
    }
  }
}

function writeList(out: Uint32Array, at: number, slots: Uint32Array, rowOf: Uint32Array): void {
  out[at] = slots.length;
  for (let index = 0; index < slots.length; index++) out[at + 1 + index] = rowOf[slots[index] as number] as number;
}

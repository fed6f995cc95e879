/**
 * A graph made of those that sources have: their lists are taken over, rows that have lost neighbours get those of the lost ones to choose from, rows
 * without a graph get one of their own, and all are joined, smaller ones to the largest (`vectors/graph-joiner.ts`).
 */

import { type BuiltGraph, graphPlan, writeSubgraph } from '../../vectors/built-graph.js';
import { linkIslands } from '../../vectors/graph-bridges.js';
import {
  GraphJoiner,
  JOIN_BY_ANGLE_ROWS_MIN,
  JOIN_M0_MAX,
  JOIN_ZERO_MAX,
  type JoinablePart,
  type JoinPlace,
  joinEf,
  linkList,
} from '../../vectors/graph-joiner.js';
import { type GraphLayout, residentOffset, type VectorLayout } from '../segment/layout.js';
import type { SegmentDraft } from './build-vectors.js';
import type { BuildControl } from './control.js';
import { builderSlot } from './draft-matrices.js';
import type { BuildMetric } from './element.js';
import type { KnownGraph } from './known-graph.js';
import { NOT_TAKEN } from './select-rows.js';

/** Rows between two checkpoints. */
const PAUSE_ROWS = 1024;

/** The new segment's graph, its lists reserved and its codes written, and where it is made. */
export interface JoinTarget {
  readonly draft: SegmentDraft;
  readonly vector: VectorLayout;
  readonly reserved: GraphLayout;
  readonly metric: BuildMetric;
  readonly control: BuildControl;
}

/** Whether graphs of a vector can be joined: by codes of 8 bits in memory, and lists that are not too long. */
export function canJoin({ rows }: SegmentDraft, vector: VectorLayout, metric: BuildMetric): boolean {
  const codes = joinCodes(vector);
  if (codes === null || (vector.graph?.m0 ?? 0) > JOIN_M0_MAX) return false;
  return metric === 'l2sq' || (rows >= JOIN_BY_ANGLE_ROWS_MIN && Math.abs(codes.zero) <= JOIN_ZERO_MAX);
}

function joinCodes(vector: VectorLayout): JoinPlace['codes'] | null {
  const { codes, dim, element, stride } = vector;
  if (element === 'u8') return { offset: residentOffset(vector), stride, dim, zero: 0 };
  if (codes === null || codes.spec !== null) return null;
  return { offset: codes.offset, stride: codes.stride, dim, zero: Math.round(-codes.origin / codes.scale) };
}

/**
 * The graph over all rows of these graphs, and of `others`. known: not empty; others: null if there are no more rows. Null: its upper levels do not
 * fit in the room reserved.
 */
export async function joinGraphs(
  { control, draft, metric, reserved, vector }: JoinTarget,
  known: readonly KnownGraph[],
  others: BuiltGraph | null,
): Promise<GraphLayout | null> {
  const { layout, memory, rows } = draft;
  const codes = joinCodes(vector);
  if (codes === null) throw new Error(`'${vector.name}' has no codes to join graphs by`);
  new Uint32Array(memory.buffer, reserved.level0, rows * (1 + reserved.m0)).fill(0);
  new Uint32Array(memory.buffer, reserved.upperIndex, rows).fill(NOT_TAKEN);
  // usearch, too, brings rows to one length that it compares by products in 8 bits: short ones would have no links to them.
  const byAngle = metric === 'ip';
  const joiner = new GraphJoiner({ memory, rows, lists: reserved, codes, byAngle, slot: builderSlot(layout), scratch: layout.scratch });
  const parts: JoinablePart[] = [];
  let upperWords = 0;
  const fits = (more: number) => upperWords + more <= reserved.upperWords;
  for (const graph of known) {
    const words = upperWordsOf(graph);
    if (!fits(words)) return null;
    parts.push(await placeGraph(memory, reserved, graph, upperWords, joiner, control));
    upperWords += words;
  }
  if (others !== null) {
    if (!fits(graphPlan(others).upperWords)) return null;
    upperWords = writeSubgraph(others, memory, reserved, rows, upperWords);
    const { keys, levels, maxLevel } = others;
    parts.push({ rows: keys, levels, entryRow: keys[others.entry] as number, maxLevel });
  }
  const [largest, ...smaller] = parts.sort((one, other) => other.rows.length - one.rows.length) as [JoinablePart, ...JoinablePart[]];
  joiner.begin(largest);
  const total = parts.reduce((sum, part) => sum + part.rows.length, 0);
  let done = largest.rows.length;
  for (const part of smaller) {
    await joiner.join(part, joinEf(reserved.efConstruct), (more) => {
      control.progress('joining graphs', done + more, total);
      return control.checkpoint();
    });
    done += part.rows.length;
  }
  const { entryRow, maxLevel } = joiner;
  if (known.some(({ rows: all, taken }) => taken < all.length)) {
    const joined = Uint32Array.from(parts.flatMap((part) => Array.from(part.rows)));
    const above = Uint32Array.from(parts.flatMap((part) => Array.from(part.rows.filter((_, at) => (part.levels[at] as number) > 0))));
    const words = new Uint32Array(memory.buffer);
    await linkIslands({ words, lists: reserved, rows: joined, above, entryRow, maxLevel }, joiner, () => control.checkpoint());
  }
  const lost = known.reduce((sum, graph) => sum + graph.lost * graph.taken, 0) / total;
  return { ...reserved, upperWords, entryRow, maxLevel, ...(lost === 0 ? {} : { lost }) };
}

/** Words that the upper levels of the rows that are taken need. */
function upperWordsOf({ layout, levels, newRowOf, rows }: KnownGraph): number {
  let sum = 0;
  for (let at = 0; at < rows.length; at++) if (newRowOf[rows[at] as number] !== NOT_TAKEN) sum += levels[at] as number;
  return sum * (1 + layout.m);
}

/** Copies the lists of a source's graph, by new rows, and heals those that lose links. from: word of the upper levels where there is room. */
async function placeGraph(
  memory: WebAssembly.Memory,
  reserved: GraphLayout,
  known: KnownGraph,
  from: number,
  joiner: GraphJoiner,
  control: BuildControl,
): Promise<JoinablePart> {
  const { layout, levels, newRowOf, rows: sourceRows, taken } = known;
  const source = new Uint32Array(known.memory.buffer);
  const target = new Uint32Array(memory.buffer);
  const rows = new Uint32Array(taken);
  const levelsTaken = new Int16Array(taken);
  let count = 0;
  let upperNext = from;
  for (let at = 0; at < sourceRows.length; at++) {
    if (at % PAUSE_ROWS === 0) await control.checkpoint();
    const sourceRow = sourceRows[at] as number;
    const row = newRowOf[sourceRow] as number;
    if (row === NOT_TAKEN) continue;
    const top = levels[at] as number;
    rows[count] = row;
    levelsTaken[count++] = top;
    if (top > 0) target[(reserved.upperIndex >>> 2) + row] = upperNext;
    upperNext += top * (1 + reserved.m);
    for (let level = 0; level <= top; level++) {
      const list = linkList(target, reserved, row, level);
      const sourceList = linkList(source, layout, sourceRow, level);
      const length = source[sourceList] as number;
      let kept = 0;
      for (let link = sourceList + 1; link <= sourceList + length; link++) {
        const near = newRowOf[source[link] as number] as number;
        if (near !== NOT_TAKEN) target[list + ++kept] = near;
      }
      target[list] = kept;
      if (kept < length) joiner.heal(row, level, besideLost(source, known, sourceRow, level), length - kept);
    }
  }
  return { rows, levels: levelsTaken, ...entryOf(known, rows, levelsTaken) };
}

/** Where a search begins: where it did, if that row is taken, else at one of those with the highest level. */
function entryOf({ layout, newRowOf }: KnownGraph, rows: Uint32Array, levels: Int16Array): Pick<JoinablePart, 'entryRow' | 'maxLevel'> {
  const entry = newRowOf[layout.entryRow] as number;
  if (entry !== NOT_TAKEN) return { entryRow: entry, maxLevel: layout.maxLevel };
  const maxLevel = levels.reduce((max, level) => Math.max(max, level), 0);
  return { entryRow: rows[levels.indexOf(maxLevel)] as number, maxLevel };
}

/** New rows near to neighbours of a row that are not taken, which are neither the row nor its own neighbours. */
function besideLost(source: Uint32Array, { layout, newRowOf }: KnownGraph, sourceRow: number, level: number): Uint32Array {
  const near = new Set<number>();
  const list = linkList(source, layout, sourceRow, level);
  const end = list + (source[list] as number);
  for (let link = list + 1; link <= end; link++) {
    const lost = source[link] as number;
    if (newRowOf[lost] !== NOT_TAKEN) continue;
    const second = linkList(source, layout, lost, level);
    for (let next = second + 1; next <= second + (source[second] as number); next++) near.add(source[next] as number);
  }
  near.delete(sourceRow);
  for (let link = list + 1; link <= end; link++) near.delete(source[link] as number);
  return Uint32Array.from(near, (row) => newRowOf[row] as number).filter((row) => row !== NOT_TAKEN);
}

/** Recall of a finished graph on a sample of its own rows, measured as readers walk it: on codes, rescored with the originals. */

import type { Kernels } from '../../vectors/kernel-api.js';
import { instantiateKernels } from '../../vectors/kernels.js';
import type { SegmentLayout, VectorLayout } from '../segment/layout.js';
import { builderSlot, originalsMatrix, walkMatrix } from './draft-matrices.js';
import { broughtFloats, separateRows, spreadRows } from './matrix.js';
import type { OriginalsOnCall } from './originals-on-call.js';
import { scanOriginals } from './scan-originals.js';

/** Recall is counted over this many nearest neighbours. */
const NEIGHBOURS = 10;
const QUERIES_MIN = 20;
const QUERIES_MAX = 100;
/** The mean is this many standard errors from the bound when fewer queries decide: one check in some 700 is wrong. */
const DECIDED_ERRORS = 3;
/** A search of production size: smaller lists would blame the graph for the list. */
const EF_MIN = 64;
/** Has no factor in common with numbers of queries. */
const STRIDE = 37;

export interface RecallSubject {
  readonly memory: WebAssembly.Memory;
  readonly layout: SegmentLayout;
  /** With its graph. Without codes the walk scores the originals. */
  readonly vector: VectorLayout;
  readonly rows: number;
  /** Rows that have the vector, or, of the graph of one payload value, those in the graph. */
  readonly present: Uint32Array;
  /** The graph is over `present` only, and not over all rows that have the vector. */
  readonly partial?: boolean;
  readonly onCall?: OriginalsOnCall | null;
}

/**
 * Share of the 10 nearest rows that a walk with `ef` finds, 0..1, over 100 rows of the segment; over fewer, 20 at least, once they tell on which
 * side of `bound` it is. So the same graph has the same recall on a busy machine. Rows that score as the tenth does count as found: ties have no order.
 */
export function measureRecall(subject: RecallSubject, ef: number, bound: number): number {
  const { layout, memory, onCall = null, vector } = subject;
  // What is brought for one query serves others.
  const batch = onCall === null || onCall.kept ? 1 : QUERIES_MIN;
  const kernels = instantiateKernels(memory, () => false, layout.scratch);
  const rows = separateRows(broughtFloats(subject, vector, spreadRows(subject.present, QUERIES_MAX)), vector.dim);
  // Queries are taken in strides, so that the first few are spread over the segment too.
  const queries = rows.map((_, i) => rows[(i * STRIDE) % rows.length] as Float32Array);
  const bits = subject.partial ? putRows(subject) : vector.presence;
  const shares: number[] = [];
  for (let from = 0; from < queries.length && !isDecided(shares, bound); from += batch) {
    const taken = queries.slice(from, from + batch);
    for (const [n, bests] of exactBests(kernels, subject, bits, taken).entries()) {
      if (isDecided(shares, bound)) break;
      if (bests.length > 0)
        shares.push(shareFound(kernels, subject, bits, { query: taken[n] as Float32Array, bests, ef: Math.max(EF_MIN, ef) }));
    }
  }
  return shares.length === 0 ? 1 : meanOf(shares);
}

/** Whether the mean of all queries lies on the same side of `bound` as that of those so far. shares: found by each, 0..1. */
export function isDecided(shares: readonly number[], bound: number): boolean {
  if (shares.length < QUERIES_MIN) return false;
  const mean = meanOf(shares);
  const variance = shares.reduce((sum, share) => sum + (share - mean) ** 2, 0) / (shares.length - 1);
  return Math.abs(mean - bound) > DECIDED_ERRORS * Math.sqrt(variance / shares.length);
}

function meanOf(shares: readonly number[]): number {
  return shares.reduce((sum, share) => sum + share, 0) / shares.length;
}

/** Writes the rows that count to the builder's scratch; returns the byte offset of the bits. */
function putRows({ layout, memory, present }: RecallSubject): number {
  const offset = builderSlot(layout) + layout.scratch.bits;
  const bits = new Uint32Array(memory.buffer, offset, Math.ceil(layout.capacity / 32)).fill(0);
  for (const row of present) bits[row >>> 5] = (bits[row >>> 5] as number) | (1 << (row & 31));
  return offset;
}

/** The scores of the nearest rows of each query. bits: byte offset of the rows that count. */
function exactBests(kernels: Kernels, subject: RecallSubject, bits: number, queries: readonly Float32Array[]): (readonly number[])[] {
  const { layout, onCall = null, rows, vector } = subject;
  const admission = { deletedAt: layout.deletedAt, seq: 0, bits };
  const scanning = { kernels, slot: builderSlot(layout), vector, rows, admission, onCall };
  return scanOriginals(scanning, queries, neighboursOf(rows)).map(({ scores }) => scores);
}

/** The query's own row is always the best for a distance: one more neighbour makes up for it. */
function neighboursOf(rows: number): number {
  return Math.min(NEIGHBOURS + 1, rows);
}

/** bests: scores of the query's nearest rows, best first. Returns the share of them that a walk finds. */
function shareFound(
  kernels: Kernels,
  subject: RecallSubject,
  bits: number,
  { bests, ef, query }: { readonly query: Float32Array; readonly bests: readonly number[]; readonly ef: number },
): number {
  const { layout, memory, onCall, rows, vector } = subject;
  if (vector.graph === null) throw new Error('recall of a vector without a graph');
  const slot = builderSlot(layout);
  const admission = { deletedAt: layout.deletedAt, seq: 0, bits };
  const originals = originalsMatrix(vector);
  kernels.setQuery(slot, originals, query);
  const matrix = walkMatrix(memory, vector);
  kernels.setQuery(slot, matrix, query);
  const walked = kernels.walk(slot, matrix, vector.graph, admission, { ef, k: ef, rows, narrow: false });
  onCall?.bringRows(walked.rows.slice(0, walked.count));
  const { scores } = kernels.rescore(slot, originals, walked.rows, neighboursOf(rows));
  onCall?.letGo();
  const bound = bests.at(-1) as number;
  let found = 0;
  for (const score of scores) if (score >= bound) found++;
  return Math.min(found, bests.length) / bests.length;
}

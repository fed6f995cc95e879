/** Recall of a finished graph on a sample of its own rows, measured as readers walk it: on codes, rescored with the originals. */

import type { Kernels, Matrix } from '../../vectors/kernel-api.js';
import { instantiateKernels } from '../../vectors/kernels.js';
import { codeMatrix, decodedMatrix } from '../segment/code-matrix.js';
import { residentOffset, type SegmentLayout, scratchOf, type VectorLayout } from '../segment/layout.js';
import { readFloats, spreadRows } from './matrix.js';

/** Recall is counted over this many nearest neighbours. */
const NEIGHBOURS = 10;
const QUERIES_MIN = 20;
const QUERIES_MAX = 100;
/** The mean is this many standard errors from the bound when fewer queries decide: one check in some 700 is wrong. */
const DECIDED_ERRORS = 3;
/** A search of production size: smaller lists would blame the graph for the list. */
const EF_MIN = 64;

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
}

/**
 * Share of the 10 nearest rows that a walk with `ef` finds, 0..1, over 100 rows of the segment; over fewer, 20 at least, once they tell on which
 * side of `bound` it is. So the same graph has the same recall on a busy machine. Rows that score as the tenth does count as found: ties have no order.
 */
export function measureRecall(subject: RecallSubject, ef: number, bound: number): number {
  const { layout, memory, vector } = subject;
  const kernels = instantiateKernels(memory, () => false, layout.scratch);
  const queries = readFloats(memory, vector, spreadRows(subject.present, QUERIES_MAX));
  const count = queries.length / vector.dim;
  const bits = subject.partial ? putRows(subject) : vector.presence;
  // Queries are taken in strides, so that the first few are spread over the segment too.
  const stride = 37;
  const shares: number[] = [];
  for (let i = 0; i < count && !isDecided(shares, bound); i++) {
    const at = ((i * stride) % count) * vector.dim;
    const { expected, found } = countFound(kernels, subject, bits, queries.slice(at, at + vector.dim), Math.max(EF_MIN, ef));
    if (expected > 0) shares.push(found / expected);
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

/** The matrix of the originals, as kernels see it. */
export function originalsMatrix(vector: VectorLayout): Matrix {
  if (vector.decoded && vector.codes !== null) return decodedMatrix(vector, vector.codes);
  return { element: vector.element, metric: vector.metric, offset: residentOffset(vector), stride: vector.stride, dim: vector.dim };
}

/** The matrix a walk scores: codes where there are some. */
export function walkMatrix(memory: WebAssembly.Memory, vector: VectorLayout): Matrix {
  return vector.codes === null ? originalsMatrix(vector) : codeMatrix(memory, vector, vector.codes);
}

/** Writes the rows that count to the builder's scratch; returns the byte offset of the bits. */
function putRows({ layout, memory, present }: RecallSubject): number {
  const offset = builderSlot(layout) + layout.scratch.bits;
  const bits = new Uint32Array(memory.buffer, offset, Math.ceil(layout.capacity / 32)).fill(0);
  for (const row of present) bits[row >>> 5] = (bits[row >>> 5] as number) | (1 << (row & 31));
  return offset;
}

/** No reader has the segment yet. */
export function builderSlot(layout: SegmentLayout): number {
  return scratchOf(layout, 0);
}

/** bits: byte offset of the rows that count. */
function countFound(
  kernels: Kernels,
  subject: RecallSubject,
  bits: number,
  query: Float32Array,
  ef: number,
): { expected: number; found: number } {
  const { layout, vector, rows } = subject;
  if (vector.graph === null) throw new Error('recall of a vector without a graph');
  const slot = builderSlot(layout);
  const admission = { deletedAt: layout.deletedAt, seq: 0, bits };
  // The query's own row is always the best for a distance: one more neighbour makes up for it.
  const k = Math.min(NEIGHBOURS + 1, rows);
  const originals = originalsMatrix(vector);
  kernels.setQuery(slot, originals, query);
  const exact = kernels.scan(slot, originals, 0, rows, admission, k);
  const expected = exact.count;
  if (expected === 0) return { expected: 0, found: 0 };
  const bound = exact.scores[expected - 1] as number;
  const matrix = walkMatrix(subject.memory, vector);
  kernels.setQuery(slot, matrix, query);
  const walked = kernels.walk(slot, matrix, vector.graph, admission, { ef, k: ef, rows, narrow: false });
  const { scores } = kernels.rescore(slot, originals, walked, k);
  let found = 0;
  for (const score of scores) if (score >= bound) found++;
  return { expected, found: Math.min(found, expected) };
}

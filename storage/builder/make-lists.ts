/**
 * Rows of a new segment in lists: k-means over a sample (Lloyd's iterations over distances of 8-bit codes), then each row goes to the nearest centroid.
 * How many lists a search has to read is found out with rows of the segment.
 */

import type { Kernels, Matrix } from '../../vectors/kernel-api.js';
import { instantiateKernels } from '../../vectors/kernels.js';
import { chooseCodes, encodeCodes } from '../../vectors/quantize.js';
import { centroidsMatrix } from '../segment/code-matrix.js';
import { type ListsLayout, scratchOf, type VectorLayout } from '../segment/layout.js';
import type { SegmentDraft } from './build-vectors.js';
import type { BuildControl } from './control.js';
import { walkMatrix } from './draft-matrices.js';
import { broughtFloats, spreadRows } from './matrix.js';

/** Rows of the sample for each list. */
const SAMPLE_PER_LIST = 32;
/** Further ones change little. */
const ITERATIONS = 6;
/** Rows that are looked at between two checks. */
const SLICE_ROWS = 1024;
const CODE_SAMPLE_ROWS = 1024;
const QUERIES = 100;
const NEIGHBOURS = 10;
/** Part of the nearest rows that lie in the lists which a search reads by default. */
const COVERED = 0.98;

/** A vector's rows in lists. */
export interface ListedRows {
  readonly vector: VectorLayout;
  /** u32 [rows]: each row's list; of rows without the vector the number of lists. */
  readonly listOf: Uint32Array;
}

/**
 * Fills the lists of a vector, for which the draft has room: centroids and starts. The caller moves the rows of each list together.
 * present: rows that have the vector. Errors: `BuildCancelled`.
 */
export async function makeLists(
  draft: SegmentDraft,
  vector: VectorLayout,
  present: Uint32Array,
  control: BuildControl,
): Promise<ListedRows> {
  if (vector.lists === null) throw new Error(`no room reserved for the lists of '${vector.name}'`);
  const codes = chooseCodes(broughtFloats(draft, vector, spreadRows(present, CODE_SAMPLE_ROWS)));
  const lists: ListsLayout = { ...vector.lists, ...codes };
  const centroids = new Centroids(draft, vector, lists);
  await centroids.train(spreadRows(present, lists.count * SAMPLE_PER_LIST), control);
  const listOf = new Uint32Array(draft.rows).fill(lists.count);
  for (let at = 0; at < present.length; at += SLICE_ROWS) {
    control.progress('sorting rows into lists', at, present.length);
    await control.checkpoint();
    const rows = present.subarray(at, at + SLICE_ROWS);
    centroids.nearest(rows).forEach((list, i) => {
      listOf[rows[i] as number] = list;
    });
  }
  writeStarts(new Uint32Array(draft.memory.buffer, lists.starts, lists.count + 1), listOf);
  const probes = listsToRead(centroids.ranksOfNeighbours(spreadRows(present, QUERIES), listOf), lists.count);
  return { vector: { ...vector, lists: { ...lists, probes } }, listOf };
}

/** Where each list begins, if the rows of each lie together, those of the first one first. starts: u32 [lists + 1]. */
export function writeStarts(starts: Uint32Array, listOf: Uint32Array): void {
  starts.fill(0);
  for (const list of listOf) if (list + 1 < starts.length) starts[list + 1] = (starts[list + 1] as number) + 1;
  for (let list = 1; list < starts.length; list++) starts[list] = (starts[list] as number) + (starts[list - 1] as number);
}

/** The fewest lists that hold `COVERED` of the neighbours, if the best ones are read. ranks: of each neighbour's list, from 0. */
export function listsToRead(ranks: readonly number[], count: number): number {
  if (ranks.length === 0) return count;
  const sorted = [...ranks].sort((a, b) => a - b);
  return Math.min(count, (sorted[Math.ceil(sorted.length * COVERED) - 1] as number) + 1);
}

/** The centroids of the lists, in the draft's memory. */
class Centroids {
  private readonly kernels: Kernels;
  private readonly slot: number;
  /** For distances, whatever the vector's metric is. */
  private readonly near: Matrix;

  constructor(
    private readonly draft: SegmentDraft,
    private readonly vector: VectorLayout,
    private readonly lists: ListsLayout,
  ) {
    this.kernels = instantiateKernels(draft.memory, () => false, draft.layout.scratch);
    this.slot = scratchOf(draft.layout, 0);
    this.near = { ...centroidsMatrix(vector, lists), metric: 'l2' };
  }

  /** sample: rows, as many as there are lists at least, where there are so many. */
  async train(sample: Uint32Array, control: BuildControl): Promise<void> {
    const { dim } = this.vector;
    const { count } = this.lists;
    const centroids = new Float32Array(count * dim);
    centroids.set(broughtFloats(this.draft, this.vector, spreadRows(sample, count)));
    this.write(centroids);
    for (let iteration = 0; iteration < ITERATIONS; iteration++) {
      const sums = new Float64Array(count * dim);
      const counts = new Uint32Array(count);
      for (let at = 0; at < sample.length; at += SLICE_ROWS) {
        control.progress('finding lists', iteration * sample.length + at, ITERATIONS * sample.length);
        await control.checkpoint();
        const rows = sample.subarray(at, at + SLICE_ROWS);
        addRows(sums, counts, broughtFloats(this.draft, this.vector, rows), this.nearest(rows), dim);
      }
      for (let at = 0; at < centroids.length; at++) {
        const rows = counts[Math.floor(at / dim)] as number;
        if (rows > 0) centroids[at] = (sums[at] as number) / rows;
      }
      this.write(centroids);
    }
  }

  /** The nearest list of each row. u32 [rows.length] */
  nearest(rows: Uint32Array): Uint32Array {
    const { kernels, near, slot } = this;
    const { deletedAt } = this.draft.layout;
    const values = broughtFloats(this.draft, this.vector, rows);
    // All rows of a draft are live, and there are no more lists than rows.
    const admission = { deletedAt, seq: 0, bits: 0 };
    return Uint32Array.from(rows, (_, i) => {
      kernels.setQuery(slot, near, values.slice(i * near.dim, (i + 1) * near.dim));
      return kernels.scan(slot, near, 0, this.lists.count, admission, 1).rows[0] as number;
    });
  }

  /** The places that the lists of each query's nearest rows have among all lists, as searches rank them. queries: rows, which are not their own neighbours. */
  ranksOfNeighbours(queries: Uint32Array, listOf: Uint32Array): number[] {
    const { kernels, slot, vector } = this;
    // Codes tell the nearest rows well enough, in a quarter of the time.
    const rows = walkMatrix(this.draft.memory, vector);
    const ranked = centroidsMatrix(vector, this.lists);
    const admission = { deletedAt: this.draft.layout.deletedAt, seq: 0, bits: vector.presence };
    const all = Uint32Array.from({ length: this.lists.count }, (_, list) => list);
    const ranks: number[] = [];
    for (const query of queries) {
      const values = broughtFloats(this.draft, vector, Uint32Array.of(query));
      kernels.setQuery(slot, rows, values);
      const neighbours = kernels.scan(slot, rows, 0, this.draft.rows, admission, Math.min(NEIGHBOURS + 1, this.draft.rows)).rows.slice();
      kernels.setQuery(slot, ranked, values);
      const scores = kernels.scoreEach(slot, ranked, all);
      for (const row of neighbours) {
        if (row === query) continue;
        const own = scores[listOf[row] as number] as number;
        ranks.push(scores.reduce((better, score) => (score > own ? better + 1 : better), 0));
      }
    }
    return ranks;
  }

  private write(values: Float32Array): void {
    const { centroids, origin, scale } = this.lists;
    encodeCodes(values, this.vector.dim, this.near.stride, { scale, origin }, new Uint8Array(this.draft.memory.buffer), centroids);
  }
}

function addRows(sums: Float64Array, counts: Uint32Array, values: Float32Array, listOf: Uint32Array, dim: number): void {
  listOf.forEach((list, i) => {
    counts[list] = (counts[list] as number) + 1;
    for (let k = 0; k < dim; k++) sums[list * dim + k] = (sums[list * dim + k] as number) + (values[i * dim + k] as number);
  });
}

/**
 * Rows of a new segment in lists: clusters of a sample of 8-bit codes (`vectors/cluster-tree.ts`), then each row goes to the nearest.
 * How many lists a search has to read is found out with rows of the segment.
 */

import { ClusterTree } from '../../vectors/cluster-tree.js';
import { instantiateKernels } from '../../vectors/kernels.js';
import { type Codes, chooseCodes, encodeCodes } from '../../vectors/quantize.js';
import { align16 } from '../../vectors/scratch.js';
import { centroidsMatrix } from '../segment/code-matrix.js';
import { type ListsLayout, scratchOf, type VectorLayout } from '../segment/layout.js';
import type { SegmentDraft } from './build-vectors.js';
import type { BuildControl } from './control.js';
import { walkMatrix } from './draft-matrices.js';
import { broughtFloats, spreadRows } from './matrix.js';

/** Rows of the sample for each list: so many, or fewer where they are long, but some in any case. */
const SAMPLE_PER_LIST = { most: 32, least: 12 } as const;
const SAMPLE_BYTES = 1 << 27;
/** Of lists, in which the nearest one is looked for: fewer put more rows into a list that is not the nearest, and searches read more. */
const GROUPS_LOOKED_AT = 16;
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
  const clusters = await clustersOf(draft, vector, present, codes, control);
  const lists: ListsLayout = { ...vector.lists, ...codes, count: clusters.centroids.length / align16(vector.dim) };
  new Uint8Array(draft.memory.buffer).set(clusters.centroids, lists.centroids);
  const listOf = new Uint32Array(draft.rows).fill(lists.count);
  for (let at = 0; at < present.length; at += SLICE_ROWS) {
    control.progress('sorting rows into lists', at, present.length);
    await control.checkpoint();
    const rows = present.subarray(at, at + SLICE_ROWS);
    clusters.assign(codesOf(draft, vector, rows, codes)).forEach((list, i) => {
      listOf[rows[i] as number] = list;
    });
  }
  writeStarts(new Uint32Array(draft.memory.buffer, lists.starts, lists.count + 1), listOf);
  const probes = listsToRead(ranksOfNeighbours(draft, { ...vector, lists }, spreadRows(present, QUERIES), listOf), lists.count);
  return { vector: { ...vector, lists: { ...lists, probes } }, listOf };
}

/** As many clusters as there is room for lists, or fewer. */
async function clustersOf(
  draft: SegmentDraft,
  vector: VectorLayout,
  present: Uint32Array,
  codes: Codes,
  control: BuildControl,
): Promise<ClusterTree> {
  const stride = align16(vector.dim);
  const { count } = vector.lists as ListsLayout;
  const perList = Math.max(SAMPLE_PER_LIST.least, Math.min(SAMPLE_PER_LIST.most, Math.floor(SAMPLE_BYTES / (count * stride))));
  const sampled = spreadRows(present, count * perList);
  const sample = new Uint8Array(sampled.length * stride);
  for (let at = 0; at < sampled.length; at += SLICE_ROWS) {
    control.progress('finding lists', at, sampled.length);
    await control.checkpoint();
    sample.set(codesOf(draft, vector, sampled.subarray(at, at + SLICE_ROWS), codes), at * stride);
  }
  const clusters = new ClusterTree(stride, count, GROUPS_LOOKED_AT);
  if (sampled.length > 0) await clusters.trainWhole(sample, () => control.checkpoint());
  return clusters;
}

/** 8-bit codes of some rows, whatever codes the segment has of them. u8 [rows, dim padded] */
function codesOf(draft: SegmentDraft, vector: VectorLayout, rows: Uint32Array, codes: Codes): Uint8Array {
  const stride = align16(vector.dim);
  const out = new Uint8Array(rows.length * stride);
  encodeCodes(broughtFloats(draft, vector, rows), vector.dim, stride, codes, out, 0);
  return out;
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

/** The places that the lists of each query's nearest rows have among all lists, as searches rank them. queries: rows, which are not their own neighbours. */
function ranksOfNeighbours(
  draft: SegmentDraft,
  vector: VectorLayout & { readonly lists: ListsLayout },
  queries: Uint32Array,
  listOf: Uint32Array,
): number[] {
  const { layout, memory } = draft;
  const kernels = instantiateKernels(memory, () => false, layout.scratch);
  const slot = scratchOf(layout, 0);
  // Codes tell the nearest rows well enough, in a quarter of the time.
  const rows = walkMatrix(memory, vector);
  const ranked = centroidsMatrix(vector, vector.lists);
  // All rows of a draft are live.
  const admission = { deletedAt: layout.deletedAt, seq: 0, bits: vector.presence };
  const all = Uint32Array.from({ length: vector.lists.count }, (_, list) => list);
  const ranks: number[] = [];
  for (const query of queries) {
    const values = broughtFloats(draft, vector, Uint32Array.of(query));
    kernels.setQuery(slot, rows, values);
    const neighbours = kernels.scan(slot, rows, 0, draft.rows, admission, Math.min(NEIGHBOURS + 1, draft.rows)).rows.slice();
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

/** Lists of the token vectors of a new segment (`token-lists.ts`), and how many of them a search has to look at: found out with rows of the segment. */

import { comparedByTokens, TOKEN_PROBES } from '../../query/plan.js';
import { ClusterTree } from '../../vectors/cluster-tree.js';
import type { Kernels, Matrix, TokenLists } from '../../vectors/kernel-api.js';
import { instantiateKernels } from '../../vectors/kernels.js';
import { TopRows } from '../../vectors/top-rows.js';
import { codeMatrix } from '../segment/code-matrix.js';
import type { CodesLayout, TokenListsLayout, VectorLayout } from '../segment/layout.js';
import { itemOffsets, raggedOf } from '../segment/ragged.js';
import { openTokenLists } from '../segment/token-lists.js';
import type { SegmentDraft } from './build-vectors.js';
import type { BuildControl } from './control.js';
import { builderSlot } from './draft-matrices.js';
import { writeStarts } from './make-lists.js';
import { presentRows, readFloatRange, spreadRows } from './matrix.js';

/** Token vectors of the sample for each list. */
const SAMPLE_PER_LIST = 16;
/** Components that are looked at between two checks. */
const BATCH_COMPONENTS = 1 << 20;
/** Rows whose vectors are asked for as queries: as many as compare so many pairs of vectors with all rows, but some in any case. */
const QUERY_PAIRS = 4e9;
const QUERIES = { least: 8, most: 64 } as const;
const QUERY_VECTORS = 32;
/** Rows compared between two checks. */
const SCORED_ROWS = 1 << 16;
/** Part of the nearest rows that are among those which a search compares by default. */
const COVERED = 0.97;
/** Part of all token vectors that a search may look at: beyond it, comparing all rows costs little more, and misses none. */
const LOOKED_AT_MAX = 0.125;

/**
 * Fills the lists, for which the draft has room. Its rows are in their places, and coded. The layout comes back without lists where too many would have to be
 * looked at, as with vectors that have no near ones. Errors: `BuildCancelled`.
 */
export async function listTokens(draft: SegmentDraft, vector: VectorLayout, control: BuildControl): Promise<VectorLayout> {
  const { codes, tokenLists: room } = vector;
  if (room === null || codes === null) return { ...vector, tokenLists: null };
  const listed: ListedVector = { ...vector, codes, tokenLists: await fillLists(draft, vector, { codes, room }, control) };
  const probes = await probesOf(draft, listed, control);
  return { ...listed, tokenLists: probes === null ? null : { ...listed.tokenLists, probes } };
}

async function fillLists(
  { memory, rows }: SegmentDraft,
  vector: VectorLayout,
  { codes, room }: { readonly codes: CodesLayout; readonly room: TokenListsLayout },
  control: BuildControl,
): Promise<TokenListsLayout> {
  const { offset, stride } = codes;
  const { itemCapacity: items } = raggedOf(vector);
  const coded = (from: number, to: number) => new Uint8Array(memory.buffer, offset + from * stride, (to - from) * stride);
  const sampled = Math.min(items, room.count * SAMPLE_PER_LIST);
  const sample = new Uint8Array(sampled * stride);
  for (let at = 0; at < sampled; at++) {
    const item = Math.floor((at * items) / sampled);
    sample.set(coded(item, item + 1), at * stride);
  }
  const tree = new ClusterTree(stride, room.count);
  control.progress('finding lists of token vectors', 0, items);
  await tree.train(sample, () => control.checkpoint());
  const listOf = new Uint32Array(items);
  const batch = Math.ceil(BATCH_COMPONENTS / stride);
  for (let item = 0; item < items; item += batch) {
    control.progress('sorting token vectors into lists', item, items);
    await control.checkpoint();
    listOf.set(tree.assign(coded(item, Math.min(items, item + batch))), item);
  }
  const lists = { ...room, count: tree.centroids.length / stride };
  new Uint8Array(memory.buffer).set(tree.centroids, lists.centroids);
  writeEntries(memory, lists, itemOffsets(memory, vector, rows), listOf);
  return lists;
}

/** Writes the entries list by list, those of each in the order of the rows. */
function writeEntries(memory: WebAssembly.Memory, lists: TokenListsLayout, offsets: Uint32Array, listOf: Uint32Array): void {
  const starts = new Uint32Array(memory.buffer, lists.starts, lists.count + 1);
  writeStarts(starts, listOf);
  const next = starts.slice();
  const items = new Uint32Array(memory.buffer, lists.items, listOf.length);
  const rows = new Uint32Array(memory.buffer, lists.rows, listOf.length);
  for (let row = 0; row + 1 < offsets.length; row++) {
    for (let item = offsets[row] as number; item < (offsets[row + 1] as number); item++) {
      const list = listOf[item] as number;
      const at = next[list] as number;
      next[list] = at + 1;
      items[at] = item;
      rows[at] = row;
    }
  }
}

/** The fewest lists, in steps of half as many again, that lead to `COVERED` of the nearest rows; null: too many. */
async function probesOf(draft: SegmentDraft, listed: ListedVector, control: BuildControl): Promise<number | null> {
  const trial = new TokenTrial(draft, listed);
  const queries: TrialQuery[] = [];
  for (const row of trial.queryRows()) {
    control.progress('trying lists of token vectors', queries.length, QUERIES.most);
    queries.push(await trial.ask(row, control));
  }
  for (let probes = 1; ; probes = Math.ceil(probes * 1.5)) {
    await control.checkpoint();
    const { covered, lookedAt } = trial.look(queries, probes);
    if (lookedAt > LOOKED_AT_MAX) return null;
    if (covered >= COVERED) return probes;
    if (probes >= listed.tokenLists.count) return null;
  }
}

/** Codes and lists are in their places. */
type ListedVector = VectorLayout & { readonly codes: CodesLayout; readonly tokenLists: TokenListsLayout };

/** A row's vectors as a query, and the rows that are nearest to it. */
interface TrialQuery {
  readonly row: number;
  readonly values: Float32Array;
  readonly nearest: ReadonlySet<number>;
}

/** Searches of a draft. */
class TokenTrial {
  private readonly kernels: Kernels;
  private readonly slot: number;
  private readonly codes: Matrix;
  private readonly lists: TokenLists;
  private readonly offsets: Uint32Array;
  private readonly present: Uint32Array;

  constructor(
    private readonly draft: SegmentDraft,
    private readonly vector: ListedVector,
  ) {
    const { layout, memory, rows } = draft;
    this.kernels = instantiateKernels(memory, () => false, layout.scratch);
    this.slot = builderSlot(layout);
    this.codes = codeMatrix(memory, vector, vector.codes);
    this.lists = openTokenLists(memory, vector) as TokenLists;
    this.offsets = itemOffsets(memory, vector, rows);
    this.present = presentRows(memory, vector, rows);
  }

  queryRows(): Uint32Array {
    const { itemCapacity } = raggedOf(this.vector);
    const vectors = Math.min(QUERY_VECTORS, itemCapacity / Math.max(1, this.present.length));
    const count = Math.floor(QUERY_PAIRS / (itemCapacity * vectors));
    return spreadRows(this.present, Math.max(QUERIES.least, Math.min(QUERIES.most, count)));
  }

  /** Compares all rows with a row. */
  async ask(row: number, control: BuildControl): Promise<TrialQuery> {
    const { draft, kernels, offsets, present, slot, vector } = this;
    const from = offsets[row] as number;
    const count = Math.min(QUERY_VECTORS, (offsets[row + 1] as number) - from);
    const values = readFloatRange(draft.memory, vector, from, count).slice();
    const best = new TopRows(TOKEN_PROBES.k + 1);
    const list = new Uint32Array(draft.memory.buffer, slot + draft.layout.scratch.rows, draft.layout.capacity);
    for (let at = 0; at < present.length; at += SCORED_ROWS) {
      await control.checkpoint();
      const rows = present.subarray(at, at + SCORED_ROWS);
      list.set(rows);
      const scores = kernels.maxSim(slot, this.codes, raggedOf(vector).offsets, rows.length, values);
      rows.forEach((other, i) => {
        best.add(other, scores[i] as number);
      });
    }
    return { row, values, nearest: new Set([...best.ranked().rows].filter((other) => other !== row).slice(0, TOKEN_PROBES.k)) };
  }

  /** The part of the nearest rows that so many lists lead to, and of all token vectors that are looked at for a vector of a query. */
  look(queries: readonly TrialQuery[], probes: number): { readonly covered: number; readonly lookedAt: number } {
    const { codes, draft, kernels, lists, slot, vector } = this;
    const admission = { deletedAt: draft.layout.deletedAt, seq: 0, bits: 0 };
    const keep = comparedByTokens(TOKEN_PROBES.ef, TOKEN_PROBES.k) + 1;
    let [found, wanted, vectors] = [0, 0, 0];
    kernels.takeScored();
    for (const { nearest, values } of queries) {
      const ranked = kernels.byTokens(slot, codes, lists, values, admission, { probes, keep, rows: draft.rows });
      for (const row of ranked.rows) if (nearest.has(row)) found++;
      wanted += nearest.size;
      vectors += values.length / vector.dim;
    }
    const lookedAt = kernels.takeScored() / Math.max(1, vectors) - lists.count;
    return { covered: wanted === 0 ? 1 : found / wanted, lookedAt: lookedAt / Math.max(1, raggedOf(vector).itemCapacity) };
  }
}

/**
 * Originals that stay in their file, scored by the same kernels as those in memory: rows are read by position to the
 * staging area of the reader's scratch slot, as many as it holds, scored there, and the best of all are kept.
 */

import type { Kernels, Matrix, Ranked } from '../../../vectors/kernel-api.js';
import { TopRows } from '../../../vectors/top-rows.js';
import type { SegmentHandle } from '../../segment/handle.js';
import type { VectorLayout } from '../../segment/layout.js';
import { FileParts } from '../../segment/vector-file.js';
import type { Deadline } from '../../threads/deadline.js';

/** Rows that lie this close together are read at once, with what lies between them: it costs no more than a second read. */
const GAP_BYTES = 1 << 13;

/** What scoring needs of the thread's reader of the segment. */
export interface StagingPlace {
  readonly handle: SegmentHandle;
  readonly kernels: Kernels;
  /** Byte offset of the thread's scratch slot. */
  readonly slot: number;
  readonly deadline: Deadline;
}

/** The staging area of a slot as a matrix of a vector whose originals are in a file. */
export function stagingMatrix({ handle, slot }: Pick<StagingPlace, 'handle' | 'slot'>, vector: VectorLayout): Matrix {
  const { element, metric, stride, dim } = vector;
  return { element, metric, offset: slot + handle.layout.scratch.staging, stride, dim };
}

/**
 * The best k of `rows` (ascending, all of which count), scored with the query that the slot holds.
 * Errors: `storage`, naming the file; `timeout`; `KernelExpired`.
 */
export function rankFiled(place: StagingPlace, vector: VectorLayout, rows: Uint32Array, k: number): Ranked {
  const { deadline, handle, kernels, slot } = place;
  const { scratch } = handle.layout;
  const { file, stride } = vector;
  if (file === null) throw new Error(`the originals of '${vector.name}' are in memory`);
  const matrix = stagingMatrix(place, vector);
  const best = new TopRows(Math.min(k, rows.length));
  const room = Math.floor(scratch.stagingBytes / stride);
  /** Which row lies at a place of the staging area. */
  const rowAt = new Uint32Array(room);
  for (const batch of stagingBatches(rows, room, Math.floor(GAP_BYTES / stride))) {
    deadline.check();
    const parts = new FileParts(
      handle,
      file,
      batch.reads.map(({ count, row }) => ({ position: row * stride, bytes: count * stride })),
    );
    for (const { at, count } of batch.reads)
      parts.readNext(new Uint8Array(handle.memory.buffer, matrix.offset + at * stride, count * stride));
    const ranked = kernels.rescore(slot, matrix, batch.places, k);
    batch.places.forEach((at, i) => {
      rowAt[at] = rows[batch.from + i] as number;
    });
    for (let i = 0; i < ranked.count; i++) best.add(rowAt[ranked.rows[i] as number] as number, ranked.scores[i] as number);
  }
  return best.ranked();
}

/** Rows that fit in the staging area together. */
export interface StagingBatch {
  /** Which of the wanted rows is the first of the batch. */
  readonly from: number;
  /** Where each wanted row comes to lie, in rows from the start of the staging area. */
  readonly places: readonly number[];
  /** `count` rows from `row` on are read to place `at`. */
  readonly reads: readonly { readonly row: number; readonly count: number; readonly at: number }[];
}

/**
 * Cuts ascending rows into batches, and each into reads. Pure.
 * room: rows of the staging area, at least 1. gap: unwanted rows that one read may take with it.
 */
export function* stagingBatches(rows: Uint32Array, room: number, gap: number): Generator<StagingBatch> {
  let from = 0;
  while (from < rows.length) {
    const places: number[] = [];
    const reads: { row: number; count: number; at: number }[] = [];
    let used = 0;
    for (let next = from; next < rows.length; next++) {
      const row = rows[next] as number;
      const last = reads.at(-1);
      const added = last === undefined ? 1 : row - (last.row + last.count) + 1;
      const joins = last !== undefined && added <= gap + 1 && used + added <= room;
      if (!joins && used === room) break;
      if (joins) last.count += added;
      else reads.push({ row, count: 1, at: used });
      used += joins ? added : 1;
      places.push(used - 1);
    }
    yield { from, places, reads };
    from += places.length;
  }
}

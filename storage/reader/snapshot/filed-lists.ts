/**
 * Rows in lists on disk: the lists whose centroids are nearest to the query are read to the staging area of the reader's scratch slot, in the order in which they
 * lie in the file, and their codes are scored there. Deleted rows and those that a filter leaves out are not scored, and lists of which no row passes the
 * filter are not read.
 */

import type { Admission, Ranked } from '../../../vectors/kernel-api.js';
import { TopRows } from '../../../vectors/top-rows.js';
import { FileParts } from '../../segment/vector-file.js';
import type { StagingPlace } from './filed-originals.js';
import type { ListsReader } from './lists-reader.js';

/** Kernels read codes in steps that may end behind the last row. */
const SLACK_BYTES = 64;

export interface ListSearch {
  readonly admission: Admission;
  /** Lists to read. */
  readonly probes: number;
  /** Rows wanted, by their codes. */
  readonly keep: number;
}

/** The best rows of the nearest lists, by their codes. values: the query. Errors: `storage`, naming the file; `timeout`; `KernelExpired`. */
export function rankListed(place: StagingPlace, lists: ListsReader, values: Float32Array, { admission, keep, probes }: ListSearch): Ranked {
  const { deadline, handle, kernels, slot } = place;
  const { all, codes, centroids, file, starts } = lists;
  kernels.setQuery(slot, centroids, values);
  const scores = kernels.scoreEach(slot, centroids, all);
  const passes = admission.bits === 0 ? null : new Uint32Array(handle.memory.buffer, admission.bits, (handle.rows + 31) >>> 5);
  const chosen = new TopRows(probes);
  scores.forEach((score, list) => {
    if (hasRow(passes, starts[list] as number, starts[list + 1] as number)) chosen.add(list, score);
  });
  const staging = slot + handle.layout.scratch.staging;
  const room = Math.floor((handle.layout.scratch.stagingBytes - SLACK_BYTES) / codes.stride);
  const best = new TopRows(Math.min(keep, handle.rows));
  kernels.setQuery(slot, codes, values);
  const reads = [...listReads(chosen.ranked().rows.sort(), starts, room)];
  const parts = new FileParts(
    handle,
    file,
    reads.map(({ from, to }) => ({ position: from * codes.stride, bytes: (to - from) * codes.stride })),
  );
  for (const { from, to } of reads) {
    deadline.check();
    parts.readNext(new Uint8Array(handle.memory.buffer, staging, (to - from) * codes.stride));
    // Addresses are taken modulo 2^32, so row `from` lies at the start of the staging area.
    const ranked = kernels.scan(slot, { ...codes, offset: staging - from * codes.stride }, from, to, admission, keep);
    for (let i = 0; i < ranked.count; i++) best.add(ranked.rows[i] as number, ranked.scores[i] as number);
  }
  return best.ranked();
}

/**
 * Rows to read for some lists, ascending: lists that follow each other at once, and at most `room` rows. Pure.
 * lists: ascending. starts: of all lists, and the end of the last one.
 */
export function* listReads(
  lists: Uint32Array,
  starts: Uint32Array,
  room: number,
): Generator<{ readonly from: number; readonly to: number }> {
  for (let at = 0; at < lists.length; ) {
    const from = starts[lists[at] as number] as number;
    let to = starts[(lists[at++] as number) + 1] as number;
    while (at < lists.length && starts[lists[at] as number] === to && (starts[(lists[at] as number) + 1] as number) - from <= room)
      to = starts[(lists[at++] as number) + 1] as number;
    for (let row = from; row < to; row += room) yield { from: row, to: Math.min(to, row + room) };
  }
}

/** Whether any of the rows [from, to) passes; null: all do. */
function hasRow(bits: Uint32Array | null, from: number, to: number): boolean {
  if (bits === null || from >= to) return from < to;
  const [first, last] = [from >>> 5, (to - 1) >>> 5];
  for (let word = first; word <= last; word++) {
    let value = bits[word] as number;
    if (word === first) value &= -1 << (from & 31);
    if (word === last && (to & 31) !== 0) value &= (1 << (to & 31)) - 1;
    if (value !== 0) return true;
  }
  return false;
}

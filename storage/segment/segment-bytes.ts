/** What a segment takes of disk and memory. */

import { readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import type { SegmentHandle } from './handle.js';

/** Files of a handle do not change: another one is made where they do. */
const files = new WeakMap<SegmentHandle, number>();

/** Bytes of a sealed segment's files; 0 for an appendable one, whose rows are in the database, and where the disk does not tell. */
export function diskBytesOf(handle: SegmentHandle): number {
  const known = files.get(handle);
  if (known !== undefined) return known;
  const bytes = handle.folder === null ? 0 : bytesIn(handle.folder);
  files.set(handle, bytes);
  return bytes;
}

/** Bytes of memory that the rows of a segment take, with what is in memory of its graphs, codes, indexes and payloads. */
export function memoryBytesOf({ fieldIndexes, layout, payloadBytes, payloadOffsets, sparseIndexes }: SegmentHandle, rows: number): number {
  let bytes = layout.capacity === 0 ? 0 : Math.round((layout.bytes * rows) / layout.capacity);
  bytes += (payloadOffsets?.byteLength ?? 0) + (payloadBytes?.byteLength ?? 0);
  for (const { buffer } of fieldIndexes) bytes += buffer.byteLength;
  for (const { buffer } of sparseIndexes) bytes += buffer.byteLength;
  return bytes;
}

function bytesIn(folder: string): number {
  try {
    return readdirSync(folder).reduce((sum, name) => sum + statSync(path.join(folder, name)).size, 0);
  } catch {
    return 0;
  }
}

/**
 * Originals that are not in memory, read from their file by position. The whole file was verified when the segment was
 * loaded, so rows carry no checksums of their own; a file that ends early since then is reported by its name.
 */

import fs from 'node:fs';
import path from 'node:path';
import { openPlainFile, readFully } from './file.js';
import type { SegmentHandle } from './handle.js';
import type { OriginalsFile, VectorLayout } from './layout.js';

/** The file of the `n`th vector of a segment. */
export function vectorFile(n: number): string {
  return `vectors.${n}`;
}

/**
 * Fills `target` (which may lie in shared memory) with whole rows from `row` on.
 * vector: one of the segment's, with its originals in a file. Errors: `storage`, with the file's path.
 */
export function readRows(handle: SegmentHandle, vector: VectorLayout, row: number, target: Uint8Array): void {
  const { file, stride } = vector;
  if (file === null) throw new Error(`the originals of '${vector.name}' are in memory`);
  const open = openFile(handle, file);
  readFully(open.descriptor, target, file.start + row * stride, open.path);
}

/** Closes the vector files that this thread has open of the segment. */
export function closeVectorFiles(handle: SegmentHandle): void {
  for (const { descriptor } of openFiles.get(handle.memory)?.values() ?? []) fs.closeSync(descriptor);
  openFiles.delete(handle.memory);
}

interface OpenFile {
  readonly path: string;
  readonly descriptor: number;
}

/** What this thread has open, by file name within the segment; a segment is known by its memory, as handles of it come and go. */
const openFiles = new WeakMap<WebAssembly.Memory, Map<string, OpenFile>>();

function openFile({ folder, memory }: SegmentHandle, { name }: OriginalsFile): OpenFile {
  let files = openFiles.get(memory);
  if (files === undefined) {
    files = new Map();
    openFiles.set(memory, files);
  }
  const known = files.get(name);
  if (known !== undefined) return known;
  const file = path.join(folder as string, name);
  const opened = { path: file, descriptor: openPlainFile(file) };
  files.set(name, opened);
  return opened;
}

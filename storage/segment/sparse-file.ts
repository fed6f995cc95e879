/** Files of the inverted indexes of a sealed segment's sparse vectors. They can be built again from the vectors. */

import path from 'node:path';
import { DamagedFile, type PauseReading, readSegmentFileInParts, writeSegmentFile } from '../disk/file.js';
import type { SparseIndexHandle } from './handle.js';

/** Name of the file of the n-th vector. */
export function sparseFile(n: number): string {
  return `sparse.${n}`;
}

/** Writes the file into a segment's unfinished folder; on disk when this returns. */
export function writeSparseIndex(folder: string, segment: number, n: number, { name, buffer }: SparseIndexHandle): void {
  writeSegmentFile(path.join(folder, sparseFile(n)), 'sparse', { segment, name }, { index: new Uint8Array(buffer) });
}

/** The index of the n-th vector. Errors: `DamagedFile`, also where the file is missing or another segment's. */
export function readSparseIndex(folder: string, segment: number, n: number, name: string, pause: PauseReading): Promise<SparseIndexHandle> {
  const file = path.join(folder, sparseFile(n));
  return readSegmentFileInParts(file, 'sparse', async (reader) => {
    if (reader.facts.segment !== segment || reader.facts.name !== name) throw new DamagedFile(file, 'belongs to another vector');
    return { name, buffer: await reader.readSharedInParts('index', pause) };
  });
}

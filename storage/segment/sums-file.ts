/** Files of checksums block by block: which vectors have them, how they are written beside what they are of, and read. */

import fs from 'node:fs';
import path from 'node:path';
import { DamagedFile, readSegmentFile, writeSegmentFile } from '../disk/file.js';
import { type BlockSums, roomForSums, SumsStream } from './block-sums.js';
import { LARGE_ORIGINALS_BYTES, type OriginalsFile, strideOf, type VectorPlan } from './layout.js';
import { canArriveLater } from './residence.js';

/** Whose segment a file is of. */
interface SumsOwner {
  readonly segment: number;
  readonly rows: number;
}

/** Of `vectors.<n>`. */
export function vectorSumsFile(n: number): string {
  return `sums.${n}`;
}

/** Of `codes.<n>`. */
export function codeSumsFile(n: number): string {
  return `sums.codes.${n}`;
}

/** Whether the originals of a vector have sums: they are large, and a search reads a part of them in their file. */
export function hasVectorSums(plan: VectorPlan, rows: number, bytesMin = LARGE_ORIGINALS_BYTES): boolean {
  return canArriveLater(plan, rows, bytesMin) || (plan.lists !== undefined && plan.element !== 'u8' && rows * strideOf(plan) >= bytesMin);
}

/** Whether the codes of a vector, of so many bytes, have sums: they are large, and searches read them list by list in their file. */
export function hasCodeSums(plan: VectorPlan, bytes: number, bytesMin = LARGE_ORIGINALS_BYTES): boolean {
  return plan.lists !== undefined && bytes >= bytesMin;
}

/** Passes on pieces of whole blocks (but the last) that are being written, in all so many bytes. `write` puts their sums on disk once all have passed. */
export function withSums(
  pieces: Iterable<Uint8Array>,
  bytes: number,
): { readonly passing: Iterable<Uint8Array>; write(file: string, owner: SumsOwner): void } {
  const sums = new SumsStream(bytes);
  return {
    passing: sums.passing(pieces),
    write: (file, { rows, segment }) => writeSegmentFile(file, 'sums', { segment, rows }, { sums: sums.bytes }),
  };
}

/** Those of so many bytes; none where there are none, as in segments of earlier builds, or they are damaged. */
export function readSums(folder: string, name: string, bytes: number, damaged: DamagedFile[]): Pick<OriginalsFile, 'sums'> {
  const file = path.join(folder, name);
  if (!fs.existsSync(file)) return {};
  try {
    return { sums: readSumsFile(file, path.basename(folder), bytes) };
  } catch (error) {
    if (!(error instanceof DamagedFile)) throw error;
    damaged.push(error);
    return {};
  }
}

function readSumsFile(file: string, segment: string, bytes: number): BlockSums {
  const { sums, target } = roomForSums(bytes);
  readSegmentFile(file, 'sums', (reader) => {
    if (String(reader.facts.segment) !== segment) throw new DamagedFile(file, `belongs to segment ${String(reader.facts.segment)}`);
    reader.readInto('sums', target);
  });
  return sums;
}

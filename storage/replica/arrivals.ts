/** Brings originals to memory that arrive after the opening of a replica (`segment/originals.ts`). */

import path from 'node:path';
import { DamagedFile, type PauseReading } from '../disk/file.js';
import type { VectorLayout } from '../segment/layout.js';
import { arrivingVectors, bringOriginals, isUnverified, verifyFiledCodes, verifyOriginals } from '../segment/originals.js';
import type { SegmentRows } from './segment-rows.js';

/** Whether originals of a segment are to arrive. */
export function awaitsOriginals(segments: readonly SegmentRows[]): boolean {
  return segments.some(({ handle }) => arrivingVectors(handle).length > 0);
}

/** Whether originals of a segment, or codes that lists read, are still to be verified as a whole. */
export function awaitsVerifying(segments: readonly SegmentRows[]): boolean {
  return segments.some(({ handle }) => handle.layout.vectors.some(isUnverified));
}

/**
 * Verifies them one after the other; segmentsNow as below. Result: what is wrong with codes, which are built again from the originals: their segments have them
 * among the damaged files from now on, and searches go on to verify what they read of them. Errors: as `verifyOriginals`.
 */
export async function verifyAll(segmentsNow: () => readonly SegmentRows[], pause: PauseReading): Promise<readonly string[]> {
  const damages: string[] = [];
  for (const segment of segmentsNow()) {
    for (const vector of segment.handle.layout.vectors.filter(isUnverified)) {
      if (segmentsNow().includes(segment)) await verifyOriginals(segment.handle, vector, pause);
      if (!segmentsNow().includes(segment)) continue;
      const damaged = await damagedCodes(segment, vector, pause);
      if (damaged === null) continue;
      segment.damagedFiles = [...segment.damagedFiles, path.basename(damaged.path)];
      damages.push(damaged.detail);
    }
  }
  return damages;
}

async function damagedCodes({ handle }: SegmentRows, vector: VectorLayout, pause: PauseReading): Promise<DamagedFile | null> {
  try {
    await verifyFiledCodes(handle, vector, pause);
    return null;
  } catch (error) {
    if (error instanceof DamagedFile) return error;
    throw error;
  }
}

/**
 * Brings them one after the other. segmentsNow: those that the replica has; one that has left it is passed over.
 * Errors: as `bringOriginals`. Nothing needs to be taken back then.
 */
export async function bringAllOriginals(segmentsNow: () => readonly SegmentRows[], pause: PauseReading): Promise<void> {
  for (const segment of segmentsNow()) {
    for (const vector of arrivingVectors(segment.handle)) {
      if (segmentsNow().includes(segment)) await bringOriginals(segment.handle, vector, pause);
    }
  }
}

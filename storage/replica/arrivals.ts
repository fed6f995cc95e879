/** Brings originals to memory that arrive after the opening of a replica (`segment/originals.ts`). */

import type { PauseReading } from '../disk/file.js';
import { arrivingVectors, bringOriginals, isUnverified, verifyOriginals } from '../segment/originals.js';
import type { SegmentRows } from './segment-rows.js';

/** Whether originals of a segment are to arrive. */
export function awaitsOriginals(segments: readonly SegmentRows[]): boolean {
  return segments.some(({ handle }) => arrivingVectors(handle).length > 0);
}

/** Whether originals of a segment are still to be verified as a whole. */
export function awaitsVerifying(segments: readonly SegmentRows[]): boolean {
  return segments.some(({ handle }) => handle.layout.vectors.some(isUnverified));
}

/** Verifies them one after the other; segmentsNow as below. Errors: as `verifyOriginals`. */
export async function verifyAllOriginals(segmentsNow: () => readonly SegmentRows[], pause: PauseReading): Promise<void> {
  for (const segment of segmentsNow()) {
    for (const vector of segment.handle.layout.vectors.filter(isUnverified)) {
      if (segmentsNow().includes(segment)) await verifyOriginals(segment.handle, vector, pause);
    }
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

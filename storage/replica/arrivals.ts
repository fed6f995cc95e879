/** Brings originals to memory that arrive after the opening of a replica (`segment/originals.ts`). */

import type { PauseReading } from '../disk/file.js';
import { arrivingVectors, bringOriginals } from '../segment/originals.js';
import type { SegmentRows } from './segment-rows.js';

/** Whether originals of a segment are to arrive. */
export function awaitsOriginals(segments: readonly SegmentRows[]): boolean {
  return segments.some(({ handle }) => arrivingVectors(handle).length > 0);
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

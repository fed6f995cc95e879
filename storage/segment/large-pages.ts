/**
 * Large pages for what walks read here and there: a processor finds their addresses with far fewer looks at the system's tables. The system's own thread makes them
 * meanwhile (16 MB in ten seconds by default) where it gives them to those that ask. Asked for before the memory is filled, they came at once, but a start
 * on a busy machine took up to 100 ms of CPU more, since the system had to make room for each.
 */

import { largePages } from '../memory/system-calls.js';
import { type SegmentLayout, wholePages } from './layout.js';

/** Less than this a processor finds without them. */
const WANTED_FROM_BYTES = 8 << 20;

/** Asks for large pages for codes and links of a segment, where they are many. They are filled, so nothing more is taken. want: null where the process cannot. */
export function wantLargePages({ buffer }: WebAssembly.Memory, { capacity, vectors }: SegmentLayout, want = largePages()): void {
  if (want === null) return;
  for (const { codes, graph, ragged } of vectors) {
    const parts = [
      ...(codes === null ? [] : [{ offset: codes.offset, bytes: (ragged?.itemCapacity ?? capacity) * codes.stride }]),
      ...(graph === null ? [] : [{ offset: graph.level0, bytes: capacity * (1 + graph.m0) * 4 }]),
    ];
    for (const { bytes, offset } of parts) {
      const pages = bytes < WANTED_FROM_BYTES ? null : wholePages(offset, bytes);
      if (pages !== null) want({ buffer, ...pages });
    }
  }
}

/**
 * Large pages for what walks read here and there: a processor finds their addresses with far fewer looks at the system's tables. The system's own thread makes them
 * meanwhile (16 MB in ten seconds by default) where it gives them to those that ask. Asked for before the memory is filled, they came at once, but a start
 * on a busy machine took up to 100 ms of CPU more, since the system had to make room for each.
 */

import { type FilePart, largePages } from '../memory/system-calls.js';
import { type SegmentLayout, wholePages } from './layout.js';

/** Less than this a processor finds without them. */
const WANTED_FROM_BYTES = 8 << 20;

/**
 * Asks for large pages for codes and links of a segment, where they are many. They are filled, so nothing more is taken. ask: of the system unless given,
 * which is looked for only where a part is large enough: a start has no time for it.
 */
export function wantLargePages({ buffer }: WebAssembly.Memory, { capacity, vectors }: SegmentLayout, ask?: (part: FilePart) => void): void {
  const wanted = vectors.flatMap(({ codes, graph, ragged }) => [
    ...(codes === null ? [] : largePart(codes.offset, (ragged?.itemCapacity ?? capacity) * codes.stride)),
    ...(graph === null ? [] : largePart(graph.level0, capacity * (1 + graph.m0) * 4)),
  ]);
  if (wanted.length === 0) return;
  const want = ask ?? largePages();
  for (const part of wanted) want?.({ buffer, ...part });
}

/** None where it is too small. */
function largePart(offset: number, bytes: number): readonly Omit<FilePart, 'buffer'>[] {
  const pages = bytes < WANTED_FROM_BYTES ? null : wholePages(offset, bytes);
  return pages === null ? [] : [pages];
}

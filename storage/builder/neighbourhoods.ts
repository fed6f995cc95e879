/** Rows of a segment with what lies nearest to them: as dense as the segment, which a sample of its rows is not. */

import { instantiateKernels } from '../../vectors/kernels.js';
import type { VectorLayout } from '../segment/layout.js';
import type { SegmentDraft } from './build-vectors.js';
import { builderSlot } from './draft-matrices.js';
import { broughtFloats, separateRows, spreadRows } from './matrix.js';
import { type Nearest, scanOriginals } from './scan-originals.js';

/** With 10 neighbours each, the share of those that a type keeps is known to some hundredths. */
const QUERIES = 24;
/** A row beyond so many is no neighbour in any type worth trying. */
const AROUND = 100;

export interface Neighbourhood {
  /** Float32Array [n, dim]: a row and its nearest rows, in the order of the segment. */
  readonly values: Float32Array;
  /** Which of them the row is. */
  readonly query: number;
}

/** Neighbourhoods of rows that are spread over the segment. It takes a scan of the originals for each. present: rows that have the vector. */
export function neighbourhoods(draft: SegmentDraft, vector: VectorLayout, present: Uint32Array): Neighbourhood[] {
  if (present.length === 0) return [];
  const { layout, memory, onCall = null, rows } = draft;
  const kernels = instantiateKernels(memory, () => false, layout.scratch);
  const admission = { deletedAt: layout.deletedAt, seq: 0, bits: vector.presence };
  const picked = spreadRows(present, QUERIES);
  const queries = separateRows(broughtFloats(draft, vector, picked), vector.dim);
  const nearest = scanOriginals(
    { kernels, slot: builderSlot(layout), vector, rows, admission, onCall },
    queries,
    Math.min(AROUND, present.length),
  );
  return Array.from(picked, (row, n) => {
    // A row need not be the best for itself: not by a dot product.
    const members = Uint32Array.from(new Set([row, ...(nearest[n] as Nearest).rows])).sort();
    return { values: broughtFloats(draft, vector, members), query: members.indexOf(row) };
  });
}

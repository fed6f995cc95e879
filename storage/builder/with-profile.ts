/** Learns how distances grow in a finished graph (`../segment/walk-profile.ts`), so that no thread has to with its first search. */

import type { Distance } from '../../protocols/model/collection.js';
import { hasBit } from '../../query/filter/bits.js';
import { instantiateKernels } from '../../vectors/kernels.js';
import type { VectorLayout } from '../segment/layout.js';
import { hasProfile, learnProfile } from '../segment/walk-profile.js';
import type { SegmentDraft } from './build-vectors.js';
import { builderSlot, walkMatrix } from './draft-matrices.js';
import { readFloats } from './matrix.js';

/** The vector, with the profile of its graph where it has one. Its rows are in their places. */
export function withProfile({ layout, memory, rows }: SegmentDraft, vector: VectorLayout, distance: Distance): VectorLayout {
  const { graph, kind } = vector;
  if (kind !== 'dense' || graph === null) return vector;
  const matrix = walkMatrix(memory, vector);
  if (!hasProfile(rows, matrix, distance)) return vector;
  const presence = new Uint32Array(memory.buffer, vector.presence, Math.ceil(rows / 32));
  const subject = {
    ...{ memory, rows, deletedAt: layout.deletedAt, graph, matrix },
    hasVector: (row: number) => hasBit(presence, row),
    original: (row: number) => readFloats(memory, vector, Uint32Array.of(row)),
  };
  const kernels = instantiateKernels(memory, () => false, layout.scratch);
  const profile = learnProfile(subject, kernels, builderSlot(layout));
  return { ...vector, graph: { ...graph, profile } };
}

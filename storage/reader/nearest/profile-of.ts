/** The profile by which walks of a segment end. */

import type { Distance } from '../../../protocols/model/collection.js';
import type { Matrix } from '../../../vectors/kernel-api.js';
import type { DistanceProfile } from '../../../vectors/walk-end.js';
import { hasProfile, learnProfile } from '../../segment/walk-profile.js';
import { hasVector, type SegmentView, type VectorReader } from '../snapshot/snapshot-view.js';

/** Those that builds have not learnt. */
const learnt = new WeakMap<VectorReader, DistanceProfile | null>();

/**
 * The profile of the graph over all of the vector's rows; null where there is none. The same in each thread. matrix: what walks score.
 * The slot's query and lists are used. Errors: `KernelExpired`.
 */
export function profileOf(view: SegmentView, vector: VectorReader, matrix: Matrix, distance: Distance): DistanceProfile | null {
  const { graph } = vector;
  if (graph === null || !hasProfile(view.rows, matrix, distance)) return null;
  const kept = vector.layout.graph?.profile;
  if (kept !== undefined) return kept;
  const known = learnt.get(vector);
  if (known !== undefined) return known;
  const { memory } = view.handle;
  const subject = {
    ...{ memory, rows: view.rows, deletedAt: view.handle.layout.deletedAt, graph, matrix },
    hasVector: (row: number) => hasVector(vector, row),
    original: (row: number) => view.denseOf(vector.layout.name, row) as Float32Array,
  };
  const profile = learnProfile(subject, view.reader.kernels, view.reader.slot);
  learnt.set(vector, profile);
  // No part of the read that happens to come first.
  view.reader.takeWork();
  view.reader.takeScoredBytes();
  return profile;
}

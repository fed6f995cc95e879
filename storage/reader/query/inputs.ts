/** What the inputs of queries stand for, where they are points of this thread's snapshots. */

import type { PointId } from '../../../protocols/model/point-id.js';
import type { VectorInput, VectorValue } from '../../../protocols/model/vector.js';
import { givenValue, noSuchPoint, noSuchVector } from '../../walk/inputs.js';
import type { InputPlace, ResolvedInput } from '../../walk/walk.js';
import type { ReadContext } from '../read-context.js';
import type { ReplicaSnapshot } from '../snapshot/snapshot-view.js';
import { vectorSpace } from '../snapshot/vector-space.js';
import { findPoint } from './points.js';

/** Errors: those of `givenValue`. */
export function givenInput(input: Exclude<VectorInput, { readonly kind: 'point' }>): ResolvedInput {
  return { value: givenValue(input), own: null };
}

/** What a point stands for. Errors: see `ResolvedInputs`. */
export function pointInput(context: ReadContext, id: PointId, { using, lookupFrom }: InputPlace): ResolvedInput {
  const snapshots = lookupFrom === null ? context.snapshots : context.lookup(lookupFrom.collection, lookupFrom.shardKey);
  const name = lookupFrom?.vector ?? using;
  for (const snapshot of snapshots) {
    const found = findPoint([snapshot], id);
    if (found === undefined) continue;
    const value = found.view.vectorOf(name, found.row);
    // A name that no point can have is another mistake.
    if (value === undefined) vectorSpace(snapshots, name);
    if (value === undefined) throw noSuchVector(name);
    const isOwn = lookupFrom === null || isSameCollection(snapshots, context.snapshots);
    return { value, own: isOwn ? { shard: snapshot.shardId, id } : null };
  }
  throw noSuchPoint(id);
}

/** Objects around the numbers of a value, and of the copy that rows are compared with. */
const INPUT_BYTES = 512;

/** What a point's value takes as an input, with the copy that rows are compared with. */
export function inputBytes(value: VectorValue): number {
  const ofIndices = value.kind === 'sparse' ? value.indices.length : 0;
  return INPUT_BYTES + 2 * Float32Array.BYTES_PER_ELEMENT * (value.values.length + ofIndices);
}

/** Whether both are the same collection, by whatever name it was called, or have some of its shards in common. */
export function isSameCollection(a: readonly ReplicaSnapshot[], b: readonly ReplicaSnapshot[]): boolean {
  const readers = new Set(a.flatMap(({ segments }) => segments.map(({ reader }) => reader)));
  return b.some(({ segments }) => segments.some(({ reader }) => readers.has(reader)));
}

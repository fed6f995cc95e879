/** One vector name of a collection: of which kind its values are, and what comparing them takes. */

import { TroupeError } from '../../../protocols/errors.js';
import type { Distance, SparseVectorParams, VectorParams } from '../../../protocols/model/collection.js';
import type { VectorValue } from '../../../protocols/model/vector.js';
import { unknownVector, wrongVectorKind } from '../../../protocols/rest/point-vectors.js';
import { fromHalf, toHalf } from '../../../vectors/half.js';
import { normalizeRows } from '../../../vectors/normalize.js';
import { type SparseQuery, sparseQuery } from '../../../vectors/sparse/dot.js';
import { elementOf } from '../../segment/plans.js';
import type { ReplicaSnapshot } from './snapshot-view.js';
import { inverseFrequencies } from './term-counts.js';

export type VectorSpace = DenseSpace | SparseSpace;

export interface DenseSpace {
  /** `multi`: values are lists of vectors, and scores are MaxSim. */
  readonly kind: 'dense' | 'multi';
  readonly name: string;
  readonly distance: Distance;
  readonly params: VectorParams;
}

export interface SparseSpace {
  readonly kind: 'sparse';
  readonly name: string;
  readonly distance: 'Dot';
  readonly params: SparseVectorParams;
  /** Weight of an index of a query (`modifier: idf`), null for none. */
  readonly idf: ((index: number) => number) | null;
}

/** The space of a vector name. Errors: `wrongInput` when the collection has none of this name. */
export function vectorSpace(snapshots: readonly ReplicaSnapshot[], name: string): VectorSpace {
  const { vectors, sparse } = snapshots[0] as ReplicaSnapshot;
  const params = vectors.get(name);
  if (params !== undefined) {
    return { kind: params.multivector_config === undefined ? 'dense' : 'multi', name, distance: params.distance, params };
  }
  const sparseParams = sparse.get(name);
  if (sparseParams === undefined) throw unknownVector(name, [...vectors.keys(), ...sparse.keys()]);
  const idf = sparseParams.modifier === 'idf' ? inverseFrequencies(snapshots, name) : null;
  return { kind: 'sparse', name, distance: 'Dot', params: sparseParams, idf };
}

/**
 * What rows of a dense or multivector are compared with, as a stored one would be: normalized, and rounded to the type of
 * the stored ones. Float32Array [dim], or [vectors, dim]; it may be `value`'s own, changed in place.
 * Errors: `wrongInput` for another kind of value or dimension.
 */
export function comparedValues({ kind, name, params }: DenseSpace, value: VectorValue): Float32Array {
  if (value.kind === 'sparse') throw wrongVectorKind('sparse', kind, name);
  if (value.kind === 'multi' && kind === 'dense') throw wrongVectorKind('multi', kind, name);
  const dim = value.kind === 'multi' ? value.dim : value.values.length;
  if (dim !== params.size) throw new TroupeError('wrongInput', `Vector dimension error: expected dim: ${params.size}, got ${dim}`);
  return asStored(value.values, params);
}

/** What rows of a sparse vector are compared with. Errors: `wrongInput` for another kind of value. */
export function comparedTerms({ idf, name }: SparseSpace, value: VectorValue): SparseQuery {
  if (value.kind !== 'sparse') throw wrongVectorKind(value.kind, 'sparse', name);
  return sparseQuery(value, idf);
}

/** The query's vectors as stored ones would be: they may be changed in place. */
function asStored(values: Float32Array, params: VectorParams): Float32Array {
  switch (elementOf(params.datatype)) {
    case 'u8':
      // Stored as they are given, also for cosine: see `scanUint8Cosine`.
      return values.map((value) => Math.min(255, Math.max(0, Math.trunc(value))));
    case 'f16':
      if (params.distance === 'Cosine') normalizeRows(values, params.size);
      return values.map((value) => fromHalf(toHalf(value)));
    default:
      if (params.distance === 'Cosine') normalizeRows(values, params.size);
      return values;
  }
}

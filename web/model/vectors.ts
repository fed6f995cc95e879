/** The vectors that a collection has, and those of a point. */

import type { CollectionInfo, Point, ShownVector, Vector } from './api-types.js';

export interface VectorName {
  /** Empty for the only, unnamed one. */
  readonly name: string;
  readonly kind: 'dense' | 'multi' | 'sparse';
  readonly size: number;
  readonly distance: string;
}

export function vectorNames({ config: { params } }: CollectionInfo): VectorName[] {
  const { vectors = {}, sparse_vectors = {} } = params;
  const dense = isOne(vectors) ? { '': vectors } : vectors;
  return [
    ...Object.entries(dense).map(([name, { size, distance, multivector_config }]): VectorName => {
      return { name, kind: multivector_config ? 'multi' : 'dense', size, distance };
    }),
    ...Object.keys(sparse_vectors).map((name): VectorName => ({ name, kind: 'sparse', size: 0, distance: 'Dot' })),
  ];
}

/** "text 384 Cosine". */
export function describeVector({ name, kind, size, distance }: VectorName): string {
  const words = kind === 'sparse' ? ['sparse'] : [String(size), distance];
  if (kind === 'multi') words.push('multivector');
  return [name, ...words].filter((word) => word !== '').join(' ');
}

/** The vectors of a point by name; the unnamed one under ''. */
export function vectorsOf({ vector }: Point): Readonly<Record<string, Vector>> {
  if (vector === undefined || vector === null) return {};
  if (Array.isArray(vector) || 'indices' in vector) return { '': vector as Vector };
  return vector as Readonly<Record<string, Vector>>;
}

function isOne(vectors: ShownVector | Readonly<Record<string, ShownVector>>): vectors is ShownVector {
  return typeof (vectors as ShownVector).size === 'number' && typeof (vectors as ShownVector).distance === 'string';
}

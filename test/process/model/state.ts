/**
 * A collection as a plain model holds it: points in a map, vectors as lists of numbers, indexes by name. What it answers
 * is written down in loops over all points, slow and easy to see through; nothing of the product's own code decides here.
 */

import { compareIds } from '../../../protocols/model/point-id.js';

export type Id = number | string;
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Payload = { [key: string]: Json };

export interface Sparse {
  readonly indices: readonly number[];
  readonly values: readonly number[];
}

/** A vector as requests write it: dense, multi or sparse. */
export type Value = readonly number[] | readonly (readonly number[])[] | Sparse;

export interface ModelPoint {
  readonly vectors: { readonly [name: string]: Value };
  readonly payload: Payload;
}

/** What the values under one vector name are and how they are compared. */
export interface Space {
  readonly kind: 'dense' | 'multi' | 'sparse';
  readonly distance: 'Cosine' | 'Euclid' | 'Dot' | 'Manhattan';
  readonly datatype: 'float32' | 'float16' | 'uint8';
  readonly size: number;
  /** Scores are sums without rounding errors, so that equal ones are equal at the node too. */
  readonly precise: boolean;
}

/** A payload index, as its `field_schema`. */
export interface Index {
  readonly type: string;
  readonly phrase_matching?: boolean;
}

export class Model {
  readonly points: Map<Id, ModelPoint>;
  readonly spaces: Map<string, Space>;
  readonly indexes: Map<string, Index>;

  /** An empty one, or a copy. */
  constructor(from?: Model) {
    this.points = new Map(from?.points);
    this.spaces = new Map(from?.spaces);
    this.indexes = new Map(from?.indexes);
  }

  /** All points in the order of their ids. */
  inOrder(): [Id, ModelPoint][] {
    return [...this.points].sort(([a], [b]) => compareIds(a, b));
  }

  space(name: string): Space {
    const space = this.spaces.get(name);
    if (space === undefined) throw new Error(`no vector ${name}`);
    return space;
  }
}

/** Names of the vectors that a collection always has. Components of precise ones are multiples of 1/8. */
export const SPACES: Readonly<Record<string, Space>> = {
  e: { kind: 'dense', distance: 'Euclid', datatype: 'float32', size: 8, precise: true },
  d: { kind: 'dense', distance: 'Dot', datatype: 'float16', size: 6, precise: true },
  c: { kind: 'dense', distance: 'Cosine', datatype: 'float32', size: 5, precise: false },
  m: { kind: 'dense', distance: 'Manhattan', datatype: 'uint8', size: 6, precise: true },
  t: { kind: 'multi', distance: 'Dot', datatype: 'float32', size: 4, precise: true },
  s: { kind: 'sparse', distance: 'Dot', datatype: 'float32', size: 0, precise: true },
};

/** A sparse vector whose terms weigh by how rare they are; see `compareIdf`. */
export const IDF = 'idf';

/** A vector that comes and goes, each time of another kind. */
export const FLEETING = 'x';
export const FLEETING_SPACES: readonly Space[] = [
  { kind: 'dense', distance: 'Euclid', datatype: 'float32', size: 3, precise: true },
  { kind: 'multi', distance: 'Dot', datatype: 'float16', size: 2, precise: true },
  { kind: 'sparse', distance: 'Dot', datatype: 'float32', size: 0, precise: true },
  { kind: 'dense', distance: 'Dot', datatype: 'uint8', size: 7, precise: true },
];

export const SPARSE_SPACE: Space = { kind: 'sparse', distance: 'Dot', datatype: 'float32', size: 0, precise: true };

/** The configuration of a space in requests that create collections or vectors. */
export function wireSpace({ kind, distance, datatype, size }: Space): object {
  if (kind === 'sparse') return {};
  const multivector = kind === 'multi' ? { multivector_config: { comparator: 'max_sim' } } : {};
  return { size, distance, datatype, ...multivector };
}

// ------------------------------------------------------------------ scores

export function isSparse(value: Value): value is Sparse {
  return !Array.isArray(value);
}

/** A value as the node holds it: bytes are cut to 0..255, cosine vectors have length 1, indices ascend. */
export function stored(space: Space, value: Value): Value {
  if (isSparse(value)) {
    const order = value.indices.map((_, at) => at).sort((a, b) => (value.indices[a] as number) - (value.indices[b] as number));
    return { indices: order.map((at) => value.indices[at] as number), values: order.map((at) => value.values[at] as number) };
  }
  if (space.kind === 'multi') return vectorsOf(value).map((vector) => storedDense(space, vector));
  return storedDense(space, value as readonly number[]);
}

function storedDense({ distance, datatype }: Space, vector: readonly number[]): number[] {
  if (datatype === 'uint8') return vector.map((x) => Math.min(255, Math.max(0, Math.trunc(x))));
  if (distance !== 'Cosine') return [...vector];
  const length = Math.sqrt(vector.reduce((sum, x) => sum + x * x, 0));
  return vector.map((x) => (length === 0 ? x : x / length));
}

/** The vectors of a multivector; a dense one is one. */
export function vectorsOf(value: Value): readonly (readonly number[])[] {
  const list = value as readonly (number | readonly number[])[];
  return typeof list[0] === 'number' ? [list as readonly number[]] : (list as readonly (readonly number[])[]);
}

/** Whether smaller scores are better. */
export function isDistance({ distance }: Space): boolean {
  return distance === 'Euclid' || distance === 'Manhattan';
}

/** The shown score of a stored value; `query` is brought to its form first. */
export function scoreOf(space: Space, query: Value, value: Value): number {
  const asked = stored(space, query);
  if (space.kind === 'sparse') return sparseScore(asked as Sparse, value as Sparse);
  if (space.kind === 'dense') return denseScore(space, asked as readonly number[], value as readonly number[]);
  return vectorsOf(asked).reduce((sum, one) => sum + Math.max(...vectorsOf(value).map((other) => denseScore(space, one, other))), 0);
}

function denseScore({ distance }: Space, a: readonly number[], b: readonly number[]): number {
  const sum = (term: (x: number, y: number) => number) => a.reduce((total, x, at) => total + term(x, b[at] as number), 0);
  if (distance === 'Euclid') return Math.sqrt(sum((x, y) => (x - y) ** 2));
  if (distance === 'Manhattan') return sum((x, y) => Math.abs(x - y));
  return sum((x, y) => x * y);
}

function sparseScore(a: Sparse, b: Sparse): number {
  return a.indices.reduce((sum, index, at) => sum + (a.values[at] as number) * (b.values[b.indices.indexOf(index)] ?? 0), 0);
}

/** Similarity, higher is nearer for every distance: what examples are weighed by. */
export function similarity(space: Space, query: Value, value: Value): number {
  const score = scoreOf(space, query, value);
  if (space.distance === 'Euclid') return -score * score;
  return space.distance === 'Manhattan' ? -score : score;
}

/**
 * Decodes the vectors of points to columns, one for each vector name: lists, lists of lists, sparse vectors, and what a
 * model makes a vector of. What is no vector of any kind is refused before it is compared with what the collection has.
 * Source: schemas VectorStruct, BatchVectorStruct and Vector of the API; scenarios points-upsert*.
 */

import { TroupeError } from '../errors.js';
import { type CollectionParams, sparseByName, vectorsByName } from '../model/collection.js';
import type { JsonValue } from '../model/payload.js';
import type { BatchColumn } from '../model/update.js';
import { areFinite, type InferenceInput, type MultiVector, type SparseVector, sparseVector, type VectorValue } from '../model/vector.js';
import { isObject, type JsonObject } from './fields.js';
import { inferenceInput, type TakenVectors } from './query-input.js';

/** The part of a collection's parameters that names its vectors. */
export type VectorNames = Pick<CollectionParams, 'vectors' | 'sparse_vectors'>;

/** Makes the vector of a point from a text, an image or an object. Errors: `unsupported` for a model that is not there. */
export type Embed = (input: InferenceInput) => VectorValue;

/** The node has no models of its own. */
export const embedNothing: Embed = () => {
  throw new TroupeError('unsupported', 'this node has no embedding model: send the vector itself');
};

/** What vectors of points are decoded for. */
export interface VectorTarget {
  /** By name: the dimension of dense and multivectors. */
  readonly names: ReadonlyMap<string, NamedVector>;
  /** Not null: each list of numbers at the place of a vector is the index of one of these. Sparse vectors stay as they are. */
  readonly taken: TakenVectors;
  readonly embed: Embed;
}

type NamedVector = { readonly kind: 'dense' | 'multi'; readonly dim: number } | { readonly kind: 'sparse' };

export function vectorTarget(vectors: VectorNames, taken: TakenVectors, embed: Embed): VectorTarget {
  const names = new Map<string, NamedVector>();
  for (const [name, { size, multivector_config }] of vectorsByName(vectors.vectors))
    names.set(name, { kind: multivector_config === undefined ? 'dense' : 'multi', dim: size });
  for (const name of sparseByName(vectors).keys()) names.set(name, { kind: 'sparse' });
  return { names, taken, embed };
}

/** Collects the vectors of `count` points, one column per vector name. Points come in ascending order within each name. */
export class ColumnBuilder {
  private readonly columns = new Map<string, Column>();

  constructor(
    private readonly target: VectorTarget,
    private readonly count: number,
  ) {}

  /** The `vector` of a point: a list for the unnamed vector, or an object by name. */
  addPoint(index: number, vector: JsonValue, path: string): void {
    if (Array.isArray(vector)) this.add(index, '', vector, path);
    else if (!isObject(vector)) throw noVectorStruct(path);
    else if (isInference(vector)) this.add(index, '', vector, path);
    else for (const [name, named] of Object.entries(vector)) this.add(index, name, named, `${path}.${name}`);
  }

  /** Errors: `malformedBody`, `invalidValue`; `wrongInput` for what the collection has no such vector for. */
  add(index: number, name: string, vector: JsonValue, path: string): void {
    if (Array.isArray(vector)) {
      if (vector.length === 0) throw new TroupeError('invalidValue', `[${path}.vector: dense vector must not be empty]`);
      if (Array.isArray(vector[0])) this.addValue(index, name, this.multi(vector, path));
      else this.columnOf(name, 'dense').addList(index, this.numbersOf(vector), path);
    } else if (!isObject(vector)) throw noVectorStruct(path);
    else this.addValue(index, name, isInference(vector) ? this.embedded(vector, path) : sparseOf(vector, path));
  }

  finish(): BatchColumn[] {
    return [...this.columns.values()].map((column) => column.finish(this.count));
  }

  private addValue(index: number, name: string, value: VectorValue): void {
    const column = this.columnOf(name, value.kind);
    if (value.kind === 'sparse') column.addSparse(index, value);
    else if (value.kind === 'multi') column.addMulti(index, value);
    else column.addList(index, value.values, '');
  }

  /** The numbers that a flat list stands for. */
  private numbersOf(list: readonly JsonValue[]): Float32Array | readonly JsonValue[] {
    const { taken } = this.target;
    return taken === null || list.length === 0 ? list : (taken[list[0] as number] as Float32Array);
  }

  private multi(list: readonly JsonValue[], path: string): MultiVector {
    const vectors = list.map((vector) => {
      if (!Array.isArray(vector)) throw noVectorStruct(path);
      return this.numbersOf(vector);
    });
    const dim = (vectors[0] as ArrayLike<number>).length;
    const values = new Float32Array(dim * vectors.length);
    vectors.forEach((vector, at) => {
      if (vector.length === 0) throw new TroupeError('invalidValue', `[${path}.data: all vectors must be non-empty]`);
      if (vector.length !== dim) {
        const detail = `[${path}.data: all vectors must have the same dimension, found vector with dimension ${vector.length}]`;
        throw new TroupeError('invalidValue', detail);
      }
      writeNumbers(values, at * dim, vector, path);
    });
    return { kind: 'multi', dim, values };
  }

  private embedded(object: JsonObject, path: string): VectorValue {
    return this.target.embed(inferenceInput(object, path));
  }

  /** The column a value of this kind goes to: a single vector makes a multivector of one. */
  private columnOf(name: string, kind: VectorValue['kind']): Column {
    const known = this.columns.get(name);
    const named = known?.named ?? this.target.names.get(name);
    if (named === undefined) throw unknownVector(name, this.target.names.keys());
    if (named.kind !== kind && !(named.kind === 'multi' && kind === 'dense')) {
      throw wrongVectorKind(kind, named.kind, name);
    }
    if (known !== undefined) return known;
    const column = new Column(name, named, this.count);
    this.columns.set(name, column);
    return column;
  }
}

/** Points a column has room for at first, or more where their values are few. */
const FIRST_POINTS = 64;
const FIRST_VALUES = 1 << 18;

/** The vectors of one name. Few points of a long list may have it, so all lists grow with what they hold. */
class Column {
  private readonly points: Growing<Uint32Array>;
  private readonly counts: Growing<Uint32Array>;
  private readonly indices: Growing<Uint32Array>;
  private readonly values: Growing<Float32Array>;
  private readonly dim: number;
  /** Tested where the processor has the values at hand, as they come. */
  private areFinite = true;

  constructor(
    private readonly name: string,
    readonly named: NamedVector,
    points: number,
  ) {
    this.dim = named.kind === 'sparse' ? 0 : named.dim;
    const first = Math.min(points, Math.max(FIRST_POINTS, Math.floor(FIRST_VALUES / Math.max(1, this.dim))));
    this.points = new Growing(new Uint32Array(first), points);
    this.counts = new Growing(new Uint32Array(named.kind === 'dense' ? 0 : first), points);
    this.indices = new Growing(new Uint32Array(0));
    this.values = new Growing(new Float32Array(first * this.dim), named.kind === 'dense' ? points * this.dim : undefined);
  }

  /** A single vector. path: how messages name it. */
  addList(index: number, numbers: Float32Array | readonly JsonValue[], path: string): void {
    this.checkDim(numbers.length);
    const start = this.values.extend(numbers.length);
    writeNumbers(this.values.array, start, numbers, path);
    this.addPoint(index, 1, start);
  }

  addMulti(index: number, { dim, values }: MultiVector): void {
    this.checkDim(dim);
    const start = this.values.extend(values.length);
    this.values.array.set(values, start);
    this.addPoint(index, values.length / dim, start);
  }

  addSparse(index: number, { indices, values }: SparseVector): void {
    const start = this.values.extend(values.length);
    this.values.array.set(values, start);
    this.indices.extend(indices.length);
    this.indices.array.set(indices, start);
    this.addPoint(index, indices.length, start);
  }

  /** count: points of the whole batch. */
  finish(count: number): BatchColumn {
    const { name, named, dim } = this;
    const points = this.points.length === count ? null : this.points.filled();
    const values = this.values.filled();
    if (!this.areFinite) throw notFinite(name);
    if (named.kind === 'dense') return { kind: 'dense', name, dim, points, values };
    const counts = this.counts.filled();
    if (named.kind === 'multi') return { kind: 'multi', name, dim, points, counts, values };
    return { kind: 'sparse', name, points, counts, indices: this.indices.filled(), values };
  }

  /** from: where its values begin. */
  private addPoint(index: number, items: number, from: number): void {
    this.areFinite &&= areFinite(this.values.array, from, this.values.length);
    const at = this.points.extend(1);
    this.points.array[at] = index;
    if (this.named.kind === 'dense') return;
    this.counts.extend(1);
    this.counts.array[at] = items;
  }

  private checkDim(dim: number): void {
    if (dim === this.dim) return;
    const of = this.name === '' ? '' : ` for vector '${this.name}'`;
    throw new TroupeError('wrongInput', `Vector dimension error: expected dim: ${this.dim}, got ${dim}${of}`);
  }
}

/** A typed array that is filled from the front. */
class Growing<T extends Uint32Array | Float32Array> {
  length = 0;

  /** lengthMax: what it will never be longer than. */
  constructor(
    public array: T,
    private readonly lengthMax = Number.POSITIVE_INFINITY,
  ) {}

  /** Makes room for so many further elements. Returns where they begin. */
  extend(by: number): number {
    const start = this.length;
    this.length += by;
    if (this.length > this.array.length) {
      const longer = Math.max(this.length, Math.min(this.lengthMax, this.array.length * 2));
      const array = new (this.array.constructor as new (length: number) => T)(longer);
      array.set(this.array);
      this.array = array;
    }
    return start;
  }

  filled(): T {
    return this.array.subarray(0, this.length) as T;
  }
}

function writeNumbers(values: Float32Array, start: number, numbers: Float32Array | readonly JsonValue[], path: string): void {
  if (numbers instanceof Float32Array) {
    values.set(numbers, start);
    return;
  }
  for (let i = 0; i < numbers.length; i++) {
    const component = numbers[i];
    if (typeof component === 'number') values[start + i] = component;
    else if (typeof component === 'bigint') values[start + i] = Number(component);
    else throw noVectorStruct(path);
  }
}

function sparseOf({ indices, values }: JsonObject, path: string): SparseVector {
  if (!Array.isArray(indices) || !Array.isArray(values) || !indices.every(isUint32) || !values.every(isNumber)) throw noVectorStruct(path);
  if (indices.length !== values.length) throw new TroupeError('invalidValue', `[${path}.values: must be the same length as indices]`);
  const vector = sparseVector(indices, values.map(Number));
  if (vector === undefined) throw new TroupeError('invalidValue', `[${path}.indices: must be unique]`);
  return vector;
}

function isNumber(value: JsonValue): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint';
}

function isUint32(value: JsonValue): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 0xffff_ffff;
}

/** Whether a model is asked to make the vector from a text, an image or an object. */
function isInference(vector: JsonObject): boolean {
  return ['text', 'image', 'object'].some((name) => Object.hasOwn(vector, name)) && Object.hasOwn(vector, 'model');
}

export function noVectorStruct(path: string): TroupeError {
  return new TroupeError(
    'malformedBody',
    `\`${path}\`: expected a vector: a list of finite 32-bit numbers, a list of such lists, {"indices": […], "values": […]}, or an object of vectors by name`,
  );
}

function notFinite(name: string): TroupeError {
  const vector = name === '' ? 'a vector' : `a vector \`${name}\``;
  return new TroupeError(
    'wrongInput',
    `${vector} of the request has a value that is not a finite 32-bit number: use values from -3.4e38 to 3.4e38`,
  );
}

/** A vector of the kind `given` where the collection has one of the kind `wanted`. name: of the collection's vector. */
export function wrongVectorKind(given: VectorValue['kind'], wanted: VectorValue['kind'], name: string): TroupeError {
  const forms = { dense: 'a list of numbers', multi: 'a list of lists of numbers', sparse: 'an object with `indices` and `values`' };
  const vector = name === '' ? 'the vector of the collection' : `the vector \`${name}\` of the collection`;
  const other = given === 'sparse' || wanted === 'sparse' ? 'sparse' : 'multi';
  const detail = `${vector} is ${wanted}, the request has a ${given} vector: expected ${forms[wanted]}`;
  return new TroupeError('wrongInput', `Conversion between ${other} and regular vectors failed: ${detail}`);
}

/** known: names that the collection has; left out where they are not at hand. */
export function unknownVector(name: string, known?: Iterable<string>): TroupeError {
  const names = [...(known ?? [])].filter((other) => other !== '').sort();
  const help = names.length === 0 ? '' : `. The collection has: ${names.map((other) => `\`${other}\``).join(', ')}`;
  if (name !== '') return new TroupeError('wrongInput', `Not existing vector name error: ${name}${help}`);
  return new TroupeError('wrongInput', `the collection has only named vectors: name the vector${help}`);
}

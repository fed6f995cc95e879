/**
 * Decodes what queries compare with: vectors of every kind, ids of points, and what a model turns into a vector.
 * Errors: `malformedBody`; `invalidValue` for sparse and multivectors whose parts do not fit together; `wrongInput` for
 * values beyond a float32.
 */

import { TroupeError } from '../errors.js';
import type { JsonValue } from '../model/payload.js';
import { pointIdFrom } from '../model/point-id.js';
import {
  type DenseVector,
  type InferenceInput,
  type MultiVector,
  type SparseVector,
  sparseVector,
  type VectorInput,
  type VectorValue,
} from '../model/vector.js';
import { decodeBm25Options, isBm25 } from './bm25.js';
import { isObject, type JsonObject } from './fields.js';
import { isGiven, missingField } from './request-fields.js';
import type { RequestValue } from './request-value.js';

/** Vectors that were taken out of the body; null: none were, so lists are what they are. */
export type TakenVectors = RequestValue['vectors'];

const UINT32_MAX = 0xffff_ffff;

/** The error for a value that is no input, or a query of no kind. */
export function noQuery(): TroupeError {
  return new TroupeError(
    'malformedBody',
    'the query, or a part of it, has no known form: expected a vector (a list of numbers), a point id, {"text": …, "model": "bm25"}, ' +
      'or an object such as {"nearest": …}, {"recommend": …} or {"fusion": "rrf"}',
  );
}

/** A vector, a point's id, or what a model turns into a vector. path: how messages name the value. */
export function vectorInput(value: JsonValue | undefined, vectors: TakenVectors, path: string): VectorInput {
  if (Array.isArray(value)) return denseOrMulti(value, vectors, path);
  if (isObject(value)) return isSparse(value) ? sparseOf(value, path) : inferenceInput(value, path);
  const id = pointIdFrom(value);
  if (id === undefined) throw noQuery();
  return { kind: 'point', id };
}

/** `vector` of the searches of old: a dense vector, or `{name, vector}` with a dense or sparse one. */
export function namedVector(value: JsonValue | undefined, vectors: TakenVectors, path: string): { using: string; value: VectorValue } {
  if (value === undefined) throw missingField('vector');
  if (Array.isArray(value)) {
    const dense = denseVector(value, vectors);
    if (dense !== undefined) return { using: '', value: dense };
  } else if (isObject(value) && typeof value.name === 'string') {
    const { name, vector } = value;
    if (isObject(vector) && isSparse(vector)) return { using: name, value: sparseOf(vector, `${path}.vector`) };
    const dense = Array.isArray(vector) ? denseVector(vector, vectors) : undefined;
    if (dense !== undefined) return { using: name, value: dense };
  }
  throw new TroupeError('malformedBody', '`vector`: expected a list of numbers, or an object with `name` and `vector`');
}

function denseOrMulti(list: readonly JsonValue[], vectors: TakenVectors, path: string): DenseVector | MultiVector {
  const value = Array.isArray(list[0]) ? multiVector(list, vectors, path) : denseVector(list, vectors);
  if (value === undefined) throw noQuery();
  return value;
}

/** The vector a list stands for; undefined when it is no list of numbers. */
function denseVector(list: readonly JsonValue[], vectors: TakenVectors): DenseVector | undefined {
  let values: Float32Array;
  if (vectors !== null && list.length > 0) {
    const taken = typeof list[0] === 'number' ? vectors[list[0]] : undefined;
    if (taken === undefined) return undefined;
    values = taken;
  } else {
    if (!list.every(isNumber)) return undefined;
    values = Float32Array.from(list, Number);
  }
  return { kind: 'dense', values: finite(values) };
}

function multiVector(list: readonly JsonValue[], vectors: TakenVectors, path: string): MultiVector | undefined {
  const rows: Float32Array[] = [];
  for (const item of list) {
    const row = Array.isArray(item) ? denseVector(item, vectors) : undefined;
    if (row === undefined) return undefined;
    rows.push(row.values);
  }
  const dim = (rows[0] as Float32Array).length;
  if (dim === 0) throw new TroupeError('invalidValue', `[${path}.data: all vectors must be non-empty]`);
  const values = new Float32Array(rows.length * dim);
  rows.forEach((row, at) => {
    if (row.length !== dim) {
      const detail = `[${path}.data: all vectors must have the same dimension, found vector with dimension ${row.length}]`;
      throw new TroupeError('invalidValue', detail);
    }
    values.set(row, at * dim);
  });
  return { kind: 'multi', dim, values };
}

function isSparse(object: JsonObject): boolean {
  return Object.hasOwn(object, 'indices') && Object.hasOwn(object, 'values');
}

/** Sparse vectors are never taken out of a body: a float32 could not hold their indices. */
function sparseOf({ indices, values }: JsonObject, path: string): SparseVector {
  if (!Array.isArray(indices) || !Array.isArray(values)) throw noQuery();
  if (!indices.every(isUint32) || !values.every(isNumber)) throw noQuery();
  if (indices.length !== values.length) {
    throw new TroupeError('invalidValue', `[${path}.values: Validation error: must be the same length as indices [{}]]`);
  }
  const vector = sparseVector(indices as number[], Float32Array.from(values, Number));
  if (vector === undefined) throw new TroupeError('invalidValue', `[${path}.indices: Validation error: must be unique [{}]]`);
  finite(vector.values);
  return vector;
}

/** What a model turns into a vector; an object that has a model. */
export function inferenceInput(object: JsonObject, path: string): InferenceInput {
  const { text, model, options } = object;
  if (typeof model !== 'string' || (isGiven(options) && !isObject(options))) throw noQuery();
  const kind = typeof text === 'string' ? 'document' : Object.hasOwn(object, 'image') ? 'image' : 'object';
  if (kind === 'object' && !Object.hasOwn(object, 'object')) throw noQuery();
  if (model === '') throw new TroupeError('invalidValue', `[${path}.model: value "" invalid, must be at least 1 characters]`);
  if (kind !== 'document') return { kind, model };
  if (isBm25(model)) {
    const given = isObject(options) ? options : {};
    return { kind: 'bm25', text: text as string, model, options: decodeBm25Options(given, `${path}.options`) };
  }
  return { kind, text: text as string, model, options: isObject(options) ? options : {} };
}

/** One sum instead of a test per value: infinities and NaN survive it, and finite float32 values cannot overflow a double. */
function finite(values: Float32Array): Float32Array {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i] as number;
  if (!Number.isFinite(sum)) throw new TroupeError('wrongInput', 'a query vector must hold finite 32-bit numbers');
  return values;
}

function isNumber(value: JsonValue): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint';
}

function isUint32(value: JsonValue): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= UINT32_MAX;
}

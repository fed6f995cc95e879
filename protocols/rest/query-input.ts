/**
 * Decodes what queries compare with: vectors of every kind, ids of points, and what a model turns into a vector.
 * Errors: `malformedBody`; `invalidValue` for sparse and multivectors whose parts do not fit together; `wrongInput` for
 * values beyond a float32.
 */

import { TroupeError } from '../errors.js';
import type { JsonValue } from '../model/payload.js';
import { pointIdFrom } from '../model/point-id.js';
import {
  areFinite,
  type DenseVector,
  type InferenceInput,
  type MultiVector,
  type SparseVector,
  sparseVector,
  type VectorInput,
  type VectorValue,
} from '../model/vector.js';
import { decodeBm25Options, isBm25 } from './bm25.js';
import { bodyPath, isObject, type JsonObject, wrongType } from './fields.js';
import { isGiven, missingField } from './request-fields.js';
import type { RequestValue } from './request-value.js';

/** Vectors that were taken out of the body; null: none were, so lists are what they are. */
export type TakenVectors = RequestValue['vectors'];

const UINT32_MAX = 0xffff_ffff;

/** The forms of an input, as messages list them. */
export const INPUT_FORMS =
  'a vector (a list of numbers, or {"indices": …, "values": …}), a point id (an unsigned integer or a UUID) or {"text": …, "model": …}';
const KEYS_SHOWN_CHARACTERS = 100;

/** A vector, a point's id, or what a model turns into a vector. path: how messages name the value. */
export function vectorInput(value: JsonValue | undefined, vectors: TakenVectors, path: string): VectorInput {
  if (Array.isArray(value)) return denseOrMulti(value, vectors, path);
  if (isObject(value)) {
    if (!isInput(value)) throw unknownKeys(value, path, INPUT_FORMS);
    return isSparse(value) ? sparseOf(value, path) : inferenceInput(value, path);
  }
  const id = pointIdFrom(value);
  if (id === undefined) throw wrongType(path, value, INPUT_FORMS);
  return { kind: 'point', id };
}

/** Whether the object has the keys of a sparse vector or of what a model turns into a vector. */
export function isInput(object: JsonObject): boolean {
  return isSparse(object) || isGiven(object.model);
}

/** The error for an object whose keys say nothing of what is wanted. */
export function unknownKeys(object: JsonObject, path: string, wanted: string): TroupeError {
  const keys = Object.keys(object).filter((key) => isGiven(object[key]));
  const shown = keys.map((key) => `\`${key}\``).join(', ');
  const given = keys.length === 0 ? 'an object without values' : `an object with ${shown.slice(0, KEYS_SHOWN_CHARACTERS)}`;
  return new TroupeError('malformedBody', `\`${bodyPath(path)}\`: ${given}, expected ${wanted}`);
}

/** `vector` of the searches of old: a dense vector, or `{name, vector}` with a dense or sparse one. */
export function namedVector(value: JsonValue | undefined, vectors: TakenVectors, path: string): { using: string; value: VectorValue } {
  if (value === undefined) throw missingField('vector');
  if (Array.isArray(value)) {
    return { using: '', value: denseVector(value, vectors, path) };
  }
  if (isObject(value) && typeof value.name === 'string') {
    const { name, vector } = value;
    if (isObject(vector) && isSparse(vector)) return { using: name, value: sparseOf(vector, `${path}.vector`) };
    if (Array.isArray(vector)) return { using: name, value: denseVector(vector, vectors, `${path}.vector`) };
    throw wrongType(`${path}.vector`, vector, 'a list of numbers, or an object with `indices` and `values`');
  }
  throw wrongType(path, value, 'a list of numbers, or an object with `name` and `vector`');
}

function denseOrMulti(list: readonly JsonValue[], vectors: TakenVectors, path: string): DenseVector | MultiVector {
  return Array.isArray(list[0]) ? multiVector(list, vectors, path) : denseVector(list, vectors, path);
}

/** The vector a list stands for. */
function denseVector(list: readonly JsonValue[], vectors: TakenVectors, path: string): DenseVector {
  const values = numbersOf(list, vectors);
  if (values === undefined) throw notNumbers(list, path);
  return { kind: 'dense', values: finite(values) };
}

/** The numbers a list stands for; undefined when it is no list of numbers. */
function numbersOf(list: readonly JsonValue[], vectors: TakenVectors): Float32Array | undefined {
  if (vectors !== null && list.length > 0) {
    return typeof list[0] === 'number' ? vectors[list[0]] : undefined;
  }
  return list.every(isNumber) ? Float32Array.from(list, Number) : undefined;
}

/** The error for a list that is no list of numbers: it names the first element that is none. */
function notNumbers(list: readonly JsonValue[], path: string): TroupeError {
  const at = list.findIndex((item) => !isNumber(item));
  return at < 0 ? wrongType(path, list as JsonValue[], 'a list of numbers') : wrongType(`${path}[${at}]`, list[at], 'a number');
}

function multiVector(list: readonly JsonValue[], vectors: TakenVectors, path: string): MultiVector {
  const rows = list.map((item, at) => {
    if (!Array.isArray(item)) throw wrongType(`${path}[${at}]`, item, 'a list of numbers');
    const values = numbersOf(item, vectors);
    if (values === undefined) throw notNumbers(item, `${path}[${at}]`);
    return finite(values);
  });
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
  if (!Array.isArray(indices)) throw wrongType(`${path}.indices`, indices, 'a list of unsigned 32-bit integers');
  if (!Array.isArray(values)) throw wrongType(`${path}.values`, values, 'a list of numbers');
  const wrong = indices.findIndex((index) => !isUint32(index));
  if (wrong >= 0) throw wrongType(`${path}.indices[${wrong}]`, indices[wrong], 'an unsigned 32-bit integer');
  if (!values.every(isNumber)) throw notNumbers(values, `${path}.values`);
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
  if (typeof model !== 'string') throw wrongType(`${path}.model`, model, 'the name of a model (a string)');
  if (isGiven(options) && !isObject(options)) throw wrongType(`${path}.options`, options, 'an object');
  const kind = typeof text === 'string' ? 'document' : Object.hasOwn(object, 'image') ? 'image' : 'object';
  if (kind === 'object' && !Object.hasOwn(object, 'object')) throw wrongType(`${path}.text`, text, 'a string');
  if (model === '') throw new TroupeError('invalidValue', `[${path}.model: value "" invalid, must be at least 1 characters]`);
  if (kind !== 'document') return { kind, model };
  if (isBm25(model)) {
    const given = isObject(options) ? options : {};
    return { kind: 'bm25', text: text as string, model, options: decodeBm25Options(given, `${path}.options`) };
  }
  return { kind, text: text as string, model, options: isObject(options) ? options : {} };
}

function finite(values: Float32Array): Float32Array {
  if (!areFinite(values)) throw new TroupeError('wrongInput', 'the query vector has a value that is not a finite 32-bit number');
  return values;
}

function isNumber(value: JsonValue): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint';
}

function isUint32(value: JsonValue): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= UINT32_MAX;
}

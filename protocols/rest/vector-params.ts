/** What a collection's vectors are: decoded when it is created, and when a vector is added to it. */

import { TroupeError } from '../errors.js';
import {
  type CollectionParams,
  type Datatype,
  type Distance,
  type SparseVectorParams,
  type VectorParams,
  type VectorsConfig,
  vectorsByName,
} from '../model/collection.js';
import { defined, type Fields, wrongType } from './fields.js';
import { forbiddenCharacter } from './parameters.js';
import { missingField } from './request-fields.js';

const DISTANCES = ['Cosine', 'Euclid', 'Dot', 'Manhattan'] as const satisfies readonly Distance[];
const DATATYPES = ['float32', 'float16', 'uint8', 'turbo4'] as const;
const COMPARATORS = ['max_sim'] as const;
export const MODIFIERS = ['none', 'idf'] as const;
const SPARSE_DATATYPES = ['float32', 'uint8', 'float16', 'turbo4'] as const;
const VECTOR_SIZE_MAX = 65536;
const VECTOR_NAME_LENGTH_MAX = 255;

/** Size, distance, type and whether points have lists of such vectors. Errors: `malformedBody`, `invalidValue`. */
export function decodeVectorShape(fields: Fields): VectorParams {
  const size = fields.integer('size', { min: 1, max: VECTOR_SIZE_MAX });
  if (size === undefined) throw missingField(fields.pathOf('size'));
  const distance = fields.word('distance', DISTANCES);
  if (distance === undefined) throw missingField(fields.pathOf('distance'));
  const vector: VectorParams = { size, distance };
  const datatype = fields.word('datatype', DATATYPES);
  if (datatype !== undefined) vector.datatype = datatype;
  const multi = fields.nested('multivector_config');
  if (multi !== undefined) vector.multivector_config = { comparator: comparatorOf(multi) };
  return vector;
}

function comparatorOf(fields: Fields): 'max_sim' {
  const comparator = fields.word('comparator', COMPARATORS);
  if (comparator === undefined) throw missingField(fields.pathOf('comparator'));
  return comparator;
}

/** Sparse vectors by name; undefined when the request has none. vectors: the others, whose names they cannot have. */
export function decodeSparseVectors(fields: Fields | undefined, vectors: VectorsConfig): CollectionParams['sparse_vectors'] {
  if (fields === undefined) return undefined;
  const dense = vectorsByName(vectors);
  const named = namedSparseVectors(fields);
  for (const [name] of named) {
    if (name === '') throw new TroupeError('wrongInput', 'Sparse vector name cannot be empty');
    checkVectorName(name, 'sparse');
    if (dense.has(name)) {
      throw new TroupeError('wrongInput', `Dense and sparse vector names must be unique - duplicate found with '${name}'`);
    }
  }
  return named.length === 0 ? undefined : Object.fromEntries(named);
}

/** Sparse vector parameters by name, as far as they are given. */
export function namedSparseVectors(fields: Fields): [string, SparseVectorParams][] {
  return fields.names().map((name) => {
    const params = fields.nested(name);
    if (params === undefined) throw wrongType(fields.pathOf(name), null, 'sparse vector parameters');
    return [name, decodeSparseVector(params)];
  });
}

function decodeSparseVector(fields: Fields): SparseVectorParams {
  const index = fields.nested('index');
  return defined({
    index:
      index &&
      defined({
        full_scan_threshold: index.integer('full_scan_threshold'),
        on_disk: index.boolean('on_disk'),
        datatype: sparseDatatype(index),
      }),
    modifier: fields.word('modifier', MODIFIERS),
  });
}

/** Errors: `malformedBody`, `invalidValue`. */
export function sparseDatatype(fields: Fields): Exclude<Datatype, 'turbo4'> | undefined {
  const datatype = fields.word('datatype', SPARSE_DATATYPES);
  if (datatype !== 'turbo4') return datatype;
  throw new TroupeError('invalidValue', `[${fields.pathOf('datatype')}: sparse vectors do not support the \`turbo4\` datatype]`);
}

/** Errors: `wrongInput`. */
export function checkVectorName(name: string, kind: 'dense' | 'sparse' = 'dense'): void {
  const forbidden = forbiddenCharacter(name);
  if (forbidden !== undefined) {
    throw new TroupeError('wrongInput', `Invalid ${kind} vector name \`${name}\`: vector name cannot contain "${forbidden}" char`);
  }
  if (name.length > VECTOR_NAME_LENGTH_MAX) {
    throw new TroupeError('wrongInput', `Invalid ${kind} vector name \`${name}\`: must be at most ${VECTOR_NAME_LENGTH_MAX} characters`);
  }
}

/**
 * Vectors that a living collection gets and loses: `PUT` and `DELETE /collections/{name}/vectors/{vector_name}`.
 * Source: schema VectorNameConfig of the API; scenario collections-vector-names.
 */

import { TroupeError } from '../errors.js';
import { stringifyJson } from '../json.js';
import {
  type CollectionConfig,
  type CollectionParams,
  DEFAULT_VECTOR,
  isSingleVector,
  type SparseVectorParams,
  sparseByName,
  type VectorParams,
  vectorsByName,
} from '../model/collection.js';
import type { JsonValue } from '../model/payload.js';
import { defined, Fields } from './fields.js';
import { checkVectorName, decodeVectorShape, MODIFIERS, sparseDatatype } from './vector-params.js';

/** A vector to be added. */
export type NewVector =
  | { readonly kind: 'dense'; readonly name: string; readonly params: VectorParams }
  | { readonly kind: 'sparse'; readonly name: string; readonly params: SparseVectorParams };

/** What a request to add a vector asks for; of both kinds given, dense. Errors: `malformedBody`, `invalidValue`, `wrongInput`. */
export function decodeNewVector(name: string, body: JsonValue): NewVector {
  const fields = Fields.of(body, '');
  const dense = fields.nested('dense');
  if (dense !== undefined) {
    const params = decodeVectorShape(dense);
    checkVectorName(name);
    return { kind: 'dense', name, params };
  }
  const sparse = fields.nested('sparse');
  if (sparse === undefined) throw new TroupeError('malformedBody', 'expected `dense` or `sparse` with the settings of the vector');
  const datatype = sparseDatatype(sparse);
  const params: SparseVectorParams = defined({
    index: datatype && { datatype },
    modifier: sparse.word('modifier', MODIFIERS),
  });
  checkVectorName(name, 'sparse');
  return { kind: 'sparse', name, params };
}

/** The configuration with a vector more; as it was when it has the same one. Errors: `wrongInput` when another one has its name. */
export function addVector(config: CollectionConfig, vector: NewVector): CollectionConfig {
  const { params } = config;
  const dense = vectorsByName(params.vectors);
  const sparse = sparseByName(params);
  const known = dense.get(vector.name) ?? sparse.get(vector.name);
  if (known !== undefined) {
    if (dense.has(vector.name) === (vector.kind === 'dense') && stringifyJson(known) === stringifyJson(vector.params)) return config;
    throw new TroupeError('wrongInput', `Vector \`${vector.name}\` already exists with a different configuration`);
  }
  if (vector.kind === 'sparse') sparse.set(vector.name, vector.params);
  else dense.set(vector.name, vector.params);
  return { ...config, params: withVectors(params, dense, sparse) };
}

/** The configuration without a vector; as it was when it has none of this name. */
export function removeVector(config: CollectionConfig, name: string): CollectionConfig {
  const dense = vectorsByName(config.params.vectors);
  const sparse = sparseByName(config.params);
  const known = dense.delete(name) || sparse.delete(name);
  return known ? { ...config, params: withVectors(config.params, dense, sparse) } : config;
}

function withVectors(
  params: CollectionParams,
  dense: ReadonlyMap<string, VectorParams>,
  sparse: ReadonlyMap<string, SparseVectorParams>,
): CollectionParams {
  const { sparse_vectors: _, ...others } = params;
  // A single vector becomes one of the name of nothing as soon as there are others.
  const single = isSingleVector(params.vectors) && dense.size === 1 && dense.has(DEFAULT_VECTOR);
  return {
    ...others,
    vectors: single ? params.vectors : Object.fromEntries(dense),
    ...(sparse.size === 0 ? {} : { sparse_vectors: Object.fromEntries(sparse) }),
  };
}

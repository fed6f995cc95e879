/** REST forms of requests about collections and of their settings. */

import type { JsonValue } from '../model/payload.js';
import { chosen, type MessageFields, object, only, type RestForms, tagged } from './form.js';

export const COLLECTION_FORMS: RestForms = {
  CreateCollection: settingsForm,
  UpdateCollection: settingsForm,
  VectorsConfig: (fields) => chosen(fields, 'the value of `vectors_config`'),
  VectorParamsMap: (fields) => fields.map ?? {},
  VectorsConfigDiff: ({ params, params_map }) => (params === undefined ? params_map : { '': params }),
  VectorParamsDiffMap: (fields) => fields.map ?? {},
  SparseVectorConfig: (fields) => fields.map ?? {},
  OptimizersConfigDiff: ({ deprecated_max_optimization_threads, ...fields }) =>
    object({ ...fields, max_optimization_threads: fields.max_optimization_threads ?? deprecated_max_optimization_threads }),
  MaxOptimizationThreads: (fields) => fields.value ?? fields.setting,
  QuantizationConfig: quantizationForm,
  QuantizationConfigDiff: quantizationForm,
  BinaryQuantizationQueryEncoding: only('setting'),
  StrictModeMultivectorConfig: (fields) => fields.multivector_config ?? {},
  StrictModeSparseConfig: (fields) => fields.sparse_config ?? {},

  PayloadIndexParams: (fields) => {
    for (const name in fields) {
      const params = fields[name];
      if (params !== undefined) return { type: name.slice(0, name.indexOf('_')), ...(params as { [key: string]: JsonValue }) };
    }
    return undefined;
  },
  StemmingAlgorithm: (fields) => {
    if (fields.snowball === undefined) return undefined;
    return { type: 'snowball', ...(fields.snowball as { [key: string]: JsonValue }) };
  },

  ChangeAliases: (fields) => ({ actions: fields.actions ?? [] }),
  AliasOperations: tagged('the kind of an alias action'),
  UpdateCollectionClusterSetupRequest: ({ collection_name, timeout, create_shard_key, delete_shard_key, ...operations }) =>
    object({ ...operations, create_sharding_key: create_shard_key, drop_sharding_key: delete_shard_key }),
  CreateShardKeyRequest: only('request'),
  DeleteShardKeyRequest: only('request'),
};

function settingsForm({ collection_name, timeout, vectors_config, sparse_vectors_config, ...fields }: MessageFields): JsonValue {
  return object({ ...fields, vectors: vectors_config, sparse_vectors: sparse_vectors_config ?? fields.sparse_vectors });
}

function quantizationForm({ turboquant, disabled, ...fields }: MessageFields): JsonValue | undefined {
  if (disabled !== undefined) return 'Disabled';
  if (turboquant !== undefined) return { turbo: turboquant };
  return object({ ...fields });
}

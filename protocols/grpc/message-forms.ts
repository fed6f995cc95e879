/** The fields of gRPC messages for what REST answers in their place. A message that is not listed looks the same there. */

import { parseDatetime } from '../datetime.js';

type Fields = { readonly [name: string]: unknown };

/** From the REST value to the message's fields. */
type MessageForm = (value: unknown) => Fields;

export const MESSAGE_FORMS: Readonly<Record<string, MessageForm>> = {
  // Answers: REST has the value of `result` only.
  GetCollectionInfoResponse: result,
  CollectionExistsResponse: result,
  CollectionOperationResponse: result,
  PointsOperationResponse: result,
  UpdateCollectionClusterSetupResponse: result,
  CreateShardKeyResponse: result,
  DeleteShardKeyResponse: result,

  CreateSnapshotResponse: (snapshot) => ({ snapshot_description: snapshot }),
  ListSnapshotsResponse: (snapshots) => ({ snapshot_descriptions: snapshots }),
  DeleteSnapshotResponse: () => ({}),
  Timestamp: (time) => timestamp(parseDatetime(time as string) ?? 0),

  OptimizerStatus: (status) => (status === 'ok' ? { ok: true } : { ok: false, error: (status as { error: string }).error }),
  CollectionParams: (params) => {
    const { vectors, sparse_vectors, ...fields } = params as Fields;
    return { ...fields, vectors_config: vectors, sparse_vectors_config: sparse_vectors };
  },
  VectorsConfig: (vectors) => (isSingle(vectors as Fields) ? { params: vectors } : { params_map: vectors }),
  VectorParamsMap: map,
  SparseVectorConfig: map,
  MaxOptimizationThreads: (threads) => (threads === 'auto' ? { setting: threads } : { value: threads }),
  QuantizationConfig: (config) => {
    const { turbo, ...fields } = config as Fields;
    return { ...fields, turboquant: turbo };
  },
  BinaryQuantizationQueryEncoding: (setting) => ({ setting }),
  StrictModeMultivectorConfig: (config) => ({ multivector_config: config }),
  StrictModeSparseConfig: (config) => ({ sparse_config: config }),
  PayloadIndexParams: (params) => {
    const { type, ...fields } = params as Fields;
    return { [`${type}_index_params`]: fields };
  },
  StopwordsSet: (words) => (typeof words === 'string' ? { languages: [words] } : (words as Fields)),
  StemmingAlgorithm: (stemmer) => ({ snowball: stemmer }),
  ShardKey: (key) => (typeof key === 'string' ? { keyword: key } : { number: key }),
  ListShardKeysResponse: (value) => ({ shard_keys: (value as Fields).shard_keys }),
};

function result(value: unknown): Fields {
  return { result: value };
}

/** micros: since the epoch. */
function timestamp(micros: number): Fields {
  const seconds = Math.floor(micros / 1e6);
  return { seconds, nanos: (micros - seconds * 1e6) * 1000 };
}

function map(value: unknown): Fields {
  return { map: value };
}

/** The parameters of the unnamed vector, not of vectors by name. */
function isSingle(vectors: Fields): boolean {
  return typeof vectors.size === 'number';
}

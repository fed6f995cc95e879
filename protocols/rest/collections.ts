/** Bodies of `PUT` and `PATCH /collections/{name}`: decoded, checked and merged into a collection's configuration. */

import {
  type CollectionConfig,
  type CollectionParams,
  DEFAULT_VECTOR,
  type HnswConfig,
  isSingleVector,
  type OptimizersConfig,
  type QuantizationConfig,
  type SparseVectorParams,
  type VectorParams,
  type VectorsConfig,
  type WalConfig,
} from '../model/collection.js';
import type { JsonValue, Payload } from '../model/payload.js';
import { defined, Fields, isObject, type JsonObject, wrongType } from './fields.js';
import { refuseUnknown } from './known-names.js';
import { decodeMetadata, mergeMetadata } from './metadata.js';
import { unknownVector } from './point-vectors.js';
import { decodeQuantization, decodeQuantizationChange } from './quantization.js';

import { checkVectorName, decodeSparseVectors, decodeVectorShape, namedSparseVectors } from './vector-params.js';

/** What a new collection gets for the options its request leaves out; from the node's settings. */
export interface CollectionDefaults {
  readonly hnsw: HnswConfig;
  readonly optimizers: OptimizersConfig;
  readonly wal: WalConfig;
  /** For each peer. */
  readonly shardNumber: number;
  readonly replicationFactor: number;
  readonly writeConsistencyFactor: number;
  readonly onDiskPayload: boolean;
  readonly quantization: QuantizationConfig | null;
  /** `on_disk` of vectors that don't say; null leaves it open. */
  readonly vectorsOnDisk: boolean | null;
  /** Strict mode limits; null for none. */
  readonly strictMode: StrictMode | null;
}

export type StrictMode = { readonly [key: string]: JsonValue };

/** What a PATCH asks to change; absent fields stay as they are. */
export interface CollectionChange {
  readonly hnsw?: Partial<HnswConfig>;
  readonly optimizers?: Partial<OptimizersConfig>;
  readonly params?: Partial<Omit<CollectionParams, 'vectors'>>;
  /** By vector name; '' is the unnamed vector. */
  readonly vectors?: ReadonlyMap<string, VectorChange>;
  /** By vector name. */
  readonly sparseVectors?: ReadonlyMap<string, SparseVectorParams>;
  readonly quantization?: QuantizationConfig | 'Disabled';
  readonly strictMode?: StrictMode;
  /** Keys to set; null removes one. */
  readonly metadata?: Payload;
}

export interface VectorChange {
  readonly hnsw?: Partial<HnswConfig>;
  readonly quantization?: QuantizationConfig | 'Disabled';
  readonly onDisk?: boolean;
}

/** Defaults of a node that was configured with nothing. Source: configuration contract. */
export const BUILT_IN_DEFAULTS: CollectionDefaults = {
  hnsw: { m: 16, ef_construct: 100, full_scan_threshold: 10000, max_indexing_threads: 0, on_disk: false },
  optimizers: {
    deleted_threshold: 0.2,
    vacuum_min_vector_number: 1000,
    default_segment_number: 0,
    max_segment_size: null,
    memmap_threshold: null,
    indexing_threshold: 10000,
    flush_interval_sec: 5,
    max_optimization_threads: null,
    prevent_unoptimized: null,
  },
  wal: { wal_capacity_mb: 32, wal_segments_ahead: 0, wal_retain_closed: 1 },
  shardNumber: 1,
  replicationFactor: 1,
  writeConsistencyFactor: 1,
  onDiskPayload: true,
  quantization: null,
  vectorsOnDisk: null,
  strictMode: null,
};

/** Each shard has files and actors of its own, and in a cluster it is agreed on. */
export const SHARDS_MAX = 4096;

const SHARDING_METHODS = ['auto', 'custom'] as const;

/** Strict mode limits and the smallest and largest value of each. Source: API reference, StrictModeConfig. */
const STRICT_INTEGERS: ReadonlyMap<string, readonly [number, number]> = new Map([
  ['max_query_limit', [1, Number.POSITIVE_INFINITY]],
  ['max_timeout', [1, Number.POSITIVE_INFINITY]],
  ['search_max_hnsw_ef', [0, Number.POSITIVE_INFINITY]],
  ['upsert_max_batchsize', [0, Number.POSITIVE_INFINITY]],
  ['search_max_batchsize', [0, Number.POSITIVE_INFINITY]],
  ['max_collection_vector_size_bytes', [0, Number.POSITIVE_INFINITY]],
  ['read_rate_limit', [1, Number.POSITIVE_INFINITY]],
  ['write_rate_limit', [1, Number.POSITIVE_INFINITY]],
  ['max_collection_payload_size_bytes', [0, Number.POSITIVE_INFINITY]],
  ['max_points_count', [1, Number.POSITIVE_INFINITY]],
  ['filter_max_conditions', [0, Number.POSITIVE_INFINITY]],
  ['condition_max_size', [0, Number.POSITIVE_INFINITY]],
  ['max_payload_index_count', [0, Number.POSITIVE_INFINITY]],
  ['max_resident_memory_percent', [1, 100]],
  ['max_disk_usage_percent', [1, 100]],
]);
const STRICT_OTHERS = ['search_max_oversampling', 'multivector_config', 'sparse_config'];
const STRICT_FLAGS = ['enabled', 'unindexed_filtering_retrieve', 'unindexed_filtering_update', 'search_allow_exact'];

/**
 * The configuration that a create request describes.
 * body: the decoded JSON. peers: of the cluster; null on a node of its own. Errors: malformedBody, invalidValue, wrongInput.
 */
export function decodeCreateCollection(body: JsonValue, defaults: CollectionDefaults, peers: number | null = null): CollectionConfig {
  const fields = Fields.of(body, '');
  const vectors = decodeVectors(fields.value('vectors'), defaults.vectorsOnDisk);
  const params = decodeCreateParams(fields, vectors, defaults, peers);
  const hnsw = { ...defaults.hnsw, ...decodeHnsw(fields.nested('hnsw_config')) };
  const optimizers = { ...defaults.optimizers, ...decodeOptimizers(fields.nested('optimizers_config')) };
  const wal = { ...defaults.wal, ...decodeWal(fields.nested('wal_config')) };
  const strictMode = mergeStrictMode(defaults.strictMode ?? undefined, decodeStrictMode(fields.nested('strict_mode_config')));
  const metadata = decodeMetadata(fields);
  return {
    params,
    hnsw_config: hnsw,
    optimizer_config: optimizers,
    wal_config: wal,
    quantization_config: decodeQuantization(fields) ?? defaults.quantization,
    ...(strictMode === undefined ? {} : { strict_mode_config: strictMode }),
    ...(metadata === undefined ? {} : { metadata }),
  };
}

/** What an update request asks to change. Errors: malformedBody, invalidValue, unsupported. */
export function decodeUpdateCollection(body: JsonValue): CollectionChange {
  const fields = Fields.of(body, '');
  const change: { -readonly [Key in keyof CollectionChange]: CollectionChange[Key] } = {};
  const hnsw = fields.nested('hnsw_config');
  if (hnsw !== undefined) change.hnsw = decodeHnsw(hnsw);
  const optimizers = fields.nested('optimizers_config');
  if (optimizers !== undefined) change.optimizers = decodeOptimizers(optimizers);
  const params = fields.nested('params');
  if (params !== undefined) change.params = decodeParamsChange(params);
  const vectors = fields.nested('vectors');
  if (vectors !== undefined) change.vectors = decodeVectorChanges(vectors);
  const sparse = fields.nested('sparse_vectors');
  if (sparse !== undefined) change.sparseVectors = new Map(namedSparseVectors(sparse));
  const strictMode = decodeStrictMode(fields.nested('strict_mode_config'));
  if (strictMode !== undefined) change.strictMode = strictMode;
  const metadata = decodeMetadata(fields);
  if (metadata !== undefined) change.metadata = metadata;
  const quantization = decodeQuantizationChange(fields);
  if (quantization !== undefined) change.quantization = quantization;
  return change;
}

/**
 * The configuration after a change; `config` itself stays as it is.
 * Errors: wrongInput for a vector that isn't there.
 */
export function applyCollectionChange(config: CollectionConfig, change: CollectionChange): CollectionConfig {
  const params = {
    ...config.params,
    ...change.params,
    vectors: changeVectors(config.params.vectors, change.vectors),
    ...defined({ sparse_vectors: changeSparseVectors(config.params.sparse_vectors, change.sparseVectors) }),
  };
  const hnsw = { ...config.hnsw_config, ...change.hnsw };
  const optimizers = { ...config.optimizer_config, ...change.optimizers };
  const strictMode = mergeStrictMode(config.strict_mode_config as StrictMode | undefined, change.strictMode);
  const metadata = mergeMetadata(config.metadata, change.metadata);
  return {
    ...config,
    params,
    hnsw_config: hnsw,
    optimizer_config: optimizers,
    quantization_config: change.quantization === 'Disabled' ? null : (change.quantization ?? config.quantization_config),
    ...(strictMode === undefined ? {} : { strict_mode_config: strictMode }),
    ...(metadata === undefined ? {} : { metadata }),
  };
}

// ------------------------------------------------------------------ vectors

function decodeVectors(value: JsonValue | undefined, onDisk: boolean | null): VectorsConfig {
  if (value === undefined) return {};
  const fields = Fields.of(value, 'vectors');
  if (looksSingle(fields)) return decodeVector(fields, onDisk);
  const named: [string, VectorParams][] = [];
  for (const name of fields.names()) {
    const params = fields.nested(name);
    if (params === undefined) throw wrongType(fields.pathOf(name), null, 'vector parameters');
    named.push([name, decodeVector(params, onDisk)]);
    checkVectorName(name);
  }
  // fromEntries defines own properties, so that a vector may be called `__proto__`.
  return Object.fromEntries(named);
}

/** Whether this is the form of one unnamed vector: named vectors have objects for values, whatever their names. */
function looksSingle(fields: Fields): boolean {
  const plain = (name: string) => fields.value(name) !== undefined && !isObject(fields.value(name));
  return plain('size') || plain('distance');
}

function decodeVector(fields: Fields, onDiskDefault: boolean | null): VectorParams {
  if (fields.value('size') === 0) throw wrongType(fields.pathOf('size'), 0, 'an integer of at least 1');
  const vector = decodeVectorShape(fields);
  const hnsw = fields.nested('hnsw_config');
  if (hnsw !== undefined) vector.hnsw_config = decodeHnsw(hnsw);
  const quantization = decodeQuantization(fields);
  if (quantization !== undefined) vector.quantization_config = quantization;
  const onDisk = fields.boolean('on_disk') ?? onDiskDefault;
  if (onDisk !== null) vector.on_disk = onDisk;
  return vector;
}

function decodeVectorChanges(fields: Fields): Map<string, VectorChange> {
  const changes = new Map<string, VectorChange>();
  for (const name of fields.names()) {
    const params = fields.nested(name);
    if (params === undefined) throw wrongType(fields.pathOf(name), null, 'changes of vector parameters');
    const hnsw = params.nested('hnsw_config');
    const onDisk = params.boolean('on_disk');
    const quantization = decodeQuantizationChange(params);
    changes.set(name, {
      ...(hnsw === undefined ? {} : { hnsw: decodeHnsw(hnsw) }),
      ...(quantization === undefined ? {} : { quantization }),
      ...(onDisk === undefined ? {} : { onDisk }),
    });
  }
  return changes;
}

function changeVectors(vectors: VectorsConfig, changes: CollectionChange['vectors']): VectorsConfig {
  if (changes === undefined || changes.size === 0) return vectors;
  if (isSingleVector(vectors)) {
    for (const name of changes.keys()) if (name !== DEFAULT_VECTOR) throw unknownVector(name);
    return changeVector(vectors, changes.get(DEFAULT_VECTOR) as VectorChange);
  }
  for (const name of changes.keys()) if (!Object.hasOwn(vectors, name)) throw unknownVector(name, Object.keys(vectors));
  const entries = Object.entries(vectors).map(([name, params]): [string, VectorParams] => {
    const change = changes.get(name);
    return [name, change === undefined ? params : changeVector(params, change)];
  });
  return Object.fromEntries(entries);
}

function changeVector(params: VectorParams, change: VectorChange): VectorParams {
  const changed = { ...params };
  if (change.hnsw !== undefined) changed.hnsw_config = { ...params.hnsw_config, ...change.hnsw };
  if (change.quantization === 'Disabled') delete changed.quantization_config;
  else if (change.quantization !== undefined) changed.quantization_config = change.quantization;
  if (change.onDisk !== undefined) changed.on_disk = change.onDisk;
  return changed;
}

function changeSparseVectors(
  vectors: CollectionParams['sparse_vectors'],
  changes: CollectionChange['sparseVectors'],
): CollectionParams['sparse_vectors'] {
  const changed = new Map(Object.entries(vectors ?? {}));
  for (const [name, change] of changes ?? []) {
    const params = changed.get(name);
    if (params === undefined) throw unknownVector(name, changed.keys());
    const index = change.index === undefined ? params.index : { ...params.index, ...change.index };
    changed.set(name, { ...params, ...change, ...defined({ index }) });
  }
  return vectors === undefined ? undefined : Object.fromEntries(changed);
}

// ------------------------------------------------------------------ parts

function decodeCreateParams(fields: Fields, vectors: VectorsConfig, defaults: CollectionDefaults, peers: number | null): CollectionParams {
  const method = fields.word('sharding_method', SHARDING_METHODS);
  // With custom sharding it counts the shards of one key. Source: specification, Collection.
  const shardsDefault = defaults.shardNumber * (method === 'custom' ? 1 : (peers ?? 1));
  const shardNumber = fields.integer('shard_number', { min: 1, max: SHARDS_MAX }) ?? shardsDefault;
  const replicationFactor = fields.integer('replication_factor', { min: 1 }) ?? defaults.replicationFactor;
  const writeConsistencyFactor = fields.integer('write_consistency_factor', { min: 1 }) ?? defaults.writeConsistencyFactor;
  const onDiskPayload = fields.boolean('on_disk_payload') ?? defaults.onDiskPayload;
  return {
    vectors,
    shard_number: shardNumber,
    ...(method === undefined ? {} : { sharding_method: method }),
    replication_factor: replicationFactor,
    write_consistency_factor: writeConsistencyFactor,
    on_disk_payload: onDiskPayload,
    ...defined({ sparse_vectors: decodeSparseVectors(fields.nested('sparse_vectors'), vectors) }),
  };
}

function decodeParamsChange(fields: Fields): Partial<Omit<CollectionParams, 'vectors'>> {
  for (const name of ['replication_factor', 'write_consistency_factor']) {
    // In a change the contract has 0 as a wrong type (400), unlike at creation.
    if (fields.value(name) === 0) throw wrongType(fields.pathOf(name), 0, 'an integer of at least 1');
  }
  return defined({
    replication_factor: fields.integer('replication_factor'),
    write_consistency_factor: fields.integer('write_consistency_factor'),
    read_fan_out_factor: fields.integer('read_fan_out_factor'),
    read_fan_out_delay_ms: fields.integer('read_fan_out_delay_ms'),
    on_disk_payload: fields.boolean('on_disk_payload'),
  });
}

function decodeHnsw(fields: Fields | undefined): Partial<HnswConfig> {
  if (fields === undefined) return {};
  return defined({
    m: fields.integer('m'),
    ef_construct: fields.integer('ef_construct', { min: 4 }),
    full_scan_threshold: fields.integer('full_scan_threshold', { min: 10 }),
    max_indexing_threads: fields.integer('max_indexing_threads'),
    on_disk: fields.boolean('on_disk'),
    payload_m: fields.integer('payload_m'),
    inline_storage: fields.boolean('inline_storage'),
  });
}

function decodeOptimizers(fields: Fields | undefined): Partial<OptimizersConfig> {
  if (fields === undefined) return {};
  const automatic = fields.value('max_optimization_threads') === 'auto';
  const decoded: Partial<OptimizersConfig> = defined({
    deleted_threshold: fields.number('deleted_threshold', 0, 1),
    vacuum_min_vector_number: fields.integer('vacuum_min_vector_number', { min: 100 }),
    default_segment_number: fields.integer('default_segment_number'),
    max_segment_size: fields.integer('max_segment_size', { min: 1 }),
    memmap_threshold: fields.integer('memmap_threshold'),
    indexing_threshold: fields.integer('indexing_threshold'),
    flush_interval_sec: fields.integer('flush_interval_sec'),
    max_optimization_threads: automatic ? undefined : fields.integer('max_optimization_threads'),
    prevent_unoptimized: fields.boolean('prevent_unoptimized'),
  });
  if (automatic) decoded.max_optimization_threads = null;
  return decoded;
}

function decodeWal(fields: Fields | undefined): Partial<WalConfig> {
  if (fields === undefined) return {};
  return defined({
    wal_capacity_mb: fields.integer('wal_capacity_mb', { min: 1 }),
    wal_segments_ahead: fields.integer('wal_segments_ahead'),
    wal_retain_closed: fields.integer('wal_retain_closed'),
  });
}

/** Strict mode limits of the node's settings. path: how messages name them. Errors: `malformedBody`, also for a limit that there is not; `invalidValue`. */
export function decodeStrictDefaults(limits: JsonObject, path: string): StrictMode {
  refuseUnknown(limits, [...STRICT_INTEGERS.keys(), ...STRICT_FLAGS, ...STRICT_OTHERS], path);
  return decodeStrictMode(Fields.of(limits, path)) ?? {};
}

/** Strict mode limits as they are kept: known fields in the order of the request, nulls left out. */
function decodeStrictMode(fields: Fields | undefined): StrictMode | undefined {
  if (fields === undefined) return undefined;
  const limits: JsonObject = {};
  for (const name of fields.names()) {
    const range = STRICT_INTEGERS.get(name);
    let value: JsonValue | undefined;
    if (range !== undefined) value = fields.integer(name, { min: range[0], max: range[1] });
    else if (STRICT_FLAGS.includes(name)) value = fields.boolean(name);
    else if (name === 'search_max_oversampling') value = fields.number(name, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY);
    else if (name === 'multivector_config') value = perVectorLimits(fields.nested(name), 'max_vectors');
    else if (name === 'sparse_config') value = perVectorLimits(fields.nested(name), 'max_length');
    if (value !== undefined) limits[name] = value;
  }
  return limits;
}

/** One limit for each of some vectors, by their names. */
function perVectorLimits(fields: Fields | undefined, limit: string): JsonObject | undefined {
  if (fields === undefined) return undefined;
  const limits = fields.names().map((name): [string, JsonObject] => {
    const vector = fields.nested(name);
    if (vector === undefined) throw wrongType(fields.pathOf(name), null, 'limits of a vector');
    const value = vector.integer(limit, { min: 1 });
    return [name, value === undefined ? {} : { [limit]: value }];
  });
  return Object.fromEntries(limits);
}

function mergeStrictMode(current: StrictMode | undefined, change: StrictMode | undefined): StrictMode | undefined {
  return change === undefined ? current : { ...current, ...change };
}

/** The given fields without the undefined ones, so that merging keeps what was there. */

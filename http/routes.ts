/**
 * The API's operations, one row each: its method and path as the API reference writes them, its name, who may call it
 * and who carries it out. Every door and the metrics read this table.
 */

import type { ReadOperation, WriteOperation } from '../storage/threads/messages.js';

export type HttpMethod = 'GET' | 'PUT' | 'POST' | 'PATCH' | 'DELETE';

/** Open to all, reading, writing or managing. */
export type Access = 'open' | 'r' | 'w' | 'm';

interface Row {
  readonly method: HttpMethod;
  readonly path: string;
  readonly name: string;
  readonly access: Access;
  /** Service and method of gRPC that do the same (`qdrant.Points/Upsert`); null: there is none. */
  readonly grpc: string | null;
}

/** Points of one collection, read by an engine worker. */
export interface ReadRow extends Row {
  readonly kind: 'read';
  readonly engine: ReadOperation;
}

/** Points or payload indexes of one collection, written by the replica's home worker. */
export interface WriteRow extends Row {
  readonly kind: 'write';
  readonly engine: WriteOperation;
}

/** Collections and the node itself. */
export interface NodeRow extends Row {
  readonly kind: 'node';
  readonly run: NodeOperation;
}

/** In the API, but not in this release. */
export interface LaterRow extends Row {
  readonly kind: 'later';
}

export type Operation = ReadRow | WriteRow | NodeRow | LaterRow;

export type NodeOperation =
  | ClusterOperation
  | 'root'
  | 'alive'
  | 'ready'
  | 'telemetry'
  | 'metrics'
  | 'openapi'
  | 'docs'
  | 'issues'
  | 'clearIssues'
  | 'listCollections'
  | 'collectionInfo'
  | 'createCollection'
  | 'updateCollection'
  | 'createVectorName'
  | 'deleteVectorName'
  | 'deleteCollection'
  | 'collectionExists'
  | 'optimizations'
  | 'collectionAliases'
  | 'aliases'
  | 'changeAliases';

export type ClusterOperation =
  | 'clusterStatus'
  | 'clusterTelemetry'
  | 'removePeer'
  | 'drainPeer'
  | 'keepPeer'
  | 'rebalance'
  | 'recoverPeer'
  | 'collectionCluster'
  | 'setUpCollection'
  | 'listShardKeys'
  | 'createShardKey'
  | 'deleteShardKey';

const COLLECTION = '/collections/{collection_name}';
const SHARD = `${COLLECTION}/shards/{shard_id}`;

/** Methods of gRPC by the operation's name. */
const GRPC_METHODS: Readonly<Record<string, string>> = {
  root: 'qdrant.Qdrant/HealthCheck',

  get_collections: 'qdrant.Collections/List',
  get_collection: 'qdrant.Collections/Get',
  create_collection: 'qdrant.Collections/Create',
  update_collection: 'qdrant.Collections/Update',
  delete_collection: 'qdrant.Collections/Delete',
  collection_exists: 'qdrant.Collections/CollectionExists',
  get_collection_aliases: 'qdrant.Collections/ListCollectionAliases',
  get_collections_aliases: 'qdrant.Collections/ListAliases',
  update_aliases: 'qdrant.Collections/UpdateAliases',
  collection_cluster_info: 'qdrant.Collections/CollectionClusterInfo',
  update_collection_cluster: 'qdrant.Collections/UpdateCollectionClusterSetup',
  list_shard_keys: 'qdrant.Collections/ListShardKeys',
  create_shard_key: 'qdrant.Collections/CreateShardKey',
  delete_shard_key: 'qdrant.Collections/DeleteShardKey',

  create_field_index: 'qdrant.Points/CreateFieldIndex',
  delete_field_index: 'qdrant.Points/DeleteFieldIndex',
  create_vector_name: 'qdrant.Points/CreateVectorName',
  delete_vector_name: 'qdrant.Points/DeleteVectorName',
  get_points: 'qdrant.Points/Get',
  scroll_points: 'qdrant.Points/Scroll',
  count_points: 'qdrant.Points/Count',
  query_points: 'qdrant.Points/Query',
  query_batch_points: 'qdrant.Points/QueryBatch',
  query_points_groups: 'qdrant.Points/QueryGroups',
  search_points: 'qdrant.Points/Search',
  search_batch_points: 'qdrant.Points/SearchBatch',
  search_point_groups: 'qdrant.Points/SearchGroups',
  search_matrix_pairs: 'qdrant.Points/SearchMatrixPairs',
  search_matrix_offsets: 'qdrant.Points/SearchMatrixOffsets',
  recommend_points: 'qdrant.Points/Recommend',
  recommend_batch_points: 'qdrant.Points/RecommendBatch',
  recommend_point_groups: 'qdrant.Points/RecommendGroups',
  discover_points: 'qdrant.Points/Discover',
  discover_batch_points: 'qdrant.Points/DiscoverBatch',
  facet: 'qdrant.Points/Facet',
  upsert_points: 'qdrant.Points/Upsert',
  delete_points: 'qdrant.Points/Delete',
  set_payload: 'qdrant.Points/SetPayload',
  overwrite_payload: 'qdrant.Points/OverwritePayload',
  delete_payload: 'qdrant.Points/DeletePayload',
  clear_payload: 'qdrant.Points/ClearPayload',
  batch_update: 'qdrant.Points/UpdateBatch',
  update_vectors: 'qdrant.Points/UpdateVectors',
  delete_vectors: 'qdrant.Points/DeleteVectors',

  create_snapshot: 'qdrant.Snapshots/Create',
  list_snapshots: 'qdrant.Snapshots/List',
  delete_snapshot: 'qdrant.Snapshots/Delete',
  create_full_snapshot: 'qdrant.Snapshots/CreateFull',
  list_full_snapshots: 'qdrant.Snapshots/ListFull',
  delete_full_snapshot: 'qdrant.Snapshots/DeleteFull',
};

export const OPERATIONS: readonly Operation[] = [
  // Service
  node('GET', '/', 'root', 'open', 'root'),
  node('GET', '/healthz', 'healthz', 'open', 'alive'),
  node('GET', '/livez', 'livez', 'open', 'alive'),
  node('GET', '/readyz', 'readyz', 'open', 'ready'),
  node('GET', '/telemetry', 'telemetry', 'r', 'telemetry'),
  node('GET', '/metrics', 'metrics', 'r', 'metrics'),
  node('GET', '/openapi.json', 'openapi', 'open', 'openapi'),
  node('GET', '/docs', 'docs', 'open', 'docs'),
  node('GET', '/issues', 'get_issues', 'm', 'issues'),
  node('DELETE', '/issues', 'clear_issues', 'm', 'clearIssues'),

  // Collections
  node('GET', '/collections', 'get_collections', 'r', 'listCollections'),
  node('GET', COLLECTION, 'get_collection', 'r', 'collectionInfo'),
  node('PUT', COLLECTION, 'create_collection', 'm', 'createCollection'),
  node('PATCH', COLLECTION, 'update_collection', 'm', 'updateCollection'),
  node('DELETE', COLLECTION, 'delete_collection', 'm', 'deleteCollection'),
  node('GET', `${COLLECTION}/exists`, 'collection_exists', 'r', 'collectionExists'),
  node('GET', `${COLLECTION}/optimizations`, 'get_optimizations', 'r', 'optimizations'),
  node('GET', `${COLLECTION}/aliases`, 'get_collection_aliases', 'r', 'collectionAliases'),
  node('GET', '/aliases', 'get_collections_aliases', 'r', 'aliases'),
  node('POST', '/collections/aliases', 'update_aliases', 'm', 'changeAliases'),
  write('PUT', `${COLLECTION}/index`, 'create_field_index', 'createFieldIndex'),
  write('DELETE', `${COLLECTION}/index/{field_name}`, 'delete_field_index', 'deleteFieldIndex'),
  node('PUT', `${COLLECTION}/vectors/{vector_name}`, 'create_vector_name', 'w', 'createVectorName'),
  node('DELETE', `${COLLECTION}/vectors/{vector_name}`, 'delete_vector_name', 'w', 'deleteVectorName'),

  // Points
  read('GET', `${COLLECTION}/points/{id}`, 'get_point', 'getPoint'),
  read('POST', `${COLLECTION}/points`, 'get_points', 'retrieve'),
  read('POST', `${COLLECTION}/points/scroll`, 'scroll_points', 'scroll'),
  read('POST', `${COLLECTION}/points/count`, 'count_points', 'count'),
  read('POST', `${COLLECTION}/points/query`, 'query_points', 'query'),
  read('POST', `${COLLECTION}/points/query/batch`, 'query_batch_points', 'queryBatch'),
  read('POST', `${COLLECTION}/points/search`, 'search_points', 'search'),
  read('POST', `${COLLECTION}/points/search/batch`, 'search_batch_points', 'searchBatch'),
  write('PUT', `${COLLECTION}/points`, 'upsert_points', 'upsertPoints'),
  write('POST', `${COLLECTION}/points/delete`, 'delete_points', 'deletePoints'),
  write('POST', `${COLLECTION}/points/payload`, 'set_payload', 'setPayload'),
  write('PUT', `${COLLECTION}/points/payload`, 'overwrite_payload', 'overwritePayload'),
  write('POST', `${COLLECTION}/points/payload/delete`, 'delete_payload', 'deletePayload'),
  write('POST', `${COLLECTION}/points/payload/clear`, 'clear_payload', 'clearPayload'),
  write('POST', `${COLLECTION}/points/batch`, 'batch_update', 'batchUpdate'),
  write('PUT', `${COLLECTION}/points/vectors`, 'update_vectors', 'updateVectors'),
  write('POST', `${COLLECTION}/points/vectors/delete`, 'delete_vectors', 'deleteVectors'),
  read('POST', `${COLLECTION}/points/query/groups`, 'query_points_groups', 'queryGroups'),
  read('POST', `${COLLECTION}/points/search/groups`, 'search_point_groups', 'searchGroups'),
  read('POST', `${COLLECTION}/points/search/matrix/pairs`, 'search_matrix_pairs', 'matrixPairs'),
  read('POST', `${COLLECTION}/points/search/matrix/offsets`, 'search_matrix_offsets', 'matrixOffsets'),
  read('POST', `${COLLECTION}/points/recommend`, 'recommend_points', 'recommend'),
  read('POST', `${COLLECTION}/points/recommend/batch`, 'recommend_batch_points', 'recommendBatch'),
  read('POST', `${COLLECTION}/points/recommend/groups`, 'recommend_point_groups', 'recommendGroups'),
  read('POST', `${COLLECTION}/points/discover`, 'discover_points', 'discover'),
  read('POST', `${COLLECTION}/points/discover/batch`, 'discover_batch_points', 'discoverBatch'),
  read('POST', `${COLLECTION}/facet`, 'facet', 'facet'),

  // Cluster
  node('GET', '/cluster', 'cluster_status', 'm', 'clusterStatus'),
  node('GET', '/cluster/telemetry', 'cluster_telemetry', 'r', 'clusterTelemetry'),
  node('DELETE', '/cluster/peer/{peer_id}', 'remove_peer', 'm', 'removePeer'),
  // Troupe's own.
  node('POST', '/cluster/peer/{peer_id}/drain', 'drain_peer', 'm', 'drainPeer'),
  node('DELETE', '/cluster/peer/{peer_id}/drain', 'keep_peer', 'm', 'keepPeer'),
  node('POST', '/cluster/rebalance', 'rebalance_cluster', 'm', 'rebalance'),
  node('GET', `${COLLECTION}/cluster`, 'collection_cluster_info', 'r', 'collectionCluster'),
  node('GET', `${COLLECTION}/shards`, 'list_shard_keys', 'r', 'listShardKeys'),
  node('PUT', `${COLLECTION}/shards`, 'create_shard_key', 'm', 'createShardKey'),
  node('POST', `${COLLECTION}/shards/delete`, 'delete_shard_key', 'm', 'deleteShardKey'),
  node('POST', `${COLLECTION}/cluster`, 'update_collection_cluster', 'm', 'setUpCollection'),
  node('POST', '/cluster/recover', 'recover_current_peer', 'm', 'recoverPeer'),

  // Snapshots
  later('GET', '/snapshots', 'list_full_snapshots', 'r'),
  later('POST', '/snapshots', 'create_full_snapshot', 'm'),
  later('GET', '/snapshots/{snapshot_name}', 'get_full_snapshot', 'm'),
  later('DELETE', '/snapshots/{snapshot_name}', 'delete_full_snapshot', 'm'),
  later('GET', `${COLLECTION}/snapshots`, 'list_snapshots', 'r'),
  later('POST', `${COLLECTION}/snapshots`, 'create_snapshot', 'w'),
  later('GET', `${COLLECTION}/snapshots/{snapshot_name}`, 'get_snapshot', 'r'),
  later('DELETE', `${COLLECTION}/snapshots/{snapshot_name}`, 'delete_snapshot', 'w'),
  later('POST', `${COLLECTION}/snapshots/upload`, 'recover_from_uploaded_snapshot', 'm'),
  later('PUT', `${COLLECTION}/snapshots/recover`, 'recover_from_snapshot', 'm'),
  later('GET', `${SHARD}/snapshot`, 'stream_shard_snapshot', 'r'),
  later('GET', `${SHARD}/snapshots`, 'list_shard_snapshots', 'r'),
  later('POST', `${SHARD}/snapshots`, 'create_shard_snapshot', 'w'),
  later('GET', `${SHARD}/snapshots/{snapshot_name}`, 'get_shard_snapshot', 'r'),
  later('DELETE', `${SHARD}/snapshots/{snapshot_name}`, 'delete_shard_snapshot', 'w'),
  later('POST', `${SHARD}/snapshots/upload`, 'recover_shard_from_uploaded_snapshot', 'm'),
  later('PUT', `${SHARD}/snapshots/recover`, 'recover_shard_from_snapshot', 'm'),
];

function read(method: HttpMethod, path: string, name: string, engine: ReadOperation): ReadRow {
  return { kind: 'read', method, path, name, access: 'r', grpc: grpcOf(name), engine };
}

function write(method: HttpMethod, path: string, name: string, engine: WriteOperation): WriteRow {
  return { kind: 'write', method, path, name, access: 'w', grpc: grpcOf(name), engine };
}

function node(method: HttpMethod, path: string, name: string, access: Access, run: NodeOperation): NodeRow {
  return { kind: 'node', method, path, name, access, grpc: grpcOf(name), run };
}

function later(method: HttpMethod, path: string, name: string, access: Access): LaterRow {
  return { kind: 'later', method, path, name, access, grpc: grpcOf(name) };
}

function grpcOf(name: string): string | null {
  return GRPC_METHODS[name] ?? null;
}

/**
 * The API's operations, one row each: method and path as the API reference writes them, the method of gRPC that does the same, who may
 * call it and what carries it out. The REST door, the gRPC door, the door for callers in the same process, the metrics and the OpenAPI
 * document read this table. The compiler asks for a row for each operation that OpenAPI describes, and the other way round.
 */

import type { GrpcMethodName } from '../protocols/grpc/method-names.js';
import type { WriteOperation } from '../protocols/model/update.js';
import { openApiDocument } from '../protocols/openapi/document.js';
import type { OperationName } from '../protocols/openapi/operations.js';
import type { ReadOperation } from '../storage/threads/messages.js';
import type { HttpAnswer } from './context/answer.js';
import type { Access, Endpoint, HttpMethod } from './context/endpoint.js';
import type { Handler } from './context/node-request.js';
import type { DoorServices } from './context/services.js';
import type { DownloadHandler, UploadHandler } from './context/transfers.js';
import * as cluster from './handlers/cluster.js';
import * as metadata from './handlers/cluster-metadata.js';
import * as collections from './handlers/collections.js';
import * as service from './handlers/service.js';
import * as snapshots from './handlers/snapshots.js';

/** Points of one collection, read by an engine worker. */
interface Read extends Endpoint {
  readonly kind: 'read';
  readonly engine: ReadOperation;
}

/** Points or payload indexes of one collection, written by the replica's home worker. */
interface Write extends Endpoint {
  readonly kind: 'write';
  readonly engine: WriteOperation;
}

/** Collections, the cluster and the node itself. */
interface Node extends Endpoint {
  readonly kind: 'node';
  readonly run: Handler<string>;
}

/** Answers with an archive. */
interface Download extends Endpoint {
  readonly kind: 'download';
  readonly run: DownloadHandler<string>;
}

/** Takes an archive. */
interface Upload extends Endpoint {
  readonly kind: 'upload';
  readonly run: UploadHandler<string>;
}

type Row = Read | Write | Node | Download | Upload;

type Named<Some> = Some & { readonly name: OperationName };

export type ReadRoute = Named<Read>;
export type WriteRoute = Named<Write>;
export type NodeRoute = Named<Node>;
/** Its body and answer are in memory as a whole. */
export type PlainRoute = ReadRoute | WriteRoute | NodeRoute;
export type DownloadRoute = Named<Download>;
export type UploadRoute = Named<Upload>;
export type Route = PlainRoute | DownloadRoute | UploadRoute;

const COLLECTION = '/collections/{collection_name}';
const SHARD = `${COLLECTION}/shards/{shard_id}`;
const SNAPSHOT = '{snapshot_name}';
const METADATA_KEY = '/cluster/metadata/keys/{key}';

const TABLE: Readonly<Record<OperationName, Row>> = {
  // Service
  root: node('GET', '/', 'qdrant.Qdrant/HealthCheck', 'open', service.root),
  healthz: node('GET', '/healthz', null, 'open', service.alive),
  livez: node('GET', '/livez', null, 'open', service.alive),
  readyz: node('GET', '/readyz', null, 'open', service.ready),
  telemetry: node('GET', '/telemetry', null, 'global', service.telemetry),
  // Troupe's own.
  telemetry_events: download('/telemetry/events', 'global', service.events),
  metrics: node('GET', '/metrics', null, 'global', service.metrics),
  openapi: node('GET', '/openapi.json', null, 'open', openapi),
  docs: node('GET', '/docs', null, 'open', service.docs),
  get_issues: node('GET', '/issues', null, 'known', service.issues),
  clear_issues: node('DELETE', '/issues', null, 'm', service.clearIssues),

  // Collections
  get_collections: node('GET', '/collections', 'qdrant.Collections/List', 'known', collections.listCollections),
  get_collection: node('GET', COLLECTION, 'qdrant.Collections/Get', 'r', collections.info),
  create_collection: node('PUT', COLLECTION, 'qdrant.Collections/Create', 'm', collections.create),
  update_collection: node('PATCH', COLLECTION, 'qdrant.Collections/Update', 'm', collections.update),
  delete_collection: node('DELETE', COLLECTION, 'qdrant.Collections/Delete', 'm', collections.remove),
  collection_exists: node('GET', `${COLLECTION}/exists`, 'qdrant.Collections/CollectionExists', 'readPoints', collections.exists),
  get_optimizations: node('GET', `${COLLECTION}/optimizations`, null, 'r', collections.optimizations),
  get_collection_aliases: node('GET', `${COLLECTION}/aliases`, 'qdrant.Collections/ListCollectionAliases', 'r', collections.aliasesOf),
  get_collections_aliases: node('GET', '/aliases', 'qdrant.Collections/ListAliases', 'known', collections.allAliases),
  update_aliases: node('POST', '/collections/aliases', 'qdrant.Collections/UpdateAliases', 'm', collections.handleAliasChanges),
  create_field_index: write('PUT', `${COLLECTION}/index`, 'qdrant.Points/CreateFieldIndex', 'createFieldIndex'),
  delete_field_index: write('DELETE', `${COLLECTION}/index/{field_name}`, 'qdrant.Points/DeleteFieldIndex', 'deleteFieldIndex'),
  create_vector_name: node(
    'PUT',
    `${COLLECTION}/vectors/{vector_name}`,
    'qdrant.Points/CreateVectorName',
    'w',
    collections.createVectorName,
  ),
  delete_vector_name: node(
    'DELETE',
    `${COLLECTION}/vectors/{vector_name}`,
    'qdrant.Points/DeleteVectorName',
    'w',
    collections.deleteVectorName,
  ),

  // Points
  get_point: read('GET', `${COLLECTION}/points/{id}`, null, 'getPoint'),
  get_points: read('POST', `${COLLECTION}/points`, 'qdrant.Points/Get', 'retrieve'),
  scroll_points: read('POST', `${COLLECTION}/points/scroll`, 'qdrant.Points/Scroll', 'scroll'),
  count_points: read('POST', `${COLLECTION}/points/count`, 'qdrant.Points/Count', 'count'),
  query_points: read('POST', `${COLLECTION}/points/query`, 'qdrant.Points/Query', 'query'),
  query_batch_points: read('POST', `${COLLECTION}/points/query/batch`, 'qdrant.Points/QueryBatch', 'queryBatch'),
  search_points: read('POST', `${COLLECTION}/points/search`, 'qdrant.Points/Search', 'search'),
  search_batch_points: read('POST', `${COLLECTION}/points/search/batch`, 'qdrant.Points/SearchBatch', 'searchBatch'),
  upsert_points: write('PUT', `${COLLECTION}/points`, 'qdrant.Points/Upsert', 'upsertPoints'),
  delete_points: write('POST', `${COLLECTION}/points/delete`, 'qdrant.Points/Delete', 'deletePoints'),
  set_payload: write('POST', `${COLLECTION}/points/payload`, 'qdrant.Points/SetPayload', 'setPayload'),
  overwrite_payload: write('PUT', `${COLLECTION}/points/payload`, 'qdrant.Points/OverwritePayload', 'overwritePayload'),
  delete_payload: write('POST', `${COLLECTION}/points/payload/delete`, 'qdrant.Points/DeletePayload', 'deletePayload'),
  clear_payload: write('POST', `${COLLECTION}/points/payload/clear`, 'qdrant.Points/ClearPayload', 'clearPayload'),
  batch_update: write('POST', `${COLLECTION}/points/batch`, 'qdrant.Points/UpdateBatch', 'batchUpdate'),
  update_vectors: write('PUT', `${COLLECTION}/points/vectors`, 'qdrant.Points/UpdateVectors', 'updateVectors'),
  delete_vectors: write('POST', `${COLLECTION}/points/vectors/delete`, 'qdrant.Points/DeleteVectors', 'deleteVectors'),
  query_points_groups: read('POST', `${COLLECTION}/points/query/groups`, 'qdrant.Points/QueryGroups', 'queryGroups'),
  search_point_groups: read('POST', `${COLLECTION}/points/search/groups`, 'qdrant.Points/SearchGroups', 'searchGroups'),
  search_matrix_pairs: read('POST', `${COLLECTION}/points/search/matrix/pairs`, 'qdrant.Points/SearchMatrixPairs', 'matrixPairs'),
  search_matrix_offsets: read('POST', `${COLLECTION}/points/search/matrix/offsets`, 'qdrant.Points/SearchMatrixOffsets', 'matrixOffsets'),
  recommend_points: read('POST', `${COLLECTION}/points/recommend`, 'qdrant.Points/Recommend', 'recommend'),
  recommend_batch_points: read('POST', `${COLLECTION}/points/recommend/batch`, 'qdrant.Points/RecommendBatch', 'recommendBatch'),
  recommend_point_groups: read('POST', `${COLLECTION}/points/recommend/groups`, 'qdrant.Points/RecommendGroups', 'recommendGroups'),
  discover_points: read('POST', `${COLLECTION}/points/discover`, 'qdrant.Points/Discover', 'discover'),
  discover_batch_points: read('POST', `${COLLECTION}/points/discover/batch`, 'qdrant.Points/DiscoverBatch', 'discoverBatch'),
  facet: read('POST', `${COLLECTION}/facet`, 'qdrant.Points/Facet', 'facet'),

  // Cluster
  cluster_status: node('GET', '/cluster', null, 'global', cluster.status),
  cluster_telemetry: node('GET', '/cluster/telemetry', null, 'global', cluster.peersTelemetry),
  remove_peer: node('DELETE', '/cluster/peer/{peer_id}', null, 'm', cluster.removePeer),
  list_cluster_metadata: node('GET', '/cluster/metadata/keys', null, 'm', metadata.listMetadata),
  get_cluster_metadata: node('GET', METADATA_KEY, null, 'm', metadata.getMetadata),
  put_cluster_metadata: node('PUT', METADATA_KEY, null, 'm', metadata.putMetadata),
  delete_cluster_metadata: node('DELETE', METADATA_KEY, null, 'm', metadata.deleteMetadata),
  // Troupe's own.
  drain_peer: node('POST', '/cluster/peer/{peer_id}/drain', null, 'm', cluster.drainPeer),
  cancel_drain: node('DELETE', '/cluster/peer/{peer_id}/drain', null, 'm', cluster.cancelDrain),
  rebalance_cluster: node('POST', '/cluster/rebalance', null, 'm', cluster.rebalanceCluster),
  collection_cluster_info: node(
    'GET',
    `${COLLECTION}/cluster`,
    'qdrant.Collections/CollectionClusterInfo',
    'r',
    cluster.collectionReplicas,
  ),
  list_shard_keys: node('GET', `${COLLECTION}/shards`, 'qdrant.Collections/ListShardKeys', 'r', cluster.listShardKeys),
  create_shard_key: node('PUT', `${COLLECTION}/shards`, 'qdrant.Collections/CreateShardKey', 'm', cluster.handleShardKeyCreation),
  delete_shard_key: node('POST', `${COLLECTION}/shards/delete`, 'qdrant.Collections/DeleteShardKey', 'm', cluster.deleteShardKey),
  update_collection_cluster: node(
    'POST',
    `${COLLECTION}/cluster`,
    'qdrant.Collections/UpdateCollectionClusterSetup',
    'm',
    cluster.updateCollectionCluster,
  ),
  recover_current_peer: node('POST', '/cluster/recover', null, 'm', cluster.recoverPeer),

  // Snapshots
  list_full_snapshots: node('GET', '/snapshots', 'qdrant.Snapshots/ListFull', 'global', snapshots.listAt(snapshots.full)),
  create_full_snapshot: node('POST', '/snapshots', 'qdrant.Snapshots/CreateFull', 'm', snapshots.createAt(snapshots.full)),
  get_full_snapshot: download(`/snapshots/${SNAPSHOT}`, 'global', snapshots.downloadAt(snapshots.full)),
  delete_full_snapshot: node('DELETE', `/snapshots/${SNAPSHOT}`, 'qdrant.Snapshots/DeleteFull', 'm', snapshots.removeAt(snapshots.full)),
  list_snapshots: node('GET', `${COLLECTION}/snapshots`, 'qdrant.Snapshots/List', 'r', snapshots.listAt(snapshots.ofCollection)),
  create_snapshot: node('POST', `${COLLECTION}/snapshots`, 'qdrant.Snapshots/Create', 'w', snapshots.createAt(snapshots.ofCollection)),
  get_snapshot: download(`${COLLECTION}/snapshots/${SNAPSHOT}`, 'r', snapshots.downloadAt(snapshots.ofCollection)),
  delete_snapshot: node(
    'DELETE',
    `${COLLECTION}/snapshots/${SNAPSHOT}`,
    'qdrant.Snapshots/Delete',
    'w',
    snapshots.removeAt(snapshots.ofCollection),
  ),
  recover_from_uploaded_snapshot: upload(`${COLLECTION}/snapshots/upload`, 'm', snapshots.uploadCollection),
  recover_from_snapshot: node('PUT', `${COLLECTION}/snapshots/recover`, null, 'm', snapshots.recoverCollection),
  // Making one is the work of a snapshot that is kept. Source: contract, scenario `security-jwt-r`.
  stream_shard_snapshot: download(`${SHARD}/snapshot`, 'w', snapshots.streamShard),
  list_shard_snapshots: node('GET', `${SHARD}/snapshots`, null, 'r', snapshots.listAt(snapshots.ofShard)),
  create_shard_snapshot: node('POST', `${SHARD}/snapshots`, null, 'w', snapshots.createAt(snapshots.ofShard)),
  get_shard_snapshot: download(`${SHARD}/snapshots/${SNAPSHOT}`, 'r', snapshots.downloadAt(snapshots.ofShard)),
  delete_shard_snapshot: node('DELETE', `${SHARD}/snapshots/${SNAPSHOT}`, null, 'w', snapshots.removeAt(snapshots.ofShard)),
  recover_shard_from_uploaded_snapshot: upload(`${SHARD}/snapshots/upload`, 'm', snapshots.uploadShard),
  recover_shard_from_snapshot: node('PUT', `${SHARD}/snapshots/recover`, null, 'm', snapshots.recoverShard),
};

/** All operations, in one order that each door counts them by. */
export const ROUTES: readonly Route[] = Object.entries(TABLE).map(([name, route]) => ({ ...route, name: name as OperationName }));

/** The names that a path has in braces. */
type NamesIn<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never;

function read(method: HttpMethod, path: string, grpc: GrpcMethodName | null, engine: ReadOperation): Read {
  return { kind: 'read', method, path, grpc, access: 'readPoints', engine };
}

function write(method: HttpMethod, path: string, grpc: GrpcMethodName | null, engine: WriteOperation): Write {
  const isOfPoints = engine !== 'createFieldIndex' && engine !== 'deleteFieldIndex';
  return { kind: 'write', method, path, grpc, access: isOfPoints ? 'writePoints' : 'w', engine };
}

/** run: may read of the path what is in its braces, so it always finds it there. */
function node<const Path extends string>(
  method: HttpMethod,
  path: Path,
  grpc: GrpcMethodName | null,
  access: Access,
  run: Handler<NamesIn<Path>>,
): Node {
  return { kind: 'node', method, path, grpc, access, run: run as Handler<string> };
}

function download<const Path extends string>(path: Path, access: Access, run: DownloadHandler<NamesIn<Path>>): Download {
  return { kind: 'download', method: 'GET', path, grpc: null, access, run: run as DownloadHandler<string> };
}

function upload<const Path extends string>(path: Path, access: Access, run: UploadHandler<NamesIn<Path>>): Upload {
  return { kind: 'upload', method: 'POST', path, grpc: null, access, run: run as UploadHandler<string> };
}

function openapi({ identity }: DoorServices): HttpAnswer {
  return { kind: 'json', value: openApiDocument(ROUTES, identity.version) };
}

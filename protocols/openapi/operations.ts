/** What each operation takes and answers, by its name. */

import {
  DELETED_SNAPSHOT,
  DRY_RUN,
  LATEST,
  MADE_SNAPSHOT,
  NODES_LEVELS,
  type Parameter,
  query,
  RESTORE_PARAMETERS,
  TIMEOUT,
  WAIT_SNAPSHOT,
} from './parameters.js';
import { ANYTHING, FLAG, leaf, list, ref, type Schema, TEXT, type ValueOf } from './schema.js';
import { ARCHIVE } from './snapshots.js';

export interface OperationSchema {
  readonly summary: string;
  readonly body?: Schema;
  /** The body is a form with a file of this name. */
  readonly file?: 'snapshot';
  /** `result` of the answer. */
  readonly result: Schema;
  /** Query parameters beside those of all reads or all writes of points. */
  readonly query?: readonly Parameter[];
  /** The answer is this text or JSON itself, without an envelope. */
  readonly bare?: 'text/plain' | 'text/html' | 'application/json' | 'application/octet-stream' | 'text/event-stream';
}

const WRITTEN = ref('UpdateResult');
const SCORED = list(ref('ScoredPoint'));
const DONE = FLAG;
const SNAPSHOTS = list(ref('SnapshotDescription'));
/** Of changes of values that all nodes agree on. */
const AGREED = [
  query('wait', { type: 'boolean' }, 'Answer when every node that can be reached has the change, not only when it is agreed on.'),
  TIMEOUT,
];
const TELEMETRY_LEVELS =
  '0: the process and its requests; 1: settings, machine and collections, too; 2: shards and what moves between them, too.';
const FIGURES = [
  query('anonymize', { type: 'boolean' }, 'Without names, folders and texts.'),
  query('per_collection', { type: 'boolean' }, 'Count requests by collection. Metrics then leave out those that name none.'),
];
const OBJECT = leaf<{ [key: string]: unknown }>({ type: 'object' });

export const OPERATION_SCHEMAS = {
  root: { summary: 'Name and versions', result: OBJECT, bare: 'application/json' },
  healthz: { summary: 'Whether the process answers', result: TEXT, bare: 'text/plain' },
  livez: { summary: 'Whether the process answers', result: TEXT, bare: 'text/plain' },
  readyz: { summary: 'Whether every collection is open', result: TEXT, bare: 'text/plain' },
  telemetry: {
    summary: 'Actors, collections, requests and memory',
    result: OBJECT,
    query: [query('details_level', { type: 'integer', minimum: 0 }, TELEMETRY_LEVELS), ...FIGURES],
  },
  metrics: { summary: 'Figures for Prometheus', result: TEXT, bare: 'text/plain', query: FIGURES },
  openapi: { summary: 'This description', result: OBJECT, bare: 'application/json' },
  docs: { summary: 'This description as a page', result: TEXT, bare: 'text/html' },
  get_issues: { summary: 'Hints on how collections could be used better', result: OBJECT },
  clear_issues: { summary: 'Forget those hints', result: DONE },
  telemetry_events: {
    summary: 'Collections, replicas, transfers, optimizations and actors as they change, as server-sent events',
    result: TEXT,
    bare: 'text/event-stream',
    query: [
      query(
        'topics',
        TEXT,
        'Some of `collections`, `replicas`, `transfers`, `optimizations`, `actors`, with commas between them. Default: all.',
      ),
      query('follow', { type: 'boolean' }, 'False: what is there now, and the end. Default: true.'),
    ],
  },

  get_collections: { summary: 'Names of all collections', result: ref('Collections'), query: LATEST },
  get_collection: { summary: 'Settings and state of a collection', result: ref('CollectionInfo'), query: LATEST },
  create_collection: { summary: 'Create a collection', body: ref('CreateCollection'), result: DONE, query: [TIMEOUT] },
  update_collection: { summary: 'Change settings of a collection', body: ref('UpdateCollection'), result: DONE, query: [TIMEOUT] },
  delete_collection: { summary: 'Delete a collection with all of its points', result: DONE, query: [TIMEOUT] },
  collection_exists: { summary: 'Whether a collection is there', result: ref('Existence'), query: LATEST },
  get_optimizations: {
    summary: 'What the optimizers of a collection do',
    result: ref('Optimizations'),
    query: [
      query('with', TEXT, 'Parts to show: `queued`, `completed`, `idle_segments`, with commas between them.'),
      query('completed_limit', { type: 'integer', minimum: 0 }),
    ],
  },
  get_collection_aliases: { summary: 'Aliases of a collection', result: ref('Aliases'), query: LATEST },
  get_collections_aliases: { summary: 'All aliases', result: ref('Aliases'), query: LATEST },
  update_aliases: { summary: 'Create, delete and rename aliases', body: ref('ChangeAliases'), result: DONE, query: [TIMEOUT] },
  create_field_index: { summary: 'Index a payload key', body: ref('CreateFieldIndex'), result: WRITTEN },
  delete_field_index: { summary: 'Delete the index of a payload key', result: WRITTEN },
  create_vector_name: { summary: 'Add a vector name to a collection', body: ref('CreateVectorName'), result: WRITTEN },
  delete_vector_name: { summary: 'Take a vector name from a collection with its vectors', result: WRITTEN },

  get_point: { summary: 'One point', result: ref('Record') },
  get_points: { summary: 'Points by id', body: ref('Retrieve'), result: list(ref('Record')) },
  scroll_points: { summary: 'Points in the order of their ids or of a payload key', body: ref('Scroll'), result: ref('ScrollResult') },
  count_points: { summary: 'How many points fit a filter', body: ref('Count'), result: ref('CountResult') },
  query_points: { summary: 'Find points', body: ref('QueryRequest'), result: ref('QueryResult') },
  query_batch_points: { summary: 'Several queries at once', body: ref('QueryBatch'), result: list(ref('QueryResult')) },
  query_points_groups: { summary: 'Find points in groups by a payload key', body: ref('QueryGroups'), result: ref('Groups') },
  search_points: { summary: 'Points nearest to a vector', body: ref('Search'), result: SCORED },
  search_batch_points: { summary: 'Several searches at once', body: ref('SearchBatch'), result: list(SCORED) },
  search_point_groups: { summary: 'Nearest points in groups by a payload key', body: ref('SearchGroups'), result: ref('Groups') },
  search_matrix_pairs: { summary: 'Nearest neighbours among a sample, as pairs', body: ref('Matrix'), result: ref('MatrixPairs') },
  search_matrix_offsets: {
    summary: 'Nearest neighbours among a sample, as a sparse matrix',
    body: ref('Matrix'),
    result: ref('MatrixOffsets'),
  },
  recommend_points: { summary: 'Points like some and unlike others', body: ref('Recommend'), result: SCORED },
  recommend_batch_points: { summary: 'Several recommendations at once', body: ref('RecommendBatch'), result: list(SCORED) },
  recommend_point_groups: { summary: 'Recommended points in groups by a payload key', body: ref('RecommendGroups'), result: ref('Groups') },
  discover_points: { summary: 'Points near a target on the side of positive examples', body: ref('Discover'), result: SCORED },
  discover_batch_points: { summary: 'Several discoveries at once', body: ref('DiscoverBatch'), result: list(SCORED) },
  facet: { summary: 'Values of a payload key with their counts', body: ref('Facet'), result: ref('FacetResult') },

  upsert_points: { summary: 'Insert points, or replace those of the same ids', body: ref('Upsert'), result: WRITTEN },
  delete_points: { summary: 'Delete points', body: ref('PointsSelector'), result: WRITTEN },
  set_payload: { summary: 'Set payload keys of points', body: ref('SetPayload'), result: WRITTEN },
  overwrite_payload: { summary: 'Replace the payload of points', body: ref('SetPayload'), result: WRITTEN },
  delete_payload: { summary: 'Delete payload keys of points', body: ref('DeletePayload'), result: WRITTEN },
  clear_payload: { summary: 'Delete the payload of points', body: ref('PointsSelector'), result: WRITTEN },
  batch_update: { summary: 'Several writes in their order', body: ref('UpdateBatch'), result: list(WRITTEN) },
  update_vectors: { summary: 'Replace named vectors of points', body: ref('UpdateVectors'), result: WRITTEN },
  delete_vectors: { summary: 'Delete named vectors of points', body: ref('DeleteVectors'), result: WRITTEN },

  cluster_status: { summary: 'State of the cluster', result: ref('ClusterStatus') },
  cluster_telemetry: {
    summary: 'State of all nodes of the cluster',
    result: ref('ClusterNodes'),
    query: [query('details_level', { type: 'integer', minimum: 0 }, NODES_LEVELS), TIMEOUT],
  },
  remove_peer: {
    summary: 'Remove a node from the cluster',
    result: DONE,
    query: [query('force', { type: 'boolean' }, 'Even while it holds shards, whose points may be lost.'), TIMEOUT],
  },
  list_cluster_metadata: { summary: 'Keys of small values that all nodes agree on', result: list(TEXT), query: LATEST },
  get_cluster_metadata: { summary: 'The value of such a key; null where there is none', result: ANYTHING, query: LATEST },
  put_cluster_metadata: { summary: 'Keep a small value under a key', body: ANYTHING, result: DONE, query: AGREED },
  delete_cluster_metadata: { summary: 'Delete such a key', result: DONE, query: AGREED },
  drain_peer: {
    summary: 'Move everything away from a node, then remove it from the cluster (Troupe’s own)',
    result: ref('ClusterPlan'),
    query: [DRY_RUN, TIMEOUT],
  },
  cancel_drain: { summary: 'Stop draining a node (Troupe’s own)', result: DONE, query: [TIMEOUT] },
  rebalance_cluster: {
    summary: 'Move shards so that nodes hold about equally much (Troupe’s own)',
    result: ref('ClusterPlan'),
    query: [DRY_RUN, TIMEOUT],
  },
  recover_current_peer: { summary: 'Take the state of the cluster from its leader anew', result: DONE, query: [TIMEOUT] },
  collection_cluster_info: { summary: 'Where the shards of a collection are', result: ref('CollectionCluster'), query: LATEST },
  update_collection_cluster: {
    summary: 'Change where the shards of a collection are',
    body: ref('ClusterOperation'),
    result: DONE,
    query: [TIMEOUT],
  },
  list_shard_keys: { summary: 'Keys of a collection’s shards', result: ref('ShardKeys'), query: LATEST },
  create_shard_key: { summary: 'Make shards for a key', body: ref('CreateShardKey'), result: DONE, query: [TIMEOUT] },
  delete_shard_key: {
    summary: 'Delete the shards of a key with all of their points',
    body: ref('DeleteShardKey'),
    result: DONE,
    query: [TIMEOUT],
  },

  list_full_snapshots: { summary: 'Snapshots of the whole storage', result: SNAPSHOTS },
  create_full_snapshot: { summary: 'Make a snapshot of the whole storage', result: ref('SnapshotDescription'), query: [WAIT_SNAPSHOT] },
  get_full_snapshot: { summary: 'Download a snapshot of the whole storage', result: ARCHIVE, bare: 'application/octet-stream' },
  delete_full_snapshot: { summary: 'Delete a snapshot of the whole storage', result: DONE, query: [WAIT_SNAPSHOT] },
  list_snapshots: { summary: 'Snapshots of a collection', result: SNAPSHOTS },
  create_snapshot: {
    summary: 'Make a snapshot of this node’s part of a collection',
    result: ref('SnapshotDescription'),
    query: MADE_SNAPSHOT,
  },
  get_snapshot: { summary: 'Download a snapshot of a collection', result: ARCHIVE, bare: 'application/octet-stream' },
  delete_snapshot: { summary: 'Delete a snapshot of a collection', result: DONE, query: DELETED_SNAPSHOT },
  recover_from_uploaded_snapshot: {
    summary: 'Restore a collection from a snapshot that is sent',
    file: 'snapshot',
    result: DONE,
    query: RESTORE_PARAMETERS,
  },
  recover_from_snapshot: {
    summary: 'Restore a collection from a snapshot that the node fetches',
    body: ref('RecoverSnapshot'),
    result: DONE,
    query: [WAIT_SNAPSHOT],
  },
  stream_shard_snapshot: {
    summary: 'Download a snapshot of a shard that is made while it is read, and kept nowhere',
    result: ARCHIVE,
    bare: 'application/octet-stream',
  },
  list_shard_snapshots: { summary: 'Snapshots of a shard', result: SNAPSHOTS },
  create_shard_snapshot: { summary: 'Make a snapshot of a shard', result: ref('SnapshotDescription'), query: MADE_SNAPSHOT },
  get_shard_snapshot: { summary: 'Download a snapshot of a shard', result: ARCHIVE, bare: 'application/octet-stream' },
  delete_shard_snapshot: { summary: 'Delete a snapshot of a shard', result: DONE, query: DELETED_SNAPSHOT },
  recover_shard_from_uploaded_snapshot: {
    summary: 'Restore a shard from a snapshot that is sent',
    file: 'snapshot',
    result: leaf<null>({ nullable: true }),
    query: RESTORE_PARAMETERS,
  },
  recover_shard_from_snapshot: {
    summary: 'Restore a shard from a snapshot that the node fetches, or has',
    body: ref('RecoverShardSnapshot'),
    result: DONE,
    query: [WAIT_SNAPSHOT],
  },
} as const satisfies { readonly [name: string]: OperationSchema };

export type OperationName = keyof typeof OPERATION_SCHEMAS;

type Row<Name extends OperationName> = (typeof OPERATION_SCHEMAS)[Name];

/** The body that an operation takes. */
export type BodyOf<Name extends OperationName> = Row<Name> extends { readonly body: infer Body } ? ValueOf<Body> : never;
/** The result that it answers. */
export type ResultOf<Name extends OperationName> = ValueOf<Row<Name>['result']>;

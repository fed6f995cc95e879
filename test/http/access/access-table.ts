/**
 * The access table once more, from the specification and not from the code: each operation with what callers of four kinds may do, and a
 * request for it.
 */

import type { OperationName } from '../../../protocols/openapi/operations.js';

/** Yes, no, or in part: the answer shows what the caller may know of. */
type Right = 'Y' | 'N' | 'P';

export interface AccessCase {
  readonly name: OperationName;
  /** Open to all: no key is asked for. */
  readonly isOpen: boolean;
  readonly manage: Right;
  readonly read: Right;
  readonly collectionWrite: Right;
  readonly collectionRead: Right;
  readonly method: 'GET' | 'PUT' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  /** Undefined: none. Requests need not be valid: what is not allowed is refused before it is looked at. */
  readonly body: object | undefined;
}

/** The collection that tokens for collections are for; it exists. */
export const OWN = 'own';
/** Tokens for collections are for this one, too; it does not exist, so that what is allowed costs nothing. */
export const MISSING = 'missing';
const SELECTED = { points: [999] };

/**
 * Y: whoever reads all, and of tokens for collections those with the second letter. W: whoever manages or writes the collection. M: whoever
 * manages. O: all.
 */
type Rights = 'Y Y' | 'Y N' | 'Y P' | 'W' | 'M' | 'O';

const RIGHTS: Readonly<Record<Rights, readonly [Right, Right, Right, Right]>> = {
  'Y Y': ['Y', 'Y', 'Y', 'Y'],
  'Y N': ['Y', 'Y', 'N', 'N'],
  'Y P': ['Y', 'Y', 'P', 'P'],
  W: ['Y', 'N', 'Y', 'N'],
  M: ['Y', 'N', 'N', 'N'],
  O: ['Y', 'Y', 'Y', 'Y'],
};

/** Source: specification, «Access table»; rows that it does not have: contract, scenarios `security-*`. */
export const ACCESS_CASES: readonly AccessCase[] = [
  ...cases('Y P', 'GET /collections get_collections'),
  ...cases('Y Y', 'GET /collections/own get_collection'),
  ...cases('M', 'PUT /collections/missing create_collection', 'DELETE /collections/nothing delete_collection'),
  ...cases('M', 'PATCH /collections/own update_collection'),
  ...cases('Y Y', 'GET /collections/own/cluster collection_cluster_info', 'GET /collections/own/exists collection_exists'),
  ...cases('Y Y', 'GET /collections/own/optimizations get_optimizations'),
  ...cases('M', 'POST /collections/own/cluster update_collection_cluster', 'POST /collections/aliases update_aliases'),
  ...cases('Y P', 'GET /collections/own/aliases get_collection_aliases', 'GET /aliases get_collections_aliases'),
  ...cases('M', 'PUT /collections/own/shards create_shard_key', 'POST /collections/own/shards/delete delete_shard_key'),
  ...cases('Y Y', 'GET /collections/own/shards list_shard_keys'),
  ...cases('W', 'PUT /collections/own/index create_field_index', 'DELETE /collections/own/index/f delete_field_index'),
  ...cases('W', 'PUT /collections/missing/vectors/v create_vector_name', 'DELETE /collections/missing/vectors/v delete_vector_name'),
  ...cases('Y Y', 'GET /collections/own/snapshots list_snapshots', 'GET /collections/own/snapshots/x get_snapshot'),
  ...cases('W', 'POST /collections/missing/snapshots create_snapshot', 'DELETE /collections/own/snapshots/x delete_snapshot'),
  ...cases('M', 'POST /collections/own/snapshots/upload recover_from_uploaded_snapshot'),
  ...cases('M', 'PUT /collections/own/snapshots/recover recover_from_snapshot'),
  ...cases('Y Y', 'GET /collections/own/shards/0/snapshots list_shard_snapshots'),
  ...cases('Y Y', 'GET /collections/own/shards/0/snapshots/x get_shard_snapshot'),
  ...cases('W', 'POST /collections/missing/shards/0/snapshots create_shard_snapshot'),
  ...cases('W', 'DELETE /collections/own/shards/0/snapshots/x delete_shard_snapshot'),
  ...cases('W', 'GET /collections/missing/shards/0/snapshot stream_shard_snapshot'),
  ...cases('M', 'POST /collections/own/shards/0/snapshots/upload recover_shard_from_uploaded_snapshot'),
  ...cases('M', 'PUT /collections/own/shards/0/snapshots/recover recover_shard_from_snapshot'),
  ...cases('Y N', 'GET /snapshots list_full_snapshots', 'GET /snapshots/x get_full_snapshot'),
  ...cases('M', 'POST /snapshots?base=x create_full_snapshot', 'DELETE /snapshots/x delete_full_snapshot'),
  ...cases('Y N', 'GET /cluster cluster_status', 'GET /cluster/telemetry cluster_telemetry'),
  ...cases('M', 'GET /cluster/metadata/keys list_cluster_metadata', 'GET /cluster/metadata/keys/k get_cluster_metadata'),
  ...cases('M', 'PUT /cluster/metadata/keys/k put_cluster_metadata', 'DELETE /cluster/metadata/keys/k delete_cluster_metadata'),
  ...cases('M', 'POST /cluster/recover recover_current_peer', 'DELETE /cluster/peer/1 remove_peer'),
  ...cases(
    'M',
    'POST /cluster/peer/1/drain drain_peer',
    'DELETE /cluster/peer/1/drain cancel_drain',
    'POST /cluster/rebalance rebalance_cluster',
  ),
  ...cases('Y Y', 'GET /collections/own/points/1 get_point'),
  ...points('Y Y', { ids: [1] }, 'POST /collections/own/points get_points'),
  ...points('W', { points: [{ id: 9, vector: [1, 1] }] }, 'PUT /collections/own/points upsert_points'),
  ...points('W', { operations: [{ delete: SELECTED }] }, 'POST /collections/own/points/batch batch_update'),
  ...points('W', SELECTED, 'POST /collections/own/points/delete delete_points'),
  ...points('W', { points: [{ id: 1, vector: [1, 1] }] }, 'PUT /collections/own/points/vectors update_vectors'),
  ...points('W', { ...SELECTED, vector: [''] }, 'POST /collections/own/points/vectors/delete delete_vectors'),
  ...points('W', { ...SELECTED, payload: { a: 1 } }, 'POST /collections/own/points/payload set_payload'),
  ...points('W', { ...SELECTED, payload: { a: 1 } }, 'PUT /collections/own/points/payload overwrite_payload'),
  ...points('W', { ...SELECTED, keys: ['a'] }, 'POST /collections/own/points/payload/delete delete_payload'),
  ...points('W', SELECTED, 'POST /collections/own/points/payload/clear clear_payload'),
  ...points('Y Y', { limit: 1 }, 'POST /collections/own/points/scroll scroll_points', 'POST /collections/own/points/count count_points'),
  ...points('Y Y', { query: [1, 0] }, 'POST /collections/own/points/query query_points'),
  ...points('Y Y', { searches: [{ query: [1, 0] }] }, 'POST /collections/own/points/query/batch query_batch_points'),
  ...points('Y Y', { query: [1, 0], group_by: 'n' }, 'POST /collections/own/points/query/groups query_points_groups'),
  ...points('Y Y', { vector: [1, 0], limit: 1 }, 'POST /collections/own/points/search search_points'),
  ...points('Y Y', { searches: [{ vector: [1, 0], limit: 1 }] }, 'POST /collections/own/points/search/batch search_batch_points'),
  ...points(
    'Y Y',
    { vector: [1, 0], limit: 1, group_by: 'n', group_size: 1 },
    'POST /collections/own/points/search/groups search_point_groups',
  ),
  ...points('Y Y', { positive: [1], limit: 1 }, 'POST /collections/own/points/recommend recommend_points'),
  ...points('Y Y', { searches: [{ positive: [1], limit: 1 }] }, 'POST /collections/own/points/recommend/batch recommend_batch_points'),
  ...points(
    'Y Y',
    { positive: [1], limit: 1, group_by: 'n', group_size: 1 },
    'POST /collections/own/points/recommend/groups recommend_point_groups',
  ),
  ...points('Y Y', { target: 1, limit: 1 }, 'POST /collections/own/points/discover discover_points'),
  ...points('Y Y', { searches: [{ target: 1, limit: 1 }] }, 'POST /collections/own/points/discover/batch discover_batch_points'),
  ...points('Y Y', { key: 'n' }, 'POST /collections/own/facet facet'),
  ...points('Y Y', {}, 'POST /collections/own/points/search/matrix/pairs search_matrix_pairs'),
  ...points('Y Y', {}, 'POST /collections/own/points/search/matrix/offsets search_matrix_offsets'),
  ...cases(
    'O',
    'GET / root',
    'GET /healthz healthz',
    'GET /livez livez',
    'GET /readyz readyz',
    'GET /openapi.json openapi',
    'GET /docs docs',
  ),
  ...cases('Y N', 'GET /telemetry telemetry', 'GET /telemetry/events?follow=false telemetry_events', 'GET /metrics metrics'),
  ...cases('Y P', 'GET /issues get_issues'),
  ...cases('M', 'DELETE /issues clear_issues'),
];

/** requests: `METHOD /path operation`. */
function cases(rights: Rights, ...requests: readonly string[]): AccessCase[] {
  return points(rights, {}, ...requests);
}

function points(rights: Rights, body: object, ...requests: readonly string[]): AccessCase[] {
  const [manage, read, collectionWrite, collectionRead] = RIGHTS[rights];
  return requests.map((request) => {
    const [method, path, name] = request.split(' ') as [AccessCase['method'], string, OperationName];
    const hasBody = method !== 'GET' && method !== 'DELETE';
    return { name, isOpen: rights === 'O', manage, read, collectionWrite, collectionRead, method, path, body: hasBody ? body : undefined };
  });
}

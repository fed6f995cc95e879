/**
 * An example of each operation, as `GET /docs` shows and tries it. Those on one node work as they stand, in the order of this file, on the
 * collection `cities`; a test sends them. Those of clusters and snapshots need an id or a name of yours, which is said where it is.
 */

import type { OperationName } from './operations.js';

export interface Example {
  /** Values of parameters by name, of paths and queries. */
  readonly parameters?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

const CITIES = { collection_name: 'cities' };
const OF_CITIES: Example = { parameters: CITIES };
const WAIT = { ...CITIES, wait: 'true' };
const BERLIN = [0.05, 0.61, 0.76, 0.74];
const NEAR = [0.2, 0.1, 0.9, 0.7];
const IN_GERMANY = { must: [{ key: 'country', match: { value: 'Germany' } }] };
const GROUPS = { group_by: 'country', limit: 2, group_size: 2 };

const SHARD = { ...CITIES, shard_id: '0' };
/** A name that `list_snapshots` tells. */
const SNAPSHOT = { snapshot_name: 'name-of-a-snapshot' };
/** An id that `cluster_status` tells. */
const PEER = { peer_id: '1' };
const METADATA = { key: 'owner' };
const KEYED = { collection_name: 'keyed' };

function on(parameters: Readonly<Record<string, string>>, body: unknown): Example {
  return { parameters, body };
}

export const EXAMPLES: Readonly<Record<OperationName, Example>> = {
  root: {},
  healthz: {},
  livez: {},
  readyz: {},
  telemetry: { parameters: { details_level: '1' } },
  metrics: {},
  openapi: {},
  docs: {},
  get_issues: {},
  clear_issues: {},
  // It would go on telling what changes, and its answer would not come to an end.
  telemetry_events: { parameters: { follow: 'false', topics: 'collections' } },

  create_collection: on(CITIES, { vectors: { size: 4, distance: 'Cosine' } }),
  get_collections: {},
  get_collection: OF_CITIES,
  update_collection: on(CITIES, { optimizers_config: { indexing_threshold: 20000 } }),
  collection_exists: OF_CITIES,
  get_optimizations: { parameters: { ...CITIES, with: 'queued,completed', completed_limit: '5' } },
  update_aliases: { body: { actions: [{ create_alias: { alias_name: 'places', collection_name: 'cities' } }] } },
  get_collection_aliases: OF_CITIES,
  get_collections_aliases: {},
  create_field_index: on(WAIT, { field_name: 'country', field_schema: 'keyword' }),
  create_vector_name: on({ ...CITIES, vector_name: 'words' }, { sparse: { modifier: 'idf' } }),

  upsert_points: on(WAIT, {
    points: [
      { id: 1, vector: BERLIN, payload: { name: 'Berlin', country: 'Germany', people: 3_700_000 } },
      { id: 2, vector: [0.19, 0.81, 0.75, 0.11], payload: { name: 'London', country: 'England', people: 8_900_000 } },
      { id: 3, vector: [0.36, 0.55, 0.47, 0.94], payload: { name: 'Hamburg', country: 'Germany', people: 1_900_000 } },
      { id: 4, vector: [0.18, 0.01, 0.85, 0.8], payload: { name: 'York', country: 'England', people: 200_000 } },
    ],
  }),
  get_point: { parameters: { ...CITIES, id: '1' } },
  get_points: on(CITIES, { ids: [1, 2], with_payload: true }),
  scroll_points: on(CITIES, { limit: 2, filter: IN_GERMANY }),
  count_points: on(CITIES, { filter: IN_GERMANY, exact: true }),
  query_points: on(CITIES, { query: NEAR, filter: IN_GERMANY, limit: 3, with_payload: true }),
  query_batch_points: on(CITIES, {
    searches: [
      { query: NEAR, limit: 1 },
      { query: 1, limit: 2 },
    ],
  }),
  query_points_groups: on(CITIES, { query: NEAR, ...GROUPS, with_payload: ['name'] }),
  search_points: on(CITIES, { vector: NEAR, limit: 3 }),
  search_batch_points: on(CITIES, {
    searches: [
      { vector: NEAR, limit: 1 },
      { vector: BERLIN, limit: 2, filter: IN_GERMANY },
    ],
  }),
  search_point_groups: on(CITIES, { vector: NEAR, ...GROUPS }),
  search_matrix_pairs: on(CITIES, { sample: 4, limit: 2 }),
  search_matrix_offsets: on(CITIES, { sample: 4, limit: 2 }),
  recommend_points: on(CITIES, { positive: [1], negative: [2], limit: 2 }),
  recommend_batch_points: on(CITIES, {
    searches: [
      { positive: [1], limit: 1 },
      { positive: [3], limit: 1 },
    ],
  }),
  recommend_point_groups: on(CITIES, { positive: [1], ...GROUPS }),
  discover_points: on(CITIES, { target: 1, context: [{ positive: 3, negative: 2 }], limit: 2 }),
  discover_batch_points: on(CITIES, { searches: [{ target: NEAR, limit: 1 }] }),
  facet: on(CITIES, { key: 'country', exact: true }),

  set_payload: on(WAIT, { payload: { river: 'Spree' }, points: [1] }),
  overwrite_payload: on(WAIT, { payload: { name: 'York', country: 'England' }, points: [4] }),
  delete_payload: on(WAIT, { keys: ['people'], filter: IN_GERMANY }),
  clear_payload: on(WAIT, { points: [4] }),
  update_vectors: on(WAIT, { points: [{ id: 1, vector: { words: { indices: [3, 7], values: [1, 0.5] } } }] }),
  delete_vectors: on(WAIT, { vector: ['words'], points: [1] }),
  batch_update: on(WAIT, {
    operations: [
      { upsert: { points: [{ id: 5, vector: NEAR, payload: { name: 'Leeds' } }] } },
      { set_payload: { payload: { country: 'England' }, points: [5] } },
    ],
  }),
  delete_points: on(WAIT, { points: [5] }),

  cluster_status: {},
  cluster_telemetry: { parameters: { details_level: '1' } },
  put_cluster_metadata: on(METADATA, { team: 'search' }),
  list_cluster_metadata: {},
  get_cluster_metadata: { parameters: METADATA },
  delete_cluster_metadata: { parameters: METADATA },
  remove_peer: { parameters: PEER },
  drain_peer: { parameters: { ...PEER, dry_run: 'true' } },
  cancel_drain: { parameters: PEER },
  rebalance_cluster: { parameters: { dry_run: 'true' } },
  recover_current_peer: {},
  collection_cluster_info: OF_CITIES,
  update_collection_cluster: on(CITIES, { replicate_shard: { shard_id: 0, from_peer_id: 1, to_peer_id: 2 } }),
  list_shard_keys: OF_CITIES,
  create_shard_key: on(KEYED, { shard_key: 'customer-1' }),
  delete_shard_key: on(KEYED, { shard_key: 'customer-1' }),

  list_full_snapshots: {},
  create_full_snapshot: {},
  get_full_snapshot: { parameters: SNAPSHOT },
  delete_full_snapshot: { parameters: SNAPSHOT },
  create_snapshot: OF_CITIES,
  list_snapshots: OF_CITIES,
  get_snapshot: { parameters: { ...CITIES, ...SNAPSHOT } },
  delete_snapshot: { parameters: { ...CITIES, ...SNAPSHOT } },
  recover_from_uploaded_snapshot: OF_CITIES,
  recover_from_snapshot: on(CITIES, { location: 'http://localhost:6333/collections/cities/snapshots/name-of-a-snapshot' }),
  create_shard_snapshot: { parameters: SHARD },
  list_shard_snapshots: { parameters: SHARD },
  get_shard_snapshot: { parameters: { ...SHARD, ...SNAPSHOT } },
  delete_shard_snapshot: { parameters: { ...SHARD, ...SNAPSHOT } },
  stream_shard_snapshot: { parameters: SHARD },
  recover_shard_from_uploaded_snapshot: { parameters: SHARD },
  recover_shard_from_snapshot: on(SHARD, { location: 'name-of-a-snapshot' }),

  delete_field_index: { parameters: { ...WAIT, field_name: 'country' } },
  delete_vector_name: { parameters: { ...CITIES, vector_name: 'words' } },
  delete_collection: OF_CITIES,
};

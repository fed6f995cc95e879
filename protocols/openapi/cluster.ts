/** Schemas of the cluster: its nodes, where shards are, and what can be done to them. */

import { REPLICA_STATES, RESHARDING_DIRECTIONS, TRANSFER_METHODS } from '../model/cluster.js';
import { any, COUNT, described, FLAG, fields, integer, leaf, list, map, ref, TEXT, words } from './schema.js';

const SHARD_ID = integer(0, 0xffff_ffff);
const KEY = { shard_key: ref('ShardKey') };
const STATE = ref('ReplicaState');
const METHOD = words(...TRANSFER_METHODS);
const DIRECTION = words(...RESHARDING_DIRECTIONS);
const BETWEEN = { shard_id: SHARD_ID, from_peer_id: COUNT, to_peer_id: COUNT };
const ROLE = words('Follower', 'PreCandidate', 'Candidate', 'Leader');
const THREAD = fields({ consensus_thread_status: words('working', 'stopped', 'stopped_with_err') }, { last_update: TEXT, err: TEXT });
const RAFT = { term: COUNT, commit: COUNT, is_voter: FLAG };
const TRANSFERS = list(
  fields(
    { shard_id: COUNT, from: COUNT, to: COUNT, sync: FLAG },
    { to_shard_id: COUNT, method: METHOD, comment: described('How far it is, and why its last try failed.', TEXT) },
  ),
);

const LOADS = map(fields({ replicas: COUNT, bytes: COUNT }));

export const CLUSTER_SCHEMAS = {
  ShardKey: described(
    'Label of shards that users name.',
    any(TEXT, leaf<number | bigint>({ type: 'integer', format: 'uint64', minimum: 0 })),
  ),
  ReplicaState: words(...REPLICA_STATES),
  ClusterStatus: described(
    'A node of its own says `disabled`, and nothing more.',
    fields(
      { status: words('disabled', 'enabled') },
      {
        peer_id: COUNT,
        peers: map(fields({ uri: TEXT })),
        raft_info: fields({ ...RAFT, pending_operations: COUNT }, { leader: COUNT, role: ROLE }),
        consensus_thread_status: THREAD,
        message_send_failures: map(fields({ count: COUNT }, { latest_error: TEXT, latest_error_timestamp: TEXT })),
      },
    ),
  ),
  ClusterNodes: fields({
    collections: map(
      fields(
        { id: TEXT },
        {
          shards: list(
            fields(
              {
                id: COUNT,
                replicas: list(fields({ peer_id: COUNT, state: STATE }, { status: TEXT, num_points: COUNT, num_vectors: COUNT })),
              },
              { key: ref('ShardKey') },
            ),
          ),
          shard_transfers: TRANSFERS,
        },
      ),
    ),
    cluster: fields(
      {
        enabled: FLAG,
        peers: map(
          fields(
            { uri: TEXT, responsive: FLAG },
            {
              details: fields({ ...RAFT, version: TEXT, num_pending_operations: COUNT, consensus_thread_status: THREAD }, { role: ROLE }),
            },
          ),
        ),
      },
      { number_of_peers: COUNT },
    ),
  }),
  CollectionCluster: fields(
    {
      peer_id: COUNT,
      shard_count: COUNT,
      local_shards: list(fields({ shard_id: COUNT, points_count: COUNT, state: STATE }, KEY)),
      remote_shards: list(fields({ shard_id: COUNT, peer_id: COUNT, state: STATE }, KEY)),
      shard_transfers: TRANSFERS,
    },
    {
      resharding_operations: list(fields({ direction: DIRECTION, shard_id: COUNT, peer_id: COUNT }, KEY)),
      auto_replication: FLAG,
      full_disk_peers: list(COUNT),
    },
  ),
  ClusterPlan: described(
    'Moves, and what each peer holds before and after. Without `from_peer_id` a copy is made, without `to_peer_id` a replica is dropped.',
    fields({
      started: FLAG,
      moves: list(fields({ collection: TEXT, shard_id: COUNT, bytes: COUNT }, { from_peer_id: COUNT, to_peer_id: COUNT })),
      stuck: list(fields({ collection: TEXT, shard_id: COUNT, reason: TEXT })),
      balance: fields({ before: LOADS, after: LOADS }),
    }),
  ),
  ShardKeys: described(
    'Without `shard_keys` where sharding is automatic.',
    fields({}, { shard_keys: list(fields({ key: ref('ShardKey') })) }),
  ),

  CreateShardKey: fields(KEY, {
    shards_number: integer(1, 4096),
    replication_factor: integer(1),
    placement: described('Peers that may hold replicas; all when it is left out.', list(COUNT)),
    initial_state: described(
      '`Partial`: the key waits for `replicate_points` to fill it, and has no points for anybody until then; `fallback` stands for it.',
      words('Active', 'Partial'),
    ),
  }),
  DeleteShardKey: fields(KEY),
  ClusterOperation: described(
    'One of these. `auto_replication` and `activate_replica` are Troupe’s own. With the first the cluster makes and drops replicas to have ' +
      '`replication_factor` of them. With the second a shard that has no Active replica any more goes on with this one as it is, or with ' +
      'nothing where it has no replica at all: what only others had is lost for good. `replicate_points` copies the points that pass ' +
      'to another shard key while requests go on, and opens it at the end where it was made as `Partial`; it is shown as ' +
      '`shard_transfers` with `to_shard_id`. `start_resharding` adds a shard and gives it its share of the points, or takes the last one away.',
    any(
      fields({ move_shard: fields(BETWEEN, { to_shard_id: SHARD_ID, method: METHOD }) }),
      fields({ replicate_shard: fields(BETWEEN, { to_shard_id: SHARD_ID, method: METHOD }) }),
      fields({ abort_transfer: fields(BETWEEN, { to_shard_id: SHARD_ID }) }),
      fields({ restart_transfer: fields({ ...BETWEEN, method: METHOD }, { to_shard_id: SHARD_ID }) }),
      fields({ drop_replica: fields({ shard_id: SHARD_ID, peer_id: COUNT }) }),
      fields({ create_sharding_key: ref('CreateShardKey') }),
      fields({ drop_sharding_key: ref('DeleteShardKey') }),
      fields({ replicate_points: fields({ from_shard_key: ref('ShardKey'), to_shard_key: ref('ShardKey') }, { filter: ref('Filter') }) }),
      fields({ start_resharding: fields({ direction: DIRECTION }, { peer_id: COUNT, shard_key: ref('ShardKey') }) }),
      fields({ abort_resharding: fields({}) }),
      fields({ auto_replication: fields({ enabled: FLAG }) }),
      fields({ activate_replica: fields({ shard_id: SHARD_ID, peer_id: COUNT, accept_data_loss: { type: 'boolean', enum: [true] } }) }),
    ),
  ),
};

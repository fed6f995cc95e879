import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CollectionCluster, CollectionInfo, Optimizations } from '../../../web/model/api-types.js';
import { conditionOf } from '../../../web/model/condition.js';

const INFO: CollectionInfo = {
  status: 'green',
  optimizer_status: 'ok',
  points_count: 10,
  indexed_vectors_count: 0,
  segments_count: 1,
  config: { params: {}, optimizer_config: {} },
  payload_schema: {},
};
const CLUSTER: CollectionCluster = {
  peer_id: 1,
  shard_count: 1,
  local_shards: [{ shard_id: 0, points_count: 10, state: 'Active' }],
  remote_shards: [{ shard_id: 0, peer_id: 2, state: 'Active' }],
  shard_transfers: [],
};
const OPTIMIZATIONS: Optimizations = {
  summary: { queued_optimizations: 1, queued_segments: 2, queued_points: 5, idle_segments: 0 },
  running: [
    {
      optimizer: 'merge',
      segments: [
        { uuid: 'a', points_count: 4 },
        { uuid: 'b', points_count: 3 },
      ],
    },
  ],
};

test('a state comes with its reason, and the gravest reason comes first', () => {
  const dead = { ...CLUSTER, remote_shards: [{ shard_id: 0, peer_id: 2, state: 'Dead' }] };
  const partial = { ...CLUSTER, remote_shards: [{ shard_id: 0, peer_id: 2, state: 'Partial' }] };
  const moving = { ...partial, shard_transfers: [{ shard_id: 0, from: 1, to: 2, sync: true }] };
  const found = [
    conditionOf(INFO),
    conditionOf({ ...INFO, points_count: 0 }),
    conditionOf({ ...INFO, indexed_vectors_count: 10 }),
    conditionOf({ ...INFO, status: 'yellow' }, CLUSTER, OPTIMIZATIONS),
    conditionOf({ ...INFO, status: 'grey' }),
    conditionOf(INFO, partial),
    conditionOf(INFO, moving),
    conditionOf({ ...INFO, status: 'yellow' }, dead, OPTIMIZATIONS),
    conditionOf({ ...INFO, update_queue: { length: 0, deferred_points: 1200 } }),
    conditionOf({ ...INFO, status: 'red', optimizer_status: { error: 'the disk is full' } }, dead),
  ];
  assert.deepEqual(
    found.map(({ tone, sentence }) => `${tone}: ${sentence}`),
    [
      'good: Small enough to be searched without an index: all answers are exact.',
      'good: It has no points yet.',
      'good: All that is to be indexed is indexed.',
      'busy: The merge optimizer works on 2 segments with 7 points, 1 further one queued.',
      'wait: Optimizations are due, and begin with the next change of the collection or a restart of the node.',
      'busy: 1 of 2 replicas do not serve yet.',
      'busy: 1 shard transfer under way.',
      'bad: 1 of 2 replicas is Dead; the others answer meanwhile.',
      'busy: 1,200 points stay hidden until they are indexed.',
      'bad: the disk is full',
    ],
  );
});

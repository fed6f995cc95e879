/** Requests about a cluster that a founder alone takes or has a reason to refuse: what mutations start from. */

import { join } from 'node:path';
import protobuf from 'protobufjs';
import type { RandomNumbers } from '../../../ops/random.js';
import type { SampleRequest } from './requests.js';

/** The collection with shard keys. */
export const KEYED = 'keyed';
export const KEYED_COLLECTION = { vectors: { size: 2, distance: 'Dot' }, sharding_method: 'custom' };

/** Replaces the peer's id, which is known only when it runs. */
const SELF = 'SELF';

const TRANSFER = { shard_id: 0, from_peer_id: SELF, to_peer_id: 7 };
const SETUPS: readonly object[] = [
  { create_sharding_key: { shard_key: 'red', shards_number: 2, replication_factor: 1, placement: [SELF] } },
  { create_sharding_key: { shard_key: 7, initial_state: 'Active' } },
  { drop_sharding_key: { shard_key: 'red' } },
  { drop_replica: { shard_id: 0, peer_id: SELF } },
  { move_shard: { ...TRANSFER, method: 'snapshot' } },
  { replicate_shard: { ...TRANSFER, method: 'stream_records' } },
  { abort_transfer: TRANSFER },
  { restart_transfer: { ...TRANSFER, method: 'wal_delta' } },
  { replicate_points: { from_shard_key: 'red', to_shard_key: 7, filter: { must: [{ key: 'a', match: { value: 1 } }] } } },
  { start_resharding: { direction: 'up' } },
];

/** Of one peer. Paths begin with `//`, as in `sampleRequest`. */
export function clusterRequest(random: RandomNumbers, peerId: number): SampleRequest {
  const one = <T>(list: readonly T[]): T => list[random.integer(list.length)] as T;
  const consistency = one(['', '?consistency=majority', '?consistency=all&timeout=2', '?consistency=0', '?timeout=0', '?consistency=x']);
  const collection = one([KEYED, KEYED, 'fuzzed', 'nothing', 'alias_1']);
  const samples: readonly (() => SampleRequest)[] = [
    () => ({ method: 'POST', path: `//collections/${collection}/cluster?timeout=${one(['1', '5', '0', 'x'])}`, body: one(SETUPS) }),
    () => ({ method: 'POST', path: `//collections/${collection}/cluster`, body: one(SETUPS) }),
    () => ({
      method: 'PUT',
      path: `//collections/${collection}/shards`,
      body: { shard_key: one(['red', 'blue', 7, '']), placement: [SELF] },
    }),
    () => ({ method: 'POST', path: `//collections/${collection}/shards/delete`, body: { shard_key: one(['red', 'blue', 7]) } }),
    () => ({ method: 'GET', path: `//collections/${collection}/shards${consistency}` }),
    () => ({ method: 'GET', path: `//collections/${collection}/cluster${consistency}` }),
    () => ({ method: 'GET', path: `//collections${consistency}` }),
    () => ({ method: 'GET', path: `//collections/${collection}/exists${consistency}` }),
    () => ({ method: 'GET', path: `//cluster/telemetry?details_level=${one(['0', '1', '3', '-1', 'x'])}&timeout=${one(['1', '0'])}` }),
    () => ({ method: 'GET', path: '//cluster' }),
    () => ({ method: 'POST', path: '//cluster/recover' }),
    () => ({
      method: 'DELETE',
      path: `//cluster/peer/${one([String(peerId), '0', '-1', 'x', '99999999999999999999', '%00'])}?force=${one(['true', 'false', '1'])}`,
    }),
    () => ({
      method: 'PUT',
      path: `//collections/made_${random.integer(3)}`,
      body: { ...KEYED_COLLECTION, shard_number: 2, replication_factor: 3, sharding_method: one(['auto', 'custom']) },
    }),
    () => ({ method: 'DELETE', path: `//collections/made_${random.integer(3)}` }),
    () => ({
      method: 'POST',
      path: '//collections/aliases',
      body: { actions: [{ create_alias: { collection_name: KEYED, alias_name: `alias_${random.integer(3)}` } }] },
    }),
  ];
  const sample = one(samples)();
  if (sample.body === undefined) return sample;
  return { ...sample, body: JSON.parse(JSON.stringify(sample.body).replaceAll(`"${SELF}"`, String(peerId))) as object };
}

const PROTOS = join(import.meta.dirname, '..', '..', '..', '..', 'protocols', 'grpc', 'proto');

/** The same over gRPC, encoded. */
export function clusterMessages(peerId: number): { readonly path: string; readonly message: Buffer }[] {
  const root = new protobuf.Root();
  root.resolvePath = (_origin, target) => (target.startsWith('google/') ? target : join(PROTOS, target));
  root.loadSync('collections_service.proto', { keepCase: true });
  const transfer = { shard_id: 0, from_peer_id: peerId, to_peer_id: 7 };
  const key = { shard_key: { keyword: 'red' }, placement: [peerId], shards_number: 2 };
  const setUp = (operation: object): [string, string, object] => [
    'UpdateCollectionClusterSetup',
    'UpdateCollectionClusterSetupRequest',
    { ...operation, timeout: 2 },
  ];
  const calls: readonly [method: string, type: string, message: object][] = [
    setUp({ create_shard_key: key }),
    setUp({ delete_shard_key: { shard_key: { keyword: 'red' } } }),
    setUp({ drop_replica: { shard_id: 0, peer_id: peerId } }),
    setUp({ move_shard: { ...transfer, method: 1 } }),
    setUp({ replicate_shard: transfer }),
    setUp({ abort_transfer: transfer }),
    setUp({ restart_transfer: { ...transfer, method: 2 } }),
    ['CreateShardKey', 'CreateShardKeyRequest', { request: key }],
    ['DeleteShardKey', 'DeleteShardKeyRequest', { request: { shard_key: { number: 7 } } }],
    ['ListShardKeys', 'ListShardKeysRequest', {}],
    ['CollectionClusterInfo', 'CollectionClusterInfoRequest', {}],
  ];
  return calls.map(([method, type, message]) => {
    const messageType = root.lookupType(`qdrant.${type}`);
    const encoded = messageType.encode(messageType.fromObject({ collection_name: KEYED, ...message })).finish();
    return { path: `/qdrant.Collections/${method}`, message: Buffer.from(encoded) };
  });
}

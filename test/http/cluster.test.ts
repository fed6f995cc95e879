/** Operations on the cluster, through both doors. */

import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { type GrpcDoor, startGrpcDoor } from '../../http/grpc/server.js';
import { TroupeError } from '../../protocols/errors.js';
import { BUILT_IN_DEFAULTS, decodeCreateCollection } from '../../protocols/rest/collections.js';
import { FakeCluster } from './fake-cluster.js';
import { failure, GrpcClient } from './grpc/client.js';
import { type Harness, openDoor } from './rest/fake-node.js';

let harness: Harness;
let grpcDoor: GrpcDoor;
let grpc: GrpcClient;
let cluster: FakeCluster;

before(async () => {
  harness = await openDoor();
  grpcDoor = await startGrpcDoor(harness.services, { host: '127.0.0.1', port: 0, maxMessageBytes: 1 << 20, logRequests: false });
  grpc = new GrpcClient(grpcDoor.port);
});

beforeEach(() => {
  cluster = new FakeCluster();
  harness.node.cluster = cluster;
  harness.node.timeouts.length = 0;
  harness.node.collections.clear();
});

after(async () => {
  grpc.close();
  await grpcDoor.close(1000);
  await harness.door.close(1000);
});

interface Reply {
  readonly status: number;
  readonly text: string;
  /** Result or error. */
  readonly shown: unknown;
}

async function call(method: string, path: string, body?: unknown): Promise<Reply> {
  const response = await fetch(`${harness.url}${path}`, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  const text = await response.text();
  if (!text.startsWith('{')) return { status: response.status, text, shown: text };
  const { result, status } = JSON.parse(text);
  return { status: response.status, text, shown: result === undefined ? status.error : result };
}

async function resultOf(method: string, path: string, body?: unknown): Promise<unknown> {
  const { shown, status } = await call(method, path, body);
  assert.equal(status, 200, `${method} ${path}: ${JSON.stringify(shown)}`);
  return shown;
}

const MOVE = { shard_id: 1, from_peer_id: 11, to_peer_id: 12 };

test('the status shows peers, Raft and what could not be sent', async () => {
  assert.deepEqual(await resultOf('GET', '/cluster'), {
    status: 'enabled',
    peer_id: 11,
    peers: { 11: { uri: 'http://peer11:6335' }, 12: { uri: 'http://peer12:6335' }, 13: { uri: 'http://peer13:6335' } },
    raft_info: { term: 3, commit: 9, pending_operations: 2, role: 'Leader', is_voter: true, leader: 11 },
    consensus_thread_status: { consensus_thread_status: 'working', last_update: '1970-01-01T00:00:01.000Z' },
    message_send_failures: {
      'http://peer13:6335': { count: 5, latest_error: 'connection refused', latest_error_timestamp: '1970-01-01T00:00:02.000Z' },
    },
  });
});

test('a node that is in no cluster yet says why, and keeps what needs one for later', async () => {
  cluster.joined = false;
  cluster.error = 'nobody answers at http://peer12:6335';
  const { consensus_thread_status, peers, raft_info } = (await resultOf('GET', '/cluster')) as Record<string, unknown>;
  assert.deepEqual(consensus_thread_status, { consensus_thread_status: 'stopped_with_err', err: cluster.error });
  assert.deepEqual(peers, {});
  assert.deepEqual(raft_info, { term: 0, commit: 0, pending_operations: 2, role: null, is_voter: false, leader: null });
  const create = await call('PUT', '/collections/new', { vectors: { size: 4, distance: 'Dot' } });
  assert.equal(create.status, 503);
  assert.match(String(create.shown), /not part of its cluster yet \(Joining: nobody answers at/);
  assert.equal((await call('GET', '/collections/a/cluster')).status, 503);
  assert.equal((await call('GET', '/cluster/telemetry')).status, 503);
  assert.equal((await call('GET', '/telemetry')).status, 200);
  assert.equal((await call('GET', '/metrics')).status, 200);
});

test('a peer is removed by its id, by force where asked', async () => {
  assert.equal(await resultOf('DELETE', '/cluster/peer/13'), true);
  assert.equal(await resultOf('DELETE', '/cluster/peer/13?force=true&timeout=3'), true);
  assert.deepEqual(cluster.asked, ['remove 13 10000', 'remove 13 by force 3000']);
  const wrong = await call('DELETE', '/cluster/peer/abc');
  assert.deepEqual([wrong.status, wrong.text], [404, 'can not parse "abc" to a u64']);
  assert.equal((await call('DELETE', '/cluster/peer/13?force=perhaps')).status, 400);
  assert.equal((await call('DELETE', '/cluster/peer/13?timeout=0')).status, 422);
});

test('small values under keys are listed, read, put and deleted, as all nodes agree on them', async () => {
  const keys = '/cluster/metadata/keys';
  assert.deepEqual(await resultOf('GET', keys), []);
  assert.equal(await resultOf('PUT', `${keys}/colour?wait=true`, { a: [1, 'ü'] }), true);
  assert.equal(await resultOf('PUT', `${keys}/a%2Fb?timeout=3`, null), true);
  assert.equal(await resultOf('DELETE', `${keys}/colour?wait=true`), true);
  assert.deepEqual(cluster.asked, [
    'change {"kind":"setMetadata","key":"colour","value":"{\\"a\\":[1,\\"ü\\"]}"} 10000',
    'change {"kind":"setMetadata","key":"a/b","value":"null"} 3000 at once',
    'change {"kind":"setMetadata","key":"colour","value":null} 10000',
  ]);
  cluster.agreed = { ...cluster.agreed, metadata: new Map(Object.entries({ b: '18446744073709551615', a: '{"x":null}' })) };
  assert.deepEqual(await resultOf('GET', keys), ['a', 'b']);
  assert.deepEqual(await resultOf('GET', `${keys}/a`), { x: null });
  assert.match((await call('GET', `${keys}/b?consistency=all`)).text, /"result":18446744073709551615,/);
  assert.equal(await resultOf('GET', `${keys}/none`), null);
  assert.equal((await call('PUT', `${keys}/a?wait=perhaps`, 1)).status, 400);
  harness.node.cluster = null;
  assert.deepEqual(
    [(await call('GET', keys)).status, (await call('PUT', `${keys}/a`, 1)).shown],
    [400, 'Bad request: Distributed mode disabled'],
  );
});

test('draining and balancing can be looked at first, with moves, bytes and balance, and are begun by one agreed operation', async () => {
  type Shown = { started: boolean; moves: object[]; stuck: object[]; balance: { before: object; after: object } };
  const dry = (await resultOf('POST', '/cluster/peer/13/drain?dry_run=true')) as Shown;
  assert.equal(dry.started, false);
  assert.deepEqual(dry.balance.before, {
    11: { replicas: 4, bytes: 4096 },
    12: { replicas: 2, bytes: 4096 },
    13: { replicas: 1, bytes: 0 },
  });
  // What else was done first has taken some of the ten seconds.
  assert.match(cluster.asked.join(), /^barrier (9\d{3}|10000),describe 2000$/);
  cluster.asked.length = 0;
  const { started } = (await resultOf('POST', '/cluster/peer/13/drain?timeout=5')) as Shown;
  assert.equal(started, true);
  // The plan has taken some of the request's five seconds.
  assert.match(cluster.asked.at(-1) as string, /^change \{"kind":"markPeer","peerId":13,"listens":null,"leaving":"drain"\} (4\d{3}|5000)$/);
  assert.equal(await resultOf('DELETE', '/cluster/peer/13/drain'), true);
  assert.match(
    cluster.asked.at(-1) as string,
    /^change \{"kind":"markPeer","peerId":13,"listens":null,"leaving":"stays"\} (9\d{3}|10000)$/,
  );
  await resultOf('POST', '/cluster/rebalance?dry_run=true');
  assert.doesNotMatch(cluster.asked.join(), /planMoves/);
  await resultOf('POST', '/cluster/rebalance');
  assert.match(cluster.asked.join(), /planMoves/);
  const missing = await call('POST', '/cluster/peer/99/drain');
  assert.deepEqual([missing.status, missing.shown], [404, 'Not found: peer 99 is not part of the cluster']);
  assert.equal((await call('POST', '/cluster/peer/abc/drain')).status, 404);
  assert.equal((await call('POST', '/cluster/rebalance?dry_run=perhaps')).status, 400);
});

test('a peer takes the state from its leader anew', async () => {
  assert.equal(await resultOf('POST', '/cluster/recover'), true);
  assert.deepEqual(cluster.asked, ['recover 10000']);
});

test('what the cluster refuses is answered with its status and reason', async () => {
  cluster.failure = new TroupeError('unavailable', 'no leader: more than half of the voters must be reachable');
  const refused = await call('POST', '/cluster/recover');
  assert.equal(refused.status, 503);
  assert.equal(refused.shown, 'Service unavailable: no leader: more than half of the voters must be reachable');
  const request = { shard_key: { keyword: 'a' } };
  const { code } = await failure(grpc.call('Collections/CreateShardKey', { collection_name: 'k', request }));
  assert.equal(code, 14);
});

test('shards of a collection are shown where they are, by its name or an alias', async () => {
  const expected = {
    peer_id: 11,
    shard_count: 2,
    // Agreed to be Active, and not open on this node yet.
    local_shards: [{ shard_id: 0, points_count: 0, state: 'Initializing' }],
    remote_shards: [
      { shard_id: 0, peer_id: 12, state: 'Dead' },
      { shard_id: 1, peer_id: 12, state: 'Active' },
      { shard_id: 1, peer_id: 13, state: 'Partial' },
    ],
    shard_transfers: [
      {
        shard_id: 1,
        from: 12,
        to: 13,
        sync: true,
        method: 'stream_records',
        comment: 'carried out by peer 12, which knows how far it is',
      },
    ],
  };
  assert.deepEqual(await resultOf('GET', '/collections/a/cluster'), expected);
  assert.deepEqual(await resultOf('GET', '/collections/x/cluster'), expected);
  harness.node.collections.set('a', {} as never);
  const { local_shards } = (await resultOf('GET', '/collections/a/cluster')) as { local_shards: unknown };
  assert.deepEqual(local_shards, [{ shard_id: 0, points_count: 3, state: 'Active' }]);
  const missing = await call('GET', '/collections/none/cluster');
  assert.deepEqual([missing.status, missing.shown], [404, "Not found: Collection `none` doesn't exist!"]);
});

test('shard keys are shown as they were given', async () => {
  const { text } = await call('GET', '/collections/k/shards');
  assert.match(text, /"shard_keys":\[\{"key":"red"\},\{"key":7\},\{"key":1152921504606846976\}\]/);
  assert.deepEqual(await resultOf('GET', '/collections/a/shards'), {});
  assert.equal((await call('GET', '/collections/none/shards')).status, 404);
});

test('each operation on shards is read and handed on', async () => {
  const cases: readonly (readonly [body: object, asked: string])[] = [
    [{ move_shard: MOVE }, '{"kind":"moveShard","shardId":1,"toShardId":null,"from":11,"to":12,"method":null}'],
    [
      { replicate_shard: { ...MOVE, method: 'snapshot' } },
      '{"kind":"replicateShard","shardId":1,"toShardId":null,"from":11,"to":12,"method":"snapshot"}',
    ],
    [{ abort_transfer: MOVE }, '{"kind":"abortTransfer","shardId":1,"toShardId":null,"from":11,"to":12}'],
    [
      { restart_transfer: { ...MOVE, method: 'wal_delta' } },
      '{"kind":"restartTransfer","shardId":1,"toShardId":null,"from":11,"to":12,"method":"wal_delta"}',
    ],
    [{ drop_replica: { shard_id: 0, peer_id: 12 } }, '{"kind":"dropReplica","shardId":0,"peerId":12}'],
    [
      {
        create_sharding_key: { shard_key: 'a', shards_number: 2, replication_factor: 3, placement: [12, 12, 13], initial_state: 'Active' },
      },
      '{"kind":"createShardKey","key":"a","shardsNumber":2,"replicationFactor":3,"placement":[12,13],"initialState":"Active"}',
    ],
    [{ drop_sharding_key: { shard_key: 7 } }, '{"kind":"dropShardKey","key":7}'],
    [
      { start_resharding: { direction: 'up', peer_id: 12, shard_key: 'a' } },
      '{"kind":"startResharding","direction":"up","peerId":12,"key":"a"}',
    ],
    [{ start_resharding: { direction: 'down' } }, '{"kind":"startResharding","direction":"down","peerId":null,"key":null}'],
    [{ abort_resharding: {} }, '{"kind":"abortResharding"}'],
    [
      { replicate_points: { from_shard_key: 'red', to_shard_key: 7, filter: { must: { key: 'a', match: { value: 1 } } } } },
      '{"kind":"replicatePoints","source":"red","target":7,"filter":"{\\"must\\":{\\"key\\":\\"a\\",\\"match\\":{\\"value\\":1}}}"}',
    ],
    [{ replicate_points: { from_shard_key: 1, to_shard_key: 2 } }, '{"kind":"replicatePoints","source":1,"target":2,"filter":null}'],
    [{ auto_replication: { enabled: true } }, '{"kind":"autoReplication","enabled":true}'],
  ];
  for (const [body, asked] of cases) {
    cluster.asked.length = 0;
    assert.equal(await resultOf('POST', '/collections/a/cluster?timeout=5', body), true);
    assert.deepEqual(cluster.asked, [`a ${asked} 5000`]);
  }
});

test('a replica that is activated although others had more is answered with what that costs', async () => {
  const body = { activate_replica: { shard_id: 0, peer_id: 12, accept_data_loss: true } };
  const answer = (await resultOf('POST', '/collections/a/cluster', body)) as { activated: boolean; warning: string };
  assert.equal(answer.activated, true);
  assert.match(answer.warning, /points that only other replicas had are lost/);
});

test('operations on shards that make no sense are refused before anybody is asked', async () => {
  const refused = async (body: object, status: number, message: RegExp) => {
    const reply = await call('POST', '/collections/a/cluster', body);
    assert.equal(reply.status, status, JSON.stringify(body));
    assert.match(String(reply.shown), message);
  };
  await refused({}, 400, /names no operation/);
  await refused({ explode: {} }, 400, /names no operation/);
  await refused(
    { move_shard: MOVE, drop_replica: { shard_id: 0, peer_id: 1 } },
    400,
    /must have exactly one operation, it has move_shard and drop_replica/,
  );
  await refused({ move_shard: { shard_id: 1, from_peer_id: 11 } }, 400, /missing field `move_shard.to_peer_id`/);
  await refused({ move_shard: { ...MOVE, method: 'magic' } }, 400, /method/);
  await refused({ activate_replica: { shard_id: 0, peer_id: 12 } }, 422, /accept_data_loss: .* is lost for good/);
  await refused({ restart_transfer: MOVE }, 400, /missing field `restart_transfer.method`/);
  await refused({ drop_replica: { shard_id: -1, peer_id: 1 } }, 400, /shard_id/);
  await refused({ create_sharding_key: { shard_key: 1.5 } }, 400, /shard_key/);
  const itself = { ...MOVE, to_peer_id: MOVE.from_peer_id };
  await refused({ move_shard: itself }, 422, /\[move_shard.to_peer_id: cannot transfer shard to itself/);
  await refused({ replicate_shard: itself }, 422, /"to_peer_id" must be different than 11 in "from_peer_id"/);
  await refused({ create_sharding_key: { shard_key: 'a', shards_number: 0 } }, 400, /expected a nonzero u32/);
  await refused({ create_sharding_key: { shard_key: 'a', replication_factor: 0 } }, 400, /expected a nonzero u32/);
  await refused({ create_sharding_key: { shard_key: 'a', shards_number: 4097 } }, 422, /must be from 0 to 4096/);
  await refused({ create_sharding_key: { shard_key: 'a', initial_state: 'Dead' } }, 400, /only Active or Partial are allowed/);
  await refused({ create_sharding_key: { shard_key: 'a', placement: ['b'] } }, 400, /placement\[0\]/);
  await refused({ create_sharding_key: { shard_key: 'a', initial_state: 'Happy' } }, 400, /initial_state/);
  await refused({ start_resharding: {} }, 400, /missing field `start_resharding.direction`/);
  await refused({ start_resharding: { direction: 'sideways' } }, 400, /direction/);
  await refused({ replicate_points: {} }, 400, /missing field `replicate_points.from_shard_key`/);
  await refused({ replicate_points: { from_shard_key: 'a' } }, 400, /missing field `replicate_points.to_shard_key`/);
  const filter = { must: [{ key: 'a' }] };
  await refused({ replicate_points: { from_shard_key: 'a', to_shard_key: 'b', filter } }, 422, /filter/);
  assert.deepEqual(cluster.asked, []);
});

test('shard keys are made and deleted by routes of their own', async () => {
  assert.equal(await resultOf('PUT', '/collections/k/shards', { shard_key: 'new' }), true);
  assert.equal(await resultOf('POST', '/collections/k/shards/delete?timeout=1', { shard_key: 7 }), true);
  const made = '{"kind":"createShardKey","key":"new","shardsNumber":null,"replicationFactor":null,"placement":null,"initialState":null}';
  assert.deepEqual(cluster.asked, [`k ${made} 10000`, 'k {"kind":"dropShardKey","key":7} 1000']);
});

test('gRPC asks for the same by its own messages', async () => {
  const setUp = (operation: object) =>
    grpc.call('Collections/UpdateCollectionClusterSetup', { collection_name: 'a', timeout: 5, ...operation });
  assert.equal((await setUp({ move_shard: { ...MOVE, method: 'WalDelta' } })).result, true);
  assert.equal((await setUp({ create_shard_key: { shard_key: { number: 3 }, placement: [12] } })).result, true);
  assert.equal((await setUp({ delete_shard_key: { shard_key: { keyword: 'b' } } })).result, true);
  const condition = { field: { key: 'n', match: { integer: 5 } } };
  const points = { from_shard_key: { keyword: 'b' }, to_shard_key: { number: 3 }, filter: { must: [condition] } };
  assert.equal((await setUp({ replicate_points: points })).result, true);
  const request = { shard_key: { keyword: 'c' }, initial_state: 'Partial' };
  assert.equal((await grpc.call('Collections/CreateShardKey', { collection_name: 'k', request })).result, true);
  assert.equal(
    (await grpc.call('Collections/DeleteShardKey', { collection_name: 'k', request: { shard_key: { number: 9 } } })).result,
    true,
  );
  assert.deepEqual(cluster.asked, [
    'a {"kind":"moveShard","shardId":1,"toShardId":null,"from":11,"to":12,"method":"wal_delta"} 5000',
    'a {"kind":"createShardKey","key":3,"shardsNumber":null,"replicationFactor":null,"placement":[12],"initialState":null} 5000',
    'a {"kind":"dropShardKey","key":"b"} 5000',
    'a {"kind":"replicatePoints","source":"b","target":3,"filter":"{\\"must\\":[{\\"key\\":\\"n\\",\\"match\\":{\\"value\\":5}}]}"} 5000',
    'k {"kind":"createShardKey","key":"c","shardsNumber":null,"replicationFactor":null,"placement":null,"initialState":"Partial"} 10000',
    'k {"kind":"dropShardKey","key":9} 10000',
  ]);
  const shown = await grpc.call('Collections/CollectionClusterInfo', { collection_name: 'a' });
  // Zeros are not sent.
  assert.deepEqual(shown.local_shards, [{ state: 'Initializing' }]);
  assert.deepEqual(shown.shard_transfers, [{ shard_id: 1, from: '12', to: '13', sync: true }]);
  const { shard_keys } = (await grpc.call('Collections/ListShardKeys', { collection_name: 'k' })) as { shard_keys: unknown[] };
  assert.deepEqual(shard_keys[0], { key: { keyword: 'red' } });
});

test('reads of settings wait for agreement where `consistency` asks for it', async () => {
  harness.node.collections.set('a', decodeCreateCollection({}, BUILT_IN_DEFAULTS));
  const reads = ['/collections', '/collections/a', '/collections/a/exists', '/aliases', '/collections/a/aliases', '/collections/a/cluster'];
  for (const path of [...reads, '/collections/k/shards']) {
    cluster.asked.length = 0;
    for (const level of ['1', '01']) await resultOf('GET', `${path}?consistency=${level}`);
    assert.deepEqual(cluster.asked, [], path);
    for (const level of ['majority', 'quorum', 'all', '2']) await resultOf('GET', `${path}?consistency=${level}&timeout=2`);
    assert.deepEqual(cluster.asked, Array(4).fill('barrier 2000'), path);
    assert.equal((await call('GET', `${path}?consistency=some`)).status, 400, path);
  }
  cluster.failure = new TroupeError('timeout', 'no leader has confirmed it in time');
  assert.equal((await call('GET', '/collections?consistency=all')).status, 408);
  assert.equal((await call('GET', '/collections')).status, 200);
});

test('changes of collections pass their timeout on', async () => {
  const vectors = { size: 4, distance: 'Dot' };
  await resultOf('PUT', '/collections/new?timeout=7', { vectors });
  await resultOf('PATCH', '/collections/new', {});
  await resultOf('POST', '/collections/aliases?timeout=3', { actions: [] });
  await resultOf('DELETE', '/collections/new?timeout=2');
  assert.deepEqual(harness.node.timeouts, [7000, undefined, 3000, 2000]);
});

test('a collection gets a shard per peer unless it says otherwise, and with custom sharding one per key', async () => {
  const vectors = { size: 4, distance: 'Dot' };
  const params = async (body: object) => {
    await resultOf('PUT', '/collections/new', { vectors, ...body });
    const made = harness.node.collections.get('new')?.params;
    harness.node.collections.clear();
    return [made?.shard_number, made?.sharding_method];
  };
  assert.deepEqual(await params({}), [3, undefined]);
  assert.deepEqual(await params({ shard_number: 2, sharding_method: 'auto' }), [2, 'auto']);
  assert.deepEqual(await params({ sharding_method: 'custom' }), [1, 'custom']);
  assert.equal((await call('PUT', '/collections/new', { vectors, shard_number: 5000 })).status, 422);
});

/** What the first peer tells of its replica. */
const TOLD = {
  status: 'green',
  total_optimized_points: 2,
  vectors_size_bytes: 4096,
  payloads_size_bytes: 512,
  num_points: 3,
  num_vectors: 6,
  num_vectors_by_name: { '': 3 },
};

test('telemetry of the cluster shows every peer, and which of them did not answer', async () => {
  const { cluster: nodes, collections } = (await resultOf('GET', '/cluster/telemetry?details_level=2&timeout=1')) as Record<
    string,
    unknown
  >;
  assert.deepEqual(cluster.asked, ['describe 1000']);
  const { number_of_peers, peers } = nodes as { number_of_peers: number; peers: Record<string, { responsive: boolean; details?: object }> };
  assert.equal(number_of_peers, 3);
  assert.deepEqual(
    Object.values(peers).map(({ responsive }) => responsive),
    [true, true, false],
  );
  assert.deepEqual(peers['12']?.details, {
    version: '0.5.0',
    role: 'Follower',
    is_voter: true,
    term: 3,
    commit: 9,
    num_pending_operations: 0,
    consensus_thread_status: { consensus_thread_status: 'working', last_update: '1970-01-01T00:00:00.000Z' },
  });
  const { shards } = (collections as Record<string, { shards: object[] }>).a as { shards: object[] };
  assert.deepEqual(shards[0], {
    id: 0,
    replicas: [
      { peer_id: 11, state: 'Active', ...TOLD },
      { peer_id: 12, state: 'Dead' },
    ],
  });
});

test('the level of details of the cluster decides what is shown of peers and replicas', async () => {
  const shown = async (query: string) => {
    const { cluster: nodes, collections } = (await resultOf('GET', `/cluster/telemetry${query}`)) as {
      cluster: { peers: Record<string, object> };
      collections: { a: { shards?: { replicas: object[] }[] } };
    };
    return [Object.keys(nodes.peers['12'] ?? {}), collections.a.shards?.[0]?.replicas[0]];
  };
  const state = { peer_id: 11, state: 'Active' };
  assert.deepEqual(await shown('?details_level=0'), [['uri', 'responsive'], undefined]);
  assert.deepEqual(await shown(''), [['uri', 'responsive', 'details'], state]);
  assert.deepEqual(await shown('?details_level=7'), [['uri', 'responsive', 'details'], { ...state, ...TOLD }]);
});

test("a node's telemetry says how its consensus is set up", async () => {
  const { cluster: shown } = (await resultOf('GET', '/telemetry')) as { cluster: Record<string, unknown> };
  assert.deepEqual(shown.config, {
    grpc_timeout_ms: 5000,
    p2p: { connection_pool_size: 1 },
    consensus: { max_message_queue_size: 64, tick_period_ms: 100, bootstrap_timeout_sec: 10 },
  });
});

test('calls of peers are counted by kind and by what became of them, in telemetry and metrics, beside who is connected', async () => {
  cluster.calls.made.record('append', 'ok', 2, 5000);
  cluster.calls.made.record('append', 'ok', 4, 6000);
  cluster.calls.made.record('append', 'lost', 30, 7000);
  cluster.calls.answered.record('read', 'conflict', 0.5, 8000);
  const { app, cluster: its } = (await resultOf('GET', '/telemetry')) as Record<string, Record<string, unknown>>;
  const statistics = (count: number, [min, avg, max, total]: readonly number[], lastMs: number) => ({
    count,
    avg_duration_micros: avg,
    min_duration_micros: min,
    max_duration_micros: max,
    total_duration_micros: total,
    last_responded: new Date(lastMs).toISOString(),
  });
  assert.deepEqual(app?.peer_calls, {
    made: {
      responses: {
        append: {
          lost: statistics(1, [30_000, 30_000, 30_000, 30_000], 7000),
          ok: statistics(2, [2000, 3000, 4000, 6000], 6000),
        },
      },
    },
    answered: { responses: { read: { conflict: statistics(1, [500, 500, 500, 500], 8000) } } },
  });
  assert.deepEqual(its?.internal_port, { connections: 3, plain_connections: 1, call_streams: 1, calls: 2 });
  const lines = (await call('GET', '/metrics')).text.split('\n');
  for (const line of [
    'cluster_internal_connections 3',
    'cluster_internal_calls 2',
    'cluster_peer_calls_total{direction="made",kind="append",outcome="ok"} 2',
    'cluster_peer_calls_total{direction="made",kind="append",outcome="lost"} 1',
    'cluster_peer_calls_total{direction="answered",kind="read",outcome="conflict"} 1',
    'cluster_peer_calls_duration_seconds_bucket{direction="made",kind="append",outcome="ok",le="0.0025"} 1',
    'cluster_peer_calls_duration_seconds_sum{direction="made",kind="append",outcome="ok"} 0.006',
  ]) {
    assert.ok(lines.includes(line), line);
  }
});

test("a node's telemetry has its role, term, commit and applied entry, and as leader the progress of each peer", async () => {
  const report = async (query = '') => ((await resultOf('GET', `/telemetry${query}`)) as { cluster: Record<string, unknown> }).cluster;
  const { enabled, raft, status } = await report();
  assert.equal(enabled, true);
  assert.deepEqual(status, {
    number_of_peers: 3,
    term: 3,
    commit: 9,
    pending_operations: 2,
    role: 'Leader',
    is_voter: true,
    peer_id: 11,
    consensus_thread_status: { consensus_thread_status: 'working', last_update: '1970-01-01T00:00:01.000Z' },
  });
  const { applied, progress } = raft as { applied: number; progress: object };
  assert.equal(applied, cluster.agreed.appliedIndex);
  assert.deepEqual(progress, { 12: { mode: 'Probe', match: 8, next: 10, recently_active: true } });
  cluster.leads = false;
  cluster.error = 'the disk of peer11 is full';
  assert.equal('progress' in ((await report()).raft as object), false);
  assert.doesNotMatch(JSON.stringify(await report('?anonymize=true')), /peer1\d|refused|full/);
});

test('metrics count peers, entries and replicas', async () => {
  const lines = (await call('GET', '/metrics')).text.split('\n');
  for (const line of [
    'cluster_enabled 1',
    'cluster_peers_total 3',
    'cluster_term 3',
    'cluster_commit 9',
    `cluster_applied ${cluster.agreed.appliedIndex}`,
    'cluster_pending_operations_total 2',
    'cluster_voter 1',
    'cluster_role{role="Leader"} 1',
    'cluster_role{role="Follower"} 0',
    'cluster_peer_connected{peer="13"} 0',
    'cluster_message_failures_total{peer="13"} 5',
    'collection_active_replicas_min 1',
    'collection_active_replicas_max 1',
    'collection_dead_replicas 1',
  ])
    assert.ok(lines.includes(line), line);
});

test('a node of its own has no cluster, and says so', async () => {
  harness.node.cluster = null;
  harness.node.collections.set('a', {} as never);
  assert.deepEqual(await resultOf('GET', '/cluster'), { status: 'disabled' });
  assert.deepEqual(await resultOf('GET', '/cluster/telemetry'), { collections: {}, cluster: { enabled: false, peers: {} } });
  for (const [method, path, body] of [
    ['POST', '/cluster/recover', undefined],
    ['DELETE', '/cluster/peer/1', undefined],
    ['POST', '/collections/none/cluster', { drop_replica: { shard_id: 0, peer_id: 1 } }],
    ['PUT', '/collections/a/shards', { shard_key: 'a' }],
    ['POST', '/collections/a/shards/delete', { shard_key: 'a' }],
  ] as const) {
    const { shown, status } = await call(method, path, body);
    assert.equal(status, 400, path);
    assert.match(String(shown), /^Bad request: Distributed mode disabled/);
  }
  const request = { shard_key: { keyword: 'a' } };
  assert.equal((await failure(grpc.call('Collections/CreateShardKey', { collection_name: 'a', request }))).code, 9);
  assert.deepEqual(await resultOf('GET', '/collections?consistency=all'), { collections: [{ name: 'a' }] });
});

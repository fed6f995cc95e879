import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LongWork } from '../../../actors/runtime/long-works.js';
import type { PeerDetails } from '../../../cluster/peer-messages.js';
import type { ClusterState } from '../../../cluster/state/state.js';
import { plainCopy } from '../../../http/context/long-value.js';
import { clusterReport, nodesReport } from '../../../http/reports/cluster-report.js';
import { FakeCluster } from '../fake-cluster.js';

const COUNT = 200;
const PEERS = [11, 12];
const CONFIG = { params: { vectors: { size: 4, distance: 'Dot' }, sparse_vectors: { words: {} } } };
const NOTHING = { total_optimized_points: 0, vectors_size_bytes: 0, payloads_size_bytes: 0 };

/** Collections with two shards, each with a replica on each of two peers. */
function stateOf(): ClusterState {
  const shard = { key: null, leader: 11, replicas: new Map(PEERS.map((peer) => [peer, 'Active'])) };
  const record = {
    shards: new Map([0, 1].map((shardId) => [shardId, shard])),
    transfers: [],
    resharding: null,
    keyCopy: null,
    config: CONFIG,
  };
  const collections = new Map(Array.from({ length: COUNT }, (_, at) => [`c${COUNT - at}`, record]));
  return { collections, membership: PEERS.map((peerId) => ({ peerId, uri: `http://${peerId}` })) } as unknown as ClusterState;
}

function detailsOf(peer: number): PeerDetails {
  const replicas = [...stateOf().collections.keys()].flatMap((collection, at) =>
    [0, 1].map((shardId) => ({
      collection,
      shardId,
      status: 'green',
      pointsCount: 1000 * peer + at,
      vectorsCount: shardId,
      bytes: 0,
      payloadBytes: 0,
      optimizedPoints: 0,
    })),
  );
  return {
    version: '',
    role: 'Follower',
    isVoter: true,
    term: 1,
    commit: 1,
    pendingOperations: 0,
    lastUpdateMs: 0,
    replicas,
  } as PeerDetails;
}

function finish<Result>(work: LongWork<Result>): { result: Result; pauses: number } {
  for (let pauses = 0; ; pauses++) {
    const step = work.next();
    if (step.done === true) return { result: step.value, pauses };
  }
}

test('telemetry of the cluster may pause at each replica and collection, and finds what each peer told', () => {
  const details = new Map(PEERS.map((peer) => [peer, peer === 12 ? null : detailsOf(peer)]));
  const made = finish(nodesReport(stateOf(), details, 2));
  assert.equal(made.pauses, 2 * COUNT, 'one for each replica that a peer told of');
  const shown = finish(plainCopy(made.result));
  assert.ok(shown.pauses >= COUNT);
  const { collections } = shown.result as { collections: Record<string, { shards: { id: number; replicas: object[] }[] }> };
  assert.deepEqual(Object.keys(collections).slice(0, 3), ['c1', 'c10', 'c100']);
  assert.deepEqual(collections[`c${COUNT}`]?.shards[1], {
    id: 1,
    replicas: [
      {
        ...{ peer_id: 11, state: 'Active', status: 'green', num_points: 11_000, num_vectors: 1 },
        ...{ ...NOTHING, num_vectors_by_name: { '': 11_000, words: 11_000 } },
      },
      { peer_id: 12, state: 'Active' },
    ],
  });
  assert.equal(finish(nodesReport(stateOf(), details, 1)).pauses, 0, 'level 1 shows no figures');
});

test('the state of the cluster names peers that cannot be reached, also where nothing was to be sent to them', () => {
  const cluster = new FakeCluster();
  const own = cluster.status();
  const lost = { connected: false, failures: 0, lastError: 'no connection', lastErrorMs: 0, protocolVersion: 1, queued: 0 };
  cluster.status = () => ({ ...own, connections: new Map([...own.connections, [14, lost], [15, { ...lost, lastError: null }]]) });
  const { message_send_failures: failures } = clusterReport(cluster) as { message_send_failures: Record<string, { count: number }> };
  assert.deepEqual(
    Object.values(failures)
      .map(({ count }) => count)
      .sort(),
    [0, 5],
  );
});

/** Operations on the cluster. On a node of its own they answer that it is one, or are refused. */

import type { ClusterApi } from '../../actors/consensus/cluster-api.js';
import type { NodeApi } from '../../actors/start/node-api.js';
import { TroupeError } from '../../protocols/errors.js';
import type { ClusterSetup, PeerId } from '../../protocols/model/cluster.js';
import { decodeClusterSetup, decodeCreateShardKey, decodeDeleteShardKey, peerIdFromText } from '../../protocols/rest/cluster.js';
import { flagParameter, type QueryParameters, unsigned } from '../../protocols/rest/parameters.js';
import { type HttpAnswer, result } from '../answer.js';
import { agreementMsOf, collectionName, type Handler, type NodeRequest, settingsOf, timeoutMsOf, upToDate } from '../node-request.js';
import { agreedState, clusterReport, collectionRecord, collectionReport, nodesReport, shardKeysReport } from '../reports/cluster-report.js';
import type { ClusterOperation } from '../routes.js';
import type { DoorServices } from '../services.js';
import { drain, keep, rebalance } from './cluster-plans.js';

/** Time for peers to describe themselves. Source: contract, `GET /cluster/telemetry`. */
const DESCRIBE_MS = 60_000;

/** What `GET /cluster/telemetry` shows unless it is told another level; see `nodesReport`. */
const NODES_LEVEL = 1;

export const CLUSTER_HANDLERS: Readonly<Record<ClusterOperation, Handler>> = {
  clusterStatus: ({ node: { cluster } }) => result(cluster === null ? { status: 'disabled' } : clusterReport(cluster)),
  clusterTelemetry,
  removePeer,
  drainPeer: (services, request) => onPeer(services, request, drain),
  keepPeer: (services, request) => onPeer(services, request, keep),
  rebalance: async ({ node }, { query }) => result(await rebalance(clusterOf(node), query)),
  recoverPeer: async ({ node }, { query }) => result(await clusterOf(node).recover(agreementMsOf(query))),
  collectionCluster,
  setUpCollection: (services, request) => setUp(services, request, decodeClusterSetup(settingsOf(request.body))),
  listShardKeys: async ({ node }, { path, query }) => {
    await upToDate(node, query);
    if (node.cluster !== null) return result(shardKeysReport(collectionRecord(agreedState(node.cluster), collectionName(path))));
    const { config } = node.info(collectionName(path));
    return result(config.params.sharding_method === 'custom' ? { shard_keys: [] } : {});
  },
  createShardKey: (services, request) => setUp(services, request, decodeCreateShardKey(settingsOf(request.body))),
  deleteShardKey: (services, request) => setUp(services, request, decodeDeleteShardKey(settingsOf(request.body))),
};

async function clusterTelemetry({ node }: DoorServices, { query }: NodeRequest): Promise<HttpAnswer> {
  const level = unsigned(query, 'details_level') ?? NODES_LEVEL;
  const timeoutMs = timeoutMsOf(query) ?? DESCRIBE_MS;
  const { cluster } = node;
  if (cluster === null) return result({ collections: {}, cluster: { enabled: false, peers: {} } });
  return result(nodesReport(agreedState(cluster), await cluster.describePeers(timeoutMs), level));
}

async function onPeer(
  { node }: DoorServices,
  { path, query }: NodeRequest,
  run: (cluster: ClusterApi, peerId: PeerId, query: QueryParameters) => Promise<unknown>,
): Promise<HttpAnswer> {
  const peerId = peerOf(path);
  return typeof peerId === 'number' ? result(await run(clusterOf(node), peerId, query)) : peerId;
}

/** The peer that a path names, or the answer that it names none. */
function peerOf(path: NodeRequest['path']): PeerId | HttpAnswer {
  const text = path.peer_id as string;
  return peerIdFromText(text) ?? { kind: 'text', status: 404, text: `can not parse ${JSON.stringify(text)} to a u64` };
}

async function removePeer({ node }: DoorServices, { path, query }: NodeRequest): Promise<HttpAnswer> {
  const peerId = peerOf(path);
  if (typeof peerId !== 'number') return peerId;
  const force = flagParameter(query, 'force');
  const timeoutMs = agreementMsOf(query);
  return result(await clusterOf(node, 'Distributed mode disabled.').removePeer(peerId, force, timeoutMs));
}

async function collectionCluster({ identity, node }: DoorServices, { path, query }: NodeRequest): Promise<HttpAnswer> {
  await upToDate(node, query);
  const name = collectionName(path);
  const { cluster } = node;
  if (cluster !== null) {
    const state = agreedState(cluster);
    const record = collectionRecord(state, name);
    const local = node.exists(name) ? node.localShards(name) : new Map();
    const own = state.collections.has(name) ? name : (state.aliases.get(name) ?? name);
    const nowMs = Date.now();
    return result(collectionReport(record, cluster.status().peerId, local, (transfer) => cluster.transfers.comment(own, transfer, nowMs)));
  }
  // One whose configuration cannot be read refuses, as its information does.
  node.info(name);
  const shards = [...node.localShards(name)].map(([shardId, { points, state }]) => ({ shard_id: shardId, points_count: points, state }));
  return result({ peer_id: identity.peerId, shard_count: shards.length, local_shards: shards, remote_shards: [], shard_transfers: [] });
}

async function setUp({ node }: DoorServices, { path, query }: NodeRequest, operation: ClusterSetup): Promise<HttpAnswer> {
  const timeoutMs = agreementMsOf(query);
  const done = await clusterOf(node).setUp(collectionName(path), operation, timeoutMs);
  return result(operation.kind === 'activateReplica' ? { activated: done, warning: activationWarning(operation) } : done);
}

function activationWarning({ peerId, shardId }: Extract<ClusterSetup, { kind: 'activateReplica' }>): string {
  return (
    `shard ${shardId} goes on with what peer ${peerId} has: points that only other replicas had are lost, also acknowledged ones, and ` +
    'replicas that come back are made equal to this one. Upload what is missing again'
  );
}

/** Errors: `standalone`. */
function clusterOf({ cluster }: NodeApi, detail = 'Distributed mode disabled'): ClusterApi {
  if (cluster === null) throw new TroupeError('standalone', detail);
  return cluster;
}

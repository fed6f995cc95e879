/** Operations on the cluster. On a node of its own they answer that it is one, or are refused. */

import type { ClusterApi } from '../../actors/consensus/cluster-api.js';
import type { NodeApi } from '../../actors/requests/node-api.js';
import { TroupeError } from '../../protocols/errors.js';
import type { CollectionClusterUpdate, PeerId } from '../../protocols/model/cluster.js';
import { decodeCollectionClusterUpdate, decodeCreateShardKey, decodeDeleteShardKey, peerIdFromText } from '../../protocols/rest/cluster.js';
import { flagParameter, type QueryParameters, unsigned } from '../../protocols/rest/parameters.js';
import { type HttpAnswer, result } from '../context/answer.js';
import { agreementMsLeft, type NodeRequest, settingsOf, timeoutMsOf, upToDate } from '../context/node-request.js';
import type { DoorServices } from '../context/services.js';
import { agreedState, clusterReport, collectionRecord, collectionReport, nodesReport, shardKeysReport } from '../reports/cluster-report.js';
import { drain, keep, rebalance } from './cluster-plans.js';

/** Time for peers to describe themselves. Source: contract, `GET /cluster/telemetry`. */
const DESCRIBE_MS = 60_000;

/** What `GET /cluster/telemetry` shows unless it is told another level; see `nodesReport`. */
const NODES_LEVEL = 1;

type OnCollection = NodeRequest<'collection_name'>;
type OnPeer = NodeRequest<'peer_id'>;

export function status({ node: { cluster } }: DoorServices): HttpAnswer {
  return result(cluster === null ? { status: 'disabled' } : clusterReport(cluster));
}

export async function peersTelemetry({ node, reports }: DoorServices, { query }: NodeRequest): Promise<HttpAnswer> {
  const level = unsigned(query, 'details_level') ?? NODES_LEVEL;
  const timeoutMs = timeoutMsOf(query) ?? DESCRIBE_MS;
  const { cluster } = node;
  if (cluster === null) return result({ collections: {}, cluster: { enabled: false, peers: {} } });
  const details = await cluster.describePeers(timeoutMs);
  const report = await reports.works.run(nodesReport(agreedState(cluster), details, level));
  return { kind: 'long', key: null, value: () => report };
}

export async function removePeer(services: DoorServices, { path, query }: OnPeer): Promise<HttpAnswer> {
  const peerId = peerOf(path.peer_id);
  if (typeof peerId !== 'number') return peerId;
  const force = flagParameter(query, 'force');
  const cluster = clusterOf(services.node, 'Distributed mode disabled.');
  return result(await cluster.removePeer(peerId, force, await agreementMsLeft(services, query)));
}

export function drainPeer(services: DoorServices, request: OnPeer): Promise<HttpAnswer> {
  return onPeer(services, request, drain);
}

export function cancelDrain(services: DoorServices, request: OnPeer): Promise<HttpAnswer> {
  return onPeer(services, request, keep);
}

export async function rebalanceCluster({ node, nowMs }: DoorServices, { query }: NodeRequest): Promise<HttpAnswer> {
  return result(await rebalance(clusterOf(node), query, nowMs));
}

export async function recoverPeer(services: DoorServices, { query }: NodeRequest): Promise<HttpAnswer> {
  return result(await clusterOf(services.node).recover(await agreementMsLeft(services, query)));
}

export async function collectionReplicas({ identity, node, nowMs }: DoorServices, { path, query }: OnCollection): Promise<HttpAnswer> {
  await upToDate(node, query);
  const name = path.collection_name;
  const { cluster } = node;
  if (cluster !== null) {
    const state = agreedState(cluster);
    const record = collectionRecord(state, name);
    const local = node.exists(name) ? node.localShards(name) : new Map();
    const own = state.collections.has(name) ? name : (state.aliases.get(name) ?? name);
    const now = nowMs();
    const { fullPeers, peerId } = cluster.status();
    return result(collectionReport(record, peerId, local, fullPeers, (transfer) => cluster.transfers.comment(own, transfer, now)));
  }
  // One whose configuration cannot be read refuses, as its information does.
  node.info(name);
  const shards = [...node.localShards(name)].map(([shardId, { points, state }]) => ({ shard_id: shardId, points_count: points, state }));
  return result({ peer_id: identity.peerId, shard_count: shards.length, local_shards: shards, remote_shards: [], shard_transfers: [] });
}

export async function listShardKeys({ node }: DoorServices, { path, query }: OnCollection): Promise<HttpAnswer> {
  await upToDate(node, query);
  const name = path.collection_name;
  if (node.cluster !== null) return result(shardKeysReport(collectionRecord(agreedState(node.cluster), name)));
  const { config } = node.info(name);
  return result(config.params.sharding_method === 'custom' ? { shard_keys: [] } : {});
}

export async function handleShardKeyCreation(services: DoorServices, request: OnCollection): Promise<HttpAnswer> {
  return setUp(services, request, decodeCreateShardKey(settingsOf(request)));
}

export async function deleteShardKey(services: DoorServices, request: OnCollection): Promise<HttpAnswer> {
  return setUp(services, request, decodeDeleteShardKey(settingsOf(request)));
}

export async function updateCollectionCluster(services: DoorServices, request: OnCollection): Promise<HttpAnswer> {
  return setUp(services, request, decodeCollectionClusterUpdate(settingsOf(request)));
}

async function setUp(services: DoorServices, { path, query }: OnCollection, operation: CollectionClusterUpdate): Promise<HttpAnswer> {
  const cluster = clusterOf(services.node);
  const done = await cluster.updateCollectionCluster(path.collection_name, operation, await agreementMsLeft(services, query));
  return result(operation.kind === 'activateReplica' ? { activated: done, warning: activationWarning(operation) } : done);
}

async function onPeer(
  { node, nowMs }: DoorServices,
  { path, query }: OnPeer,
  run: (cluster: ClusterApi, peerId: PeerId, query: QueryParameters, nowMs: DoorServices['nowMs']) => Promise<unknown>,
): Promise<HttpAnswer> {
  const peerId = peerOf(path.peer_id);
  return typeof peerId === 'number' ? result(await run(clusterOf(node), peerId, query, nowMs)) : peerId;
}

/** The peer of this id, or the answer that it names none. */
function peerOf(text: string): PeerId | HttpAnswer {
  return (
    peerIdFromText(text) ?? {
      kind: 'text',
      status: 404,
      text: `can not parse ${JSON.stringify(text)} to a u64`,
    }
  );
}

function activationWarning({ peerId, shardId }: Extract<CollectionClusterUpdate, { kind: 'activateReplica' }>): string {
  return (
    `shard ${shardId} goes on with what peer ${peerId} has: points that only other replicas had are lost, also acknowledged ones, and ` +
    'replicas that come back are made equal to this one. Upload what is missing again'
  );
}

/** Errors: `standalone`. */
export function clusterOf({ cluster }: NodeApi, detail = 'Distributed mode disabled'): ClusterApi {
  if (cluster === null) throw new TroupeError('standalone', detail);
  return cluster;
}

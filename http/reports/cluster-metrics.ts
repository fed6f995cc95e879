/** Figures of the cluster for `GET /metrics`. */

import type { ClusterApi } from '../../actors/consensus/cluster-api.js';
import type { CallStats, PeerCallStats } from '../../actors/context/call-stats.js';
import { BUCKET_SECONDS } from '../../actors/context/durations.js';
import type { LongWork } from '../../actors/runtime/long-works.js';
import type { TransferBoard } from '../../actors/transfers/board.js';
import type { ClusterState } from '../../cluster/state/state.js';
import { raftFigures } from './cluster-report.js';
import type { MetricsWriter } from './prometheus.js';

const ROLES = ['Follower', 'PreCandidate', 'Candidate', 'Leader'];

/** Replicas of shards by whether they serve. */
export interface ReplicaCounts {
  /** Active ones of the shard that has the fewest, and of the one that has the most; 0 of no shards. */
  readonly activeMin: number;
  readonly activeMax: number;
  /** Of all shards. */
  readonly dead: number;
}

export function writeCluster(writer: MetricsWriter, cluster: ClusterApi | null): void {
  const single = (name: string, help: string, value: number) => writer.family(name, 'gauge', help).sample(name, {}, value);
  single('cluster_enabled', 'whether the server is part of a cluster', cluster === null ? 0 : 1);
  if (cluster === null) return;
  const status = cluster.status();
  const state = cluster.state();
  const { commit, is_voter, pending_operations, role, term } = raftFigures(status);
  single('cluster_peers_total', 'peers of the cluster', state?.membership.length ?? 0);
  single('cluster_term', 'term of consensus', term);
  single('cluster_commit', 'last entry of the log that is agreed on', commit);
  single('cluster_applied', 'last entry of the log that is applied', state?.appliedIndex ?? 0);
  single('cluster_pending_operations_total', 'operations that wait to be agreed on or applied', pending_operations);
  single('cluster_voter', 'whether this peer votes', is_voter ? 1 : 0);
  single(
    'cluster_alone',
    'whether this peer, one of two, goes on without the other one, which has ended',
    status.raft?.gone == null ? 0 : 1,
  );
  writer.family('cluster_role', 'gauge', 'role in consensus: 1 for the one that it has');
  for (const each of ROLES) writer.sample('cluster_role', { role: each }, each === role ? 1 : 0);
  const connections = [...status.connections];
  writer.family('cluster_peer_connected', 'gauge', 'whether there is a connection to the peer');
  for (const [peer, { connected }] of connections) writer.sample('cluster_peer_connected', { peer }, connected ? 1 : 0);
  writer.family('cluster_peer_disk_full', 'gauge', 'whether the disk of the peer is nearly full, so that others lead its shards');
  for (const [peer] of connections) writer.sample('cluster_peer_disk_full', { peer }, status.fullPeers.has(peer) ? 1 : 0);
  writer.family('cluster_message_failures_total', 'counter', 'messages to the peer that were dropped');
  for (const [peer, { failures }] of connections) writer.sample('cluster_message_failures_total', { peer }, failures);
  single('cluster_internal_connections', 'connections with the internal port', status.internalPort.connections);
  single(
    'cluster_internal_plain_connections',
    'plain connections with the internal port, for small calls; peers of earlier releases have none',
    status.internalPort.plainConnections,
  );
  single('cluster_internal_calls', 'calls of peers that are being carried out', status.internalPort.calls);
  writeCalls(writer, cluster.calls);
  writeTransfers(writer, cluster.transfers);
}

/** direction: made by this node, or answered by it. outcome: `ok`, or what went wrong. */
function writeCalls(writer: MetricsWriter, { answered, made }: PeerCallStats): void {
  const counts = (direction: string, stats: CallStats) =>
    stats.counts().map(({ durations, kind, outcome }) => ({ labels: { direction, kind, outcome }, durations }));
  const all = [...counts('made', made), ...counts('answered', answered)];
  writer.family('cluster_peer_calls_total', 'counter', 'calls between this node and its peers for their replicas');
  for (const { durations, labels } of all) writer.sample('cluster_peer_calls_total', labels, durations.count);
  writer.family('cluster_peer_calls_duration_seconds', 'histogram', 'time to answer such a call');
  for (const { durations, labels } of all)
    writer.histogram('cluster_peer_calls_duration_seconds', labels, BUCKET_SECONDS, durations.buckets, durations.totalMs / 1000);
}

function writeTransfers(writer: MetricsWriter, { digests, handOvers, outcomes, running }: TransferBoard): void {
  writer
    .family('cluster_transfers_running', 'gauge', 'shard transfers that this node carries out')
    .sample('cluster_transfers_running', {}, running.size);
  writer.family('cluster_transfers_total', 'counter', 'shard transfers that this node carried out, by what became of them');
  for (const [outcome, count] of Object.entries(outcomes)) writer.sample('cluster_transfers_total', { outcome }, count);
  writer.family('cluster_hand_overs_total', 'counter', 'leads of shards that this node had others take');
  for (const [outcome, count] of Object.entries(handOvers)) writer.sample('cluster_hand_overs_total', { outcome }, count);
  const counter = (name: string, help: string, value: number) => writer.family(name, 'counter', help).sample(name, {}, value);
  counter('cluster_digest_comparisons_total', "comparisons of a replica's digest with its leader's", digests.comparisons);
  counter('cluster_digest_failures_total', 'of these, those that could not be carried out', digests.failures);
  counter('cluster_digest_differences_total', 'buckets of points that differed', digests.differences);
  counter('cluster_digest_repaired_points_total', 'points that were repaired because of that', digests.repaired);
}

export function* clusterReplicaCounts({ collections }: ClusterState): LongWork<ReplicaCounts> {
  let counts: ReplicaCounts | null = null;
  for (const { shards } of collections.values()) {
    for (const { replicas } of shards.values()) {
      counts = withShard(counts, [...replicas.values()]);
      yield;
    }
  }
  return counts ?? NO_REPLICAS;
}

export const NO_REPLICAS: ReplicaCounts = { activeMin: 0, activeMax: 0, dead: 0 };

/** counts: null before the first shard. states: of the replicas of another shard. */
export function withShard(counts: ReplicaCounts | null, states: readonly string[]): ReplicaCounts {
  const active = states.filter((state) => state === 'Active').length;
  const dead = states.filter((state) => state === 'Dead').length;
  if (counts === null) return { activeMin: active, activeMax: active, dead };
  return { activeMin: Math.min(counts.activeMin, active), activeMax: Math.max(counts.activeMax, active), dead: counts.dead + dead };
}

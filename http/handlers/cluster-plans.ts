/** Draining a peer and spreading replicas anew: plans that can be looked at before they are carried out. Troupe's own operations. */

import type { ClusterApi } from '../../actors/consensus/cluster-api.js';
import { planDrain } from '../../cluster/plans/drain.js';
import { type PeerLoad, type Sizes, shardName } from '../../cluster/plans/layout.js';
import { balanceOf, type Plan } from '../../cluster/plans/plan.js';
import { planRebalance } from '../../cluster/plans/rebalance.js';
import type { ClusterState } from '../../cluster/state/state.js';
import { TroupeError } from '../../protocols/errors.js';
import type { PeerId } from '../../protocols/model/cluster.js';
import { flagParameter, type QueryParameters } from '../../protocols/rest/parameters.js';
import { agreementMsOf } from '../context/node-request.js';
import type { DoorServices } from '../context/services.js';
import { agreedState } from '../reports/cluster-report.js';

/** Time for peers to say how large their replicas are; those of a peer that does not answer are taken from others. */
const DESCRIBE_MS = 2000;

type NowMs = DoorServices['nowMs'];

/** Errors: `notFound`; `wrongInput` when a replica has nowhere to go, or the peer is the only one. */
export async function drain(cluster: ClusterApi, peerId: PeerId, query: QueryParameters, nowMs: NowMs): Promise<object> {
  const { endMs, sizes, state } = await newest(cluster, query, nowMs);
  checkPeer(state, peerId);
  if (state.membership.every((member) => member.peerId === peerId || !member.voter))
    throw new TroupeError('wrongInput', `peer ${peerId} is the only one with a vote: let another one join first`);
  const plan = planDrain(state, peerId);
  if (flagParameter(query, 'dry_run')) return planReport(state, plan, sizes, false);
  const [stuck] = plan.stuck;
  if (stuck !== undefined)
    throw new TroupeError(
      'wrongInput',
      `peer ${peerId} cannot be drained: shard ${stuck.shardId} of \`${stuck.collection}\`: ${stuck.reason}`,
    );
  await cluster.change({ kind: 'markPeer', peerId, listens: null, leaving: 'drain' }, Math.max(1, endMs - nowMs()));
  return planReport(state, plan, sizes, true);
}

/** The peer stays, with what it still has. Errors: `notFound`. */
export async function keep(cluster: ClusterApi, peerId: PeerId, query: QueryParameters): Promise<boolean> {
  checkPeer(agreedState(cluster), peerId);
  return cluster.change({ kind: 'markPeer', peerId, listens: null, leaving: 'stays' }, agreementMsOf(query));
}

export async function rebalance(cluster: ClusterApi, query: QueryParameters, nowMs: NowMs): Promise<object> {
  const { endMs, sizes, state } = await newest(cluster, query, nowMs);
  const plan = planRebalance(state, sizes);
  const dry = flagParameter(query, 'dry_run');
  if (!dry) await cluster.change({ kind: 'planMoves', moves: plan.moves }, Math.max(1, endMs - nowMs()));
  return planReport(state, plan, sizes, !dry);
}

/** endMs: when the request's time is over. */
async function newest(
  cluster: ClusterApi,
  query: QueryParameters,
  nowMs: NowMs,
): Promise<{ state: ClusterState; sizes: Sizes; endMs: number }> {
  const endMs = nowMs() + agreementMsOf(query);
  const leftMs = () => Math.max(1, endMs - nowMs());
  await cluster.whenStarted(leftMs());
  await cluster.barrier(leftMs());
  const details = await cluster.describePeers(Math.min(leftMs(), DESCRIBE_MS));
  const state = agreedState(cluster);
  const sizes = new Map<string, number>();
  for (const peer of details.values()) {
    for (const { bytes, collection, shardId } of peer?.replicas ?? []) {
      const uid = state.collections.get(collection)?.uid;
      if (uid !== undefined) sizes.set(shardName(uid, shardId), Math.max(bytes, sizes.get(shardName(uid, shardId)) ?? 0));
    }
  }
  return { state, sizes, endMs };
}

/** moves: without `from` a copy is made, without `to` a replica is dropped. balance: what each peer holds before and after. */
function planReport(state: ClusterState, plan: Plan, sizes: Sizes, started: boolean): object {
  const { after, before } = balanceOf(state, plan, sizes);
  return {
    started,
    moves: plan.moves.map(({ collection, from, shardId, to, uid }) => ({
      collection,
      shard_id: shardId,
      ...(from === null ? {} : { from_peer_id: from }),
      ...(to === null ? {} : { to_peer_id: to }),
      bytes: sizes.get(shardName(uid, shardId)) ?? 0,
    })),
    stuck: plan.stuck.map(({ collection, reason, shardId }) => ({ collection, shard_id: shardId, reason })),
    balance: { before: loads(before), after: loads(after) },
  };
}

function loads(balance: ReadonlyMap<PeerId, PeerLoad>): object {
  return Object.fromEntries(balance);
}

function checkPeer({ membership }: ClusterState, peerId: PeerId): void {
  if (!membership.some((member) => member.peerId === peerId))
    throw new TroupeError('notFound', `peer ${peerId} is not part of the cluster`);
}

/** The next thing to do for what is planned: found anew from the agreed state each time, so that a new leader goes on with it. */

import type { PeerId, TransferMethod } from '../../protocols/model/cluster.js';
import type { ClusterCommand, PlannedMove } from '../state/commands.js';
import type { ClusterState } from '../state/state.js';
import { planDrain } from './drain.js';
import { heirOf } from './leadership.js';
import { planReplication } from './replication.js';

export type PlanStep =
  | { readonly kind: 'operation'; readonly operation: ClusterCommand }
  /** It has been drained. */
  | { readonly kind: 'remove'; readonly peerId: PeerId };

export interface PlanLimits {
  /** Transfers to one peer, and from one, at a time; null: any number. */
  readonly incoming: number | null;
  readonly outgoing: number | null;
  readonly method: TransferMethod;
}

/** Null: nothing is to be done now. isGone: peers that do not answer. isLost: those that have not for so long that copies are made elsewhere. */
export function nextStep(
  state: ClusterState,
  limits: PlanLimits,
  isGone: (peerId: PeerId) => boolean,
  isLost: (peerId: PeerId) => boolean,
): PlanStep | null {
  for (const [peerId, { leaving }] of state.marks) {
    if (leaving !== 'drain') continue;
    if (!holdsAnything(state, peerId)) return { kind: 'remove', peerId };
    const moves = planDrain(state, peerId).moves.filter((move) => !waitsForHeir(state, move, isGone));
    const step = firstOf(state, moves, limits, isGone);
    if (step !== null) return step;
  }
  const valid = state.plannedMoves.filter((move) => isPossible(state, move));
  if (valid.length < state.plannedMoves.length) return { kind: 'operation', operation: { kind: 'planMoves', moves: valid } };
  return firstOf(state, valid, limits, isGone) ?? firstOf(state, planReplication(state, isGone, isLost).moves, limits, isGone);
}

/** Its leader hands over first: no write is open when it is dropped. */
function waitsForHeir(state: ClusterState, { collection, from, shardId, to }: PlannedMove, isGone: (peerId: PeerId) => boolean): boolean {
  const leads = to === null && from !== null && state.collections.get(collection)?.shards.get(shardId)?.leader === from;
  return leads && !isGone(from) && heirOf(state, { collection, shardId }, (peerId) => !isGone(peerId)) !== null;
}

function firstOf(
  state: ClusterState,
  moves: readonly PlannedMove[],
  limits: PlanLimits,
  isGone: (peerId: PeerId) => boolean,
): PlanStep | null {
  for (const move of moves) {
    const operation = operationOf(state, move, limits.method);
    if (operation === null) continue;
    if (operation.kind === 'startTransfer') {
      const { from, to } = operation.transfer;
      if (isGone(from) || isGone(to) || !hasRoom(state, from, to, limits)) continue;
    }
    return { kind: 'operation', operation };
  }
  return null;
}

function operationOf(state: ClusterState, { collection, from, shardId, to }: PlannedMove, method: TransferMethod): ClusterCommand | null {
  if (to === null) return from === null ? null : { kind: 'dropReplica', collection, shardId, peerId: from };
  const source = from ?? state.collections.get(collection)?.shards.get(shardId)?.leader ?? null;
  if (source === null) return null;
  const transfer = { shardId, from: source, to, toShardId: null };
  return { kind: 'startTransfer', collection, transfer, method, sync: from === null };
}

function hasRoom({ collections }: ClusterState, from: PeerId, to: PeerId, { incoming, outgoing }: PlanLimits): boolean {
  let [coming, going] = [0, 0];
  for (const { transfers } of collections.values()) {
    for (const transfer of transfers) {
      if (transfer.to === to) coming += 1;
      if (transfer.from === from) going += 1;
    }
  }
  return (incoming === null || coming < incoming) && (outgoing === null || going < outgoing);
}

/** Things may have changed since it was planned. */
function isPossible({ collections, marks }: ClusterState, { collection, from, shardId, to, uid }: PlannedMove): boolean {
  const record = collections.get(collection);
  const replicas = record?.uid === uid ? record.shards.get(shardId)?.replicas : undefined;
  if (replicas === undefined || (from !== null && replicas.get(from) !== 'Active')) return false;
  return to === null || (!replicas.has(to) && (marks.get(to)?.leaving ?? null) === null);
}

function holdsAnything({ collections }: ClusterState, peerId: PeerId): boolean {
  return [...collections.values()].some(({ shards }) => [...shards.values()].some(({ replicas }) => replicas.has(peerId)));
}

/**
 * Which Dead replicas get back what they missed, now: a pure planner, run by the leader of consensus alone, so that limits are
 * those of the cluster. A plan is proposals for the log; one that comes too late is refused there.
 */

import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import type { ClusterCommand } from '../state/commands.js';
import type { ClusterState, CollectionRecord } from '../state/state.js';
import { afterTry, type Tries } from './tries.js';

/** Automatic transfers of a collection at a time; null: any number. Source: contract, `storage.performance`. */
export interface TransferLimits {
  /** To one peer. */
  readonly incoming: number | null;
  /** From one peer. */
  readonly outgoing: number | null;
}

/** What is remembered of earlier tries, by `replicaName`. */
export type HealingTries = ReadonlyMap<string, Tries>;

export interface HealingPlan {
  readonly operations: readonly Extract<ClusterCommand, { kind: 'startTransfer' }>[];
  readonly tries: HealingTries;
}

/** A first try comes at once; each one that led nowhere doubles the pause. */
const PAUSES = { ticksMin: 10, ticksMax: 600 };

export interface HealingSight {
  /** Peers that answer. */
  readonly reachable: ReadonlySet<PeerId>;
  /** Peers whose disk is full: what they lack waits until there is room, or the next write would make the replica Dead again. */
  readonly full: ReadonlySet<PeerId>;
}

/** Tries of replicas that are well, or gone, are forgotten. */
export function planHealing(
  agreed: ClusterState,
  { full, reachable }: HealingSight,
  limits: TransferLimits,
  tries: HealingTries,
  tick: number,
): HealingPlan {
  const operations: HealingPlan['operations'][number][] = [];
  const remembered = new Map<string, Tries>();
  for (const [collection, record] of agreed.collections) {
    let load: ReturnType<typeof loadOf> | null = null;
    for (const [shardId, { leader, replicas }] of record.shards) {
      for (const [peerId, state] of replicas) {
        // Nearly all: this is looked at several times a second.
        if (state === 'Active' || state === 'Listener') continue;
        const name = replicaName(record.uid, shardId, peerId);
        const known = tries.get(name);
        // A transfer to it may lead nowhere, too: what is known of earlier ones is kept until it is Active.
        if (known !== undefined) remembered.set(name, known);
        if (state !== 'Dead' || leader === null || !reachable.has(peerId) || !reachable.has(leader)) continue;
        if (full.has(peerId) || (known !== undefined && tick < known.nextTick)) continue;
        load ??= loadOf(record);
        if (!load.admits(leader, peerId, limits)) continue;
        load.add(leader, peerId);
        remembered.set(name, afterTry(known, tick, PAUSES));
        operations.push(healing(collection, shardId, leader, peerId));
      }
    }
  }
  return { operations, tries: remembered };
}

export function replicaName(uid: number, shardId: ShardId, peerId: PeerId): string {
  return `${uid}/${shardId}/${peerId}`;
}

/** The delta is tried first: it costs least, and where it cannot be had the transfer goes on with records. */
function healing(collection: string, shardId: ShardId, from: PeerId, to: PeerId): HealingPlan['operations'][number] {
  return { kind: 'startTransfer', collection, transfer: { shardId, from, to, toShardId: null }, method: 'wal_delta', sync: true };
}

/** Transfers of a collection by the peers at their ends: those that somebody asked for count, too. */
function loadOf({ transfers }: CollectionRecord) {
  const incoming = new Map<PeerId, number>();
  const outgoing = new Map<PeerId, number>();
  const add = (from: PeerId, to: PeerId) => {
    outgoing.set(from, (outgoing.get(from) ?? 0) + 1);
    incoming.set(to, (incoming.get(to) ?? 0) + 1);
  };
  for (const { from, to } of transfers) add(from, to);
  return {
    add,
    admits: (from: PeerId, to: PeerId, limits: TransferLimits) =>
      (outgoing.get(from) ?? 0) < (limits.outgoing ?? Number.POSITIVE_INFINITY) &&
      (incoming.get(to) ?? 0) < (limits.incoming ?? Number.POSITIVE_INFINITY),
  };
}

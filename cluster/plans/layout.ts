/** Who holds what, as a plan in the making has it: the agreed replicas, and what was planned so far. */

import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import type { PlannedMove } from '../state/commands.js';
import type { ClusterState } from '../state/state.js';

/** Bytes of a shard, by `shardName`; one that is left out is taken for empty. */
export type Sizes = ReadonlyMap<string, number>;

export interface PeerLoad {
  readonly replicas: number;
  readonly bytes: number;
}

export function shardName(uid: number, shardId: ShardId): string {
  return `${uid}/${shardId}`;
}

export class Layout {
  readonly #holders = new Map<string, Set<PeerId>>();
  readonly #loads = new Map<PeerId, PeerLoad>();
  readonly #ofCollection = new Map<string, number>();

  constructor(
    state: Pick<ClusterState, 'collections' | 'membership'>,
    private readonly sizes: Sizes,
  ) {
    for (const { peerId } of state.membership) this.#loads.set(peerId, { replicas: 0, bytes: 0 });
    for (const { shards, transfers, uid } of state.collections.values()) {
      for (const [shardId, { replicas }] of shards) for (const peerId of replicas.keys()) this.#add(uid, shardId, peerId, 1);
      // What is on its way to another peer counts as gone from here.
      for (const { from, shardId, sync } of transfers) if (!sync) this.#add(uid, shardId, from, -1);
    }
  }

  holds(uid: number, shardId: ShardId, peerId: PeerId): boolean {
    return this.#holders.get(shardName(uid, shardId))?.has(peerId) === true;
  }

  load(peerId: PeerId): PeerLoad {
    return this.#loads.get(peerId) ?? { replicas: 0, bytes: 0 };
  }

  /** Replicas of a collection on a peer. */
  countOf(uid: number, peerId: PeerId): number {
    return this.#ofCollection.get(`${uid} ${peerId}`) ?? 0;
  }

  bytes(uid: number, shardId: ShardId): number {
    return this.sizes.get(shardName(uid, shardId)) ?? 0;
  }

  /** Of these peers, the one without the shard that has the fewest replicas of its collection, then of all; null: all have it. */
  emptiest(hosts: readonly PeerId[], uid: number, shardId: ShardId): PeerId | null {
    const free = hosts.filter((peerId) => !this.holds(uid, shardId, peerId));
    free.sort((one, other) => {
      const ofCollection = this.countOf(uid, one) - this.countOf(uid, other);
      return ofCollection || this.load(one).replicas - this.load(other).replicas || one - other;
    });
    return free[0] ?? null;
  }

  apply({ from, shardId, to, uid }: Pick<PlannedMove, 'uid' | 'shardId' | 'from' | 'to'>): void {
    if (from !== null) this.#add(uid, shardId, from, -1);
    if (to !== null) this.#add(uid, shardId, to, 1);
  }

  #add(uid: number, shardId: ShardId, peerId: PeerId, sign: 1 | -1): void {
    const name = shardName(uid, shardId);
    const holders = this.#holders.get(name) ?? new Set();
    this.#holders.set(name, holders);
    if (holders.has(peerId) === (sign === 1)) return;
    if (sign === 1) holders.add(peerId);
    else holders.delete(peerId);
    const { bytes, replicas } = this.load(peerId);
    this.#loads.set(peerId, { replicas: replicas + sign, bytes: bytes + sign * this.bytes(uid, shardId) });
    this.#ofCollection.set(`${uid} ${peerId}`, this.countOf(uid, peerId) + sign);
  }
}

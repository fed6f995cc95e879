/** Somebody who moves, adds and drops replicas of the points' shards while everything goes on. */

import type { ClusterState, CollectionRecord, ShardRecord } from '../../cluster/state/state.js';
import type { CollectionClusterUpdate, PeerId, ShardId, TransferMethod } from '../../protocols/model/cluster.js';
import type { CallParts } from './calls.js';
import type { SimulatedNode } from './node.js';
import { POINTS } from './point-names.js';
import type { Stream } from './random.js';
import { setUpPoints } from './setups.js';

const METHODS: readonly TransferMethod[] = ['stream_records', 'wal_delta', 'snapshot'];
const REPLICAS_MAX = 3;
const MEND_MS = 200;

type Setup = Extract<CollectionClusterUpdate, { readonly kind: keyof typeof COUNTS }>;

export interface MoveCounts {
  moves: number;
  replications: number;
  drops: number;
  aborts: number;
  restarts: number;
}

export class ShardMoves {
  /** That the cluster has agreed on. */
  readonly counts: MoveCounts = { moves: 0, replications: 0, drops: 0, aborts: 0, restarts: 0 };
  #stopped = false;
  /** Until the last command has been answered. */
  #running: Promise<void> = Promise.resolve();

  constructor(
    private readonly parts: CallParts,
    private readonly nodes: readonly SimulatedNode[],
    /** Not while a peer's disk is lost: what the others have is all there is. */
    private readonly mayDrop: () => boolean,
    private readonly random: Stream,
    /** What all have come to: a node may have heard of less. */
    private readonly agreed: () => ClusterState | null,
  ) {}

  start(): void {
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      await this.parts.world.sleep(this.random.between(300, 4000));
      if (this.#stopped) return;
      const node = this.random.pick(this.nodes);
      const record = node.cluster?.state()?.collections.get(POINTS);
      const setup = record === undefined ? null : this.#next(node, record);
      if (setup !== null && (await setUpPoints(this.parts, 'mover', node, setup))) this.counts[COUNTS[setup.kind]] += 1;
    }
  }

  stop(): void {
    this.#stopped = true;
  }

  /**
   * Gives shards another replica, and those that their writes ask for, where peers that were removed have left fewer. Done once
   * nothing moves either: what goes to a peer that only listens leaves one fewer.
   */
  async mend(): Promise<void> {
    // A replica may be dropped yet that it has asked to drop.
    await this.#running;
    for (;;) {
      await this.parts.world.sleep(MEND_MS);
      const node = this.random.pick(this.nodes);
      const record = this.agreed()?.collections.get(POINTS);
      if (record === undefined) continue;
      const least = Math.max(2, record.config.params.write_consistency_factor);
      const short = [...record.shards].filter(
        ([, { replicas }]) => [...replicas.keys()].filter((peer) => !this.#listens(peer)).length < least,
      );
      if (short.length === 0) {
        if (record.transfers.length === 0 && this.mayDrop()) return;
        continue;
      }
      const [shardId, shard] = this.random.pick(short);
      const setup = this.#transfer(node, shardId, shard, 'replicateShard');
      if (setup !== null) await setUpPoints(this.parts, 'mover', node, setup);
    }
  }

  #listens(peerId: PeerId): boolean {
    return this.nodes.find((node) => node.cluster?.status().peerId === peerId)?.listens === true;
  }

  #next(node: SimulatedNode, record: CollectionRecord): Setup | null {
    const draw = this.random.integer(1, 100);
    const [shardId, shard] = this.random.pick([...record.shards]);
    if (draw <= 10) {
      const transfer = record.transfers[0];
      if (transfer === undefined) return null;
      const { from, shardId: moved, to, toShardId } = transfer;
      const method = this.random.pick(METHODS);
      if (draw <= 6) return { kind: 'abortTransfer', shardId: moved, toShardId, from, to };
      return { kind: 'restartTransfer', shardId: moved, toShardId, from, to, method };
    }
    if (draw <= 22) return this.#drop(shardId, shard);
    return this.#transfer(node, shardId, shard, draw <= 40 ? 'replicateShard' : 'moveShard');
  }

  #drop(shardId: ShardId, { replicas }: ShardRecord): Setup | null {
    const active = activeOf(replicas);
    const peerId = this.random.pick([...replicas.keys()]);
    const left = active.filter((peer) => peer !== peerId);
    return left.length >= 2 && this.mayDrop() ? { kind: 'dropReplica', shardId, peerId } : null;
  }

  #transfer(node: SimulatedNode, shardId: ShardId, { replicas }: ShardRecord, kind: 'moveShard' | 'replicateShard'): Setup | null {
    const active = activeOf(replicas);
    const members = node.cluster?.state()?.membership ?? [];
    const free = members.map(({ peerId }) => peerId).filter((peerId) => !replicas.has(peerId));
    if (active.length === 0 || free.length === 0) return null;
    if (kind === 'replicateShard' && replicas.size >= REPLICAS_MAX) return null;
    const method = this.random.chance(0.2) ? null : this.random.pick(METHODS);
    return { kind, shardId, toShardId: null, from: this.random.pick(active), to: this.random.pick(free), method };
  }
}

const COUNTS = {
  moveShard: 'moves',
  replicateShard: 'replications',
  dropReplica: 'drops',
  abortTransfer: 'aborts',
  restartTransfer: 'restarts',
} as const;

function activeOf(replicas: ShardRecord['replicas']): PeerId[] {
  return [...replicas].flatMap(([peerId, state]) => (state === 'Active' ? [peerId] : []));
}

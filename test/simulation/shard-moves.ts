/** Somebody who moves, adds and drops replicas of the points' shards while everything goes on. */

import type { CollectionRecord, ShardRecord } from '../../cluster/state.js';
import { errorFacts } from '../../protocols/errors.js';
import type { ClusterSetup, PeerId, ShardId, TransferMethod } from '../../protocols/model/cluster.js';
import type { SimulatedNode } from './node.js';
import { POINTS } from './point-clients.js';
import type { Stream } from './random.js';
import type { Story } from './story.js';
import type { World } from './world.js';

const METHODS: readonly TransferMethod[] = ['stream_records', 'wal_delta', 'snapshot'];
const REPLICAS_MAX = 3;
const TIMEOUT_MS = 4000;

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

  constructor(
    private readonly world: World,
    private readonly nodes: readonly SimulatedNode[],
    /** Not while a peer's disk is lost: what the others have is all there is. */
    private readonly mayDrop: () => boolean,
    private readonly story: Story,
    private readonly random: Stream,
    private readonly violation: (what: string) => void,
  ) {}

  async start(): Promise<void> {
    while (!this.#stopped) {
      await this.world.sleep(this.random.between(300, 4000));
      if (this.#stopped) return;
      const node = this.random.pick(this.nodes);
      const record = node.cluster?.state()?.collections.get(POINTS);
      const setup = record === undefined ? null : this.#next(node, record);
      if (setup !== null) await this.#carryOut(node, setup);
    }
  }

  stop(): void {
    this.#stopped = true;
  }

  #next(node: SimulatedNode, record: CollectionRecord): ClusterSetup | null {
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

  #drop(shardId: ShardId, { replicas }: ShardRecord): ClusterSetup | null {
    const active = activeOf(replicas);
    const peerId = this.random.pick([...replicas.keys()]);
    const left = active.filter((peer) => peer !== peerId);
    return left.length >= 2 && this.mayDrop() ? { kind: 'dropReplica', shardId, peerId } : null;
  }

  #transfer(node: SimulatedNode, shardId: ShardId, { replicas }: ShardRecord, kind: 'moveShard' | 'replicateShard'): ClusterSetup | null {
    const active = activeOf(replicas);
    const members = node.cluster?.state()?.membership ?? [];
    const free = members.map(({ peerId }) => peerId).filter((peerId) => !replicas.has(peerId));
    if (active.length === 0 || free.length === 0) return null;
    if (kind === 'replicateShard' && replicas.size >= REPLICAS_MAX) return null;
    const method = this.random.chance(0.2) ? null : this.random.pick(METHODS);
    return { kind, shardId, toShardId: null, from: this.random.pick(active), to: this.random.pick(free), method };
  }

  async #carryOut(node: SimulatedNode, setup: ClusterSetup): Promise<void> {
    const { cluster } = node;
    if (cluster === null) return;
    this.story.tell('mover', `→ ${node.host}  ${JSON.stringify(setup)}`);
    const asked = cluster.setUp(POINTS, setup, TIMEOUT_MS).then(
      () => {
        this.counts[COUNTS[setup.kind]] += 1;
        return 'agreed';
      },
      (error: unknown) => {
        const { code, detail } = errorFacts(error);
        if (code === 'internal' && !/stopped|restarts/.test(detail))
          this.violation(`${JSON.stringify(setup)} on ${node.host} failed: ${detail}`);
        return `${code}: ${detail}`;
      },
    );
    // A node that crashes answers nothing.
    const answer = await Promise.race([asked, this.world.sleep(2 * TIMEOUT_MS).then(() => 'no answer')]);
    this.story.tell('mover', `← ${node.host}  ${setup.kind}: ${answer}`);
  }
}

const COUNTS = {
  moveShard: 'moves',
  replicateShard: 'replications',
  dropReplica: 'drops',
  abortTransfer: 'aborts',
  restartTransfer: 'restarts',
  createShardKey: 'moves',
  dropShardKey: 'moves',
  autoReplication: 'moves',
  activateReplica: 'moves',
  startResharding: 'moves',
  abortResharding: 'moves',
  replicatePoints: 'moves',
} as const;

function activeOf(replicas: ShardRecord['replicas']): PeerId[] {
  return [...replicas].flatMap(([peerId, state]) => (state === 'Active' ? [peerId] : []));
}

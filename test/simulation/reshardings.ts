/** Somebody who has shards of the points come and go while everything goes on. */

import type { CollectionRecord } from '../../cluster/state/state.js';
import type { CollectionClusterUpdate, ShardKey } from '../../protocols/model/cluster.js';
import type { CallParts } from './calls.js';
import type { SimulatedNode } from './node.js';
import { POINTS } from './point-names.js';
import type { Stream } from './random.js';
import { setUpPoints } from './setups.js';

/** Of one key. */
const SHARDS_MAX = 4;
const ABORTED = 0.15;

export class Reshardings {
  #stopped = false;

  constructor(
    private readonly parts: CallParts,
    private readonly nodes: readonly SimulatedNode[],
    private readonly random: Stream,
  ) {}

  async start(): Promise<void> {
    while (!this.#stopped) {
      await this.parts.world.sleep(this.random.between(200, 4000));
      if (this.#stopped) return;
      const node = this.random.pick(this.nodes);
      const record = node.cluster?.state()?.collections.get(POINTS);
      const setup = record === undefined ? null : this.#next(node, record);
      if (setup !== null) await setUpPoints(this.parts, 'resharder', node, setup);
    }
  }

  stop(): void {
    this.#stopped = true;
  }

  #next(node: SimulatedNode, { resharding, shards }: CollectionRecord): CollectionClusterUpdate | null {
    if (resharding !== null) return this.random.chance(ABORTED) ? { kind: 'abortResharding' } : null;
    if (shards.size === 0) return null;
    const key: ShardKey | null = this.random.pick([...shards.values()].map((shard) => shard.key));
    const count = [...shards.values()].filter((shard) => shard.key === key).length;
    const direction = count === 1 ? 'up' : count >= SHARDS_MAX ? 'down' : this.random.pick(['up', 'down'] as const);
    const members = (node.cluster?.state()?.membership ?? []).map(({ peerId }) => peerId);
    const peerId = direction === 'up' && members.length > 0 && this.random.chance(0.3) ? this.random.pick(members) : null;
    return { kind: 'startResharding', direction, key, peerId };
  }
}

/** Puts the membership right after a disk was emptied or a peer removed: what an operator would do. */

import { errorFacts } from '../../protocols/errors.js';
import type { PeerId, ShardId } from '../../protocols/model/cluster.js';
import { folderName } from '../../storage/disk/folder-name.js';
import type { Administration } from './faults.js';
import type { SimulatedNode } from './node.js';
import { POINTS } from './point-names.js';
import type { Stream } from './random.js';
import type { Story } from './story.js';
import type { Watch } from './watch.js';
import type { World } from './world.js';

const RETRY_MS = 700;
const STOP_LOOK_MS = 100;

export class Operator implements Administration {
  busy = false;

  constructor(
    private readonly world: World,
    private readonly nodes: readonly SimulatedNode[],
    private readonly watch: Watch,
    private readonly story: Story,
    private readonly random: Stream,
  ) {}

  /** Whether all that the node has of the points is elsewhere as well, with those that lead its shards. */
  canSpare(node: SimulatedNode): boolean {
    const peerId = node.cluster?.status().peerId ?? 0;
    const record = this.watch.agreed()?.collections.get(POINTS);
    // What moves to it may be on its disk alone in the next moment.
    if (record?.transfers.some(({ to }) => to === peerId) === true) return false;
    const shards = [...(record?.shards ?? [])].filter(([, { replicas }]) => replicas.has(peerId));
    return shards.every(([shardId, { leader }]) => leader !== null && leader !== peerId && this.#isWell(leader, shardId));
  }

  #isElsewhere(peerId: PeerId): boolean {
    const shards = [...(this.watch.agreed()?.collections.get(POINTS)?.shards.values() ?? [])];
    return shards.every(
      ({ replicas }) => !replicas.has(peerId) || [...replicas].some(([other, state]) => other !== peerId && state === 'Active'),
    );
  }

  /** Whether the peer's node runs and has its replica: it may lead without its files, which another one has then (Node-N9). */
  #isWell(peerId: PeerId, shardId: ShardId): boolean {
    const node = this.nodes.find((other) => other.cluster?.status().peerId === peerId);
    return node?.life?.paused === false && node.disk.replicas.has(`/${node.disk.name}/${folderName(POINTS)}/${shardId}`);
  }

  replace(node: SimulatedNode): void {
    const { identity } = node.disk.consensus;
    if (identity === null) return;
    this.busy = true;
    node.crash();
    this.watch.lostDisks.set(identity.peerId, node.disk.consensus);
    node.disk.empty();
    node.tell(`has an empty disk; it was peer ${identity.peerId}`);
    node.bootstrap = this.#otherThan(node).uri;
    this.world.after(this.random.between(100, 3000), () => node.start());
    this.#untilJoined(node, identity.peerId, () => this.#remove(node, identity.peerId)).finally(() => {
      this.busy = false;
    });
  }

  renew(node: SimulatedNode): void {
    const { identity } = node.disk.consensus;
    if (identity === null) return;
    this.busy = true;
    this.#renewed(node, identity.peerId).finally(() => {
      this.busy = false;
    });
  }

  async #renewed(node: SimulatedNode, peerId: PeerId): Promise<void> {
    await this.#remove(node, peerId, () => this.#isElsewhere(peerId));
    node.bootstrap = this.#otherThan(node).uri;
    for (;;) {
      await this.world.sleep(RETRY_MS);
      const status = node.cluster?.status();
      if (status?.phase === 'Removed') break;
      // It joined anew by itself: it was started again meanwhile.
      if (status !== undefined && status.peerId !== peerId) break;
    }
    if (node.cluster?.status().phase === 'Removed') {
      await this.#stop(node);
      await this.world.sleep(this.random.between(10, 500));
      node.start();
    }
    await this.#untilJoined(node, peerId, async () => {});
  }

  /** Waits until the node is a peer other than `old`; then `after`. Tries another member now and then. */
  async #untilJoined(node: SimulatedNode, old: PeerId, after: () => Promise<void>): Promise<void> {
    for (let round = 1; ; round++) {
      await this.world.sleep(RETRY_MS);
      const status = node.cluster?.status();
      if (status?.phase === 'Member' && status.peerId !== old) break;
      if (round % 10 === 0 && node.running && node.api !== null) {
        await this.#stop(node);
        node.bootstrap = this.#otherThan(node).uri;
        node.start();
      }
    }
    await after();
  }

  /** Also where it crashes meanwhile, and never ends its stop. */
  async #stop(node: SimulatedNode): Promise<void> {
    const { life } = node;
    void node.stop();
    while (life !== null && node.life === life) await this.world.sleep(STOP_LOOK_MS);
  }

  /** Asks one node after the other until the peer is gone. may: what it has may have become all there is. */
  async #remove(node: SimulatedNode, peerId: PeerId, may = () => true): Promise<void> {
    for (;;) {
      const agreed = this.watch.agreed();
      if (agreed !== null && !agreed.membership.some((member) => member.peerId === peerId)) return;
      if (!may()) {
        await this.world.sleep(RETRY_MS);
        continue;
      }
      const asked = this.#otherThan(node);
      this.story.tell('operator', `→ ${asked.host}  remove peer ${peerId}`);
      const answer = await this.#ask(asked, peerId);
      this.story.tell('operator', `← ${asked.host}  remove peer ${peerId}: ${answer}`);
      await this.world.sleep(RETRY_MS);
    }
  }

  #ask(asked: SimulatedNode, peerId: PeerId): Promise<string> {
    const { cluster } = asked;
    if (cluster === null) return Promise.resolve('it does not run');
    const answer = cluster.removePeer(peerId, true, 3000).then(String, (error: unknown) => errorFacts(error).detail);
    // A node that crashes answers nothing.
    return Promise.race([answer, this.world.sleep(6000).then(() => 'no answer')]);
  }

  #otherThan(node: SimulatedNode): SimulatedNode {
    const others = this.nodes.filter((other) => other !== node);
    const running = others.filter((other) => other.cluster?.status().phase === 'Member');
    return this.random.pick(running.length === 0 ? others : running);
  }
}

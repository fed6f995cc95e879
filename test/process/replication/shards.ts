/** Collections of clusters under writes, for tests on real nodes: who has which shard, transfers, what every replica holds. */

import assert from 'node:assert/strict';
import type { LocalCluster } from '../../../ops/cluster/local-cluster.js';
import type { LocalNode } from '../../../ops/cluster/local-node.js';
import { until } from '../support.js';

export interface ShownTransfer {
  readonly shard_id: number;
  readonly from: number;
  readonly to: number;
  readonly method: string;
  readonly comment?: string;
}

interface ShownShards {
  readonly peer_id: number;
  readonly local_shards: readonly { readonly shard_id: number; readonly state: string }[];
  readonly remote_shards: readonly { readonly shard_id: number; readonly peer_id: number; readonly state: string }[];
  readonly shard_transfers: readonly ShownTransfer[];
}

export interface Shards {
  /** State by peer, by shard. */
  readonly replicas: ReadonlyMap<number, ReadonlyMap<number, string>>;
  readonly transfers: readonly ShownTransfer[];
}

export async function shardsOf(node: LocalNode, collection: string): Promise<Shards> {
  const shown = await node.client.result<ShownShards>('GET', `/collections/${collection}/cluster`);
  const replicas = new Map<number, Map<number, string>>();
  const all = [...shown.local_shards.map((shard) => ({ ...shard, peer_id: shown.peer_id })), ...shown.remote_shards];
  for (const { peer_id, shard_id, state } of all) replicas.set(shard_id, (replicas.get(shard_id) ?? new Map()).set(peer_id, state));
  return { replicas, transfers: shown.shard_transfers };
}

/** Waits until no transfer is under way and every replica is Active, `counts` of each shard. */
export function untilCalm(node: LocalNode, collection: string, count: number, timeoutMs = 60_000): Promise<Shards> {
  return until(
    () => shardsOf(node, collection).catch(() => ({ replicas: new Map(), transfers: [] })),
    ({ replicas, transfers }) =>
      transfers.length === 0 &&
      replicas.size > 0 &&
      [...replicas.values()].every((states) => states.size === count && [...states.values()].every((state) => state === 'Active')),
    timeoutMs,
  );
}

/** Whether a node leads a shard. */
export async function leadsAny({ client }: LocalNode): Promise<boolean> {
  interface Report {
    readonly collections: { readonly collections: readonly { readonly replication: readonly { readonly role: string }[] }[] };
  }
  const { collections } = await client.result<Report>('GET', '/telemetry?details_level=2');
  return collections.collections.some(({ replication }) => replication.some(({ role }) => role === 'Leading'));
}

export interface EndedTransfer {
  readonly method: string;
  readonly outcome: string;
  readonly shard_id: number;
  /** When it did. */
  readonly ended: string;
}

/** What became of the transfers that the nodes have carried out since they were started. */
export async function endedTransfers(cluster: LocalCluster): Promise<EndedTransfer[]> {
  const running = cluster.nodes.filter(({ state }) => state === 'running');
  const shown = await Promise.all(
    running.map(({ client }) => client.result<{ app: { transfers: { ended: EndedTransfer[] } } }>('GET', '/telemetry')),
  );
  return shown.flatMap(({ app: { transfers } }) => transfers.ended);
}

export async function peerIds(cluster: LocalCluster): Promise<number[]> {
  return Promise.all(cluster.nodes.map(async ({ client }) => (await client.result<{ peer_id: number }>('GET', '/cluster')).peer_id));
}

interface StoredPoint {
  readonly id: number;
  readonly payload: { readonly version: number };
  readonly vector: readonly number[];
}

/** Writes to one collection, through all nodes in turn, or these, until it is stopped: each id again and again, with a version that grows. */
export class Writer {
  /** By id: the newest version that was acknowledged, and the newest that was sent. */
  readonly acknowledged = new Map<number, number>();
  readonly sent = new Map<number, number>();
  requests = 0;
  failures = 0;
  /** How often each answer came that was no success. */
  readonly refusals = new Map<string, number>();
  #stopped = false;
  readonly #ended: Promise<void>[] = [];

  constructor(
    private readonly cluster: LocalCluster,
    private readonly collection: string,
    private readonly ids: number,
    writers: number,
    private readonly through: readonly number[] | null = null,
  ) {
    for (let writer = 0; writer < writers; writer += 1) this.#ended.push(this.#run(writer, writers));
  }

  /** Resolves when the last request has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#ended);
  }

  /** Ids of this writer alone, so that each has one history. */
  async #run(writer: number, writers: number): Promise<void> {
    const own = Array.from({ length: this.ids }, (_, id) => id + 1).filter((id) => id % writers === writer);
    for (let round = 0; !this.#stopped; round += 1) {
      const running = this.cluster.nodes.filter(({ number, state }) => state === 'running' && this.through?.includes(number) !== false);
      const node = running[(round + writer) % running.length];
      if (node === undefined) break;
      if (round % 4 === 3) {
        await this.#touch(node, own.slice((round * 15) % own.length).slice(0, 30));
        continue;
      }
      const batch = own.slice((round * 10) % own.length).slice(0, 10);
      const points = batch.map((id) => {
        const version = (this.sent.get(id) ?? 0) + 1;
        this.sent.set(id, version);
        return { id, vector: vectorOf(id, version), payload: { version } };
      });
      const answer = await node.client.call('PUT', `/collections/${this.collection}/points?wait=true`, { points }).catch(() => null);
      if (answer?.status === 200) for (const { id, payload } of points) this.acknowledged.set(id, payload.version);
      await this.#count(answer);
    }
  }

  /** Changes a part of points, whatever else they hold: a replica with an old one must not take it for the new one then. */
  async #touch(node: LocalNode, own: readonly number[]): Promise<void> {
    const points = own.filter((id) => this.acknowledged.has(id));
    if (points.length === 0) return;
    const body = { payload: { touched: this.requests }, points };
    await this.#count(await node.client.call('POST', `/collections/${this.collection}/points/payload?wait=true`, body).catch(() => null));
  }

  async #count(answer: { readonly status: number; readonly text: string } | null): Promise<void> {
    this.requests += 1;
    if (answer?.status === 200) return;
    this.failures += 1;
    const refusal = answer === null ? 'no answer' : `${answer.status} ${answer.text.replace(/\d+/g, '#').slice(0, 160)}`;
    this.refusals.set(refusal, (this.refusals.get(refusal) ?? 0) + 1);
    await new Promise((done) => setTimeout(done, 50));
  }

  /** Every acknowledged point is there, in a version no older than was acknowledged, with the vector of that version. */
  check(points: readonly StoredPoint[]): void {
    const byId = new Map(points.map((point) => [point.id, point]));
    for (const [id, version] of this.acknowledged) {
      const found = byId.get(id);
      assert.ok(found !== undefined, `point ${id} of version ${version} is lost`);
      const stored = found.payload.version;
      assert.ok(stored >= version && stored <= (this.sent.get(id) ?? 0), `point ${id}: ${stored}, acknowledged ${version}`);
      assert.deepEqual(found.vector, vectorOf(id, stored), `the vector of point ${id}`);
    }
  }
}

function vectorOf(id: number, version: number): number[] {
  return [id, version, (id + version) % 7, 1];
}

/** All points as a node shows them, by id. */
export async function allPoints(node: LocalNode, collection: string, consistency?: string): Promise<StoredPoint[]> {
  const query = consistency === undefined ? '' : `?consistency=${consistency}`;
  const body = { limit: 100_000, with_payload: true, with_vector: true };
  const { points } = await node.client.result<{ points: StoredPoint[] }>('POST', `/collections/${collection}/points/scroll${query}`, body);
  return points;
}

/** Moves shards one after the other, `moves` of them, by one method. Resolves with the milliseconds of each. */
export async function moveAround(
  cluster: LocalCluster,
  collection: string,
  count: number,
  moves: number,
  method: string,
): Promise<number[]> {
  const peers = await peerIds(cluster);
  const times: number[] = [];
  for (let move = 0; move < moves; move += 1) {
    const node = cluster.nodes[move % cluster.nodes.length] as LocalNode;
    const { replicas } = await untilCalm(node, collection, count);
    const shards = [...replicas].sort(([one], [other]) => one - other);
    const [shard, states] = shards[move % shards.length] as (typeof shards)[number];
    const holders = [...states.keys()];
    const from = holders[move % holders.length] as number;
    const to = peers.find((peer) => !states.has(peer)) as number;
    const began = performance.now();
    const body = { move_shard: { shard_id: shard, from_peer_id: from, to_peer_id: to, method } };
    await node.client.result('POST', `/collections/${collection}/cluster`, body);
    const after = await untilCalm(node, collection, count);
    times.push(performance.now() - began);
    const now = [...(after.replicas.get(shard)?.keys() ?? [])];
    assert.ok(
      now.includes(to) && !now.includes(from),
      `move ${move}: shard ${shard} was to go from ${from} to ${to}, and is on ${now.join(', ')}`,
    );
  }
  return times;
}

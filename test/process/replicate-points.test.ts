/**
 * A tenant's points go from the shards of all tenants to a shard key of its own on three real nodes, by the unmodified client, while
 * it writes, deletes and reads by `{target, fallback}`: nothing that it was told is done is lost, doubled, comes back or cannot be seen.
 */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { QdrantClient } from '@qdrant/js-client-rest';
import { LocalCluster } from '../../ops/cluster/local-cluster.js';
import { temporaryFolder, until } from './support.js';

/** Points of three tenants that nobody changes, and those behind them that tenant 1 writes and deletes. */
const STILL = 3000;
const MOVING = 200;
const SHARD_KEY = { target: 'one', fallback: 'all' };
const TENANT = { key: 'tenant', match: { value: 1 } };
const STILL_ONLY = { must: [TENANT, { key: 'still', match: { value: true } }] };
const STILL_COUNT = STILL / 3;

const pointOf = (id: number, round = 0) => ({
  id,
  vector: { v: [Math.cos(id), Math.sin(id), id / STILL], s: { indices: [id % 7, 100 + (id % 5)], values: [1, 2] } },
  payload: { tenant: id < STILL ? id % 3 : 1, still: id < STILL, round },
});

interface Nodes {
  readonly cluster: LocalCluster;
  /** Of those that run. */
  readonly clients: () => readonly QdrantClient[];
}

async function begin(test: TestContext): Promise<Nodes> {
  const cluster = await LocalCluster.start({ nodes: 3, folder: await temporaryFolder(test) });
  test.after(() => cluster.close());
  const made = new Map<number, QdrantClient>();
  const clientOf = (port: number): QdrantClient => {
    const known = made.get(port) ?? new QdrantClient({ host: '127.0.0.1', port, checkCompatibility: false, timeout: 30_000 });
    made.set(port, known);
    return known;
  };
  const clients = () => cluster.nodes.filter(({ state }) => state === 'running').map(({ port }) => clientOf(port));
  const client = clients()[0] as QdrantClient;
  await client.createCollection('c', {
    vectors: { v: { size: 3, distance: 'Euclid' } },
    sparse_vectors: { s: {} },
    sharding_method: 'custom',
  });
  await client.createShardKey('c', { shard_key: 'all', shards_number: 2, replication_factor: 2 });
  await client.createPayloadIndex('c', { field_name: 'tenant', field_schema: 'integer', wait: true });
  const points = Array.from({ length: STILL }, (_, id) => pointOf(id));
  await client.upsert('c', { points, shard_key: 'all', wait: true });
  return { cluster, clients };
}

/** What a client may say again: the cluster says so, too. */
async function again<T>(action: () => Promise<T>): Promise<T> {
  for (let left = 200; ; left--) {
    try {
      return await action();
    } catch (error) {
      if (left === 0) throw error;
      await new Promise((resolve) => void setTimeout(resolve, 50));
    }
  }
}

/** Tenant 1's points as it sees them: round by id. */
async function seen(client: QdrantClient, shard_key: typeof SHARD_KEY | string, filter: object): Promise<Map<number, number>> {
  const found = new Map<number, number>();
  let offset: string | number | undefined;
  do {
    const page = await client.scroll('c', {
      shard_key,
      filter,
      limit: 1000,
      consistency: 'majority',
      ...(offset === undefined ? {} : { offset }),
    } as never);
    for (const { id, payload } of page.points) found.set(id as number, payload?.round as number);
    offset = (page.next_page_offset ?? undefined) as typeof offset;
  } while (offset !== undefined);
  return found;
}

/** Tenant 1, which writes, deletes and looks again at what it did, through another node. */
class Tenant {
  readonly there = new Map<number, number>();
  ended = false;
  #round = 0;

  constructor(private readonly clients: Nodes['clients']) {}

  async run(): Promise<void> {
    while (!this.ended) {
      const round = ++this.#round;
      const ids = Array.from({ length: 10 }, (_, at) => STILL + ((round * 37 + at * 11) % MOVING));
      const clientAt = (at: number) => this.clients()[at % this.clients().length] as QdrantClient;
      if (round % 3 === 0) {
        await again(() => clientAt(round).delete('c', { points: ids, shard_key: SHARD_KEY, wait: true }));
        for (const id of ids) this.there.delete(id);
      } else if (round % 5 === 0) {
        const filter = { must: [TENANT, { key: 'still', match: { value: false } }] };
        await again(() => clientAt(round).setPayload('c', { payload: { round }, filter, shard_key: SHARD_KEY, wait: true }));
        for (const id of this.there.keys()) this.there.set(id, round);
      } else {
        const points = ids.map((id) => pointOf(id, round));
        await again(() => clientAt(round).upsert('c', { points, shard_key: SHARD_KEY, wait: true }));
        for (const id of ids) this.there.set(id, round);
      }
      const looked = { ids, shard_key: SHARD_KEY, with_payload: true, consistency: 'majority' } as const;
      const found = await again(() => clientAt(round + 1).retrieve('c', looked));
      assert.deepEqual(
        new Map(found.map(({ id, payload }) => [id, payload?.round])),
        new Map(ids.flatMap((id) => (this.there.has(id) ? [[id, this.there.get(id)]] : []))),
        `round ${round}`,
      );
    }
  }
}

async function clusterOf(client: QdrantClient) {
  return again(() => client.collectionClusterInfo('c'));
}

/** Fills the key `one` while the tenant is busy; `before` and `meanwhile` happen then, too. */
async function promote({ clients }: Nodes, meanwhile: () => Promise<void>, before: () => Promise<void> = async () => {}): Promise<void> {
  const tenant = new Tenant(clients);
  const busy = tenant.run();
  const [client] = clients() as [QdrantClient];
  await before();
  await client.updateCollectionCluster('c', {
    replicate_points: { from_shard_key: 'all', to_shard_key: 'one', filter: { must: [TENANT] } },
  } as never);
  await meanwhile();
  let looks = 0;
  await until(
    async () => {
      const some = clients()[looks++ % clients().length] as QdrantClient;
      const { count } = await again(() => some.count('c', { shard_key: SHARD_KEY, filter: STILL_ONLY, exact: true }));
      assert.equal(count, STILL_COUNT, 'a count is wrong');
      return clusterOf(client);
    },
    ({ shard_transfers }) => shard_transfers.length === 0,
    60_000,
  );
  // Some rounds behind the switch.
  await new Promise((resolve) => void setTimeout(resolve, 500));
  tenant.ended = true;
  await busy;
  const moving = { must: [TENANT, { key: 'still', match: { value: false } }] };
  for (const one of clients()) {
    const { local_shards, remote_shards } = await clusterOf(one);
    for (const { state } of [...local_shards, ...remote_shards]) assert.equal(state, 'Active');
    const expected = new Map([...tenant.there].sort(([first], [second]) => first - second));
    assert.deepEqual(await seen(one, 'one', moving), expected);
    const still = await seen(one, 'one', { must_not: moving.must.slice(1) });
    assert.deepEqual(
      [...still.keys()],
      Array.from({ length: STILL_COUNT }, (_, at) => at * 3 + 1),
    );
    const { count } = await one.count('c', { shard_key: 'all', filter: STILL_ONLY, exact: true });
    assert.equal(count, STILL_COUNT, 'the points stay where they were');
  }
}

test("a tenant's points go to a key of their own under its writes, deletes and reads: nothing is lost, doubled or comes back", async (t) => {
  const nodes = await begin(t);
  const [client] = nodes.clients() as [QdrantClient];
  await client.createShardKey('c', { shard_key: 'one', shards_number: 2, replication_factor: 2, initial_state: 'Partial' } as never);
  const { local_shards, remote_shards } = await client.collectionClusterInfo('c');
  const waiting = [...local_shards, ...remote_shards].filter(({ shard_key }) => shard_key === 'one');
  assert.deepEqual(
    waiting.map(({ state }) => state),
    Array(4).fill('Partial'),
  );
  await assert.rejects(client.count('c', { shard_key: 'one' }), { status: 503 });
  await assert.rejects(client.upsert('c', { points: [pointOf(1)], shard_key: 'one' }), { status: 503 });
  assert.equal((await client.count('c', { exact: true })).count, STILL);
  await promote(nodes, async () => {
    const { shard_transfers } = await clusterOf(client);
    for (const { method, sync, to_shard_id } of shard_transfers)
      assert.deepEqual([method, sync, typeof to_shard_id], ['stream_records', true, 'number']);
    if (shard_transfers.length > 0) assert.equal(shard_transfers.length, 4);
  });
  // What the documentation of the API has its users do then.
  await client.delete('c', { shard_key: 'all', filter: { must: [TENANT] }, wait: true });
  const all = await client.count('c', { filter: STILL_ONLY, exact: true });
  assert.equal(all.count, STILL_COUNT);
  assert.equal((await client.count('c', { shard_key: 'all', exact: true })).count, STILL - STILL_COUNT);
});

test('nodes that are killed while points are copied hold nothing up for good: whoever leads then goes on', async (t) => {
  const nodes = await begin(t);
  const { cluster } = nodes;
  const [client] = nodes.clients() as [QdrantClient];
  await client.createShardKey('c', { shard_key: 'one', shards_number: 1, replication_factor: 3, initial_state: 'Partial' } as never);
  const restarted = async (number: number) => {
    await cluster.start(number);
    await until(
      () => clusterOf(client),
      ({ local_shards, remote_shards }) => [...local_shards, ...remote_shards].every(({ state }) => state !== 'Dead'),
    );
  };
  await promote(
    nodes,
    async () => {
      await restarted(2);
      await cluster.node(3).kill();
      await restarted(3);
    },
    async () => void (await cluster.node(2).kill()),
  );
});

test('a copy that is aborted leaves its key closed, and a later one fills it with nothing but what passes', async (t) => {
  const nodes = await begin(t);
  const [client] = nodes.clients() as [QdrantClient];
  await client.createShardKey('c', { shard_key: 'one', initial_state: 'Partial' } as never);
  const setUp = (operation: object) => client.updateCollectionCluster('c', operation as never);
  const other = { must: [{ key: 'tenant', match: { value: 2 } }] };
  await setUp({ replicate_points: { from_shard_key: 'all', to_shard_key: 'one', filter: other } });
  const [transfer] = (await clusterOf(client)).shard_transfers;
  if (transfer !== undefined) {
    const { from, shard_id, to, to_shard_id } = transfer as typeof transfer & { to_shard_id: number };
    await setUp({ abort_transfer: { shard_id, to_shard_id, from_peer_id: from, to_peer_id: to } });
    assert.deepEqual((await clusterOf(client)).shard_transfers, []);
    await assert.rejects(client.count('c', { shard_key: 'one' }), { status: 503 });
  }
  await promote(nodes, async () => {});
});

test('an open key keeps its own points and gets those that pass', async (t) => {
  const nodes = await begin(t);
  const [client] = nodes.clients() as [QdrantClient];
  await client.createShardKey('c', { shard_key: 'one' });
  await client.upsert('c', { points: [pointOf(STILL + 1, 7)], shard_key: 'one', wait: true });
  await client.updateCollectionCluster('c', { replicate_points: { from_shard_key: 'all', to_shard_key: 'one' } } as never);
  await until(
    () => clusterOf(client),
    ({ shard_transfers }) => shard_transfers.length === 0,
  );
  assert.equal((await client.count('c', { shard_key: 'one', exact: true })).count, STILL + 1);
  assert.equal((await client.count('c', { shard_key: 'all', exact: true })).count, STILL);
  const [point] = await client.retrieve('c', { ids: [5], shard_key: 'one', with_vector: true });
  const [origin] = await client.retrieve('c', { ids: [5], shard_key: 'all', with_vector: true });
  assert.deepEqual({ ...point, shard_key: 'all' }, origin);
});

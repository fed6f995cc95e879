/** Points under shard keys on two nodes, through both doors of each. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LocalCluster } from '../../ops/cluster/local-cluster.js';
import type { Explanation } from '../../protocols/model/explanation.js';
import { type Args, Doors, type OperationName } from './clients/doors.js';
import { temporaryFolder, untilIndexed } from './support.js';

const VECTORS = { size: 2, distance: 'Dot' };

test('points under shard keys', async (context) => {
  const cluster = await LocalCluster.start({ nodes: 2, folder: await temporaryFolder(context) });
  context.after(() => cluster.close());
  const nodes = [cluster.node(1), cluster.node(2)] as const;
  const doors = nodes.map((node) => new Doors(node)) as [Doors, Doors];
  const [here, there] = doors;
  const peers = (await Promise.all(nodes.map((node) => cluster.peerIdOf(node)))) as [number, number];

  /** On the collections `rest` and `grpc`, each through its door. */
  const changed = async (at: Doors, operation: OperationName, args: Args): Promise<void> => {
    const outcome = await at.both(operation, 'grpc', { timeout: 20, ...args }, 'rest');
    assert.ok('result' in outcome, `${operation} ${JSON.stringify(args)}: ${JSON.stringify(outcome)}`);
  };
  /** The same through both doors of both nodes. */
  const read = async (operation: OperationName, args: Args): Promise<unknown> => {
    const outcomes = [];
    for (const asked of doors) for (const name of ['rest', 'grpc']) outcomes.push(await asked.both(operation, name, args));
    for (const outcome of outcomes) assert.deepEqual(outcome, outcomes[0], `${operation} ${JSON.stringify(args)}`);
    const [first] = outcomes;
    return first !== undefined && 'result' in first ? first.result : first;
  };
  const refused = async (operation: OperationName, args: Args): Promise<string> => {
    const outcome = await there.both(operation, 'grpc', args, 'rest');
    assert.ok('failed' in outcome && outcome.failed === 400, JSON.stringify(outcome));
    return outcome.message;
  };
  /** The points of each index, as the node says that has made it. */
  const indexesOf = async (): Promise<Record<string, number>> => {
    const outcome = await there.both('get_collection', 'grpc', {}, 'rest');
    const { payload_schema } = ('result' in outcome ? outcome.result : {}) as { payload_schema: Record<string, { points: number }> };
    return Object.fromEntries(Object.entries(payload_schema).map(([field, { points }]) => [field, points]));
  };
  const idsOf = (points: unknown): number[] => (points as { id: number }[]).map(({ id }) => id);
  const pointsOf = (from: number, to: number, of: string) =>
    Array.from({ length: to - from + 1 }, (_, i) => ({ id: from + i, vector: [from + i, 1], payload: { of, n: from + i } }));

  await context.test('a collection without keys is empty, and takes no points; an index is kept for the keys that come', async () => {
    await changed(here, 'create_collection', { vectors: VECTORS, sharding_method: 'custom' });
    assert.deepEqual(await read('count_points', {}), { count: 0 });
    assert.deepEqual(await read('query_points', { query: [1, 0] }), { points: [] });
    const early = { field_name: 'early', field_schema: { type: 'keyword', is_tenant: true } };
    for (const field_name of ['early', 'gone']) {
      const made = await there.both('create_field_index', 'grpc', { ...early, field_name, wait: true }, 'rest');
      assert.deepEqual(made, { result: { status: 'acknowledged' } });
    }
    await changed(there, 'delete_field_index', { field_name: 'gone', wait: true });
    assert.deepEqual(await indexesOf(), { early: 0 });
    assert.match(await refused('upsert_points', { points: pointsOf(1, 1, 'x'), wait: true }), /Shard key not specified/);
    assert.match(await refused('upsert_points', { points: pointsOf(1, 1, 'x'), shard_key: 'north', wait: true }), /"north" not found/);
    await changed(here, 'delete_points', { points: [1], wait: true });
  });

  await context.test('shards of a later key have the indexes of the others', async () => {
    await changed(here, 'create_shard_key', { shard_key: 'north', shards_number: 2, replication_factor: 2 });
    assert.deepEqual(await indexesOf(), { early: 0 });
    await changed(there, 'create_field_index', { field_name: 'n', field_schema: { type: 'integer', is_principal: true }, wait: true });
    await changed(there, 'create_field_index', { field_name: 'of', field_schema: 'keyword', wait: true });
    await changed(here, 'create_shard_key', { shard_key: 7, placement: [peers[1]] });
    await changed(there, 'upsert_points', { points: pointsOf(1, 20, 'north'), shard_key: 'north', wait: true });
    await changed(here, 'upsert_points', { points: pointsOf(20, 25, 'seven'), shard_key: 7, wait: true });
    const facets = (await read('facet', { key: 'of' })) as { hits: unknown };
    assert.deepEqual(facets.hits, [
      { value: 'north', count: 20 },
      { value: 'seven', count: 6 },
    ]);
    const ordered = (await read('scroll_points', { order_by: { key: 'n', direction: 'desc' }, limit: 3 })) as { points: unknown };
    assert.deepEqual(idsOf(ordered.points), [25, 24, 23]);
  });

  await context.test('reads choose by key, list or fallback, on every node', async () => {
    assert.deepEqual(await read('count_points', {}), { count: 26 });
    assert.deepEqual(await read('count_points', { shard_key: 'north' }), { count: 20 });
    assert.deepEqual(await read('count_points', { shard_key: [7, 'north'], consistency: 'all' }), { count: 26 });
    assert.deepEqual(await read('count_points', { shard_key: { target: 'south', fallback: 7 } }), { count: 6 });
    const [point] = (await read('get_points', { ids: [20], shard_key: 7, with_payload: true })) as unknown[];
    assert.deepEqual(point, { id: 20, payload: { of: 'seven', n: 20 }, shard_key: 7 });
    const query = { query: [1, 0], limit: 2, with_payload: false };
    assert.deepEqual(idsOf(((await read('query_points', { ...query, shard_key: 'north' })) as { points: unknown }).points), [20, 19]);
    assert.deepEqual(idsOf(((await read('query_points', query)) as { points: unknown }).points), [25, 24]);
    const lookup = { query: 25, lookup_from: { collection: 'rest', shard_key: 7 }, limit: 1, shard_key: 'north' };
    assert.deepEqual(idsOf(((await read('query_points', lookup)) as { points: unknown }).points), [20]);
    assert.match(
      await refused('scroll_points', { shard_key: 'south' }),
      /Bad request: Shard key "south" not found|Shard key "south" not found/,
    );
  });

  await context.test('writes choose by key, and without one mean all points that are there', async () => {
    await changed(there, 'set_payload', { payload: { seen: true }, points: [1, 20, 25], wait: true });
    const seen = { filter: { must: [{ key: 'seen', match: { value: true } }] } };
    assert.deepEqual(await read('count_points', seen), { count: 4 });
    await changed(here, 'delete_points', { points: [20], shard_key: 'north', wait: true });
    assert.deepEqual(await read('count_points', { ...seen, shard_key: 'north' }), { count: 1 });
    assert.deepEqual(await read('count_points', { ...seen, shard_key: 7 }), { count: 2 });
    await changed(here, 'delete_points', { filter: {}, wait: true });
    assert.deepEqual(await read('count_points', {}), { count: 0 });
  });

  await context.test('a walk in one of several shards with a key keeps its part of the candidates, in the only one all', async () => {
    const { client } = nodes[0];
    const config = {
      vectors: { size: 256, distance: 'Dot' },
      hnsw_config: { m: 4, full_scan_threshold: 10 },
      optimizers_config: { indexing_threshold: 100 },
    };
    await client.result('PUT', '/collections/walked', { ...config, sharding_method: 'custom' });
    for (const [shard_key, shards_number] of [
      ['one', 1],
      ['four', 4],
    ] as const)
      await client.result('PUT', '/collections/walked/shards', { shard_key, shards_number, placement: [peers[0]] });
    const vectorOf = (id: number) => Array.from({ length: 256 }, (_, at) => Math.round(1000 * Math.sin(id * (at + 1))) / 1000);
    for (const [shard_key, count] of [
      ['one', 2000],
      ['four', 8000],
    ] as const) {
      const points = Array.from({ length: count }, (_, id) => ({ id, vector: vectorOf(id) }));
      await client.result('PUT', '/collections/walked/points?wait=true', { points, shard_key });
    }
    await untilIndexed(client, 'walked', 10_000);
    const efsOf = async (shard_key: string): Promise<unknown[]> => {
      const asked = { query: vectorOf(0.5), limit: 5, params: { hnsw_ef: 100 }, shard_key, explain: true };
      const { body } = await client.call('POST', '/collections/walked/points/query', asked);
      const { shards } = (body as { explain: Explanation }).explain;
      return shards.flatMap(({ segments }) => segments.flatMap(({ searches }) => searches.map(({ ef }) => ef)));
    };
    assert.deepEqual(await efsOf('one'), [100]);
    assert.deepEqual(await efsOf('four'), [50, 50, 50, 50]);
  });
});

/** Operations on the cluster through both doors of a real one, asked for by unmodified clients: the answers are the same. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LocalCluster } from '../../ops/cluster/local-cluster.js';
import type { OptimizationsView } from '../../protocols/model/optimizations.js';
import type { HardwareUsage } from '../../protocols/model/usage.js';
import { type Args, Doors } from './clients/doors.js';
import { temporaryFolder, until } from './support.js';

type Optimizations = Pick<OptimizationsView, 'idle_segments' | 'summary'>;

const VECTORS = { size: 4, distance: 'Dot' };

test('operations on the cluster, through both doors', async (context) => {
  const cluster = await LocalCluster.start({
    nodes: 2,
    folder: await temporaryFolder(context),
    environment: { SERVICE__SERVICE__HARDWARE_REPORTING: 'true' },
  });
  context.after(() => cluster.close());
  const nodes = [cluster.node(1), cluster.node(2)] as const;
  const doors = nodes.map((node) => new Doors(node)) as [Doors, Doors];
  const [here, there] = doors;
  const peers = (await Promise.all(nodes.map((node) => cluster.peerIdOf(node)))) as [number, number];

  /** Asks for a change of the collections `rest` and `grpc` through their door, and looks at both nodes whether they are alike. */
  async function changed(operation: Parameters<Doors['both']>[0], args: Args): Promise<void> {
    const outcome = await here.both(operation, 'grpc', { timeout: 20, ...args }, 'rest');
    assert.deepEqual(outcome, { result: true }, `${operation} ${JSON.stringify(args)}`);
    for (const asked of doors) {
      for (const name of ['rest', 'grpc']) await asked.both('list_shard_keys', name);
      const [byRest, byGrpc] = [await asked.both('collection_cluster_info', 'rest'), await asked.both('collection_cluster_info', 'grpc')];
      assert.equal(shardsIn(byRest), shardsIn(byGrpc));
    }
  }

  await context.test('shard keys are made and dropped', async () => {
    await changed('create_collection', { vectors: VECTORS, sharding_method: 'custom' });
    await changed('create_shard_key', { shard_key: 'north', shards_number: 2, replication_factor: 2 });
    await changed('create_shard_key', { shard_key: 7, placement: [peers[1]] });
    const keys = await there.both('list_shard_keys', 'grpc');
    assert.deepEqual(keys, { result: { shard_keys: [{ key: 'north' }, { key: 7 }] } });
    await changed('delete_shard_key', { shard_key: 7 });
  });

  await context.test(
    'a shard that is replicated to a peer that has it is compared there, and the replica that leads is refused as a target',
    async () => {
      for (const operation of ['rest', 'grpc'] as const) {
        const asked = await Promise.all(
          [0, 1].map((at) => {
            const [from_peer_id, to_peer_id] = [peers[at] as number, peers[1 - at] as number];
            return there[operation]('update_collection_cluster', operation, {
              replicate_shard: { shard_id: 0, from_peer_id, to_peer_id },
            }).then(
              (result) => String(result),
              (error: unknown) => (/leads the shard/.test(JSON.stringify([String(error), error])) ? 'leads' : String(error)),
            );
          }),
        );
        assert.deepEqual(asked.sort(), ['leads', 'true']);
      }
      const comparisons = async () => {
        const found = await Promise.all(nodes.map((node) => node.client.result('GET', '/telemetry?details_level=3')));
        return found.reduce<number>((sum, report) => sum + comparisonsIn(report), 0);
      };
      assert.equal(await until(comparisons, (count) => count >= 2), 2);
    },
  );

  await context.test('a replica is dropped, and the last one of its shard is not', async () => {
    const drop = { drop_replica: { shard_id: 0, peer_id: peers[1] } };
    await changed('update_collection_cluster', drop);
    const last = await there.both('update_collection_cluster', 'grpc', { drop_replica: { shard_id: 0, peer_id: peers[0] } });
    assert.ok('failed' in last && last.failed === 400);
  });

  await context.test('what cannot be done fails for the same reason', async () => {
    const between = { shard_id: 0, from_peer_id: peers[0], to_peer_id: peers[1] };
    const cases: readonly (readonly [Parameters<Doors['both']>[0], Args, number])[] = [
      ['create_shard_key', { shard_key: 'north' }, 400],
      ['create_shard_key', { shard_key: 'south', placement: [5] }, 400],
      ['delete_shard_key', { shard_key: 'south' }, 400],
      ['update_collection_cluster', { move_shard: { ...between, to_peer_id: 5 } }, 400],
      ['update_collection_cluster', { replicate_shard: { ...between, to_peer_id: 5 } }, 400],
      ['update_collection_cluster', { abort_transfer: between }, 404],
      ['update_collection_cluster', { drop_replica: { shard_id: 99, peer_id: peers[0] } }, 400],
    ];
    for (const [operation, args, status] of cases) {
      const outcome = await there.both(operation, 'grpc', args);
      assert.ok('failed' in outcome && outcome.failed === status, `${operation} ${JSON.stringify(args)}: ${JSON.stringify(outcome)}`);
    }
    const missing = await here.both('collection_cluster_info', 'none');
    assert.ok('failed' in missing && missing.failed === 404);
  });

  await context.test('an answer says what it cost on all nodes together, whichever of them is asked', async () => {
    const settings = { vectors: VECTORS, shard_number: 2, replication_factor: 1 };
    await nodes[0].client.result('PUT', '/collections/spread?timeout=20', settings);
    const hardware = async (node: (typeof nodes)[number], method: string, path: string, body: unknown) => {
      const answer = await node.client.call(method, `/collections/spread${path}`, body);
      return (answer.body as { usage: { hardware: HardwareUsage } }).usage.hardware;
    };
    const points = Array.from({ length: 40 }, (_, id) => ({ id, vector: [id, 1, 2, 3], payload: { a: 1 } }));
    assert.equal((await hardware(nodes[0], 'PUT', '/points?wait=true', { points })).vector_io_write, 40 * 16);
    for (const node of nodes) {
      const search = { query: [1, 2, 3, 4], limit: 40, with_payload: true };
      const { cpu, payload_io_read } = await hardware(node, 'POST', '/points/query', search);
      assert.deepEqual([cpu, payload_io_read], [40 * 16, 40 * '{"a":1}'.length]);
    }
    // Segments of shards on both nodes, whichever is asked.
    const told = await Promise.all(
      nodes.map((node) => node.client.result<Optimizations>('GET', '/collections/spread/optimizations?with=idle_segments')),
    );
    for (const { idle_segments, summary } of told) {
      assert.equal(summary.idle_segments, 2);
      assert.deepEqual(new Set(idle_segments.map(({ uuid }) => uuid)), new Set(told[0]?.idle_segments.map(({ uuid }) => uuid)));
      assert.deepEqual(idle_segments.reduce((sum, { points_count }) => sum + points_count, 0), 40); // biome-ignore format: a line
    }
    await nodes[0].client.result('DELETE', '/collections/spread?timeout=20');
  });

  await context.test('a change through one node is there in a consistent read of the other', async () => {
    assert.equal(await here.rest('delete_collection', 'rest'), true);
    assert.equal(await here.grpc('delete_collection', 'grpc'), true);
    const listed = await nodes[1].client.result('GET', '/collections?consistency=majority');
    assert.deepEqual(listed, { collections: [] });
  });
});

function comparisonsIn(telemetry: unknown): number {
  return (telemetry as { app: { transfers: { digests: { comparisons: number } } } }).app.transfers.digests.comparisons;
}

/** Shards of a collection with their replicas, in the order of the report. */
function shardsIn(outcome: unknown): string {
  const { result } = outcome as { result: { local_shards: object[]; remote_shards: object[] } };
  return JSON.stringify([result.local_shards, result.remote_shards].map((shards) => shards.length));
}

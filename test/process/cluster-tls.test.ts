/** Three nodes whose internal ports take TLS only. */

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { LocalCluster } from '../../ops/cluster/local-cluster.js';
import { RestClient } from '../../ops/rest-client.js';
import { Authority } from '../../ops/tls/authority.js';
import { nodeFor, temporaryFolder, until } from './support.js';

const authority = new Authority('authority', Date.now());

function environmentIn(folder: string, by: Authority): Record<string, string> {
  const { cert, key } = by.sign({ name: 'node', hosts: ['127.0.0.1'] });
  const files = { CERT: cert, KEY: key, CA_CERT: authority.cert };
  const paths = Object.entries(files).map(([name, text]) => {
    const path = join(folder, `${name.toLowerCase()}.pem`);
    writeFileSync(path, text);
    return [`SERVICE__TLS__${name}`, path];
  });
  return { SERVICE__CLUSTER__P2P__ENABLE_TLS: 'true', ...Object.fromEntries(paths) };
}

test('a cluster with TLS between its nodes writes and reads on every one of them, and lets no stranger in', async (t) => {
  const folder = await temporaryFolder(t);
  const cluster = await LocalCluster.start({ folder, nodes: 3, environment: environmentIn(folder, authority) });
  t.after(() => cluster.close());
  const clients = cluster.nodes.map(({ port }) => new RestClient(port));
  t.after(() => {
    for (const client of clients) client.close();
  });
  const [first] = clients as [RestClient];
  await first.result('PUT', '/collections/c', { vectors: { size: 2, distance: 'Dot' }, shard_number: 6, replication_factor: 1 });
  for (const [at, client] of clients.entries()) {
    const points = Array.from({ length: 300 }, (_, row) => ({ id: 1000 * at + row, vector: [row, 1], payload: { text: 'a'.repeat(500) } }));
    await client.result('PUT', '/collections/c/points?wait=true', { points });
  }
  for (const client of clients) {
    // Readers ask the other nodes over connections of their own, too.
    for (let round = 0; round < 10; round++) {
      assert.deepEqual(await client.result('POST', '/collections/c/points/count', { exact: true }), { count: 900 });
    }
    const { points } = await client.result<{ points: unknown[] }>('POST', '/collections/c/points/scroll', { limit: 900 });
    assert.equal(points.length, 900);
  }
  // Points of a shard come to another node.
  const { peer_id: source, local_shards: shards } = await first.result<{ peer_id: number; local_shards: { shard_id: number }[] }>(
    'GET',
    '/collections/c/cluster',
  );
  const peers = Object.keys((await first.result<{ peers: Record<string, unknown> }>('GET', '/cluster')).peers).map(Number);
  const move = { shard_id: shards[0]?.shard_id, from_peer_id: source, to_peer_id: peers.find((peer) => peer !== source) };
  await first.result('POST', '/collections/c/cluster', { move_shard: { ...move, method: 'snapshot' } });
  const left = () => first.result<{ local_shards: unknown[]; shard_transfers: unknown[] }>('GET', '/collections/c/cluster');
  await until(left, ({ local_shards, shard_transfers }) => local_shards.length === shards.length - 1 && shard_transfers.length === 0);
  assert.deepEqual(await first.result('POST', '/collections/c/points/count', { exact: true }), { count: 900 });

  const elsewhere = await temporaryFolder(t);
  const environment = {
    ...environmentIn(elsewhere, new Authority('another authority', Date.now())),
    SERVICE__CLUSTER__ENABLED: 'true',
    SERVICE__CLUSTER__P2P__PORT: '0',
  };
  const stranger = nodeFor(t, { folder: elsewhere, environment, options: ['--bootstrap', cluster.node(1).uri] } as never);
  await assert.rejects(stranger, /unable|certificate|not admitted/i);
  await until(
    async () => cluster.node(1).log(),
    (log) => /a connection to the internal port was refused/.test(log),
  );
});

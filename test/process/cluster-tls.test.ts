/** Three nodes whose internal ports take TLS only. */

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Metadata } from '@grpc/grpc-js';
import { LocalCluster } from '../../ops/cluster/local-cluster.js';
import type { LocalNode } from '../../ops/cluster/local-node.js';
import { Authority } from '../../ops/tls/authority.js';
import type { Explanation } from '../../protocols/model/explanation.js';
import { API_KEY, tokenOf } from '../http/access/tokens.js';
import { GrpcClient } from '../http/grpc/client.js';
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

/** An explained read tells of every shard by the peer that answered for it. */
async function assertExplained(client: LocalNode['client']): Promise<void> {
  const { body } = await client.call('POST', '/collections/c/points/count', { explain: true });
  const { shards, stages } = (body as { readonly explain: Explanation }).explain;
  assert.deepEqual(
    shards.map(({ shard_id }) => shard_id),
    [0, 1, 2, 3, 4, 5],
  );
  assert.equal(new Set(shards.map(({ peer_id }) => peer_id)).size, 3);
  assert.ok(shards.every(({ peer_id }) => typeof peer_id === 'number'));
  assert.equal(
    shards.reduce((sum, { segments }) => sum + segments.reduce((found, { searches }) => found + (searches[0]?.found ?? 0), 0), 0),
    900,
  );
  assert.ok(stages.some(({ stage }) => stage === 'shards'));
}

test('a cluster with TLS between its nodes writes and reads on every one of them, and lets no stranger in', async (t) => {
  const folder = await temporaryFolder(t);
  const environment = { ...environmentIn(folder, authority), SERVICE__SERVICE__JWT_RBAC: 'true' };
  const cluster = await LocalCluster.start({ folder, nodes: 3, apiKey: API_KEY, environment });
  t.after(() => cluster.close());
  const clients = cluster.nodes.map(({ client }) => client);
  const [first] = clients as [LocalNode['client']];
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
    await assertExplained(client);
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

  await t.test('tokens hold on every node: grants, tenants, and values that exist', () => askByTokens(t, cluster));

  const elsewhere = await temporaryFolder(t);
  const strange = {
    ...environmentIn(elsewhere, new Authority('another authority', Date.now())),
    SERVICE__SERVICE__API_KEY: API_KEY,
    SERVICE__CLUSTER__ENABLED: 'true',
    SERVICE__CLUSTER__P2P__PORT: '0',
  };
  const stranger = nodeFor(t, { folder: elsewhere, environment: strange, options: ['--bootstrap', cluster.node(1).uri] } as never);
  await assert.rejects(stranger, /unable|certificate|not admitted/i);
  await until(
    async () => cluster.node(1).log(),
    (log) => /a connection to the internal port was refused/.test(log),
  );
});

const FORBIDDEN = 7;
const UNKNOWN = 16;

/** Every shard is on another node, so each node asks the others for what the token may see. */
async function askByTokens(t: TestContext, cluster: LocalCluster): Promise<void> {
  const [first] = cluster.nodes.map(({ client }) => client) as [LocalNode['client']];
  await first.result('PUT', '/collections/tenants', { vectors: { size: 2, distance: 'Dot' }, shard_number: 6, replication_factor: 1 });
  for (const field_name of ['tenant', 'user'])
    await first.result('PUT', '/collections/tenants/index?wait=true', { field_name, field_schema: 'keyword' });
  const rights = (access: string, tenant?: string) => ({
    access: [{ collection: 'tenants', access, ...(tenant === undefined ? {} : { tenant: { key: 'tenant', value: tenant } }) }],
  });
  const [a, b, reader] = [tokenOf(rights('rw', 'a')), tokenOf(rights('rw', 'b')), tokenOf(rights('r'))];
  const session = tokenOf({ access: 'r', value_exists: { collection: 'tenants', matches: [{ key: 'user', value: 'u1' }] } });
  const doors = cluster.nodes.map(({ grpcPort, port }) => {
    const grpc = new GrpcClient(grpcPort);
    t.after(() => grpc.close());
    const rest = async (token: string, method: string, path: string, body: object): Promise<[status: number, result: unknown]> => {
      const headers = { 'api-key': token, 'content-type': 'application/json' };
      const answer = await fetch(`http://127.0.0.1:${port}/collections/tenants${path}`, { method, headers, body: JSON.stringify(body) });
      const text = await answer.text();
      return [answer.status, answer.status === 200 ? (JSON.parse(text) as { result: unknown }).result : text];
    };
    const call = (token: string, method: string, message: object) => {
      const metadata = new Metadata();
      metadata.set('api-key', token);
      return grpc.call(method, { collection_name: 'tenants', ...message }, {}, metadata);
    };
    return { rest, call };
  });
  const failed = (call: Promise<unknown>): Promise<number> =>
    call.then(
      () => 0,
      ({ code }: { code: number }) => code,
    );
  const points = (from: number) =>
    Array.from({ length: 30 }, (_, at) => ({ id: from + at, vector: [at, 1], payload: { user: `u${from}` } }));
  const [one, other] = doors as [(typeof doors)[0], (typeof doors)[0]];
  assert.equal((await one.rest(a, 'PUT', '/points?wait=true', { points: points(1) }))[0], 200);
  const messages = points(101).map(({ id, vector }) => ({ id: { num: id }, vectors: { vector: { data: vector } } }));
  await other.call(b, 'Points/Upsert', { wait: true, points: messages });
  // What belongs to another tenant stays as it is, over both doors.
  await other.call(a, 'Points/Upsert', { wait: true, points: messages });
  await one.call(a, 'Points/Delete', { wait: true, points: { filter: {} } });
  assert.equal((await one.rest(a, 'PUT', '/points?wait=true', { points: points(1) }))[0], 200);
  assert.equal((await one.rest(reader, 'PUT', '/points?wait=true', { points: points(1) }))[0], 403);
  assert.equal(await failed(one.call(reader, 'Points/Upsert', { points: messages })), FORBIDDEN);
  for (const { call, rest } of doors) {
    for (const [token, count] of [
      [a, 30],
      [b, 30],
      [reader, 60],
      [API_KEY, 60],
      [session, 60],
    ] as const) {
      assert.deepEqual(await rest(token, 'POST', '/points/count', { exact: true }), [200, { count }]);
      assert.equal(Number(((await call(token, 'Points/Count', { exact: true })).result as { count: unknown }).count), count);
    }
    const [, found] = await rest(a, 'POST', '/points/query', { query: [1, 0], limit: 100, with_payload: true });
    const own = (found as { points: { id: number; payload: { tenant: string } }[] }).points;
    assert.deepEqual([own.length, ...new Set(own.map(({ payload }) => payload.tenant))], [30, 'a']);
    const scrolled = (await call(b, 'Points/Scroll', { limit: 100 })).result as { id: { num: unknown } }[];
    assert.ok(scrolled.length === 30 && scrolled.every(({ id }) => Number(id.num) > 100));
    assert.deepEqual(((await call(b, 'Points/Get', { ids: [{ num: 1 }, { num: 101 }] })).result as unknown[]).length, 1);
    assert.deepEqual(await rest(a, 'POST', '/points', { ids: [101] }), [200, []]);
    assert.equal((await rest(a, 'PUT', '/index', { field_name: 'x', field_schema: 'keyword' }))[0], 403);
    assert.equal(await failed(call(a, 'Collections/Get', {})), FORBIDDEN);
  }
  await first.result('POST', '/collections/tenants/points/payload?wait=true', { payload: { user: 'gone' }, filter: {} });
  for (const { call, rest } of doors)
    await until(
      async () => [(await rest(session, 'POST', '/points/count', {}))[0], await failed(call(session, 'Points/Count', {}))],
      ([status, code]) => status === 401 && code === UNKNOWN,
    );
}

/** Fields that the API does not have, on a real node: ignored and told, or refused. */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { LocalCluster } from '../../ops/cluster/local-cluster.js';
import { RestClient } from '../../ops/rest-client.js';
import { nodeFor, temporaryFolder, until } from './support.js';

const HEADER = 'troupe-unknown-fields';
/** Each of them goes another way through the node. */
const WAYS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'readers that take connections': {},
  'the main thread': { SERVICE__SERVICE__HARDWARE_REPORTING: 'true' },
};
const VECTOR = [1, 2];

interface Issue {
  readonly id: string;
  readonly description: string;
  readonly solution: string;
  readonly timestamp: string;
  readonly count: number;
  readonly action?: { readonly method: string; readonly path: string; readonly body: object };
}

for (const [way, environment] of Object.entries(WAYS)) {
  test(`unknown fields are ignored and told by ${way}`, async (t) => {
    const { client, log } = await startWith(t, environment);
    const told = async (method: string, path: string, body: unknown): Promise<unknown> => {
      const { headers, status, text } = await client.call(method, path, body);
      assert.equal(status, 200, text);
      return headers[HEADER];
    };
    const points = [{ id: 1, vector: VECTOR, paylod: { a: 1 } }];
    assert.equal(await told('PUT', '/collections/c', { vectors: { size: 2, distance: 'Dot' }, shard_numbr: 2 }), 'shard_numbr');
    assert.equal(await told('PUT', '/collections/many', { vectors: { size: 2, distance: 'Dot' }, shard_number: 2 }), undefined);
    for (const collection of ['c', 'many']) {
      const of = `/collections/${collection}/points`;
      assert.equal(await told('PUT', `${of}?wait=true`, { points, wait: true }), 'points[].paylod, wait');
      assert.equal(await told('PUT', `${of}?wait=true`, { points: [{ id: 2, vector: VECTOR, payload: { any: 1 } }] }), undefined);
      assert.equal(
        await told('POST', `${of}/batch?wait=true`, { operations: [{ delete: { points: [7], wait: 1 } }] }),
        'operations[].delete.wait',
      );
      assert.equal(await told('POST', `${of}/query`, { query: VECTOR, limitt: 1, params: { exakt: true } }), 'limitt, params.exakt');
      assert.equal(await told('POST', `${of}/query`, { query: VECTOR, limit: 1 }), undefined);
      assert.equal(await told('POST', `${of}/count`, { 'ä,%\r\n': 1 }), '%C3%A4%2C%25%0D%0A');
    }
    assert.match(log(), /fields that are not known.*shard_numbr.*shard_number/);
    const { issues } = await until(
      () => client.result<{ issues: Issue[] }>('GET', '/issues'),
      ({ issues }) => issues.some(({ id }) => id === 'UNKNOWN_FIELD/count_points/ä,%\r\n'),
    );
    const limit = issues.find(({ id }) => id === 'UNKNOWN_FIELD/query_points/limitt');
    assert.equal(limit?.count, 2);
    assert.match(limit?.description ?? '', /did you mean `limit`/);
    assert.equal(await client.result('DELETE', '/issues'), true);
    assert.deepEqual(await client.result('GET', '/issues'), { issues: [] });
    await filtersAdviseIndexes(client);
  });

  test(`unknown fields are refused by ${way} where that is set, and nothing is done`, async (t) => {
    const { client } = await startWith(t, { ...environment, SERVICE__SERVICE__UNKNOWN_FIELDS: 'refuse' });
    const refused = async (method: string, path: string, body: unknown): Promise<string> => {
      const { status, text } = await client.call(method, path, body);
      assert.equal(status, 400, text);
      return text;
    };
    assert.match(
      await refused('PUT', '/collections/c', { vectors: { size: 2, distance: 'Dot' }, shard_numbr: 2 }),
      /did you mean `shard_number`/,
    );
    for (const [collection, shards] of [
      ['c', 1],
      ['many', 2],
    ] as const) {
      const of = `/collections/${collection}/points`;
      await client.result('PUT', `/collections/${collection}`, { vectors: { size: 2, distance: 'Dot' }, shard_number: shards });
      assert.match(
        await refused('PUT', `${of}?wait=true`, { points: [{ id: 1, vector: VECTOR, paylod: {} }] }),
        /`points\[\]`: unknown field `paylod`/,
      );
      assert.match(await refused('POST', `${of}/query`, { query: VECTOR, limitt: 1 }), /did you mean `limit`/);
      assert.deepEqual(await client.result('POST', `${of}/count`, { exact: true }), { count: 0 });
    }
  });
}

test('unknown fields are told by a cluster, whichever thread merges what its nodes answer', async (t) => {
  const cluster = await LocalCluster.start({ nodes: 2, folder: await temporaryFolder(t) });
  t.after(() => cluster.close());
  const client = new RestClient(cluster.node(1).port);
  t.after(() => client.close());
  const told = async (method: string, path: string, body: unknown): Promise<unknown> => {
    const { headers, status, text } = await client.call(method, path, body);
    assert.equal(status, 200, text);
    return headers[HEADER];
  };
  await client.result('PUT', '/collections/c', { vectors: { size: 2, distance: 'Dot' }, shard_number: 4 });
  const points = Array.from({ length: 20 }, (_, id) => ({ id, vector: VECTOR, paylod: {} }));
  assert.equal(await told('PUT', '/collections/c/points?wait=true', { points }), 'points[].paylod');
  const search = { query: VECTOR, limitt: 1 };
  assert.equal(await told('POST', '/collections/c/points/query', search), 'limitt', 'a small read');
  assert.equal(
    await told('POST', '/collections/c/points/query/batch', { searches: [search, search] }),
    'searches[].limitt',
    'a larger one',
  );
});

/** A filter on a field without an index becomes an issue; the request that it advises makes the index, and the issue is gone. */
async function filtersAdviseIndexes(client: RestClient): Promise<void> {
  await client.result('PUT', '/collections/scanned', { vectors: { size: 2, distance: 'Dot' } });
  const points = Array.from({ length: 1000 }, (_, id) => ({ id, vector: VECTOR, payload: { color: `${id % 3}`, size: id } }));
  await client.result('PUT', '/collections/scanned/points?wait=true', { points });
  const count = (gt: number) =>
    client.result('POST', '/collections/scanned/points/count', { exact: true, filter: { must: [{ key: 'size', range: { gt } }] } });
  for (const gt of [1, 2, 3]) await count(gt);
  const issuesOf = async (): Promise<Issue[]> => (await client.result<{ issues: Issue[] }>('GET', '/issues')).issues;
  // A read that takes long on a busy machine is begun again by another reader.
  const [issue] = await until(issuesOf, ([first]) => (first?.count ?? 0) >= 3);
  assert.equal(issue?.id, 'UNINDEXED_FIELD/scanned/size');
  assert.match(issue?.description ?? '', /\d requests, \d,000 payloads/);
  const { action } = issue ?? {};
  await client.result(action?.method ?? '', action?.path ?? '', action?.body);
  assert.deepEqual(await issuesOf(), []);
}

async function startWith(
  t: TestContext,
  environment: Readonly<Record<string, string>>,
): Promise<{ client: RestClient; log: () => string }> {
  return nodeFor(t, { folder: await temporaryFolder(t), environment });
}

/** Graphs and codes follow the settings of their collection: a change has them built again while searches go on. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../ops/random.js';
import { type CollectionInfo, nodeFor, type ScoredPoint, temporaryFolder, until, untilIndexed } from './support.js';

const POINTS = 1500;
const DIM = 16;

interface Optimizations {
  readonly completed: readonly { readonly optimizer: string }[];
}

test('changed graph settings have the graphs built again, and m = 0 takes them away', { timeout: 60_000 }, async (t) => {
  const random = seededRandom(7);
  const { client } = await nodeFor(t, { folder: await temporaryFolder(t) });
  await client.result('PUT', '/collections/c', {
    vectors: { size: DIM, distance: 'Euclid' },
    hnsw_config: { full_scan_threshold: 10 },
    optimizers_config: { indexing_threshold: 20 },
  });
  const points = Array.from({ length: POINTS }, (_, id) => ({ id, vector: Array.from({ length: DIM }, () => random.normal()) }));
  await client.result('PUT', '/collections/c/points?wait=true', { points });
  await untilIndexed(client, 'c', POINTS);

  const info = () => client.result<CollectionInfo>('GET', '/collections/c');
  const reindexed = async () => {
    const { completed } = await client.result<Optimizations>('GET', '/collections/c/optimizations?with=completed');
    return completed.filter(({ optimizer }) => optimizer === 'reindex').length;
  };
  const changeTo = async (change: object, indexed: number) => {
    await client.result('PATCH', '/collections/c', change);
    assert.equal((await info()).status, 'yellow', JSON.stringify(change));
    const searched = (point: (typeof points)[number]) =>
      client.result<{ points: ScoredPoint[] }>('POST', '/collections/c/points/query', { query: point.vector, limit: 5 });
    for (const point of points.slice(0, 20)) {
      const found = (await searched(point)).points;
      assert.deepEqual([found.length, found[0]?.id], [5, point.id]);
    }
    const settled = await until(info, ({ status }) => status === 'green');
    assert.equal(settled.indexed_vectors_count, indexed);
    for (const point of points.slice(20, 40)) assert.equal((await searched(point)).points[0]?.id, point.id);
  };

  await changeTo({ hnsw_config: { m: 8 } }, POINTS);
  // One for each segment: a busy machine may have begun to build before all points were there.
  const first = await reindexed();
  assert.ok(first > 0);
  await changeTo({ vectors: { '': { hnsw_config: { ef_construct: 40 } } } }, POINTS);
  const second = await reindexed();
  assert.ok(second > first);
  await client.result('PATCH', '/collections/c', { hnsw_config: { ef_construct: 40, full_scan_threshold: 20 } });
  assert.equal((await info()).status, 'green', 'nothing that graphs are built with has changed');
  assert.equal(await reindexed(), second);
  await changeTo({ hnsw_config: { m: 0 } }, 0);
  await changeTo({ hnsw_config: { m: 12 } }, POINTS);
});

test('a changed quantization has the codes made again while searches go on, and Disabled takes them away', {
  timeout: 60_000,
}, async (t) => {
  const random = seededRandom(8);
  const { client } = await nodeFor(t, { folder: await temporaryFolder(t) });
  await client.result('PUT', '/collections/c', {
    vectors: { size: DIM, distance: 'Cosine' },
    hnsw_config: { full_scan_threshold: 10 },
    optimizers_config: { indexing_threshold: 20 },
  });
  const points = Array.from({ length: POINTS }, (_, id) => ({ id, vector: Array.from({ length: DIM }, () => random.normal()) }));
  await client.result('PUT', '/collections/c/points?wait=true', { points });
  await untilIndexed(client, 'c', POINTS);

  const query = points[3]?.vector;
  const scores = async (quantization: object) => {
    const params = { hnsw_ef: 100, quantization };
    const found = await client.result<{ points: ScoredPoint[] }>('POST', '/collections/c/points/query', { query, limit: 10, params });
    return found.points.map(({ score }) => score);
  };
  const info = () => client.result<CollectionInfo>('GET', '/collections/c');
  const exact = await scores({});
  for (const setting of [{ turbo: { bits: 'bits2' } }, { product: { compression: 'x8' } }, { binary: {} }, { scalar: { type: 'int8' } }]) {
    await client.result('PATCH', '/collections/c', { quantization_config: setting });
    assert.equal((await info()).status, 'yellow', JSON.stringify(setting));
    await until(info, ({ status }) => status === 'green');
    assert.equal((await info()).indexed_vectors_count, POINTS);
    assert.notDeepEqual(await scores({ rescore: false }), exact, JSON.stringify(setting));
    assert.deepEqual(await scores({ oversampling: 40 }), exact);
  }
  await client.result('PATCH', '/collections/c', { quantization_config: { scalar: { type: 'int8', always_ram: true } } });
  assert.equal((await info()).status, 'green', 'nothing that codes are made by has changed');
  await client.result('PATCH', '/collections/c', { quantization_config: 'Disabled' });
  await until(info, ({ status }) => status === 'green');
  assert.deepEqual(await scores({ rescore: false }), exact);
});

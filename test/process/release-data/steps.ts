/** What the recorded data of a release hold: the requests that wrote them, and the reads that must find all of it. */

import assert from 'node:assert/strict';
import type { RestClient } from '../../../ops/rest-client.js';
import { until, untilIndexed } from '../support.js';

const DIM = 16;
/** Enough that a graph is built from the threshold below on. */
const POINTS = 400;
const BATCH = 100;
const INDEXING_THRESHOLD_KB = 10;
/** Written after the graph was built, so it stays outside of it. */
const LATE_ID = 1000;
const DELETED_ID = 7;

/** Small whole numbers: exact in every type of element. */
function vectorOf(id: number): number[] {
  return Array.from({ length: DIM }, (_, at) => ((id * 31 + at * 17) % 23) - 11);
}

function pointOf(id: number): object {
  return {
    id,
    vector: { dense: vectorOf(id), words: { indices: [id % 50, 60], values: [1, 0.5] } },
    payload: { n: id, group: `g${id % 10}`, place: { lon: (id % 360) - 180, lat: (id % 180) - 90 }, nested: { list: [id, 'x'] } },
  };
}

/** Writes what `checkData` expects, and waits until its index is built. */
export async function writeData(client: RestClient): Promise<void> {
  await client.result('PUT', '/collections/points', {
    vectors: { dense: { size: DIM, distance: 'Euclid' } },
    sparse_vectors: { words: {} },
    shard_number: 2,
    optimizers_config: { indexing_threshold: INDEXING_THRESHOLD_KB },
  });
  for (const [field_name, field_schema] of [
    ['n', 'integer'],
    ['group', 'keyword'],
    ['place', 'geo'],
  ]) {
    await client.result('PUT', '/collections/points/index?wait=true', { field_name, field_schema });
  }
  for (let from = 0; from < POINTS; from += BATCH) {
    const points = Array.from({ length: BATCH }, (_, i) => pointOf(from + i));
    await client.result('PUT', '/collections/points/points?wait=true', { points });
  }
  await client.result('POST', '/collections/aliases', { actions: [{ create_alias: { collection_name: 'points', alias_name: 'alias' } }] });
  await untilIndexed(client, 'points', POINTS / 2);
  await client.result('PUT', '/collections/points/points?wait=true', { points: [pointOf(LATE_ID)] });
  await client.result('POST', '/collections/points/points/delete?wait=true', { points: [DELETED_ID] });
  await client.result('POST', '/collections/points/points/payload?wait=true', { payload: { changed: true }, points: [1, LATE_ID] });
}

/** The same for a node of a cluster: a shard key besides. */
export async function writeKeyedData(client: RestClient): Promise<void> {
  await client.result('PUT', '/collections/keyed', { vectors: { size: 2, distance: 'Dot' }, sharding_method: 'custom' });
  await client.result('PUT', '/collections/keyed/shards', { shard_key: 'east' });
  await client.result('PUT', '/collections/keyed/points?wait=true', { points: [{ id: 1, vector: [1, 2] }], shard_key: 'east' });
}

export async function checkData(client: RestClient): Promise<void> {
  await until(
    () => client.result<{ status: string }>('GET', '/collections/points'),
    ({ status }) => status === 'green',
  );
  const count = async (filter?: object): Promise<number> =>
    (await client.result<{ count: number }>('POST', '/collections/alias/points/count', { filter, exact: true })).count;
  assert.equal(await count(), POINTS);
  assert.equal(await count({ must: [{ key: 'group', match: { value: 'g3' } }] }), POINTS / 10);
  assert.equal(await count({ must: [{ key: 'changed', match: { value: true } }] }), 2);
  assert.equal(await count({ must: [{ key: 'n', range: { gte: 100, lt: 200 } }] }), 100);
  const { status } = await client.call('GET', `/collections/points/points/${DELETED_ID}`);
  assert.equal(status, 404);
  for (const id of [0, 1, 399, LATE_ID]) {
    const point = await client.result<{ vector: { dense: number[] }; payload: { n: number; nested: unknown } }>(
      'GET',
      `/collections/points/points/${id}`,
    );
    assert.deepEqual(point.vector.dense, vectorOf(id));
    assert.deepEqual([point.payload.n, point.payload.nested], [id, { list: [id, 'x'] }]);
    const nearest = await client.result<{ points: { id: number; score: number }[] }>('POST', '/collections/points/points/query', {
      query: vectorOf(id),
      using: 'dense',
      limit: 400,
    });
    assert.ok(
      nearest.points.some((found) => found.id === id && found.score === 0),
      `point ${id} is not nearest to its own vector`,
    );
  }
  const sparse = await client.result<{ points: { id: number }[] }>('POST', '/collections/points/points/query', {
    query: { indices: [3], values: [1] },
    using: 'words',
    limit: 100,
  });
  assert.equal(sparse.points.length, POINTS / 50);
  // Writes go on where they had ended.
  await client.result('PUT', '/collections/points/points?wait=true', { points: [pointOf(LATE_ID + 1)] });
  assert.equal(await count(), POINTS + 1);
}

export async function checkKeyedData(client: RestClient): Promise<void> {
  const { points } = await client.result<{ points: { id: number }[] }>('POST', '/collections/keyed/points/scroll', { shard_key: 'east' });
  assert.deepEqual(
    points.map(({ id }) => id),
    [1],
  );
  await client.result('PUT', '/collections/keyed/shards', { shard_key: 'west' });
}

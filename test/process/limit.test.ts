/**
 * As many results as `limit` asks for, whenever that many points match: at every selectivity of the filter, with and
 * without an index on its field, with deleted points and points without the vector, while points lie in appendable
 * segments, in sealed ones, in both, and while segments are built. Repeat a run with TROUPE_SEED=<seed>.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type RandomNumbers, seededRandom } from '../../ops/random.js';
import type { RestClient } from '../../ops/rest-client.js';
import { testSeed } from '../seed.js';
import { type CollectionInfo, nodeFor, type ScoredPoint, temporaryFolder, untilIndexed } from './support.js';

const DIM = 16;
const FIRST_POINTS = 5000;
const MORE_POINTS = 400;
/** Values of the filtered fields: a filter takes those below a share of them. */
const VALUES = 1000;
/**
 * Points lie in clusters far apart, and each cluster has values of its own: so what a filter takes often lies where a
 * walk to the query doesn't come, in a graph of few links.
 */
const CLUSTERS = 25;
const LINKS = 4;
const SELECTIVITIES = [0.001, 0.01, 0.1, 0.5, 1];
const LIMITS = [1, 10, 150];
const FIELDS = ['indexed', 'plain'];
const VECTORS = ['all', 'some'];

interface ModelPoint {
  readonly id: number;
  readonly value: number;
  readonly vector: { readonly all: number[]; readonly some?: number[] };
}

type Model = Map<number, ModelPoint>;

test('a search gives as many points as its limit asks for when that many match', { timeout: 60_000 }, async (t) => {
  const seed = testSeed();
  t.diagnostic(`TROUPE_SEED=${seed}`);
  const random = seededRandom(seed);
  const { client } = await nodeFor(t, { folder: await temporaryFolder(t) });
  await client.result('PUT', '/collections/c', {
    vectors: { all: { size: DIM, distance: 'Euclid' }, some: { size: DIM, distance: 'Cosine' } },
    hnsw_config: { m: LINKS, full_scan_threshold: 10 },
    optimizers_config: { indexing_threshold: 50, deleted_threshold: 0.9 },
  });
  await client.result('PUT', '/collections/c/index?wait=true', { field_name: 'indexed', field_schema: 'integer' });
  const model: Model = new Map();

  await upsert(client, model, 0, FIRST_POINTS, random);
  const rounds = await checkWhileBuilding(client, model, random);
  t.diagnostic(`${rounds} rounds of searches while the first segment was built`);
  await checkAll(client, model, random);

  // Points of the sealed segment change, go, and come to an appendable one beside it.
  await upsert(client, model, FIRST_POINTS - MORE_POINTS / 2, MORE_POINTS, random);
  await remove(client, model, 0.3, random);
  await checkAll(client, model, random);
  // Nearly nothing of the sealed segment is left.
  await remove(client, model, 0.7, random);
  await checkAll(client, model, random);

  await client.result('PATCH', '/collections/c', { hnsw_config: { m: 6 }, optimizers_config: { deleted_threshold: 0.2 } });
  await checkWhileBuilding(client, model, random);
  await checkAll(client, model, random);
});

async function upsert(client: RestClient, model: Model, firstId: number, count: number, random: RandomNumbers): Promise<void> {
  const points = Array.from({ length: count }, (_, at): ModelPoint => {
    const value = random.integer(VALUES);
    const some = random.integer(3) > 0 ? { some: vectorNear(value, random) } : {};
    return { id: firstId + at, value, vector: { all: vectorNear(value, random), ...some } };
  });
  const body = points.map(({ id, value, vector }) => ({ id, vector, payload: { indexed: value, plain: value } }));
  await client.result('PUT', '/collections/c/points?wait=true', { points: body });
  for (const point of points) model.set(point.id, point);
}

/** A vector in the cluster of a value. */
function vectorNear(value: number, random: RandomNumbers): number[] {
  const centre = seededRandom(Math.floor((value * CLUSTERS) / VALUES));
  return Array.from({ length: DIM }, () => centre.normal() * 20 + random.normal());
}

async function remove(client: RestClient, model: Model, share: number, random: RandomNumbers): Promise<void> {
  const ids = [...model.keys()].filter(() => random.unit() < share);
  await client.result('POST', '/collections/c/points/delete?wait=true', { points: ids });
  for (const id of ids) model.delete(id);
}

/** Searches until the collection is green. How many rounds that took. */
async function checkWhileBuilding(client: RestClient, model: Model, random: RandomNumbers): Promise<number> {
  let rounds = 0;
  for (; ; rounds++) {
    const { status } = await client.result<CollectionInfo>('GET', '/collections/c');
    if (status === 'green') break;
    for (const field of FIELDS) await check(client, model, { random, field, selectivity: 0.02, limit: 30, vector: 'all' });
  }
  await untilIndexed(client, 'c', 1);
  return rounds;
}

async function checkAll(client: RestClient, model: Model, random: RandomNumbers): Promise<void> {
  const cases = VECTORS.flatMap((vector) =>
    FIELDS.flatMap((field) =>
      SELECTIVITIES.flatMap((selectivity) => LIMITS.map((limit) => ({ random, vector, field, selectivity, limit }))),
    ),
  );
  for (const one of cases) await check(client, model, one);
}

interface Case {
  readonly random: RandomNumbers;
  readonly vector: string;
  readonly field: string;
  readonly selectivity: number;
  readonly limit: number;
}

async function check(client: RestClient, model: Model, { random, vector, field, selectivity, limit }: Case): Promise<void> {
  const below = Math.max(1, Math.round(VALUES * selectivity));
  const matches = [...model.values()].filter((point) => point.value < below && (vector === 'all' || point.vector.some !== undefined));
  const ids = new Set(matches.map(({ id }) => id));
  const query = vectorNear(random.integer(VALUES), random);
  const offset = random.integer(3) === 0 ? random.integer(20) : 0;
  const filter = below === VALUES ? undefined : { must: [{ key: field, range: { lt: below } }] };
  const { points } = await client.result<{ points: ScoredPoint[] }>('POST', '/collections/c/points/query', {
    query,
    using: vector,
    limit,
    offset,
    filter,
    params: { hnsw_ef: random.integer(3) === 0 ? 4 : 64 },
  });
  const shown = `${vector}, ${field} < ${below}: ${matches.length} match, limit ${limit}, offset ${offset}`;
  assert.equal(points.length, Math.max(0, Math.min(limit, matches.length - offset)), shown);
  assert.equal(new Set(points.map(({ id }) => id)).size, points.length, `${shown}: a point came twice`);
  for (const { id } of points) assert.ok(ids.has(Number(id)), `${shown}: ${id} does not match`);
}

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type Filter, type Point, type ReadOptions, type ScoredPoint, StorageInUse, Troupe, TroupeError } from 'troupe';

let base: string;

before(async () => {
  base = await mkdtemp(join(tmpdir(), 'troupe-in-process-'));
});
after(() => rm(base, { recursive: true, force: true }));

const SETTINGS = { storage: { performance: { max_search_threads: 1 }, update_concurrency: 1 } };
const VECTORS = { vectors: { size: 2, distance: 'Dot' } } as const;

async function open(name: string): Promise<Troupe> {
  return Troupe.open({ path: join(base, name), settings: SETTINGS, logLine: () => {} });
}

test('what is written is there, for queries, under an alias and after the folder is opened again', async () => {
  const first = await open('again');
  assert.equal(await first.createCollection('c', { ...VECTORS, metadata: { from: 'here' } }), true);
  assert.equal(await first.updateAliases({ actions: [{ create_alias: { alias_name: 'a', collection_name: 'c' } }] }), true);
  const written = await first.upsert('a', {
    points: [
      { id: 1, vector: [1, 0.5], payload: { n: 1, ['__proto__']: 'data' } },
      { id: 2n ** 64n - 1n, vector: new Float32Array([2, 1]), payload: { n: 2 } },
    ],
  });
  assert.equal(written.status, 'completed');
  assert.equal((await first.createFieldIndex('c', { field_name: 'n', field_schema: 'integer' })).status, 'completed');
  const found = await first.query('a', { query: new Float32Array([1, 1]), filter: { must: { key: 'n', range: { gt: 1 } } } });
  assert.deepEqual(
    found.points.map(({ id, score }) => [id, score]),
    [[2n ** 64n - 1n, 3]],
  );
  await first.close();

  const second = await open('again');
  assert.deepEqual(await second.getCollections(), { collections: [{ name: 'c' }] });
  assert.deepEqual(await second.getAliases(), { aliases: [{ alias_name: 'a', collection_name: 'c' }] });
  assert.deepEqual((await second.getCollection('a')).config.metadata, { from: 'here' });
  assert.equal((await second.count('c')).count, 2);
  const point = await second.getPoint('c', 1);
  assert.deepEqual([point.vector, Object.entries(point.payload ?? {})], [[1, 0.5], Object.entries({ n: 1, ['__proto__']: 'data' })]);
  assert.equal((await second.createVectorName('c', 'words', { sparse: { modifier: 'idf' } })).status, 'completed');
  assert.deepEqual(Object.keys((await second.getCollection('c')).config.params.sparse_vectors ?? {}), ['words']);
  assert.equal((await second.delete('c', { points: [1] }, { wait: false })).status, 'acknowledged');
  assert.equal(await second.deleteCollection('c'), true);
  await second.close();
});

test('a lookup finds its collection by an alias with any characters, for readers that were there before it', async () => {
  const troupe = await open('lookup');
  await troupe.createCollection('c', VECTORS);
  await troupe.createCollection('other', VECTORS);
  await troupe.upsert('c', { points: [1, 2].map((id) => ({ id, vector: [id, 1] })) });
  await troupe.upsert('other', { points: [{ id: 9, vector: [1, 0] }] });
  const lookup = { query: 9, lookup_from: { collection: 'o/б 1' }, limit: 1 };
  await assert.rejects(troupe.query('c', lookup), { code: 'notFound' });
  await troupe.updateAliases({ actions: [{ create_alias: { alias_name: 'o/б 1', collection_name: 'other' } }] });
  assert.deepEqual(
    (await troupe.query('c', lookup)).points.map(({ id }) => id),
    [2],
  );
  await troupe.close();
});

test('errors are those of the REST API', async () => {
  const troupe = await open('errors');
  const code = async (run: Promise<unknown>) =>
    run.then(
      () => 'none',
      (error: unknown) => (error instanceof TroupeError ? error.code : String(error)),
    );
  assert.equal(await code(troupe.getCollection('nope')), 'notFound');
  assert.equal(await code(troupe.query('nope', { query: [1] })), 'notFound');
  assert.equal(await code(troupe.createCollection('a/b', VECTORS)), 'invalidPath');
  await troupe.createCollection('c', VECTORS);
  assert.equal(await code(troupe.createCollection('c', VECTORS)), 'conflict');
  assert.equal(await code(troupe.upsert('c', { points: [{ id: 1, vector: [1, 2, 3] }] })), 'wrongInput');
  assert.equal(await code(troupe.upsert('c', { points: [{ id: -1, vector: [1, 2] }] })), 'malformedBody');
  assert.equal(await code(troupe.count('c', {}, { timeout: 0 })), 'malformedParameter');
  await troupe.close();
  assert.equal(await code(troupe.count('c')), 'unavailable');
});

test('an open folder is not opened a second time, and a closed one is', async () => {
  const first = await open('twice');
  await assert.rejects(open('twice'), StorageInUse);
  await first.close();
  await (await open('twice')).close();
});

test('settings that cannot be used are refused by name and leave the folder free', async () => {
  const path = join(base, 'settings');
  await assert.rejects(Troupe.open({ path, settings: { storage: { max_collections: 'x' } } }), /storage\.max_collections/);
  await assert.rejects(Troupe.open({ path, settings: { cluster: { enabled: true } } }), /cluster\.enabled/);
  await (await Troupe.open({ path, settings: SETTINGS })).close();
});

interface City {
  name: string;
  people?: number;
}

test('payloads of an interface go in and come out with its type, and points are read one after the other', async () => {
  await using troupe = await Troupe.open({ path: ':memory:', settings: SETTINGS, logLine: () => {} });
  assert.deepEqual([await troupe.ensureCollection('c', VECTORS), await troupe.ensureCollection('c', VECTORS)], [true, false]);
  const cities: Point<City>[] = Array.from({ length: 7 }, (_, id) => ({
    id,
    vector: [id, 1],
    payload: { name: `city ${id}`, people: id },
  }));
  await troupe.upsert<City>('c', { points: cities });
  const filter: Filter = { must: [{ key: 'people', range: { gte: 2 } }] };
  const names: string[] = [];
  for await (const { payload } of troupe.points<City>('c', { filter, batch: 2 })) names.push(payload?.name ?? '');
  assert.deepEqual(names, ['city 2', 'city 3', 'city 4', 'city 5', 'city 6']);
  const { points } = await troupe.query<City>('c', { query: [1, 0], limit: 1, with_payload: true });
  const best: ScoredPoint<City> | undefined = points[0];
  assert.equal(best?.payload?.people, 6);
});

test('every kind of read tells whoever listens how it was carried out', async (t) => {
  const troupe = await open('explained');
  t.after(() => troupe.close());
  await troupe.createCollection('c', VECTORS);
  await troupe.createFieldIndex('c', { field_name: 'kind', field_schema: 'keyword' });
  const points = Array.from({ length: 30 }, (_, id) => ({ id, vector: [1, id], payload: { kind: `k${id % 3}` } }));
  await troupe.upsert('c', { points });
  const told: string[] = [];
  const options: ReadOptions = {
    explained: ({ operation, shards, summary }) => {
      const found = shards.flatMap(({ segments }) => segments.flatMap(({ searches }) => searches.map((search) => search.found)));
      told.push(`${operation}: ${summary}; found ${Math.max(0, ...found)}`);
    },
  };
  const vector = [1, 2];
  const context = [{ positive: 1, negative: 2 }];
  await troupe.query('c', { query: vector, limit: 3 }, options);
  await troupe.query('c', { query: { nearest: vector, mmr: { diversity: 0.5 } }, limit: 2 }, options);
  await troupe.query('c', { query: { sample: 'random' }, limit: 3 }, options);
  await troupe.queryBatch('c', { searches: [{ query: vector, limit: 3 }] }, options);
  await troupe.queryGroups('c', { query: vector, group_by: 'kind', limit: 3, group_size: 1 }, options);
  await troupe.search('c', { vector, limit: 3 }, options);
  await troupe.searchBatch('c', { searches: [{ vector, limit: 3 }] }, options);
  await troupe.searchGroups('c', { vector, group_by: 'kind', limit: 3, group_size: 1 }, options);
  await troupe.searchMatrixPairs('c', { sample: 4, limit: 1 }, options);
  await troupe.searchMatrixOffsets('c', { sample: 4, limit: 1 }, options);
  await troupe.recommend('c', { positive: [1], limit: 3 }, options);
  await troupe.recommendBatch('c', { searches: [{ positive: [1], limit: 3 }] }, options);
  await troupe.recommendGroups('c', { positive: [1], group_by: 'kind', limit: 3, group_size: 1 }, options);
  await troupe.discover('c', { target: 1, context, limit: 3 }, options);
  await troupe.discoverBatch('c', { searches: [{ target: 1, context, limit: 3 }] }, options);
  await troupe.scroll('c', { limit: 3 }, options);
  await troupe.count('c', {}, options);
  await troupe.facet('c', { key: 'kind' }, options);
  await troupe.retrieve('c', { ids: [1] }, options);
  await troupe.getPoint('c', 1, options);
  // A page of a scroll looks one point further.
  assert.deepEqual(told, [
    'query: scan; 1 shard; 30 rows scored; found 3',
    'query: scan, pairs; 1 shard; 32 rows scored; found 2',
    'query: sample; 1 shard; found 3',
    'queryBatch: scan; 1 shard; 30 rows scored; found 3',
    'queryGroups: scan; 1 shard; 30 rows scored; found 3',
    'search: scan; 1 shard; 30 rows scored; found 3',
    'searchBatch: scan; 1 shard; 30 rows scored; found 3',
    'searchGroups: scan; 1 shard; 30 rows scored; found 3',
    'matrixPairs: sample, pairs × 4; 1 shard; 16 rows scored; found 4',
    'matrixOffsets: sample, pairs × 4; 1 shard; 16 rows scored; found 4',
    'recommend: scan; 1 shard; 29 rows scored; found 3',
    'recommendBatch: scan; 1 shard; 29 rows scored; found 3',
    'recommendGroups: scan; 1 shard; 29 rows scored; found 3',
    // The target is one of the pair, too: two points are compared with 28 rows.
    'discover: examples; 1 shard; 56 rows scored; found 3',
    'discoverBatch: examples; 1 shard; 56 rows scored; found 3',
    'scroll: list; 1 shard; found 4',
    'count: count; 1 shard; found 30',
    'facet: facet_payloads; 1 shard; found 30',
    'retrieve: points by id; 1 shard; found 0',
    'getPoint: points by id; 1 shard; found 0',
  ]);
});

test('an error names the line of the program that called', async () => {
  await using troupe = await Troupe.open({ path: ':memory:', settings: SETTINGS, logLine: () => {} });
  await troupe.createCollection('c', VECTORS);
  const error = await troupe.query('c', { query: [1, 2, 3] }).then(
    () => null,
    (reason: Error) => reason,
  );
  assert.match(error?.stack ?? '', /^TroupeError: [\s\S]*troupe\.test\./);
});

test('doors that a program opens answer as a server does, keep out strangers where there is a key, and close with it', async () => {
  const path = join(base, 'doors');
  const settings = { ...SETTINGS, service: { api_key: 'a-key-for-the-doors' } };
  const troupe = await Troupe.open({ path, settings, logLine: () => {} });
  await troupe.createCollection('c', VECTORS);
  const doors = await troupe.listen({ grpcPort: 0 });
  assert.ok(doors.grpcPort !== null && doors.grpcPort > 0);
  const answer = async (headers: Record<string, string>) => (await fetch(`${doors.url}/collections`, { headers })).json();
  assert.deepEqual(((await answer({ 'api-key': 'a-key-for-the-doors' })) as { result: unknown }).result, { collections: [{ name: 'c' }] });
  assert.equal((await fetch(`${doors.url}/collections`)).status, 401);
  await troupe.close();
  await assert.rejects(fetch(`${doors.url}/healthz`));
  await assert.rejects(troupe.listen(), { code: 'unavailable' });
});

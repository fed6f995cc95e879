/** Collections with everything that they can have, saved and restored on a node of its own: points, searches and settings come back equal. */

import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { seededRandom } from '../../../ops/random.js';
import type { RestClient } from '../../../ops/rest-client.js';
import { testSeed } from '../../seed.js';
import { type NodeUnderTest, nodeFor, temporaryFolder, untilIndexed } from '../support.js';
import { contentOf, download, type ShownSnapshot, sha256Of, upload } from './support.js';

const POINTS = 3000;
const DIM = 16;

const CONFIG = {
  vectors: {
    plain: { size: DIM, distance: 'Cosine' },
    coded: { size: DIM, distance: 'Euclid', quantization_config: { scalar: { type: 'int8', always_ram: true } } },
    bits: { size: 64, distance: 'Dot', quantization_config: { binary: {} } },
    parts: { size: DIM, distance: 'Euclid', quantization_config: { product: { compression: 'x16', always_ram: true } } },
    turned: { size: DIM, distance: 'Cosine', quantization_config: { turbo: { bits: 'bits2', always_ram: true } } },
    filed: { size: DIM, distance: 'Manhattan', on_disk: true, datatype: 'float16' },
    many: { size: 4, distance: 'Cosine', multivector_config: { comparator: 'max_sim' } },
  },
  sparse_vectors: { terms: { modifier: 'idf' } },
  shard_number: 2,
  optimizers_config: { indexing_threshold: 20, default_segment_number: 2, prevent_unoptimized: true },
  strict_mode_config: {
    enabled: true,
    unindexed_filtering_retrieve: false,
    max_query_limit: 1000,
    max_points_count: 10_000,
    search_max_hnsw_ef: 200,
  },
  hnsw_config: { m: 12 },
  metadata: { owner: 'tests' },
};

const FIELDS: readonly (readonly [string, unknown])[] = [
  ['word', 'keyword'],
  ['count', 'integer'],
  ['share', 'float'],
  ['flag', 'bool'],
  ['when', 'datetime'],
  ['id', 'uuid'],
  ['text', { type: 'text', tokenizer: 'word' }],
  ['place', 'geo'],
];

async function filled(client: RestClient): Promise<void> {
  await client.result('PUT', '/collections/all', CONFIG);
  for (const [field_name, field_schema] of FIELDS)
    await client.result('PUT', '/collections/all/index?wait=true', { field_name, field_schema });
  const random = seededRandom(testSeed());
  const vector = (size: number) => Array.from({ length: size }, () => random.normal());
  for (let from = 0; from < POINTS; from += 500) {
    const points = Array.from({ length: 500 }, (_, at) => {
      const id = from + at;
      const terms = [...new Set(Array.from({ length: 5 }, () => random.integer(200)))];
      return {
        id: id % 2 === 0 ? id : `00000000-0000-4000-8000-${String(id).padStart(12, '0')}`,
        vector: {
          plain: vector(DIM),
          coded: vector(DIM),
          bits: vector(64),
          parts: vector(DIM),
          turned: vector(DIM),
          ...(id % 3 === 0 ? {} : { filed: vector(DIM) }),
          many: Array.from({ length: 1 + (id % 3) }, () => vector(4)),
          terms: { indices: terms, values: terms.map(() => random.unit()) },
        },
        payload: {
          word: `w${id % 17}`,
          count: id,
          share: id / 7,
          flag: id % 2 === 0,
          when: new Date(Date.UTC(2026, 0, 1) + id * 60_000).toISOString(),
          id: `00000000-0000-4000-8000-${String(id).padStart(12, '0')}`,
          text: `point number ${id} of many`,
          place: { lat: (id % 180) - 90, lon: (id % 360) - 180 },
          nested: [{ deep: { value: id } }, null, 1.5],
        },
      };
    });
    // With `prevent_unoptimized` each one would wait for builds.
    await client.result('PUT', '/collections/all/points?wait=false', { points });
  }
  await client.result('POST', '/collections/all/points/delete?wait=true', {
    filter: { must: [{ key: 'count', range: { gte: 100, lt: 200 } }] },
  });
  await untilIndexed(client, 'all', 1);
}

/** Answers that say what the collection is and finds. */
async function answersOf(client: RestClient, collection: string): Promise<unknown> {
  const random = seededRandom(99);
  const vector = (size: number) => Array.from({ length: size }, () => random.normal());
  const filter = {
    must: [
      { key: 'word', match: { value: 'w3' } },
      { key: 'text', match: { text: 'many' } },
    ],
  };
  const queries = [
    { query: vector(DIM), using: 'plain' },
    { query: vector(DIM), using: 'coded' },
    { query: vector(64), using: 'bits', params: { quantization: { rescore: true, oversampling: 4 } } },
    { query: vector(DIM), using: 'filed' },
    { query: vector(DIM), using: 'parts', params: { quantization: { rescore: true, oversampling: 2 } } },
    { query: vector(DIM), using: 'parts', params: { quantization: { rescore: false } } },
    { query: vector(DIM), using: 'turned', params: { quantization: { rescore: false } } },
    { query: [vector(4), vector(4)], using: 'many' },
    { query: { indices: [1, 5, 9], values: [1, 0.5, 2] }, using: 'terms' },
    { query: vector(DIM), using: 'plain', filter },
  ];
  const path = `/collections/${collection}/points`;
  const info = await client.result<{ config: unknown; payload_schema: unknown; points_count: number }>('GET', `/collections/${collection}`);
  return {
    config: info.config,
    schema: info.payload_schema,
    points: info.points_count,
    found: await client.result('POST', `${path}/query/batch`, {
      searches: queries.map((query) => ({ ...query, limit: 20, with_payload: ['count'] })),
    }),
    filtered: await client.result('POST', `${path}/count`, {
      filter: { must: [{ key: 'place', geo_radius: { center: { lat: 0, lon: 0 }, radius: 5e6 } }] },
    }),
    facet: await client.result('POST', `/collections/${collection}/facet`, { key: 'word', limit: 20, exact: true }),
  };
}

/** The limits of strict mode come back, too. */
async function isRefused(client: RestClient, collection: string): Promise<void> {
  const path = `/collections/${collection}/points/scroll`;
  const unindexed = { filter: { must: [{ key: 'nested[].deep.value', match: { value: 1 } }] } };
  await assert.rejects(client.result('POST', path, unindexed), /nested/);
  await assert.rejects(client.result('POST', path, { limit: 1001 }), /1000/);
}

async function started(t: TestContext): Promise<{ readonly node: NodeUnderTest; readonly folder: string }> {
  const folder = await temporaryFolder(t);
  return { node: await nodeFor(t, { folder }), folder };
}

test('a collection with every kind of vector, index and payload comes back equal, by upload, from a file, from a URL, and at a start', async (t) => {
  const { folder, node } = await started(t);
  const { client, url } = node;
  await filled(client);
  const before = await answersOf(client, 'all');
  const content = await contentOf(client, 'all');
  const made = await client.result<ShownSnapshot>('POST', '/collections/all/snapshots');
  const archive = await download(url, `/collections/all/snapshots/${made.name}`);
  assert.equal(archive.length, made.size);
  assert.equal(sha256Of(archive), made.checksum);

  assert.equal(
    (await upload(url, `/collections/uploaded/snapshots/upload?priority=snapshot&checksum=${made.checksum}`, archive)).status,
    200,
  );
  const location = `${url}/collections/all/snapshots/${made.name}`;
  await client.result('PUT', '/collections/fetched/snapshots/recover', { location, priority: 'snapshot', checksum: made.checksum });
  const [kept] = (await readdir(join(folder, 'snapshots', 'all'))).filter((name) => name.endsWith('.snapshot'));
  const file = pathToFileURL(join(folder, 'snapshots', 'all', kept as string)).href;
  await client.result('PUT', '/collections/filed/snapshots/recover', { location: file, priority: 'snapshot' });
  for (const collection of ['uploaded', 'fetched', 'filed']) {
    assert.deepEqual(await answersOf(client, collection), before, collection);
    assert.deepEqual(await contentOf(client, collection), content, collection);
    await isRefused(client, collection);
  }

  await client.result('POST', '/collections/all/points/delete?wait=true', { filter: {} });
  await client.result('PUT', '/collections/all/snapshots/recover', { location: file, priority: 'snapshot' });
  assert.deepEqual(await contentOf(client, 'all'), content, 'over a collection that exists');
  await client.result('PUT', '/collections/all/points?wait=true', { points: [{ id: 999_999, vector: {} }] });
  await node.end('SIGTERM');

  const again = await nodeFor(t, { folder });
  assert.equal((await contentOf(again.client, 'all')).length, content.length + 1, 'after a start');
  assert.deepEqual(await contentOf(again.client, 'uploaded'), content, 'after a start');
  assert.deepEqual(await readdir(join(folder, 'storage', 'temp')), []);
});

test('a snapshot that is taken while writes go on has every write that was acknowledged before, and each write whole', async (t) => {
  const { node } = await started(t);
  const { client } = node;
  await client.result('PUT', '/collections/busy', { vectors: { size: 2, distance: 'Dot' }, shard_number: 1 });
  const GROUP = 20;
  let acknowledged = 0;
  let ended = false;
  const write = async () => {
    for (let group = 0; !ended; group++) {
      const points = Array.from({ length: GROUP }, (_, at) => ({ id: group * GROUP + at, vector: [group, at], payload: { group } }));
      await client.result('PUT', '/collections/busy/points?wait=true', { points });
      acknowledged = group + 1;
    }
  };
  const writing = write();
  for (let round = 0; round < 4; round++) {
    while (acknowledged < 5 * (round + 1)) await new Promise((resolve) => setImmediate(resolve));
    const before = acknowledged;
    const { name } = await client.result<ShownSnapshot>('POST', '/collections/busy/snapshots');
    const location = `${node.url}/collections/busy/snapshots/${name}`;
    await client.result('PUT', `/collections/copy${round}/snapshots/recover`, { location, priority: 'snapshot' });
    const points = (await contentOf(client, `copy${round}`)) as { payload: { group: number } }[];
    const groups = grouped(points);
    for (const [group, count] of groups) assert.equal(count, GROUP, `group ${group} of round ${round} is there in part`);
    assert.ok(groups.size >= before, `${groups.size} groups in round ${round}, ${before} were acknowledged before`);
  }
  ended = true;
  await writing;
});

function grouped(points: readonly { readonly payload: { readonly group: number } }[]): Map<number, number> {
  const counts = new Map<number, number>();
  for (const { payload } of points) counts.set(payload.group, (counts.get(payload.group) ?? 0) + 1);
  return counts;
}

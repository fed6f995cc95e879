/** Gathered reads on real readers: replicas of one pool stand for nodes. */

import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { TroupeError } from '../../../protocols/errors.js';
import type { ShardKey } from '../../../protocols/model/cluster.js';
import { noUsage } from '../../../protocols/model/usage.js';
import type { GatherAccess, GatherAsk } from '../../../storage/gather/access.js';
import { EnginePool } from '../../../storage/pool/pool.js';
import { ringOf, shardIndexOf } from '../../../storage/sharding/ring.js';
import type { RawRequest, ReadOperation } from '../../../storage/threads/messages.js';
import { configOf, randomOf } from '../engine/collection-fixture.js';
import { writeTo } from '../write.js';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'troupe-gather-'));
const DIM = 8;
const POINTS = 1600;
const config = configOf({ size: DIM, distance: 'Euclid' });
const multiConfig = configOf({ size: 3, distance: 'Euclid', multivector_config: { comparator: 'max_sim' } });
const keyedParams = { ...config.params, sharding_method: 'custom' as const };
/** Which shards each node has. */
const NODES = [[0, 1], [2], [3]];
const SHARDS = NODES.flat();
const KEYED = SHARDS.map((id) => ({ id, key: id < 2 ? 'north' : (7 as ShardKey) }));

const random = randomOf(11);
const points = Array.from({ length: POINTS }, (_, id) => ({
  id,
  vector: Array.from({ length: DIM }, () => random()),
  payload: { n: id, third: id % 3, text: `point ${id}`, years: [id % 50, 1000 + (id % 7)] },
}));
/** Points of one to four vectors. */
const multiPoints = Array.from({ length: 80 }, (_, id) => ({
  id,
  vector: Array.from({ length: 1 + (id % 4) }, () => [random(), random(), random()]),
}));
let pool: EnginePool;

before(async () => {
  pool = await EnginePool.start({ readers: 2, writers: 1, gathers: true });
  await Promise.all([open('one/0'), ...SHARDS.flatMap((shard) => [open(`many/${shard}`), open(`keyed/${shard}`)])]);
  await Promise.all(['multiOne/0', ...SHARDS.map((shard) => `multi/${shard}`)].map((key) => open(key, multiConfig)));
  const ring = ringOf(SHARDS);
  await write('multiOne/0', multiPoints);
  await write('one/0', points);
  for (const shard of SHARDS) {
    await write(
      `many/${shard}`,
      points.filter(({ id }) => ring.shards[shardIndexOf(ring, id)] === shard),
    );
    await write(
      `multi/${shard}`,
      multiPoints.filter(({ id }) => ring.shards[shardIndexOf(ring, id)] === shard),
    );
  }
  // Ids 0 to 9 are under both keys.
  const halves = { north: points.slice(0, 20), 7: [...points.slice(0, 10), ...points.slice(20, 40)] };
  for (const { id: shard, key } of KEYED) {
    const ringOfKey = ringOf(KEYED.filter((one) => one.key === key).map(({ id }) => id));
    await write(
      `keyed/${shard}`,
      halves[key as keyof typeof halves]
        .filter(({ id }) => ringOfKey.shards[shardIndexOf(ringOfKey, id)] === shard)
        .map((point) => ({ ...point, payload: { ...point.payload, of: key } })),
    );
  }
  pool.setShardKeys(new Map([['keyed', KEYED]]));
});

after(async () => {
  await pool.close();
  fs.rmSync(folder, { recursive: true, force: true });
});

async function open(key: string, as = config): Promise<void> {
  await pool.openReplica({ key, folder: path.join(folder, key), config: as }, null);
}

async function write(key: string, some: readonly object[]): Promise<void> {
  await writeTo(pool, 'upsertPoints', key, true, request({ points: some }));
  for (const field_name of ['third', 'years']) {
    await writeTo(pool, 'createFieldIndex', key, true, request({ field_name, field_schema: 'integer' }));
  }
}

function request(body: unknown, more: Partial<RawRequest> = {}): RawRequest {
  return { path: {}, query: {}, body: Buffer.from(JSON.stringify(body)), deadlineMs: Date.now() + 20_000, ...more };
}

type Scatter = GatherAccess['scatter'];

function scatterOver(collection: string): Scatter {
  return async ({ shards, body }) => {
    const groups = NODES.map((node) => node.filter((shard) => shards === null || shards.includes(shard))).filter(
      ({ length }) => length > 0,
    );
    const answers = groups.map((group) =>
      pool.portion(
        group.map((shard) => `${collection}/${shard}`),
        body,
        Date.now() + 20_000,
      ),
    );
    return (await Promise.all(answers)).map((answer) => answer.body);
  };
}

function access(collection: string, scatter: Scatter = scatterOver(collection)): GatherAccess {
  const keyed = collection === 'keyed';
  const place = {
    uid: 1,
    params: keyed ? keyedParams : collection === 'multi' ? multiConfig.params : config.params,
    shards: keyed ? KEYED : SHARDS.map((id) => ({ id, key: null })),
  };
  return { place, locate: () => assert.fail('nothing is looked up'), scatter };
}

const decode = (bytes: Uint8Array) => JSON.parse(new TextDecoder().decode(bytes));

async function gather(operation: ReadOperation, body: unknown, of = access('many'), more: Partial<RawRequest> = {}) {
  return decode(await pool.gather(operation, request(body, more), of));
}

/** Versions are numbers of each shard's own. */
function unversioned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(unversioned);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).flatMap(([key, one]) => (key === 'version' ? [] : [[key, unversioned(one)]])));
}

function failsWith(promise: Promise<unknown>, code: string, detail?: string): Promise<void> {
  return assert.rejects(promise, (error: unknown) => {
    assert.ok(error instanceof TroupeError, String(error));
    assert.equal(error.code, code);
    if (detail !== undefined) assert.equal(error.detail, detail);
    return true;
  });
}

const PROBE = Array.from({ length: DIM }, () => 0.5);
const prefetch = { query: PROBE, limit: 60 };

const SAME: readonly (readonly [string, ReadOperation, object])[] = [
  ['a page far behind the first', 'query', { query: PROBE, limit: 5, offset: 300, with_payload: true, with_vector: true }],
  [
    'diversity among more candidates than are compared at once',
    'query',
    { query: { nearest: PROBE, mmr: { candidates_limit: 1500, diversity: 0.7 } }, limit: 12, offset: 3, with_payload: ['n'] },
  ],
  ['diversity of what prefetches found', 'query', { prefetch, query: { nearest: 5, mmr: {} }, limit: 8, with_payload: true }],
  [
    'a fusion of fusions',
    'query',
    { prefetch: [{ prefetch: [prefetch, { query: 9 }], query: { fusion: 'dbsf' }, limit: 30 }, prefetch], query: { fusion: 'rrf' } },
  ],
  ['a formula over prefetches', 'query', { prefetch, query: { formula: { sum: ['$score', { mult: [0.01, 'n'] }] } }, with_payload: ['n'] }],
  ['a search among what prefetches found', 'query', { prefetch: { query: { order_by: 'third' }, limit: 50 }, query: PROBE, limit: 50 }],
  [
    'an order, page by page',
    'query',
    { query: { order_by: { key: 'third', direction: 'desc' } }, limit: 40, offset: 30, with_payload: true },
  ],
  ['the whole collection in id order', 'scroll', { limit: 5000, with_payload: ['n'] }],
  ['a page from an id on', 'scroll', { limit: 7, offset: 800, filter: { must: [{ key: 'third', match: { value: 1 } }] } }],
  ['groups of a key with an index', 'queryGroups', { query: PROBE, group_by: 'third', limit: 3, group_size: 20, with_payload: ['n'] }],
  ['groups of a key without one', 'queryGroups', { query: PROBE, group_by: 'text', limit: 30, group_size: 2 }],
  [
    'groups of what prefetches found',
    'queryGroups',
    { prefetch: [prefetch, { query: 3 }], query: { fusion: 'rrf' }, group_by: 'third', limit: 3 },
  ],
  [
    'groups of an order that repeats points',
    'queryGroups',
    { query: { order_by: 'years' }, group_by: 'third', limit: 3, group_size: 700, with_payload: ['n'] },
  ],
  [
    'an order that repeats points, in prefetches',
    'query',
    { prefetch: { query: { order_by: 'years' }, limit: 3000 }, query: { fusion: 'rrf' }, limit: 50 },
  ],
  ['examples', 'recommend', { positive: [1, 2], negative: [3], strategy: 'sum_scores', limit: 20 }],
];

for (const [what, operation, body] of SAME) {
  test(`${what}: shards of several nodes answer what one shard does`, async () => {
    assert.deepEqual(unversioned(await gather(operation, body)), unversioned(decode(await pool.read(operation, ['one/0'], request(body)))));
  });
}

test('diversity of multivectors: shards of several nodes answer what one shard does', async () => {
  const body = { query: { nearest: [[0.5, 0.5, 0.5]], mmr: { candidates_limit: 60, diversity: 0.4 } }, limit: 20 };
  const one = decode(await pool.read('query', ['multiOne/0'], request(body)));
  assert.deepEqual(unversioned(await gather('query', body, access('multi'))), unversioned(one));
});

test('all queries of a batch are asked together, in parts that several readers can work on', async () => {
  const bodies: number[] = [];
  const over = scatterOver('many');
  const counted = access('many', (ask) => {
    bodies.push(ask.body.byteLength);
    return over(ask);
  });
  const searches = points.slice(0, 100).map(({ vector }) => ({ query: vector, limit: 1 }));
  const lists: { points: { id: number }[] }[] = await gather('queryBatch', { searches }, counted);
  assert.deepEqual(
    lists.map((list) => list.points[0]?.id),
    points.slice(0, 100).map(({ id }) => id),
  );
  assert.equal(bodies.length, 4);
});

test('points are asked for by id of the shards that have them', async () => {
  const asked: GatherAsk[] = [];
  const over = scatterOver('many');
  await gather(
    'retrieve',
    { ids: [5] },
    access('many', (ask) => {
      asked.push(ask);
      return over(ask);
    }),
  );
  const ring = ringOf(SHARDS);
  assert.deepEqual(
    asked.map(({ shards }) => shards),
    [[ring.shards[shardIndexOf(ring, 5)]]],
  );
});

test('a point that is gone before what is shown of it was asked for is left out', async () => {
  const over = scatterOver('many');
  let round = 0;
  const body = { prefetch: [prefetch], query: { fusion: 'rrf' }, limit: 5, with_payload: true };
  const before: { points: { id: number; payload: object }[] } = await gather('query', body);
  const gone = before.points[1]?.id as number;
  const ring = ringOf(SHARDS);
  const home = `many/${ring.shards[shardIndexOf(ring, gone)]}`;
  const found: typeof before = await gather(
    'query',
    body,
    access('many', async (ask) => {
      if (++round === 2) await writeTo(pool, 'deletePoints', home, true, request({ points: [gone] }));
      return over(ask);
    }),
  );
  assert.deepEqual(
    found.points,
    before.points.filter(({ id }) => id !== gone),
  );
  await write(home, [points[gone] as object]);
});

test('what the main thread cannot ask is what the read answers', async () => {
  const refusing = access('many', () => Promise.reject(new TroupeError('unavailable', 'shard 2 has no replica')));
  await failsWith(gather('query', { query: PROBE }, refusing), 'unavailable', 'shard 2 has no replica');
});

test('a read that waits for nodes ends at its deadline, and others go on', async () => {
  const silent = access('many', () => new Promise(() => {}));
  const ended = failsWith(gather('query', { query: PROBE }, silent, { deadlineMs: Date.now() + 50 }), 'timeout');
  assert.deepEqual(await gather('count', {}), { count: POINTS });
  await ended;
  assert.equal(pool.depths().workers.find(({ kind }) => kind === 'gather')?.depth, 0);
});

test('a mistake is the same error as on one shard', async () => {
  for (const body of [
    { query: [1, 2] },
    { query: PROBE, using: 'x' },
    { query: 99_999 },
    { query: { order_by: 'n' } },
    { query: PROBE, with_vector: ['x'] },
  ]) {
    const alone = await pool.read('query', ['one/0'], request(body)).catch((error: TroupeError) => error);
    assert.ok(alone instanceof TroupeError);
    await failsWith(gather('query', body), alone.code, alone.detail);
  }
});

const BY_KEY: readonly (readonly [ReadOperation, object])[] = [
  ['count', {}],
  ['count', { shard_key: 'north' }],
  ['count', { shard_key: ['north', 7] }],
  ['count', { shard_key: { target: 7, fallback: 'north' } }],
  ['scroll', { limit: 100, with_payload: true }],
  ['scroll', { limit: 100, shard_key: 7, with_payload: true }],
  ['retrieve', { ids: [3, 25, 12], with_payload: true }],
  ['retrieve', { ids: [3, 25, 12], shard_key: 7, with_payload: true }],
  ['query', { query: PROBE, limit: 30, shard_key: 7, with_payload: true }],
  ['query', { query: 3, limit: 30, shard_key: 'north', with_payload: true }],
  ['query', { prefetch: [{ query: PROBE }, { query: 3 }], query: { fusion: 'rrf' }, limit: 10, shard_key: 7, with_payload: true }],
  [
    'queryBatch',
    {
      searches: [
        { query: PROBE, shard_key: 7 },
        { query: PROBE, shard_key: 'north' },
      ],
    },
  ],
  ['queryGroups', { query: PROBE, group_by: 'third', limit: 3, shard_key: 7, with_payload: true }],
  ['facet', { key: 'third', shard_key: 'north' }],
];

for (const [operation, body] of BY_KEY) {
  test(`shards are chosen by their keys as on one node: ${operation} ${JSON.stringify(body)}`, async () => {
    const keys = SHARDS.map((shard) => `keyed/${shard}`);
    const alone = decode(await pool.read(operation, keys, request(body)));
    assert.deepEqual(unversioned(await gather(operation, body, access('keyed'))), unversioned(alone));
  });
}

test('a key that no shard has is refused as on one node', async () => {
  const body = { shard_key: 'south' };
  const keys = SHARDS.map((shard) => `keyed/${shard}`);
  const alone = await pool.read('count', keys, request(body)).catch((error: TroupeError) => error);
  assert.ok(alone instanceof TroupeError);
  await failsWith(gather('count', body, access('keyed')), alone.code, alone.detail);
});

test('a small read, which is merged in this thread, has the first points of a large one, which the gather thread merges', async () => {
  const few = await gather('query', { query: PROBE, limit: 64, with_payload: true });
  const many = await gather('query', { query: PROBE, limit: 65, with_payload: true });
  assert.deepEqual(few.points, many.points.slice(0, 64));
});

test('a read over nodes leaves counting what it costs to the main thread', async () => {
  const usage = noUsage();
  await gather('query', { query: PROBE }, access('many'), { usage });
  assert.deepEqual(usage, noUsage());
});

test('an explained read has the shards of all nodes, round by round, and one advice of all for a field', async () => {
  const prefetch = { query: points[0]?.vector, limit: 30, filter: { must: [{ key: 'n', range: { gte: 100 } }] } };
  const body = { prefetch, query: points[1]?.vector, limit: 5, explain: true };
  const request_ = request(body, { explain: { wanted: false, explanation: null }, path: { collection_name: 'many' } });
  const answer = decode(await pool.gather('query', request_, access('many')));
  const explanation = request_.explain?.explanation;
  assert.equal(answer.points.length, 5);
  assert.deepEqual([explanation?.operation, explanation?.collection, explanation?.thread], ['query', 'many', 'gather']);
  const shards = explanation?.shards ?? [];
  assert.deepEqual(
    shards.filter(({ round }) => round === 0).map(({ shard_id }) => shard_id),
    SHARDS,
  );
  const plans = (at: number) => [
    ...new Set(
      shards
        .filter(({ round }) => round === at)
        .flatMap(({ segments }) => segments.flatMap(({ searches }) => searches.map(({ plan }) => plan))),
    ),
  ];
  assert.ok(shards.every(({ thread }) => /^reader \d$/.test(thread)));
  assert.ok(!plans(0).includes('candidates') && plans(1).includes('candidates'), JSON.stringify([plans(0), plans(1)]));
  assert.deepEqual(
    explanation?.stages.map(({ stage }) => stage),
    ['decode', 'merge', 'shards', 'encode'],
  );
  assert.deepEqual(
    explanation?.advice.map(({ field, rows_read }) => [field, rows_read]),
    // The segment of each shard is too small to try: an index pays from 1,000 rows on.
    [],
  );
  const small = request({ query: points[0]?.vector, limit: 3, explain: true }, { explain: { wanted: false, explanation: null } });
  await pool.gather('query', small, access('many'));
  assert.equal(small.explain?.explanation?.thread, 'main', 'merged in this thread');
});

import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { DEFAULT_SEARCH_PARAMS } from '../../../protocols/model/query.js';
import { noUsage } from '../../../protocols/model/usage.js';
import { pack } from '../../../protocols/pack.js';
import { EnginePool } from '../../../storage/pool/pool.js';
import type { AnswerOf, Ask, LevelAsk, ShardPoints } from '../../../storage/threads/portion.js';
import { NO_EXTRAS } from '../../../storage/threads/portion.js';
import { decodePortion, decodePortionAnswer, encodePortion } from '../../../storage/threads/portion-codec.js';
import { writeTo } from '../write.js';
import { configOf } from './collection-fixture.js';

/** Three shards as three nodes would have them, and as one node with all: points 0..59, id % 3 says in which shard. */

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'troupe-portion-'));
const config = configOf({ '': { size: 2, distance: 'Euclid' } }, { sparse: { words: { modifier: 'idf' } } });
const SHARDS = [0, 1, 2];
const ALL = SHARDS.map((shard) => `p/${shard}`);
const COUNT = 60;
let pool: EnginePool;

before(async () => {
  pool = await EnginePool.start({ readers: 1, writers: 1 });
  for (const shard of SHARDS) {
    const key = `p/${shard}`;
    await pool.openReplica({ key, folder: path.join(folder, String(shard)), config }, null);
    // As many operations as the shard's number and one say which position an answer has.
    for (let part = 0; part <= shard; part++) {
      const points = Array.from({ length: COUNT }, (_, id) => id)
        .filter((id) => id % 3 === shard && Math.floor(id / 3) % (shard + 1) === part)
        .map((id) => ({
          id,
          vector: { '': [id, 0], words: { indices: [id % 2, 7], values: [1, 1] } },
          payload: { n: id, even: id % 2 === 0 },
        }));
      const body = Buffer.from(JSON.stringify({ points }));
      await writeTo(pool, 'upsertPoints', key, true, { path: {}, query: {}, body, deadlineMs: Date.now() + 10_000 });
    }
  }
});

after(async () => {
  await pool.close();
  fs.rmSync(folder, { recursive: true, force: true });
});

async function asked<One extends Ask>(keys: readonly string[], ask: One): Promise<AnswerOf[One['kind']]> {
  const { body } = await pool.portion(keys, encodePortion({ asks: [ask] }), Date.now() + 10_000);
  return decodePortionAnswer(body).answers[0] as AnswerOf[One['kind']];
}

const level = (query: LevelAsk['query'], more: Partial<LevelAsk> = {}): LevelAsk => ({
  kind: 'level',
  query,
  using: '',
  filter: null,
  params: DEFAULT_SEARCH_PARAMS,
  scoreThreshold: null,
  count: 5,
  candidates: null,
  terms: null,
  extras: NO_EXTRAS,
  ...more,
});
const nearest = (x: number, own: { shard: number; id: number } | null = null): LevelAsk['query'] => ({
  kind: 'nearest',
  value: { kind: 'dense', values: Float32Array.of(x, 0) },
  own,
});
/** Points by shard. */
const placed = (...ids: number[]): ShardPoints[] => SHARDS.map((shard) => ({ shard, ids: ids.filter((id) => id % 3 === shard) }));

test('an answer says of each shard which operation it takes in, in the order of the shards, and what it cost', async () => {
  const usage = noUsage();
  const body = encodePortion({ asks: [level(nearest(3)), { kind: 'count', filter: null }] });
  const { body: answer, positions } = await pool.portion(['p/2', 'p/0'], body, Date.now() + 10_000, { usage });
  assert.deepEqual(positions, [3, 1]);
  assert.deepEqual(
    decodePortionAnswer(answer).answers.map(({ kind }) => kind),
    ['hits', 'count'],
  );
  assert.ok(usage.cpu > 0);
  assert.ok(body.length > 0, 'the body stays whose it is');
});

test('the best of each shard hold the best of all, with their shards, versions and what is shown', async () => {
  const extras = { withPayload: { kind: 'include', keys: ['n'] }, withVector: { kind: 'all' }, groupBy: 'n' } as const;
  const whole = await asked(ALL, level(nearest(30), { extras }));
  assert.deepEqual(whole.ids, [30, 29, 31, 28, 32]);
  assert.deepEqual(whole.shards, [0, 2, 1, 1, 2]);
  assert.deepEqual(Array.from(whole.scores, Math.abs), [0, 1, 1, 2, 2]);
  assert.deepEqual([...whole.versions], [1, 1, 1, 2, 2]);
  assert.deepEqual(whole.groups, [[30], [29], [31], [28], [32]]);
  assert.equal(Buffer.from(whole.shown?.[0]?.payload as Uint8Array).toString(), '{"n":30}');
  const words = { kind: 'sparse', indices: Uint32Array.of(0, 7), values: Float32Array.of(1, 1) };
  const values = Float32Array.of(30, 0);
  assert.deepEqual(whole.shown?.[0]?.vector, {
    kind: 'named',
    vectors: [
      { name: '', value: { kind: 'dense', values } },
      { name: 'words', value: words },
    ],
  });
  const parts = await Promise.all(ALL.map((key) => asked([key], level(nearest(30)))));
  assert.deepEqual(
    parts.map(({ ids }) => ids.slice(0, 3)),
    [[30, 27, 33], [31, 28, 34], [29, 32, 26]], // biome-ignore format: by shard
  );
});

test('the query’s own point is left out where it is, and one more is searched for elsewhere', async () => {
  const own = { shard: 0, id: 30 };
  const here = await asked(['p/0'], level(nearest(30, own), { count: 2 }));
  const elsewhere = await asked(['p/1'], level(nearest(30, own), { count: 2 }));
  assert.deepEqual([here.ids, elsewhere.ids], [[27, 33], [31, 28]]); // biome-ignore format: a pair
});

test('candidates of other shards, and those that are gone, are passed over', async () => {
  const candidates = placed(0, 1, 2, 3, 300);
  assert.deepEqual((await asked(['p/0', 'p/2'], level(nearest(9), { candidates }))).ids, [3, 2, 0]);
  assert.deepEqual((await asked(ALL, level(nearest(9), { candidates: [] }))).ids, []);
  const points: ShardPoints[] = [...placed(5, 3, 300), { shard: null, ids: [8, 1] }];
  const found = await asked(['p/0', 'p/2'], { kind: 'points', points, extras: NO_EXTRAS });
  assert.deepEqual([found.ids, found.shards, found.shown], [[3, 5, 8], [0, 2, 2], null]); // biome-ignore format: columns
});

test('a list goes on from an id, and an order has the values and the points’ own versions', async () => {
  assert.deepEqual((await asked(['p/0', 'p/1'], level({ kind: 'list', from: 5 }, { count: 3 }))).ids, [6, 7, 9]);
  assert.deepEqual((await asked(ALL, level({ kind: 'list', from: null }, { count: 0 }))).ids, []);
  const body = Buffer.from('{"field_name":"n","field_schema":"integer"}');
  for (const key of ALL) await writeTo(pool, 'createFieldIndex', key, true, { path: {}, query: {}, body, deadlineMs: Date.now() + 10_000 });
  const orderBy = { key: 'n', direction: 'desc', startFrom: { kind: 'number', value: 50 } } as const;
  const ordered = await asked(['p/1', 'p/2'], level({ kind: 'orderBy', orderBy }, { count: 3 }));
  assert.deepEqual([ordered.ids, ordered.orderValues], [[50, 49, 47], [50, 49, 47]]); // biome-ignore format: a pair
  assert.deepEqual([[...ordered.scores], [...ordered.versions]], [[1, 1, 1], [2, 1, 1]]); // biome-ignore format: a pair
  assert.equal((await asked(['p/2'], { kind: 'field', key: 'n' })).schema?.type, 'integer');
  assert.equal((await asked(['p/2'], { kind: 'field', key: 'm' })).schema, null);
  const counts = await asked(['p/2'], { kind: 'facet', key: 'n', filter: { ...NO_FILTER, must: [{ kind: 'hasId', ids: [2, 5] }] } });
  assert.deepEqual([counts.values, counts.counts], [[2, 5], [1, 1]]); // biome-ignore format: a pair
});

const NO_FILTER = { must: [], should: [], mustNot: [], minShould: null };

test('a sample is distinct points in random order and says how many there are', async () => {
  const sample = await asked(ALL, level({ kind: 'sample', having: null }, { count: 1000 }));
  assert.equal(sample.total, COUNT);
  assert.deepEqual(
    [...sample.ids].sort((a, b) => Number(a) - Number(b)),
    Array.from({ length: COUNT }, (_, id) => id),
  );
  assert.notDeepEqual(
    sample.ids,
    [...sample.ids].sort((a, b) => Number(a) - Number(b)),
  );
  const some = await asked(ALL, level({ kind: 'sample', having: 'words' }, { count: 7 }));
  assert.deepEqual([some.total, new Set(some.ids).size], [COUNT, 7]);
  assert.equal((await asked(ALL, level({ kind: 'sample', having: 'other' }, { count: 7 }))).total, 0);
});

test('with the sums of all shards sparse scores are those of all shards together', async () => {
  const indices = Uint32Array.of(0, 7, 99);
  const ofShards = await Promise.all(ALL.map((key) => asked([key], { kind: 'terms', using: 'words', indices })));
  const terms = await asked(ALL, { kind: 'terms', using: 'words', indices });
  assert.deepEqual([[...terms.rows], terms.filled], [[30, 60, 0], 60]); // biome-ignore format: a pair
  const filled = ofShards.reduce((sum, one) => sum + one.filled, 0);
  assert.equal(filled, terms.filled);
  const query = { kind: 'nearest', value: { kind: 'sparse', indices, values: Float32Array.of(1, 1, 1) }, own: null } as const;
  const whole = await asked(ALL, level(query, { using: 'words', count: COUNT }));
  const parts = await Promise.all(ALL.map((key) => asked([key], level(query, { using: 'words', count: COUNT, terms }))));
  const scores = new Map(parts.flatMap(({ ids, scores }) => ids.map((id, at) => [id, scores[at]] as const)));
  whole.ids.forEach((id, at) => {
    assert.equal(scores.get(id), whole.scores[at]);
  });
});

test('values of points and their exact scores come in the order of the points that are there', async () => {
  const values = await asked(['p/0', 'p/1'], { kind: 'values', points: placed(4, 2, 3), using: '' });
  assert.deepEqual([values.shards, values.ids], [[0, 1], [3, 4]]); // biome-ignore format: a pair
  assert.deepEqual(values.values[1], { kind: 'dense', values: Float32Array.of(4, 0) });
  const dense = [1, 3].map((x) => ({ kind: 'dense', values: Float32Array.of(x, 0) }) as const);
  const { ids, scores } = await asked(['p/0', 'p/1'], { kind: 'scores', using: '', values: dense, points: placed(4, 2, 3), terms: null });
  assert.deepEqual(ids, [3, 4]);
  assert.deepEqual(Array.from(scores, Math.abs), [2, 3, 0, 1]);
  await assert.rejects(asked(ALL, { kind: 'values', points: placed(1), using: 'other' }), { code: 'wrongInput' });
});

test('a formula has each point’s scores by the lists that hold it, and defaults of any name', async () => {
  const sum = { kind: 'sum', terms: [{ kind: 'score', prefetch: 0 }, { kind: 'score', prefetch: 1 }, { kind: 'variable', path: '__proto__' }] } as const; // biome-ignore format: a sum
  const formula = { expression: sum, defaults: JSON.parse('{"__proto__":100,"$score[1]":0.5}') };
  const lists = [
    { points: placed(3, 1, 6), scores: Float64Array.of(1, 2, 3) },
    { points: placed(6), scores: Float64Array.of(10) },
  ];
  const hits = await asked(['p/0'], level({ kind: 'formula', formula, lists }, { candidates: placed(3, 1, 6) }));
  assert.deepEqual([hits.ids, [...hits.scores]], [[6, 3], [112, 101.5]]); // biome-ignore format: a pair
});

test('bytes of another version are refused', () => {
  for (const bytes of [new Uint8Array(0), pack([99, []]), pack({ asks: [] }), Buffer.from('{"asks":[]}')]) {
    assert.throws(() => decodePortion(bytes), { code: 'wrongInput' });
    assert.throws(() => decodePortionAnswer(bytes), { code: 'wrongInput' });
  }
});

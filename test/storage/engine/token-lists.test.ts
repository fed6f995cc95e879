import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import type { CollectionConfig, Datatype, Distance, FieldSchema, QuantizationConfig } from '../../../protocols/model/collection.js';
import { loadSealed } from '../../../storage/segment/sealed.js';
import { CollectionFixture, configOf, randomOf, type TestPoint } from './collection-fixture.js';
import { type ExplainedAnswer, explainedQuery } from './explained-query.js';

/** Multivectors whose token vectors lie in lists: what searches find, what they compare, and when there are no lists. */

const DIM = 32;
const ROWS = 6000;
const LIMIT = 10;
const fixtures: CollectionFixture[] = [];
after(() => {
  for (const fixture of fixtures) fixture.remove();
});

const random = randomOf(7);
const normal = (): number => random() + random() + random() + random() - 2;
const vectorOf = (): number[] => Array.from({ length: DIM }, normal);
const words = Array.from({ length: 300 }, () => vectorOf().map((x) => 2 * x));
const near = (word: readonly number[]): number[] => word.map((x) => x + 0.5 * normal());
const text = (count: number): number[][] =>
  Array.from({ length: count }, () => near(words[Math.floor(random() * words.length)] as number[]));
const TEXTS = Array.from({ length: ROWS }, (_, id) => (id % 100 === 7 ? null : text(4 + (id % 9))));
const QUERIES = Array.from({ length: 40 }, (_, n) => (TEXTS[n * 71] ?? text(6)).slice(0, 5).map(near));
const FIELDS: ReadonlyMap<string, FieldSchema> = new Map([['n', { type: 'integer' }]]);

interface Setting {
  readonly distance?: Distance;
  readonly datatype?: Datatype;
  readonly quantization?: QuantizationConfig;
  readonly m?: number;
}

function tokenConfig({ datatype = 'float32', distance = 'Cosine', m = 16, quantization }: Setting = {}): CollectionConfig {
  const config = configOf({ size: DIM, distance, datatype, multivector_config: { comparator: 'max_sim' } });
  return {
    ...config,
    hnsw_config: { ...config.hnsw_config, m, full_scan_threshold: 100 },
    quantization_config: quantization ?? null,
  };
}

async function collectionOf(config: CollectionConfig, texts: readonly (readonly number[][] | null)[] = TEXTS): Promise<CollectionFixture> {
  const fixture = new CollectionFixture(config, FIELDS);
  fixtures.push(fixture);
  const points = texts.map((value, id): TestPoint => ({ id, vectors: value === null ? {} : { '': value }, payload: { n: id } }));
  await fixture.addSealed(points, true);
  return fixture;
}

const query = (fixture: CollectionFixture, body: object): ExplainedAnswer => explainedQuery(fixture, { limit: LIMIT, ...body });

/** Mean part of the exact answers that searches find. */
function recallOf(fixture: CollectionFixture, filter?: object): number {
  let [found, wanted] = [0, 0];
  for (const vectors of QUERIES) {
    const exact = new Set(query(fixture, { query: vectors, filter, params: { exact: true } }).ids);
    found += query(fixture, { query: vectors, filter }).ids.filter((id) => exact.has(id)).length;
    wanted += exact.size;
  }
  return found / wanted;
}

const listsOf = (fixture: CollectionFixture) => fixture.snapshot().segments[0]?.reader.vector('')?.layout.tokenLists;
const folderOf = (fixture: CollectionFixture): string => fixture.snapshot().segments[0]?.handle.folder as string;

for (const distance of ['Cosine', 'Euclid', 'Dot', 'Manhattan'] as const) {
  test(`${distance}: searches compare some of the rows, and find what is nearest`, async () => {
    const fixture = await collectionOf(tokenConfig({ distance }));
    const { search } = query(fixture, { query: QUERIES[0] });
    assert.equal(search.plan, 'token_lists', search.reason);
    assert.ok(search.rows_scored < ROWS / 2, `${search.rows_scored} rows scored`);
    const recall = recallOf(fixture);
    assert.ok(recall >= 0.95, `recall ${recall}`);
    const exact = query(fixture, { query: QUERIES[0], params: { exact: true } }).search;
    assert.equal(exact.plan, 'multi');
    assert.match(exact.reason, /compared with each vector of the query\. The request asks for an exact search/);
  });
}

test('what is found has the scores and the order of an exact search', async () => {
  const fixture = await collectionOf(tokenConfig());
  for (const vectors of QUERIES.slice(0, 10)) {
    const exact = query(fixture, { query: vectors, limit: ROWS, params: { exact: true } }).points as { id: number; score: number }[];
    const scores = new Map(exact.map(({ id, score }) => [id, score]));
    const found = query(fixture, { query: vectors }).points as { id: number; score: number }[];
    for (const { id, score } of found) assert.equal(score, scores.get(id));
    assert.deepEqual(
      found.map(({ score }) => score),
      found.map(({ score }) => score).sort((a, b) => b - a),
    );
  }
});

test('more lists are looked at, and more rows compared, for a larger `hnsw_ef`', async () => {
  const fixture = await collectionOf(tokenConfig());
  const scored = [20, 100, 150].map((hnsw_ef) => query(fixture, { query: QUERIES[1], params: { hnsw_ef } }).search.rows_scored);
  assert.deepEqual(
    scored,
    [...scored].sort((a, b) => a - b),
  );
  assert.equal(new Set(scored).size, 3);
});

test('a filter leaves out rows in lists, and as many points come back as match', async () => {
  const fixture = await collectionOf(tokenConfig());
  const half = { must: [{ key: 'n', range: { lt: ROWS / 2 } }] };
  const { ids, search } = query(fixture, { query: QUERIES[2], filter: half });
  assert.equal(search.plan, 'token_lists', search.reason);
  assert.ok(ids.length === LIMIT && ids.every((id) => id < ROWS / 2));
  const recall = recallOf(fixture, half);
  assert.ok(recall >= 0.95, `recall ${recall}`);
  const few = { must: [{ key: 'n', range: { lt: 20 } }] };
  const narrow = query(fixture, { query: QUERIES[2], filter: few, limit: 40 });
  assert.deepEqual([narrow.search.plan, narrow.ids.length], ['multi', 19]);
});

test('a segment whose lists lead to too few rows compares all of them', async () => {
  // All rows that pass are of words of their own, far from the query: no list that is looked at has one of them.
  const own = Array.from({ length: 5000 }, () => text(8).map(([first = 0, ...others]) => [first - 20, ...others]));
  const fixture = await collectionOf(tokenConfig({ distance: 'Euclid' }), [...TEXTS, ...own]);
  const filter = { must: [{ key: 'n', range: { gte: ROWS } }] };
  const { ids, search } = query(fixture, { query: QUERIES[4], filter });
  assert.deepEqual([search.plan, search.fell_back, ids.length], ['token_lists', true, LIMIT]);
});

test('deleted points, points without the vector and the point that is asked by are not found', async () => {
  const fixture = await collectionOf(tokenConfig());
  const [best, second] = query(fixture, { query: QUERIES[3] }).ids as [number, number];
  fixture.delete(best);
  const { ids, search } = query(fixture, { query: QUERIES[3] });
  assert.equal(search.plan, 'token_lists');
  assert.equal(ids[0], second);
  assert.ok(!ids.includes(best));
  const alike = query(fixture, { query: 12 });
  assert.equal(alike.search.plan, 'token_lists');
  assert.ok(!alike.ids.includes(12) && alike.ids.every((id) => id % 100 !== 7));
});

test('lists are of use with codes that were asked for, of 8 bits, and with halves', async () => {
  for (const setting of [{ quantization: { scalar: { type: 'int8' } } }, { datatype: 'float16' }] as readonly Setting[]) {
    const fixture = await collectionOf(tokenConfig(setting));
    assert.equal(query(fixture, { query: QUERIES[0] }).search.plan, 'token_lists');
    const recall = recallOf(fixture);
    assert.ok(recall >= 0.93, `${JSON.stringify(setting)}: recall ${recall}`);
  }
});

test('there are no lists without `m`, below `full_scan_threshold`, for other codes, and for vectors that have no near ones', async () => {
  const none = tokenConfig();
  const small = { ...none, hnsw_config: { ...none.hnsw_config, full_scan_threshold: 10_000 } };
  const alone = Array.from({ length: 2000 }, () => Array.from({ length: 6 }, vectorOf));
  for (const [config, texts] of [
    [tokenConfig({ m: 0 }), TEXTS],
    [small, TEXTS],
    [tokenConfig({ quantization: { product: { compression: 'x8' } } }), TEXTS],
    [
      tokenConfig({ datatype: 'uint8' }),
      TEXTS.map((value) => value?.map((vector) => vector.map((x) => Math.abs(Math.round(20 * x)))) ?? null),
    ],
    [none, alone],
  ] as const) {
    const fixture = await collectionOf(config, texts);
    assert.equal(listsOf(fixture), null);
    assert.equal(query(fixture, { query: QUERIES[0]?.map((vector) => vector.map((x) => Math.abs(Math.round(x)))) }).search.plan, 'multi');
  }
});

test('a segment that is loaded from its files answers as before; damaged lists are left out, and reported for a repair', async () => {
  const fixture = await collectionOf(tokenConfig());
  const before = QUERIES.map((vectors) => query(fixture, { query: vectors }).points);
  const options = { readers: 1, onDiskPayload: true, fields: FIELDS };
  const loaded = await loadSealed(folderOf(fixture), options);
  const made = listsOf(fixture);
  assert.ok(made);
  const lists = loaded.handle.layout.vectors[0]?.tokenLists;
  assert.deepEqual([lists?.count, lists?.probes], [made.count, made.probes]);
  await fixture.reopen();
  assert.deepEqual(
    QUERIES.map((vectors) => query(fixture, { query: vectors }).points),
    before,
  );
  const file = path.join(folderOf(fixture), 'tokens.0');
  const bytes = fs.readFileSync(file);
  for (const at of [bytes.length >> 1, 70]) {
    const damaged = Uint8Array.from(bytes);
    damaged[at] = (damaged[at] as number) ^ 1;
    fs.writeFileSync(file, damaged);
    const { damagedFiles, handle } = await loadSealed(folderOf(fixture), options);
    assert.deepEqual([damagedFiles, handle.layout.vectors[0]?.tokenLists], [['tokens.0'], null]);
  }
});

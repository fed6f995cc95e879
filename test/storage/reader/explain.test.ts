import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { CollectionParams, FieldSchema } from '../../../protocols/model/collection.js';
import type { ExplainedSearch, ExplainRequest, Explanation } from '../../../protocols/model/explanation.js';
import type { Grants } from '../../../protocols/model/scope.js';
import { noUsage } from '../../../protocols/model/usage.js';
import { measured } from '../../../storage/disk/meter.js';
import { runRead } from '../../../storage/reader/operations.js';
import type { RawRequest, ReadOperation } from '../../../storage/threads/messages.js';
import { CollectionFixture, configOf, contextOf, randomOf, type TestPoint } from '../engine/collection-fixture.js';

const ROWS = 4500;
const DIM = 96;
/** So few candidates that a walk is cheaper than a scan of so few rows. */
const FEW = { hnsw_ef: 16 };
const FIELDS: ReadonlyMap<string, FieldSchema> = new Map([
  ['color', { type: 'keyword' }],
  ['n', { type: 'integer' }],
]);
const config = configOf(
  {
    dense: { size: DIM, distance: 'Dot', quantization_config: { scalar: { type: 'int8' } } },
    multi: { size: 4, distance: 'Dot', multivector_config: { comparator: 'max_sim' } },
  },
  { sparse: { words: {} } },
);
const fixture = new CollectionFixture(config, FIELDS);
after(() => fixture.remove());

const random = randomOf(3);
const numbers = (count: number): number[] => Array.from({ length: count }, random);

function pointsOf(from: number, count: number): TestPoint[] {
  return Array.from({ length: count }, (_, i) => {
    const id = from + i;
    const words = { indices: [id % 50, 100 + (id % 3)], values: [1, random()] };
    return {
      id,
      vectors: { dense: numbers(DIM), words, multi: [numbers(4)] },
      payload: { color: `c${id % 3}`, n: id, plain: id % 10 },
    };
  });
}
await fixture.addSealed(pointsOf(0, ROWS), true);
fixture.addAppendable(pointsOf(ROWS, 200));

interface Explained {
  readonly result: unknown;
  readonly explanation: Explanation;
}

function explained(operation: ReadOperation, body: object, more: Partial<RawRequest> = {}, of = fixture): Explained {
  const explain: ExplainRequest = { wanted: false, explanation: null };
  const bytes = Buffer.from(JSON.stringify({ ...body, explain: true }));
  const answer = runRead(operation, { path: {}, query: {}, body: bytes, deadlineMs: 0, explain, ...more }, contextOf(of));
  assert.ok(explain.explanation !== null, operation);
  return { result: JSON.parse(new TextDecoder().decode(answer)), explanation: explain.explanation };
}

/** What was done in the sealed segment and in the appendable one, each searched once. */
function searchesOf({ shards }: Explanation): [sealed: ExplainedSearch, appendable: ExplainedSearch] {
  assert.equal(shards.length, 1);
  const segments = shards[0]?.segments ?? [];
  assert.deepEqual(
    segments.map(({ kind, rows }) => [kind, rows]),
    [
      ['sealed', ROWS],
      ['appendable', 200],
    ],
  );
  const searches = segments.map(({ searches: [only, ...more] }) => {
    assert.deepEqual(more, []);
    return only as ExplainedSearch;
  });
  return [searches[0] as ExplainedSearch, searches[1] as ExplainedSearch];
}

const stagesOf = ({ stages }: { readonly stages: readonly { readonly stage: string }[] }): string[] => stages.map(({ stage }) => stage);
const near = { query: numbers(DIM), using: 'dense', limit: 5 };
const plain = (value: number) => ({ must: [{ key: 'plain', match: { value } }] });

test('a search says of each segment how it was searched and why, and what the walk looked at', () => {
  const { explanation } = explained('query', { ...near, params: FEW });
  const [sealed, appendable] = searchesOf(explanation);
  assert.equal(sealed.plan, 'walk');
  assert.match(sealed.reason, /^A walk of the graph is estimated at \d+ µs, reading all rows in order at \d+ µs\. Codes stand/);
  assert.equal(sealed.level, 'points nearest to a vector by `dense`, 5 points wanted');
  assert.deepEqual([sealed.ef, sealed.scored_on, sealed.vector, sealed.matches, sealed.found], [16, 'codes', 'dense', ROWS, 5]);
  assert.ok((sealed.hops ?? 0) >= 16 && (sealed.hops ?? 0) < 100, `${sealed.hops} hops`);
  assert.ok(sealed.rows_scored > 16 && sealed.rows_scored < ROWS, `${sealed.rows_scored} rows scored`);
  assert.ok(sealed.rows_rescored >= 5 && sealed.rows_rescored <= 16);
  // Codes take a byte a component, originals four.
  assert.equal(sealed.bytes_read, sealed.rows_scored * DIM + sealed.rows_rescored * DIM * 4);
  assert.deepEqual(stagesOf(sealed), ['plan', 'walk', 'rescore', 'hits']);
  assert.equal(appendable.plan, 'scan');
  assert.match(appendable.reason, /^The segment has no graph of this vector \(yet\), so all 200 rows are scored\.$/);
  assert.deepEqual([appendable.rows_scored, appendable.scored_on, appendable.hops, appendable.ef], [200, 'originals', null, null]);
  assert.deepEqual([explanation.operation, stagesOf(explanation)[0]], ['query', 'decode']);
  assert.match(explanation.summary, /^walk, scan; 1 shard; \d+ rows scored; \d+ rescored$/);
});

test('a walk keeps fewer candidates in one of several shards that points are shared out to by their ids, be it those with its key', async (t) => {
  const efOf = async (params: Partial<CollectionParams>, ringShards: number | null = null): Promise<number | null | undefined> => {
    const one = configOf({ dense: { size: DIM, distance: 'Dot' } });
    const shard = new CollectionFixture({ ...one, params: { ...one.params, ...params } }, FIELDS, 0, ringShards);
    t.after(() => shard.remove());
    await shard.addSealed(
      pointsOf(0, ROWS).map(({ id, vectors }) => ({ id, vectors: { dense: vectors.dense as number[] }, payload: {} })),
      true,
    );
    const { explanation } = explained('query', { ...near, params: { hnsw_ef: 26 } }, {}, shard);
    return explanation.shards[0]?.segments[0]?.searches[0]?.ef;
  };
  assert.equal(await efOf({ shard_number: 4 }), 24);
  assert.equal(await efOf({ shard_number: 4, sharding_method: 'custom' }), 26, 'of its key no other shard is known');
  assert.equal(await efOf({ shard_number: 1, sharding_method: 'custom' }, 4), 24);
});

test('the times of stages make up those of segments, and with the stages outside of segments the whole', () => {
  const { explanation } = explained('queryBatch', { searches: [near, { ...near, filter: plain(1), with_payload: true }] });
  const sum = (parts: readonly { readonly time_us: number }[]): number => parts.reduce((total, { time_us }) => total + time_us, 0);
  const close = (a: number, b: number, parts: number): void => assert.ok(Math.abs(a - b) <= 0.06 * (parts + 1), `${a} and ${b}`);
  const [shard] = explanation.shards;
  const segments = shard?.segments ?? [];
  for (const { searches, time_us } of segments) {
    assert.equal(searches.length, 2, 'one for each query');
    for (const search of searches) close(search.time_us, sum(search.stages), search.stages.length);
    close(time_us, sum(searches), searches.length);
  }
  close(shard?.time_us ?? 0, sum(segments), segments.length);
  close(explanation.time_us, sum(explanation.stages) + sum(explanation.shards), 20);
});

test('a filter says what answered each condition, what was expected of it, and whether the cache knew it', () => {
  const filter = {
    must: [
      { key: 'color', match: { value: 'c1' } },
      { key: 'plain', match: { value: 4 } },
    ],
    must_not: [{ has_id: [4, 7] }],
  };
  const first = searchesOf(explained('query', { ...near, filter }).explanation)[0];
  assert.equal(first.filter?.cache, 'miss');
  assert.equal(first.filter?.payloads_read, ROWS / 3 - 2, 'of the rows that indexes let through');
  assert.deepEqual(
    first.filter?.conditions.map(({ condition, answered_by, index, matches }) => [condition, answered_by, index, matches]),
    [
      ['color match "c1"', 'index', 'keyword', ROWS / 3],
      ['plain match 4', 'payload', null, null],
      ['one of 2 ids', 'index', 'id', 2],
    ],
  );
  assert.deepEqual(first.filter?.conditions[0]?.matches_estimated, { min: ROWS / 3, expected: ROWS / 3, max: ROWS / 3 });
  const passing = ROWS / 30 - 1;
  assert.equal(first.matches, passing, 'every thirtieth but 4');
  assert.deepEqual(first.matches_estimated, { min: 0, expected: ROWS / 6, max: ROWS / 3 });
  assert.deepEqual([first.plan, first.rows_scored], ['gather', passing]);
  const again = searchesOf(explained('query', { ...near, filter }).explanation)[0];
  assert.deepEqual([again.filter?.cache, again.filter?.payloads_read, again.filter?.conditions], ['hit', 0, []]);
  assert.equal(again.matches, passing);
});

test('an index that would save work is advised with the call that makes it, by trial on a sample; one that is there is not', () => {
  const filter = {
    must: [
      { key: 'color', match: { value: 'c1' } },
      { key: 'plain', match: { value: 4 } },
    ],
  };
  const [advice, ...more] = explained('count', { filter }).explanation.advice;
  assert.deepEqual(more, []);
  assert.deepEqual([advice?.kind, advice?.field], ['field_index', 'plain']);
  assert.deepEqual(advice?.call.body, { field_name: 'plain', field_schema: 'integer' });
  assert.equal(advice?.rows_read, ROWS + 200);
  assert.ok((advice?.rows_sampled ?? 0) >= 512 && (advice?.rows_sampled ?? 0) <= 514);
  // Every tenth row; the sample's step may favour some of them.
  assert.ok((advice?.rows_with_index ?? 0) > 200 && (advice?.rows_with_index ?? 0) < 900, `${advice?.rows_with_index}`);
  assert.ok((advice?.time_us ?? 0) > 0 && (advice?.time_us_with_index ?? 0) > 0);
  assert.deepEqual(explained('count', { filter: { must: [{ key: 'n', range: { lt: 5 } }] } }).explanation.advice, []);
});

test('every read of points tells its plan', () => {
  const sparse = { indices: [3, 101], values: [1, 1] };
  const cases: readonly [ReadOperation, object, string, string][] = [
    ['search', { vector: { name: 'dense', vector: near.query }, limit: 3, params: FEW }, 'walk', 'scan'],
    ['query', { query: sparse, using: 'words' }, 'sparse_index', 'sparse_rows'],
    ['query', { query: [numbers(4)], using: 'multi' }, 'multi', 'multi'],
    ['recommend', { positive: [1, 2], strategy: 'best_score', using: 'dense', limit: 3 }, 'walk', 'examples'],
    ['discover', { target: 1, context: [{ positive: 2, negative: 3 }], using: 'dense', limit: 3, params: FEW }, 'walk', 'examples'],
    ['discover', { target: [[1, 2, 3, 4]], context: [], using: 'multi', limit: 3 }, 'examples', 'examples'],
    ['count', { filter: plain(2) }, 'count', 'count'],
    ['scroll', { filter: plain(2) }, 'list', 'list'],
    ['scroll', { order_by: 'n' }, 'order_index', 'order_payloads'],
    ['facet', { key: 'color' }, 'facet_index', 'facet_payloads'],
    ['query', { query: { sample: 'random' } }, 'sample', 'sample'],
  ];
  for (const [operation, body, sealed, appendable] of cases) {
    const { explanation } = explained(operation, body);
    const searches = searchesOf(explanation);
    assert.deepEqual(
      searches.map(({ plan }) => plan),
      [sealed, appendable],
      `${operation} ${JSON.stringify(body)}`,
    );
    for (const { reason } of searches) assert.match(reason, /^[A-Z].*\.$/);
  }
  const levels = explained('query', { prefetch: { ...near, limit: 16, params: FEW }, query: near.query, using: 'dense' }).explanation
    .shards[0]?.segments[0];
  assert.deepEqual(
    levels?.searches.map(({ plan }) => plan),
    ['walk', 'candidates'],
  );
  const pairs = explained('matrixPairs', { sample: 10, limit: 2, using: 'dense' }).explanation.shards[0]?.segments[0];
  assert.equal(pairs?.searches[0]?.plan, 'sample');
  assert.ok(stagesOf(explained('retrieve', { ids: [1, 2] }).explanation).includes('points'));
});

test('an explained read answers and costs what it does otherwise', () => {
  const body = { ...near, filter: plain(5), with_payload: true };
  const bytes = Buffer.from(JSON.stringify(body));
  const usage = noUsage();
  const own = measured(usage, () => runRead('query', { path: {}, query: {}, body: bytes, deadlineMs: 0 }, contextOf(fixture)));
  const other = noUsage();
  const { result } = measured(other, () => explained('query', body));
  assert.deepEqual(result, JSON.parse(new TextDecoder().decode(own)));
  assert.deepEqual({ ...other, payload_io_read: 0 }, { ...usage, payload_io_read: 0 });
});

test('`explain` of one query of a batch explains all, other values are refused, and nothing is explained unasked', () => {
  const explain: ExplainRequest = { wanted: false, explanation: null };
  const read = (operation: ReadOperation, body: object) => {
    runRead(operation, { path: {}, query: {}, body: Buffer.from(JSON.stringify(body)), deadlineMs: 0, explain }, contextOf(fixture));
    return explain.explanation;
  };
  assert.equal(read('query', { ...near, explain: false }), null);
  assert.equal(read('query', near), null);
  assert.throws(() => read('query', { ...near, explain: 'yes' }), { code: 'malformedBody' });
  assert.notEqual(read('queryBatch', { searches: [near, { ...near, explain: true }] }), null);
});

test('a tenant may not have a read explained: the figures are of all points', () => {
  const grants: Grants = new Map([['c', { access: 'r', tenant: { key: 'color', value: 'c1' } }]]);
  assert.throws(() => explained('count', {}, { grants, path: { collection_name: 'c' } }), { code: 'forbidden' });
  const whole: Grants = new Map([['c', { access: 'r', tenant: null }]]);
  assert.equal(explained('count', {}, { grants: whole, path: { collection_name: 'c' } }).explanation.operation, 'count');
});

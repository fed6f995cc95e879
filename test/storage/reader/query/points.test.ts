import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { TroupeError } from '../../../../protocols/errors.js';
import type { VectorsConfig } from '../../../../protocols/model/collection.js';
import type { PointId } from '../../../../protocols/model/point-id.js';
import { HeldMemory } from '../../../../storage/memory/held-memory.js';
import { unlimitedLedger } from '../../../../storage/memory/shared-ledger.js';
import { runRead } from '../../../../storage/reader/operations.js';
import type { RawRequest, ReadOperation } from '../../../../storage/threads/messages.js';
import { CollectionFixture, configOf, contextOf, SEQ, type TestPoint } from '../../engine/collection-fixture.js';

const fixtures: CollectionFixture[] = [];
after(() => {
  for (const fixture of fixtures) fixture.remove();
});

function read(fixture: CollectionFixture, operation: ReadOperation, body: unknown, path: RawRequest['path'] = {}): string {
  const bytes = body === undefined ? null : new TextEncoder().encode(JSON.stringify(body));
  const request: RawRequest = { path, query: {}, body: bytes, deadlineMs: 0 };
  return new TextDecoder().decode(runRead(operation, request, contextOf(fixture)));
}

const value = (fixture: CollectionFixture, operation: ReadOperation, body: unknown) => JSON.parse(read(fixture, operation, body));

function fixtureOf(vectors: VectorsConfig): CollectionFixture {
  const fixture = new CollectionFixture(configOf(vectors));
  fixtures.push(fixture);
  return fixture;
}

const UUID = '936da01f-9abd-4d9d-80c7-02af85c822a8';

/** Ids spread over two segments, one of them sealed; 4 is deleted, 6 was changed and moved. */
async function spread(): Promise<CollectionFixture> {
  const fixture = fixtureOf({ size: 2, distance: 'Dot' });
  const point = (id: PointId, more: Partial<TestPoint> = {}): TestPoint => ({
    id,
    vectors: { '': [Number(id) || 0, 0.1] },
    payload: { k: String(id) },
    version: 3,
    ...more,
  });
  await fixture.addSealed([point(7), point(1), point(6, { deletedAt: SEQ }), point(UUID), point(3, { payload: {} })], false);
  fixture.addAppendable([
    point(2),
    point(18446744073709551615n),
    point(4, { deletedAt: SEQ - 1 }),
    point(6, { payload: { k: 'new' } }),
    point(5, { deletedAt: SEQ + 1 }),
  ]);
  return fixture;
}

test('scroll goes through all segments in id order, integers before UUIDs', async () => {
  const fixture = await spread();
  assert.equal(
    read(fixture, 'scroll', { limit: 100, with_payload: false }),
    `{"points":[{"id":1},{"id":2},{"id":3},{"id":5},{"id":6},{"id":7},{"id":18446744073709551615},{"id":"${UUID}"}],"next_page_offset":null}`,
  );
});

test('the next page starts with the id the last one named', async () => {
  const fixture = await spread();
  const ids: PointId[] = [];
  let offset: PointId | null = null;
  do {
    const page: { points: { id: PointId }[]; next_page_offset: PointId | null } = value(fixture, 'scroll', { limit: 3, offset });
    ids.push(...page.points.map(({ id }) => id));
    offset = page.next_page_offset === 18446744073709552000 ? 7 : page.next_page_offset;
    if (ids.length > 5) break;
  } while (offset !== null);
  assert.deepEqual(ids.slice(0, 6), [1, 2, 3, 5, 6, 7]);
  assert.deepEqual(value(fixture, 'scroll', { offset: 4, limit: 1, with_payload: false }), { points: [{ id: 5 }], next_page_offset: 6 });
});

test('payloads are shown as they are kept, an empty one as {}', async () => {
  const fixture = await spread();
  assert.equal(
    read(fixture, 'scroll', { limit: 3 }),
    '{"points":[{"id":1,"payload":{"k":"1"}},{"id":2,"payload":{"k":"2"}},{"id":3,"payload":{}}],"next_page_offset":5}',
  );
});

test('a filter is obeyed in every segment', async () => {
  const fixture = await spread();
  const filter = { should: [{ key: 'k', match: { any: ['new', '7', '4'] } }, { has_id: [3, 99] }] };
  assert.deepEqual(
    value(fixture, 'scroll', { filter, with_payload: false }).points.map(({ id }: { id: PointId }) => id),
    [3, 6, 7],
  );
  assert.equal(read(fixture, 'count', { filter }), '{"count":3}');
  assert.equal(read(fixture, 'count', {}), '{"count":8}');
  assert.equal(read(fixture, 'count', { exact: false, filter: { must_not: [{ has_id: [1] }] } }), '{"count":7}');
});

test('retrieve keeps the order asked for, without what is missing, deleted or asked for twice', async () => {
  const fixture = await spread();
  assert.equal(read(fixture, 'retrieve', { ids: [6, 4, 1, 6, 99, UUID] }), `[{"id":6},{"id":1},{"id":"${UUID}"}]`);
  assert.equal(read(fixture, 'retrieve', { ids: [] }), '[]');
  assert.equal(
    read(fixture, 'retrieve', { ids: [6], with_payload: ['k'], with_vector: true }),
    '[{"id":6,"payload":{"k":"new"},"vector":[6,0.1]}]',
  );
});

test('a read of one point counts memory for one point: counted as a thousand, points by id had their thread collected all the time', async () => {
  const fixture = fixtureOf({ size: 1024, distance: 'Dot' });
  const count = 1500;
  const point = (id: PointId): TestPoint => ({ id, vectors: { '': new Array(1024).fill(1) } });
  await fixture.addSealed(
    Array.from({ length: count }, (_, id) => point(id)),
    false,
  );
  const held = new HeldMemory(unlimitedLedger());
  fixture.deadline.memory = held;
  const heldBy = (ids: number[]): number => {
    read(fixture, 'retrieve', { ids, with_vector: true });
    return held.release();
  };
  assert.equal(heldBy([1]), 0);
  const all = heldBy(Array.from({ length: count }, (_, id) => id));
  assert.ok(all > count * 1024 * Float32Array.BYTES_PER_ELEMENT, `${all} bytes`);
});

test('a query that names a point thousands of times counts and compares it once, and points that it names are counted as they are read', async () => {
  const fixture = fixtureOf({ size: 64, distance: 'Dot' });
  const ids = Array.from({ length: 1200 }, (_, id) => id);
  await fixture.addSealed(
    ids.map((id) => ({ id, vectors: { '': Array.from({ length: 64 }, (_, at) => ((id * 7 + at) % 11) - 5) } })),
    false,
  );
  const held = new HeldMemory(unlimitedLedger());
  fixture.deadline.memory = held;
  const pairs = (count: number) => Array.from({ length: count }, () => ({ positive: 1, negative: 2 }));
  const context = (count: number) => value(fixture, 'query', { query: { context: pairs(count) }, limit: 5 });
  const scores = (count: number): number[] => context(count).points.map(({ score }: { score: number }) => score * (1 / count));
  const many = scores(3000);
  assert.equal(held.release(), 0);
  for (const [at, score] of scores(1).entries()) assert.ok(Math.abs(score - (many[at] as number)) < 1e-3, `${score}, ${many[at]}`);
  read(fixture, 'query', { query: { recommend: { positive: ids, strategy: 'best_score' } } });
  assert.ok(held.release() > ids.length * 64 * 2 * Float32Array.BYTES_PER_ELEMENT);
});

test('a payload that is larger than most is counted as it is read', async () => {
  const fixture = fixtureOf({ size: 2, distance: 'Dot' });
  const points = Array.from({ length: 100 }, (_, id) => ({ id, vectors: { '': [id, 1] }, payload: { text: 'x'.repeat(20_000), n: id } }));
  await fixture.addSealed(points, false);
  const held = new HeldMemory(unlimitedLedger());
  fixture.deadline.memory = held;
  read(fixture, 'query', { query: [1, 1], limit: 100, with_payload: ['text'] });
  const printed = 100 * 20_000;
  assert.ok(held.release() > 1.9 * printed, 'the payloads, and the answer with them');
});

test('a point is got with payload and vector', async () => {
  const fixture = await spread();
  assert.equal(read(fixture, 'getPoint', undefined, { id: '3' }), '{"id":3,"payload":{},"vector":[3,0.1]}');
  assert.throws(() => read(fixture, 'getPoint', undefined, { id: '4' }), /Point with id 4 does not exists!/);
  assert.throws(() => read(fixture, 'getPoint', undefined, { id: 'abc' }), /"abc" is not a point id/);
});

test('a query without a vector lists points with score 1 and version 0', async () => {
  const fixture = await spread();
  assert.equal(
    read(fixture, 'query', { limit: 2, offset: 1 }),
    '{"points":[{"id":2,"version":0,"score":1},{"id":3,"version":0,"score":1}]}',
  );
});

test('query and search show id, version and score, and batches lists of them', async () => {
  const fixture = await spread();
  assert.equal(
    read(fixture, 'query', { query: [1, 0], filter: { must: [{ has_id: [6, 7] }] } }),
    '{"points":[{"id":7,"version":3,"score":7},{"id":6,"version":3,"score":6}]}',
  );
  assert.equal(
    read(fixture, 'search', { vector: [1, 0], limit: 1, filter: { must: [{ has_id: [6, 3] }] } }),
    '[{"id":6,"version":3,"score":6}]',
  );
  assert.equal(
    read(fixture, 'queryBatch', {
      searches: [{ query: [-1, 0], limit: 1, filter: { must: [{ has_id: [2] }] }, with_payload: true }, { limit: 1 }],
    }),
    '[{"points":[{"id":2,"version":3,"score":-2,"payload":{"k":"2"}}]},{"points":[{"id":1,"version":0,"score":1}]}]',
  );
  assert.equal(read(fixture, 'searchBatch', { searches: [{ vector: [1, 0], limit: 1, score_threshold: 1e30 }] }), '[[]]');
  assert.equal(read(fixture, 'searchBatch', { searches: [] }), '[]');
});

test('named vectors are shown by name, those a point has', async () => {
  const fixture = fixtureOf({ a: { size: 1, distance: 'Dot' }, 'b"é': { size: 2, distance: 'Cosine' } });
  await fixture.addSealed([{ id: 1, vectors: { a: [0.5], 'b"é': [3, 4] } }], false);
  fixture.addAppendable([
    { id: 2, vectors: { a: [1] } },
    { id: 3, vectors: {} },
  ]);
  const shown = (withVector: unknown) => read(fixture, 'retrieve', { ids: [1, 2, 3], with_vector: withVector });
  assert.equal(shown(true), '[{"id":1,"vector":{"a":[0.5],"b\\"é":[0.6,0.8]}},{"id":2,"vector":{"a":[1]}},{"id":3,"vector":{}}]');
  assert.equal(shown(['b"é']), '[{"id":1,"vector":{"b\\"é":[0.6,0.8]}},{"id":2,"vector":{}},{"id":3,"vector":{}}]');
  assert.equal(shown([]), '[{"id":1,"vector":{}},{"id":2,"vector":{}},{"id":3,"vector":{}}]');
  assert.throws(
    () => shown(['zzz']),
    (error: unknown) => error instanceof TroupeError && error.code === 'wrongInput',
  );
});

test('a point without the unnamed vector shows an empty object', () => {
  const fixture = fixtureOf({ size: 1, distance: 'Dot' });
  fixture.addAppendable([
    { id: 1, vectors: {} },
    { id: 2, vectors: { '': [3] } },
  ]);
  assert.equal(read(fixture, 'retrieve', { ids: [1, 2], with_vector: true }), '[{"id":1,"vector":{}},{"id":2,"vector":[3]}]');
  assert.equal(read(fixture, 'retrieve', { ids: [2], with_vector: [''] }), '[{"id":2,"vector":[3]}]');
});

test('selected parts of payloads are shown, integers beyond 2^53 exactly', async () => {
  const fixture = fixtureOf({ size: 1, distance: 'Dot' });
  await fixture.addSealed([{ id: 1, vectors: {}, payload: { big: 9007199254740993n, s: 'ü"', deep: { a: 1, b: 2 } } }], false);
  const shown = (withPayload: unknown) => read(fixture, 'retrieve', { ids: [1], with_payload: withPayload });
  assert.equal(shown(true), '[{"id":1,"payload":{"big":9007199254740993,"s":"ü\\"","deep":{"a":1,"b":2}}}]');
  assert.equal(shown(['big', 'deep.a']), '[{"id":1,"payload":{"big":9007199254740993,"deep":{"a":1}}}]');
  assert.equal(shown({ exclude: ['s', 'deep.b'] }), '[{"id":1,"payload":{"big":9007199254740993,"deep":{"a":1}}}]');
  assert.equal(shown([]), '[{"id":1,"payload":{}}]');
});

test('scrolling past the time limit stops', async () => {
  const fixture = fixtureOf({ size: 1, distance: 'Dot' });
  fixture.addAppendable(Array.from({ length: 3000 }, (_, id) => ({ id, vectors: {}, payload: { n: id } })));
  fixture.deadline.deadlineMs = Date.now() - 1000;
  const isTimeout = (error: unknown): boolean => error instanceof TroupeError && error.code === 'timeout';
  assert.throws(() => read(fixture, 'scroll', { limit: 3000 }), isTimeout);
  assert.throws(() => read(fixture, 'count', { filter: { must: [{ key: 'n', match: { value: 1 } }] } }), isTimeout);
});

test('what a distance matrix leaves out of the rows that pass a filter is there for others who ask the same', async () => {
  const fixture = fixtureOf({ a: { size: 2, distance: 'Dot' }, b: { size: 2, distance: 'Dot' } });
  const points = Array.from({ length: 40 }, (_, id): TestPoint => {
    const vector = [id, 1];
    return { id, vectors: id % 4 === 0 ? { a: vector, b: vector } : { a: vector }, payload: { k: id % 2 } };
  });
  await fixture.addSealed(points.slice(0, 30), false);
  fixture.addAppendable(points.slice(30));
  const filter = { must: [{ key: 'k', match: { value: 0 } }] };
  const count = () => value(fixture, 'count', { filter }).count;
  assert.equal(count(), 20);
  const { pairs }: { pairs: { a: number }[] } = value(fixture, 'matrixPairs', { sample: 40, limit: 1, using: 'b', filter });
  assert.equal(new Set(pairs.map(({ a }) => a)).size, 10);
  assert.equal(count(), 20);
});

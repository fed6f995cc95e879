import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { TroupeError } from '../../../../protocols/errors.js';
import type { FieldSchema } from '../../../../protocols/model/collection.js';
import type { JsonValue, Payload } from '../../../../protocols/model/payload.js';
import { runRead } from '../../../../storage/reader/operations.js';
import type { RawRequest, ReadOperation } from '../../../../storage/threads/messages.js';
import { CollectionFixture, configOf, contextOf, randomOf, SEQ, type TestPoint } from '../../engine/collection-fixture.js';

const fixtures: CollectionFixture[] = [];
after(() => {
  for (const fixture of fixtures) fixture.remove();
});

const FIELDS: ReadonlyMap<string, FieldSchema> = new Map([
  ['color', { type: 'keyword' }],
  ['n', { type: 'integer' }],
  ['flag', { type: 'bool' }],
  ['f', { type: 'float' }],
]);

function read(fixture: CollectionFixture, operation: ReadOperation, body: unknown): Record<string, JsonValue> {
  const request: RawRequest = { path: {}, query: {}, body: new TextEncoder().encode(JSON.stringify(body)), deadlineMs: 0 };
  return JSON.parse(new TextDecoder().decode(runRead(operation, request, contextOf(fixture))));
}

function pointsOf(from: number, count: number): TestPoint[] {
  const random = randomOf(from + 1);
  const one = (): number => Math.floor(random() * 6);
  return Array.from({ length: count }, (_, i) => {
    const colors = [one(), one(), one()].map((n) => `c${n}`);
    const payload: Payload = { color: i % 4 === 0 ? colors : (colors[0] as string), n: one() - 3, flag: i % 3 === 0, f: 0.5 };
    if (i % 5 === 0) payload.n = [one(), null, 2.5, 'text', one()];
    if (i % 11 === 0) delete payload.color;
    return { id: from + i, vectors: { '': [random(), random()] }, payload, ...(i % 7 === 0 ? { deletedAt: 1 + (i % (SEQ + 5)) } : {}) };
  });
}

async function mixed(): Promise<{ fixture: CollectionFixture; points: TestPoint[] }> {
  const fixture = new CollectionFixture(configOf({ size: 2, distance: 'Dot' }), FIELDS);
  fixtures.push(fixture);
  const parts = [pointsOf(0, 400), pointsOf(400, 60), pointsOf(500, 200)] as const;
  await fixture.addSealed(parts[0], false);
  await fixture.addSealed(parts[1], false);
  fixture.addAppendable(parts[2]);
  return { fixture, points: parts.flat() };
}

function naive(points: readonly TestPoint[], key: string, passes: (payload: Payload) => boolean): [JsonValue, number][] {
  const counts = new Map<JsonValue, number>();
  for (const { payload = {}, deletedAt } of points) {
    if ((deletedAt ?? SEQ + 1) <= SEQ || !passes(payload)) continue;
    const value = payload[key] as JsonValue;
    const values = (Array.isArray(value) ? value : [value]).filter((one) =>
      key === 'n' ? Number.isInteger(one) : typeof one !== 'undefined',
    );
    for (const one of new Set(values)) counts.set(one, (counts.get(one) ?? 0) + 1);
  }
  return [...counts].sort(([a, x], [b, y]) => y - x || ((a as string) < (b as string) ? -1 : 1));
}

test('values are counted over live points that pass, once per point, from indexes and payloads alike', async () => {
  const { fixture, points } = await mixed();
  const filters: [unknown, (payload: Payload) => boolean][] = [
    [undefined, () => true],
    [{ must: [{ key: 'flag', match: { value: true } }] }, ({ flag }) => flag === true],
    [{ must: [{ has_id: [1, 2, 401, 555] }] }, () => true],
  ];
  for (const [filter, passes] of filters) {
    const chosen = filter === filters[2]?.[0] ? points.filter(({ id }) => [1, 2, 401, 555].includes(id as number)) : points;
    for (const key of ['color', 'n', 'flag']) {
      const hits = read(fixture, 'facet', { key, filter, limit: 50 }).hits as unknown as { value: JsonValue; count: number }[];
      assert.deepEqual(
        hits.map(({ value, count }) => [value, count]),
        naive(chosen, key, passes),
        `${key} ${JSON.stringify(filter)}`,
      );
    }
  }
});

test('a key without an index that tells values apart is refused', async () => {
  const { fixture } = await mixed();
  for (const key of ['f', 'nothing']) {
    assert.throws(
      () => read(fixture, 'facet', { key }),
      (error) => error instanceof TroupeError && error.code === 'wrongInput',
    );
  }
  for (const body of [{}, { key: 'a..b' }, { key: 5 }, [], { key: 'n', exact: 1 }]) {
    assert.throws(
      () => read(fixture, 'facet', body),
      (error) => error instanceof TroupeError && error.code === 'malformedBody',
    );
  }
  assert.throws(() => read(fixture, 'facet', { key: 'n', limit: 0 }), { code: 'invalidValue' });
  assert.throws(() => read(fixture, 'facet', { key: 'n', shard_key: 'a' }), { code: 'badRequest' });
});

test('of a segment without deleted rows the lengths of its lists are the counts, and a row that is deleted later is not counted', async () => {
  const fixture = new CollectionFixture(configOf({ size: 2, distance: 'Dot' }), FIELDS);
  fixtures.push(fixture);
  // Runs of every length, texts of more than one byte a letter, and one that is not kept.
  const colors = ['zelená', '緑', '🟢', 'x'.repeat(70), 'red'];
  const points = Array.from({ length: 700 }, (_, id): TestPoint => {
    const payload: Payload = { color: colors[id % 5] as string, n: Math.floor(Math.sqrt(id)), flag: id % 2 === 0 };
    return { id, vectors: { '': [id, 1] }, payload };
  });
  await fixture.addSealed(points, false);
  const expectCounts = (live: readonly TestPoint[]): void => {
    for (const key of ['color', 'n', 'flag']) {
      const hits = read(fixture, 'facet', { key, limit: 50 }).hits as unknown as { value: JsonValue; count: number }[];
      assert.deepEqual(new Map(hits.map(({ value, count }) => [value, count])), new Map(naive(live, key, () => true)), key);
    }
  };
  expectCounts(points);
  expectCounts(points);
  fixture.delete(123);
  expectCounts(points.filter(({ id }) => id !== 123));
});

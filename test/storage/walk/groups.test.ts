import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import fc from 'fast-check';
import type { FieldSchema } from '../../../protocols/model/collection.js';
import type { JsonValue, Payload } from '../../../protocols/model/payload.js';
import { decodeQueryGroups } from '../../../protocols/rest/groups.js';
import { scannedBody } from '../../../protocols/rest/request-value.js';
import type { ReadContext } from '../../../storage/reader/read-context.js';
import { seeded } from '../../query/property.js';
import { CollectionFixture, configOf, contextOf, queryGroups, randomOf, SEQ, type TestPoint } from '../engine/collection-fixture.js';

const fixtures: CollectionFixture[] = [];
after(() => {
  for (const fixture of fixtures) fixture.remove();
});

const UUID = '936da01f-9abd-4d9d-80c7-02af85c822a8';

function fixtureOf(fields?: ReadonlyMap<string, FieldSchema>): CollectionFixture {
  const fixture = new CollectionFixture(configOf({ size: 2, distance: 'Dot' }), fields);
  fixtures.push(fixture);
  return fixture;
}

function groupsIn(context: ReadContext, body: unknown): [JsonValue | bigint, (string | number | bigint)[]][] {
  const request = decodeQueryGroups(scannedBody(new TextEncoder().encode(JSON.stringify(body))));
  return queryGroups(context, request).map(({ id, hits }) => [id, hits.map((hit) => hit.id)]);
}

/** Most points are of one group, a few of many others; some have several values, some none. Lower ids are nearer. */
function pointsOf(count: number): TestPoint[] {
  const random = randomOf(3);
  return Array.from({ length: count }, (_, id) => {
    const some = (): JsonValue => {
      const n = Math.floor(random() * 40);
      return random() < 0.8 ? 'most' : n % 4 === 0 ? n : n % 9 === 0 ? null : n % 7 === 0 ? 1.5 : `g${n}`;
    };
    const g = id % 6 === 0 ? [some(), some()] : some();
    const payload: Payload = id % 13 === 0 ? {} : { g };
    return { id, vectors: { '': [count - id, 0] }, payload, ...(id % 10 === 9 ? { deletedAt: 1 } : {}) };
  });
}

function naive(points: readonly TestPoint[], limit: number, size: number): [JsonValue, number[]][] {
  const groups = new Map<JsonValue, number[]>();
  for (const { id, payload, deletedAt } of points) {
    if (deletedAt !== undefined && deletedAt <= SEQ) continue;
    const { g } = payload as { g?: JsonValue };
    const values = (Array.isArray(g) ? g : [g]).filter((value) => typeof value === 'string' || Number.isInteger(value)) as JsonValue[];
    for (const value of new Set(values)) groups.set(value, [...(groups.get(value) ?? []), id as number]);
  }
  return [...groups].slice(0, limit).map(([value, ids]) => [value, ids.slice(0, size)]);
}

for (const [name, schema] of [
  ['no index', undefined],
  ['a keyword index', { type: 'keyword' }],
] as const) {
  test(`as many groups and hits come as there are, in the order of the ranking, with ${name}`, async () => {
    const fixture = fixtureOf(schema === undefined ? undefined : new Map([['g', schema]]));
    const points = pointsOf(900);
    await fixture.addSealed(points.slice(0, 300), false);
    await fixture.addSealed(points.slice(300, 600), false);
    fixture.addAppendable(points.slice(600));
    const context = contextOf(fixture);
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 12 }), (limit, size) => {
        const found = groupsIn(context, { query: [1, 0], group_by: 'g', limit, group_size: size });
        assert.deepEqual(found, naive(points, limit, size));
      }),
      seeded(60),
    );
  });
}

test('groups of an order hold a point once, however often it stands there', () => {
  const fixture = fixtureOf(new Map([['n', { type: 'integer' }]]));
  fixture.addAppendable([
    { id: 1, vectors: { '': [1, 0] }, payload: { g: 'a', n: [1, 3] } },
    { id: 2, vectors: { '': [1, 0] }, payload: { g: 'a', n: 2 } },
    { id: 3, vectors: { '': [1, 0] }, payload: { g: 'b', n: 4 } },
  ]);
  assert.deepEqual(groupsIn(contextOf(fixture), { query: { order_by: 'n' }, group_by: 'g', group_size: 5 }), [
    ['a', [1, 2]],
    ['b', [3]],
  ]);
});

test('points of another collection come with the groups whose values are their ids', () => {
  const [own, other] = [fixtureOf(), fixtureOf()];
  own.addAppendable([
    { id: 1, vectors: { '': [3, 0] }, payload: { g: UUID.toUpperCase() } },
    { id: 2, vectors: { '': [2, 0] }, payload: { g: 7 } },
    { id: 3, vectors: { '': [1, 0] }, payload: { g: '7' } },
    { id: 4, vectors: { '': [0, 0] }, payload: { g: -7 } },
  ]);
  other.addAppendable([
    { id: 7, vectors: { '': [1, 2] }, payload: { title: 'seven' } },
    { id: UUID, vectors: { '': [1, 2] }, payload: { title: 'uuid' } },
  ]);
  const context: ReadContext = {
    ...contextOf(own),
    lookup: (name) => (name === 'docs' ? [other.snapshot()] : contextOf(own).lookup(name)),
  };
  const body = { query: [1, 0], group_by: 'g', with_lookup: { collection: 'docs', with_payload: ['title'] } };
  const groups = queryGroups(context, decodeQueryGroups(scannedBody(new TextEncoder().encode(JSON.stringify(body)))));
  assert.deepEqual(
    groups.map(({ id, lookup }) => [id, lookup === undefined ? null : Buffer.from(lookup.payload as Uint8Array).toString()]),
    [
      [UUID.toUpperCase(), '{"title":"uuid"}'],
      [7, '{"title":"seven"}'],
      ['7', null],
      [-7, null],
    ],
  );
  assert.throws(() => groupsIn(context, { ...body, with_lookup: 'nowhere' }), { code: 'notFound' });
});

test('groups by one key after another are those of that key, also when rows were looked at before', async () => {
  const fixture = fixtureOf();
  const keys = ['a', 'b', 'c', 'd', 'e', 'f'];
  const points = Array.from({ length: 30 }, (_, id) => ({
    id,
    vectors: { '': [30 - id, 0] },
    payload: Object.fromEntries(keys.map((key, at) => [key, `${key}${Math.floor(id / (at + 1)) % 3}`])),
  }));
  await fixture.addSealed(points.slice(0, 15), false);
  fixture.addAppendable(points.slice(15));
  for (let round = 0; round < 3; round++) {
    for (const key of keys) {
      const found = groupsIn(contextOf(fixture), { query: [1, 0], group_by: key, limit: 3, group_size: 4 });
      const renamed = points.map((point) => ({ ...point, payload: { g: point.payload[key] as string } }));
      assert.deepEqual(found, naive(renamed, 3, 4), key);
    }
  }
});

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import * as fc from 'fast-check';
import type { TroupeError } from '../../../../protocols/errors.js';
import type { VectorParams, VectorsConfig } from '../../../../protocols/model/collection.js';
import { decodeQuery } from '../../../../protocols/rest/queries.js';
import { scannedBody } from '../../../../protocols/rest/request-value.js';
import { retrievePoints } from '../../../../storage/reader/query/points.js';
import { stagingBatches } from '../../../../storage/reader/snapshot/filed-originals.js';
import type { VectorLayout } from '../../../../storage/segment/layout.js';
import { bringOriginals, originalsOffset } from '../../../../storage/segment/originals.js';
import {
  CollectionFixture,
  configOf,
  contextOf,
  randomOf,
  runQuery,
  SEQ,
  scroll,
  type TestPoint,
} from '../../engine/collection-fixture.js';

/** Wide enough for many batches of the staging area, and no multiple of a kernel's lanes. */
const DIM = 203;
const fixtures: CollectionFixture[] = [];
after(() => {
  for (const fixture of fixtures) fixture.remove();
});

function pointsOf(from: number, count: number): TestPoint[] {
  const random = randomOf(from + 1);
  return Array.from({ length: count }, (_, i) => {
    const id = from + i;
    const vectors: TestPoint['vectors'] = id % 50 === 49 ? {} : { '': Array.from({ length: DIM }, () => random() * 2 - 1) };
    return {
      id,
      vectors,
      payload: { group: id % 10, rare: id % 100 === 0 },
      ...(id % 7 === 0 ? { deletedAt: 1 + (id % (SEQ + 5)) } : {}),
    };
  });
}

/** A sealed segment with a graph, one without, and an appendable one. */
async function collectionOf(vectors: VectorsConfig): Promise<CollectionFixture> {
  const fixture = new CollectionFixture(configOf(vectors));
  fixtures.push(fixture);
  await fixture.addSealed(pointsOf(0, 1500), true);
  await fixture.addSealed(pointsOf(1500, 400), false);
  fixture.addAppendable(pointsOf(1900, 100));
  return fixture;
}

const offsetsOf = (fixture: CollectionFixture) => fixture.snapshot().segments.map(({ handle }) => handle.layout.vectors[0]?.offset ?? null);

function search(fixture: CollectionFixture, value: unknown): unknown {
  return runQuery(contextOf(fixture), decodeQuery(scannedBody(Buffer.from(JSON.stringify(value)))));
}

const ALL = { withPayload: { kind: 'all' }, withVector: { kind: 'all' } } as const;
const filters = [
  null,
  { must_not: [{ key: 'group', match: { value: 3 } }] },
  { must: [{ key: 'group', match: { value: 3 } }] },
  { must: [{ key: 'rare', match: { value: true } }] },
];
const kinds: Omit<VectorParams, 'size'>[] = [
  { distance: 'Dot' },
  { distance: 'Cosine' },
  { distance: 'Euclid' },
  { distance: 'Manhattan' },
  { distance: 'Euclid', datatype: 'float16' },
];

for (const kind of kinds) {
  test(`${kind.distance} ${kind.datatype ?? 'float32'}: answers do not tell whether originals are in memory`, async () => {
    const resident = await collectionOf({ size: DIM, ...kind });
    const filed = await collectionOf({ size: DIM, ...kind, on_disk: true });
    assert.deepEqual(
      offsetsOf(filed).map((offset) => offset === null),
      [true, true, false],
    );
    assert.ok(offsetsOf(resident).every((offset) => offset !== null));
    const random = randomOf(77);
    for (const filter of filters) {
      for (const params of [{ exact: true }, { hnsw_ef: 16 }, { hnsw_ef: 200 }, {}]) {
        for (const limit of [1, 10, 700]) {
          const query = { query: Array.from({ length: DIM }, () => random() * 2 - 1), filter, params, limit, with_vector: limit === 10 };
          assert.deepEqual(search(filed, query), search(resident, query), JSON.stringify({ filter, params, limit }));
        }
      }
    }
    assert.deepEqual(search(filed, { query: 11, params: { exact: true } }), search(resident, { query: 11, params: { exact: true } }));
    const ids = [1, 2, 49, 1600, 1950];
    assert.deepEqual(retrievePoints([filed.snapshot()], { ids, ...ALL }), retrievePoints([resident.snapshot()], { ids, ...ALL }));
    const page = { limit: 2000, offset: null, orderBy: null, filter: null, ...ALL };
    assert.deepEqual(scroll([filed.snapshot()], page), scroll([resident.snapshot()], page));
  });
}

test('answers do not tell whether originals have arrived in memory; damage on the way leaves them in their file', async () => {
  const resident = await collectionOf({ size: DIM, distance: 'Cosine' });
  const arriving = await collectionOf({ size: DIM, distance: 'Cosine' });
  const handle = await arriving.reopenArriving();
  const vector = handle.layout.vectors[0] as VectorLayout;
  const file = path.join(handle.folder as string, 'vectors.0');
  const query = Array.from({ length: DIM }, (_, at) => Math.sin(at));
  const agree = (isThere: boolean) => {
    assert.equal(originalsOffset(handle.memory, vector) !== null, isThere);
    for (const params of [{ exact: true }, { hnsw_ef: 64 }, { quantization: { rescore: false } }]) {
      const request = { query, params, limit: 20, with_vector: true };
      assert.deepEqual(search(arriving, request), search(resident, request), JSON.stringify(params));
    }
  };
  agree(false);
  const bytes = fs.readFileSync(file);
  const damaged = Buffer.from(bytes);
  damaged[bytes.length - 1000] = (bytes[bytes.length - 1000] as number) ^ 1;
  fs.writeFileSync(file, damaged);
  await assert.rejects(
    bringOriginals(handle, vector, async () => {}),
    /vectors\.0: checksum/,
  );
  fs.writeFileSync(file, bytes);
  agree(false);
  await bringOriginals(handle, vector, async () => {});
  fs.truncateSync(file, 0);
  agree(true);
});

test('originals of one byte are their own codes and stay in memory', async () => {
  const fixture = await collectionOf({ size: DIM, distance: 'Euclid', datatype: 'uint8', on_disk: true });
  assert.ok(offsetsOf(fixture).every((offset) => offset !== null));
});

test('a vectors file that ends early is reported by its name', async () => {
  const fixture = await collectionOf({ size: DIM, distance: 'Dot', on_disk: true });
  const file = path.join(fixture.snapshot().segments[0]?.handle.folder as string, 'vectors.0');
  fs.truncateSync(file, 4096);
  const named = (error: TroupeError) => error.code === 'storage' && error.detail.startsWith(`${file}: torn`);
  const query = new Array(DIM).fill(0.5);
  assert.throws(() => search(fixture, { query, params: { exact: true } }), named);
  assert.throws(() => search(fixture, { query }), named);
  assert.throws(() => retrievePoints([fixture.snapshot()], { ids: Array.from({ length: 100 }, (_, id) => id), ...ALL }), named);
});

test('the time limit ends an exact search on disk', async () => {
  const fixture = await collectionOf({ size: DIM, distance: 'Dot', on_disk: true });
  fixture.deadline.deadlineMs = 1;
  assert.throws(() => search(fixture, { query: new Array(DIM).fill(0.5), params: { exact: true } }), { code: 'timeout' });
});

test('batches hold each wanted row once, within the room, and reads lie where rows are expected', () => {
  const wanted = fc.uniqueArray(fc.nat(300), { maxLength: 120 }).map((rows) => Uint32Array.from(rows).sort());
  fc.assert(
    fc.property(wanted, fc.integer({ min: 1, max: 20 }), fc.nat(5), (rows, room, gap) => {
      let from = 0;
      for (const batch of stagingBatches(rows, room, gap)) {
        assert.equal(batch.from, from);
        const staged = new Map<number, number>();
        for (const { row, count, at } of batch.reads) {
          assert.ok(at + count <= room);
          for (let i = 0; i < count; i++) {
            assert.ok(!staged.has(at + i));
            staged.set(at + i, row + i);
          }
        }
        assert.deepEqual(
          batch.places.map((at) => staged.get(at)),
          [...rows.subarray(from, from + batch.places.length)],
        );
        assert.ok(staged.size <= batch.places.length + gap * batch.places.length);
        from += batch.places.length;
      }
      assert.equal(from, rows.length);
    }),
  );
});

test('rows in a row are one read a batch', () => {
  const rows = Uint32Array.from({ length: 10 }, (_, row) => row + 5);
  assert.deepEqual(
    [...stagingBatches(rows, 4, 0)].map(({ reads }) => reads),
    [[{ row: 5, count: 4, at: 0 }], [{ row: 9, count: 4, at: 0 }], [{ row: 13, count: 2, at: 0 }]],
  );
});

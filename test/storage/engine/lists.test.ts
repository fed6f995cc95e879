import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import type { CollectionConfig, Distance, FieldSchema, QuantizationConfig } from '../../../protocols/model/collection.js';
import { listsToRead, writeStarts } from '../../../storage/builder/make-lists.js';
import { listReads } from '../../../storage/reader/snapshot/filed-lists.js';
import { verifyAll } from '../../../storage/replica/arrivals.js';
import { SegmentRows } from '../../../storage/replica/segment-rows.js';
import type { VectorLayout } from '../../../storage/segment/layout.js';
import { isUnverified } from '../../../storage/segment/originals.js';
import { loadSealed } from '../../../storage/segment/sealed.js';
import { CollectionFixture, configOf, randomOf, type TestPoint } from './collection-fixture.js';
import { type ExplainedAnswer, explainedQuery } from './explained-query.js';

/** Segments whose rows lie in lists on disk: what searches find, what they read, and what they need in memory. */

const DIM = 32;
const ROWS = 6000;
const LIMIT = 10;
const fixtures: CollectionFixture[] = [];
after(() => {
  for (const fixture of fixtures) fixture.remove();
});

const random = randomOf(5);
const normal = (): number => random() + random() + random() + random() - 2;
const centres = Array.from({ length: 60 }, () => Array.from({ length: DIM }, () => 3 * normal()));
const near = (n: number): number[] => (centres[n % centres.length] as number[]).map((value) => value + normal());
const POINTS: readonly TestPoint[] = Array.from({ length: ROWS }, (_, id) => ({
  id,
  vectors: id % 100 === 7 ? {} : ({ '': near(id) } as TestPoint['vectors']),
  payload: { n: id },
}));
const QUERIES = Array.from({ length: 60 }, (_, n) => near(n));
const FIELDS: ReadonlyMap<string, FieldSchema> = new Map([['n', { type: 'integer' }]]);

function listedConfig(distance: Distance, quantization?: QuantizationConfig): CollectionConfig {
  const config = configOf({ size: DIM, distance, on_disk: true, hnsw_config: { on_disk: true } });
  return { ...config, quantization_config: quantization ?? null };
}

async function collectionOf(config: CollectionConfig, sumsFromBytes?: number): Promise<CollectionFixture> {
  const fixture = new CollectionFixture(config, FIELDS);
  fixtures.push(fixture);
  await fixture.addSealed(POINTS, true, sumsFromBytes);
  return fixture;
}

const query = (fixture: CollectionFixture, body: object): ExplainedAnswer => explainedQuery(fixture, { limit: LIMIT, ...body });

/** Mean part of the exact answers that searches find. */
function recallOf(fixture: CollectionFixture): number {
  let found = 0;
  for (const vector of QUERIES) {
    const exact = new Set(query(fixture, { query: vector, params: { exact: true } }).ids);
    found += query(fixture, { query: vector }).ids.filter((id) => exact.has(id)).length;
  }
  return found / (QUERIES.length * LIMIT);
}

const turn = () => new Promise<void>((done) => setImmediate(done));

const folderOf = (fixture: CollectionFixture): string => fixture.snapshot().segments[0]?.handle.folder as string;

for (const distance of ['Cosine', 'Euclid', 'Dot', 'Manhattan'] as const) {
  test(`${distance}: searches read a few lists, and find what is nearest`, async () => {
    const fixture = await collectionOf(listedConfig(distance));
    const { search } = query(fixture, { query: QUERIES[0] });
    assert.equal(search.plan, 'lists');
    assert.ok(search.rows_scored < ROWS / 2, `${search.rows_scored} rows scored`);
    assert.ok(search.reads > 0 && search.bytes_read >= search.rows_scored * DIM, JSON.stringify(search));
    const recall = recallOf(fixture);
    assert.ok(recall >= 0.93, `recall ${recall}`);
    const few = query(fixture, { query: QUERIES[0], params: { hnsw_ef: 10 } }).search;
    const many = query(fixture, { query: QUERIES[0], params: { hnsw_ef: 400 } }).search;
    assert.ok(few.bytes_read < search.bytes_read && search.bytes_read < many.bytes_read);
  });
}

test('exact answers, with vectors, are those of a collection in memory', async () => {
  const fixture = await collectionOf(listedConfig('Euclid'));
  const resident = await collectionOf(configOf({ size: DIM, distance: 'Euclid' }));
  for (const filter of [undefined, { must: [{ key: 'n', range: { lt: 900 } }] }]) {
    const body = { query: QUERIES[1], params: { exact: true }, filter, with_vector: true, with_payload: true };
    assert.deepEqual(query(fixture, body).points, query(resident, body).points);
  }
});

test('neither codes nor originals are in memory', async () => {
  const fixture = await collectionOf(listedConfig('Euclid'));
  const vector = fixture.snapshot().segments[0]?.handle.layout.vectors[0];
  assert.deepEqual([vector?.codes, vector?.offset], [null, null]);
  const file = path.join(folderOf(fixture), 'codes.0');
  fs.truncateSync(file, 0);
  assert.throws(
    () => query(fixture, { query: QUERIES[0] }),
    (error: { code: string; detail: string }) => error.code === 'storage' && error.detail.startsWith(`${file}: `),
  );
});

test('a filter leaves out rows within lists, and as many points come back as match', async () => {
  const fixture = await collectionOf(listedConfig('Euclid'));
  const half = { must: [{ key: 'n', range: { lt: ROWS / 2 } }] };
  const { ids, search } = query(fixture, { query: QUERIES[2], filter: half });
  assert.equal(search.plan, 'lists');
  assert.equal(ids.length, LIMIT);
  assert.ok(ids.every((id) => id < ROWS / 2));
  // The matches are all in one cluster, far from the query: the nearest lists may have none of them.
  const far = { must: [{ key: 'n', match: { any: Array.from({ length: 40 }, (_, i) => 3 + 60 * i) } }] };
  assert.equal(query(fixture, { query: QUERIES[33], filter: far, limit: 40 }).ids.length, 40 - countWithout(40));
});

/** Points of those that have no vector. */
const countWithout = (count: number): number => Array.from({ length: count }, (_, i) => 3 + 60 * i).filter((id) => id % 100 === 7).length;

test('deleted points are not found any more', async () => {
  const fixture = await collectionOf(listedConfig('Euclid'));
  const [best, second] = query(fixture, { query: QUERIES[3] }).ids as [number, number];
  fixture.delete(best);
  const { ids } = query(fixture, { query: QUERIES[3] });
  assert.ok(!ids.includes(best));
  assert.equal(ids[0], second);
});

test('quantized codes are read by lists, too, and the originals decide', async () => {
  for (const quantization of [
    { scalar: { type: 'int8' } },
    { product: { compression: 'x8' } },
    { turbo: { bits: 'bits4' } },
  ] as readonly QuantizationConfig[]) {
    const fixture = await collectionOf(listedConfig('Cosine', quantization));
    assert.equal(query(fixture, { query: QUERIES[0] }).search.plan, 'lists');
    const recall = recallOf(fixture);
    assert.ok(recall >= 0.85, `${JSON.stringify(quantization)}: recall ${recall}`);
  }
});

test('damage in lists or their codes is survived without them, and reported for a repair', async () => {
  for (const name of ['codes.0', 'lists.0']) {
    const fixture = await collectionOf(listedConfig('Euclid'));
    const file = path.join(folderOf(fixture), name);
    const bytes = fs.readFileSync(file);
    for (const at of [bytes.length >> 1, 70]) {
      const damaged = Uint8Array.from(bytes);
      damaged[at] = (damaged[at] as number) ^ 1;
      fs.writeFileSync(file, damaged);
      const options = { readers: 1, onDiskPayload: true, onDisk: () => true, fields: FIELDS };
      const { damagedFiles, handle } = await loadSealed(folderOf(fixture), options);
      assert.deepEqual([damagedFiles, handle.layout.vectors[0]?.lists], [[name], null], `${name} at ${at}`);
    }
  }
});

test('a start reads neither codes nor originals through where they have sums: each block is verified before it is used, and all soon after', async () => {
  const fixture = await collectionOf(listedConfig('Euclid'), 1);
  const opened = async (): Promise<SegmentRows> => {
    const handle = await fixture.reopen();
    return new SegmentRows(handle, handle.rows);
  };
  const [built] = fixture.snapshot().segments;
  assert.ok(!isUnverified(built?.handle.layout.vectors[0] as VectorLayout), 'the build has just written its files');
  const sound = await opened();
  const vector = (segment: SegmentRows): VectorLayout => segment.layout.vectors[0] as VectorLayout;
  assert.ok(vector(sound).file?.sums !== undefined && vector(sound).lists?.filed?.file.sums !== undefined);
  assert.ok(isUnverified(vector(sound)));
  assert.ok(recallOf(fixture) >= 0.93);
  assert.deepEqual(await verifyAll(() => [sound], turn), []);
  assert.deepEqual([isUnverified(vector(sound)), sound.damagedFiles], [false, []]);

  const file = path.join(folderOf(fixture), 'codes.0');
  const start = vector(sound).lists?.filed?.file.start as number;
  const bytes = fs.readFileSync(file);
  bytes[start + 70_000] = (bytes[start + 70_000] as number) ^ 1;
  fs.writeFileSync(file, bytes);
  const damaged = await opened();
  const whole = () => query(fixture, { query: QUERIES[0], params: { hnsw_ef: ROWS } });
  assert.throws(whole, { code: 'storage', path: file }, 'some list lies in the damaged block');
  const [damage = ''] = await verifyAll(() => [damaged], turn);
  assert.match(damage, /codes\.0: checksum/);
  assert.deepEqual(damaged.damagedFiles, ['codes.0'], 'for a repair');
  assert.throws(whole, { code: 'storage', path: file });
});

test('lists begin where the ones before end; rows without the vector are behind the last', () => {
  const starts = new Uint32Array(4);
  writeStarts(starts, Uint32Array.of(2, 0, 3, 2, 0, 2));
  assert.deepEqual([...starts], [0, 2, 2, 5]);
});

test('as many lists are read as hold 98 of 100 neighbours', () => {
  const ranks = Array.from({ length: 100 }, (_, n) => (n < 97 ? 0 : n));
  assert.equal(listsToRead(ranks, 200), 98);
  assert.equal(listsToRead(ranks, 50), 50);
  assert.equal(listsToRead([], 50), 50);
});

test('lists that follow each other are read at once, up to the room there is', () => {
  const starts = Uint32Array.of(0, 10, 20, 20, 45, 50);
  const reads = (lists: number[], room: number) => [...listReads(Uint32Array.from(lists), starts, room)].map(({ from, to }) => [from, to]);
  assert.deepEqual(reads([0, 1, 4], 100), [
    [0, 20],
    [45, 50],
  ]);
  assert.deepEqual(reads([0, 1], 15), [
    [0, 10],
    [10, 20],
  ]);
  assert.deepEqual(reads([3], 10), [
    [20, 30],
    [30, 40],
    [40, 45],
  ]);
});

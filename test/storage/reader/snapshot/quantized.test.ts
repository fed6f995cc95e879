import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { CollectionConfig, Distance, QuantizationConfig, VectorParams } from '../../../../protocols/model/collection.js';
import { decodeQuery } from '../../../../protocols/rest/queries.js';
import { scannedBody } from '../../../../protocols/rest/request-value.js';
import { codeFacts } from '../../../../storage/reader/snapshot/quantized.js';
import type { SegmentHandle } from '../../../../storage/segment/handle.js';
import { loadSealed } from '../../../../storage/segment/sealed.js';
import { CollectionFixture, configOf, contextOf, randomOf, runQuery, type TestPoint } from '../../engine/collection-fixture.js';

const DIM = 32;
const ROWS = 3000;
const LIMIT = 10;
const fixtures: CollectionFixture[] = [];
after(() => {
  for (const fixture of fixtures) fixture.remove();
});

const search = (fixture: CollectionFixture, value: object) =>
  runQuery(contextOf(fixture), decodeQuery(scannedBody(new TextEncoder().encode(JSON.stringify(value)))));

const normal = (random: () => number) => random() + random() + random() + random() - 2;
const vectorsOf = (count: number, seed: number, scale = 1) => {
  const random = randomOf(seed);
  return Array.from({ length: count }, () => Array.from({ length: DIM }, () => scale * normal(random)));
};
const QUERIES = vectorsOf(20, 99);

async function collectionOf(
  quantization: QuantizationConfig | null,
  vector: Partial<VectorParams> & { distance: Distance },
  shape: { own?: boolean; bytes?: boolean; graph?: boolean } = {},
): Promise<CollectionFixture> {
  const own = shape.own && quantization !== null ? { quantization_config: quantization } : {};
  const plain = configOf({ size: DIM, ...vector, ...own });
  const config: CollectionConfig = { ...plain, quantization_config: shape.own ? null : quantization };
  const fixture = new CollectionFixture(config);
  fixtures.push(fixture);
  const points = vectorsOf(ROWS, 5).map(
    (values, id): TestPoint => ({ id, vectors: { '': shape.bytes ? values.map((value) => Math.floor((value + 2) * 63)) : values } }),
  );
  await fixture.addSealed(points, shape.graph ?? true);
  return fixture;
}

function recall(fixture: CollectionFixture, params: object, queries: readonly (readonly number[])[] = QUERIES): number {
  let found = 0;
  for (const query of queries) {
    const exact = search(fixture, { query, limit: LIMIT, params: { exact: true } }).map(({ id }) => id);
    for (const { id } of search(fixture, { query, limit: LIMIT, params })) if (exact.includes(id)) found++;
  }
  return found / (queries.length * LIMIT);
}

const SETTINGS: readonly (readonly [QuantizationConfig, number])[] = [
  [{ scalar: { type: 'int8', quantile: 0.99 } }, 0.97],
  [{ product: { compression: 'x4' } }, 0.97],
  [{ product: { compression: 'x8' } }, 0.9],
  [{ product: { compression: 'x16' } }, 0.6],
  [{ binary: { encoding: 'one_bit' } }, 0.6],
  [{ binary: { encoding: 'two_bits' } }, 0.85],
  [{ turbo: { bits: 'bits1_5' } }, 0.7],
  [{ turbo: {} }, 0.95],
];

for (const [quantization, least] of SETTINGS) {
  const name = JSON.stringify(quantization).replaceAll('"', '');
  test(`${name}: neighbours are found, with exact scores when rescored and near ones when not`, async () => {
    for (const distance of ['Dot', 'Cosine', 'Euclid', 'Manhattan'] as const) {
      const fixture = await collectionOf(quantization, { distance });
      const found = recall(fixture, { hnsw_ef: 200, quantization: { oversampling: 4 } });
      // Few levels know less of sums of differences than of products.
      assert.ok(found >= least * (distance === 'Manhattan' ? 0.75 : 1), `${distance}: ${found}`);
      for (const query of QUERIES.slice(0, 5)) {
        const exact = new Map(search(fixture, { query, limit: ROWS, params: { exact: true } }).map(({ id, score }) => [id, score]));
        for (const { id, score } of search(fixture, { query, limit: LIMIT })) assert.equal(score, exact.get(id), `${distance}, rescored`);
        const coded = search(fixture, { query, limit: LIMIT, params: { quantization: { rescore: false } } });
        assert.equal(coded.length, LIMIT);
        const better = distance === 'Euclid' || distance === 'Manhattan' ? 1 : -1;
        for (let i = 1; i < LIMIT; i++) assert.ok(better * ((coded[i]?.score as number) - (coded[i - 1]?.score as number)) >= 0, 'sorted');
        assert.ok(
          coded.some(({ id, score }) => score !== exact.get(id)),
          `${distance}: scores of codes`,
        );
        assert.ok(coded.every(({ score }) => Number.isFinite(score)));
      }
    }
  });
}

test('ignore searches as if there were no quantization', async () => {
  const quantized = await collectionOf({ binary: {} }, { distance: 'Dot' });
  assert.ok(recall(quantized, { hnsw_ef: 200, quantization: { ignore: true } }) >= 0.97);
  assert.ok(recall(quantized, { hnsw_ef: 200, quantization: { oversampling: 1 } }) < 0.9);
});

test('oversampling finds more, up to all when it asks for all rows', async () => {
  const fixture = await collectionOf({ product: { compression: 'x64' } }, { distance: 'Euclid' });
  const at = (oversampling: number) => recall(fixture, { quantization: { oversampling } });
  const [none, some, many] = [at(1), at(4), at(32)];
  assert.ok(none < some && some < many, `${none} ${some} ${many}`);
  assert.equal(at(300), 1);
  assert.equal(at(1e15), 1);
});

test("a vector's own quantization takes the place of its collection's, and segments without a graph are searched by codes too", async () => {
  const fixture = await collectionOf({ turbo: { bits: 'bits2' } }, { distance: 'Cosine' }, { own: true, graph: false });
  assert.deepEqual(fixture.snapshot().segments[0]?.reader.vector('')?.layout.quantization, { turbo: { bits: 'bits2' } });
  assert.ok(recall(fixture, { quantization: { oversampling: 8 } }) >= 0.95);
  const [first] = search(fixture, { query: QUERIES[0], limit: 1, params: { quantization: { rescore: false } } });
  const [exact] = search(fixture, { query: QUERIES[0], limit: 1, params: { exact: true } });
  assert.notEqual(first?.score, exact?.score);
});

test('vectors of half floats and of bytes are quantized too; bytes are their own 8-bit codes', async () => {
  const halves = await collectionOf({ turbo: {} }, { distance: 'Cosine', datatype: 'float16' });
  assert.ok(recall(halves, { quantization: { oversampling: 4 } }) >= 0.95);
  const queries = QUERIES.map((query) => query.map((value) => Math.floor((value + 2) * 63)));
  for (const [quantization, distance] of [
    [{ turbo: {} }, 'Euclid'],
    [{ scalar: { type: 'int8' } }, 'Euclid'],
    [{ product: { compression: 'x4' } }, 'Dot'],
    [{ binary: {} }, 'Cosine'],
  ] as const) {
    const bytes = await collectionOf(quantization, { distance, datatype: 'uint8' }, { bytes: true });
    assert.ok(recall(bytes, { hnsw_ef: 200, quantization: { oversampling: 8 } }, queries) >= 0.93, JSON.stringify(quantization));
  }
});

test('originals on disk are rescored from their file, also when the request ignores the codes', async () => {
  const fixture = await collectionOf({ scalar: { type: 'int8', always_ram: false } }, { distance: 'Euclid', on_disk: true });
  assert.equal(fixture.snapshot().segments[0]?.reader.vector('')?.original, null);
  for (const quantization of [{}, { ignore: true }, { ignore: true, rescore: false }]) {
    assert.ok(recall(fixture, { hnsw_ef: 200, quantization }) >= 0.97);
    const [first] = search(fixture, { query: QUERIES[0], limit: 1, params: { quantization } });
    const [exact] = search(fixture, { query: QUERIES[0], limit: 1, params: { exact: true } });
    assert.equal(first?.score, exact?.score);
  }
});

test('parameters of a search change nothing about codes that no quantization asked for', async () => {
  const fixture = await collectionOf(null, { distance: 'Euclid' });
  const vector = fixture.snapshot().segments[0]?.reader.vector('') as Parameters<typeof codeFacts>[0];
  const params = { ignore: true, rescore: false, oversampling: 7 };
  assert.deepEqual(codeFacts(vector, params), { bytes: DIM, rescore: true, oversampling: null, coarse: false, rescoreFound: false });
  const plain = search(fixture, { query: QUERIES[0], limit: LIMIT });
  assert.deepEqual(search(fixture, { query: QUERIES[0], limit: LIMIT, params: { quantization: params } }), plain);
});

const TOKENS = 4;
const MULTI_ROWS = 800;
/** Points of several vectors each, and queries of as many. */
const listsOf = (count: number, seed: number) => {
  const vectors = vectorsOf(count * TOKENS, seed);
  return Array.from({ length: count }, (_, at) => vectors.slice(at * TOKENS, (at + 1) * TOKENS));
};

function multiCodes({ layout, memory }: SegmentHandle): Buffer {
  const [{ codes, ragged }] = layout.vectors as [SegmentHandle['layout']['vectors'][number]];
  assert.ok(codes && ragged && ragged.itemCapacity > MULTI_ROWS);
  return Buffer.from(memory.buffer, codes.offset, ragged.itemCapacity * codes.stride);
}

const MULTI_SETTINGS: readonly (readonly [QuantizationConfig, readonly Distance[], number])[] = [
  [{ scalar: { type: 'int8', quantile: 0.99 } }, ['Dot', 'Manhattan'], 0.95],
  [{ product: { compression: 'x8' } }, ['Cosine', 'Euclid'], 0.85],
  [{ binary: { encoding: 'two_bits' } }, ['Dot', 'Euclid'], 0.85],
  [{ turbo: {} }, ['Cosine', 'Manhattan'], 0.9],
];

test('multivectors are searched by the codes of their vectors, rescored with the originals, and read back with them', async () => {
  const queries = listsOf(10, 77);
  for (const [quantization, distances, least] of MULTI_SETTINGS) {
    for (const distance of distances) {
      const plain = configOf({ size: DIM, distance, multivector_config: { comparator: 'max_sim' } });
      const fixture = new CollectionFixture({ ...plain, quantization_config: quantization });
      fixtures.push(fixture);
      // Every third point has fewer vectors, and every seventh none.
      const points = listsOf(MULTI_ROWS, 5).map(
        (lists, id): TestPoint => ({ id, vectors: id % 7 === 6 ? {} : { '': id % 3 === 0 ? lists.slice(0, 1 + (id % 2)) : lists } }),
      );
      await fixture.addSealed(points, true);
      const name = `${JSON.stringify(quantization)}, ${distance}`;
      let found = 0;
      let differs = 0;
      for (const query of queries) {
        const exact = new Map(search(fixture, { query, limit: MULTI_ROWS, params: { exact: true } }).map(({ id, score }) => [id, score]));
        const best = [...exact.keys()].slice(0, LIMIT);
        for (const { id, score } of search(fixture, { query, limit: LIMIT, params: { quantization: { oversampling: 4 } } })) {
          if (best.includes(id)) found++;
          assert.equal(score, exact.get(id), `${name}: rescored`);
        }
        const coded = search(fixture, { query, limit: LIMIT, params: { quantization: { rescore: false } } });
        assert.equal(coded.length, LIMIT);
        differs += coded.filter(({ id, score }) => score !== exact.get(id)).length;
        const ignored = search(fixture, { query, limit: LIMIT, params: { quantization: { ignore: true } } });
        assert.deepEqual(ignored.map(({ id }) => id), best, `${name}: without codes`); // biome-ignore format: a line
      }
      const share = found / (queries.length * LIMIT);
      assert.ok(share >= least, `${name}: ${share}`);
      const built = fixture.snapshot().segments[0]?.handle as SegmentHandle;
      const { handle } = await loadSealed(built.folder as string, { readers: 1, onDiskPayload: true, fields: new Map() });
      assert.ok(multiCodes(handle).equals(multiCodes(built)), `${name}: read back`);
      assert.ok(differs > LIMIT, `${name}: scores of codes`);
    }
  }
});

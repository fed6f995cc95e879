import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import * as zlib from 'node:zlib';
import { copiedSettings } from '../../../ops/transfer/collection-copy.js';
import { csvRows } from '../../../ops/transfer/csv.js';
import { type FileOptions, formatOf, openFileSource } from '../../../ops/transfer/file-source.js';
import { inferredVectors } from '../../../ops/transfer/inferred-vectors.js';
import { openParquetWriter } from '../../../ops/transfer/parquet.js';
import { mapRow, type RowMapping } from '../../../ops/transfer/rows.js';
import { readImportState, writeImportState } from '../../../ops/transfer/state-file.js';
import { stringifyJson } from '../../../protocols/json.js';
import { temporaryFolder } from '../../process/support.js';

const MAPPING: RowMapping = { id: 'id', firstId: 0, vectors: null, shardKey: null, payload: null };

async function* inChunks(text: string, size: number): AsyncGenerator<string> {
  for (let at = 0; at < text.length; at += size) yield text.slice(at, at + size);
}

function optionsOf(path: string, changed: Partial<FileOptions> = {}): FileOptions {
  const format = formatOf(path) ?? assert.fail();
  return { path, format, mapping: MAPPING, separator: ',', texts: new Set(), payloads: null, ...changed };
}

/** All points of a file, in slices of two. */
async function pointsOf(options: FileOptions, cursor: unknown = null): Promise<{ points: unknown[]; cursors: unknown[] }> {
  const points: unknown[] = [];
  const cursors: unknown[] = [];
  for await (const slice of (await openFileSource(options)).slices(cursor, 2)) {
    points.push(...slice.points);
    cursors.push(slice.cursor);
  }
  return { points, cursors };
}

test('CSV with quotes, separators and line ends within fields is read whatever the chunks, and texts that look like numbers may stay texts', async () => {
  const text = '\uFEFFid,name,n,zip,flag,none\r\n1,"a ""b"", c\nd",-1.5e3,007,true,\n\n2,x,12345678901234567890,12,false,y';
  for (const size of [1, 3, 1000]) {
    const rows: unknown[] = [];
    for await (const row of csvRows(inChunks(text, size), { separator: ',', texts: new Set() })) rows.push(row);
    assert.deepEqual(rows, [
      { id: 1, name: 'a "b", c\nd', n: -1500, zip: '007', flag: true },
      { id: 2, name: 'x', n: 12345678901234567000, zip: 12, flag: false, none: 'y' },
    ]);
  }
  const kept: unknown[] = [];
  for await (const row of csvRows(inChunks('a\tb\n1\t2', 9), { separator: '\t', texts: new Set(['b']) })) kept.push(row);
  assert.deepEqual(kept, [{ a: 1, b: '2' }]);
});

test('a row becomes a point by its columns: the id, vectors by name, and all others as payload', () => {
  const row = {
    id: '18446744073709551615',
    vector: '[1, 2]',
    'vector.words': { indices: [1], values: [2] },
    city: 'Berlin',
    at: new Date(0),
    n: 5n,
  };
  assert.deepEqual(mapRow(row, 3, MAPPING).point, {
    id: 18446744073709551615n,
    vector: { '': [1, 2], words: { indices: [1], values: [2] } },
    payload: { city: 'Berlin', at: '1970-01-01T00:00:00.000Z', n: 5 },
  });
  const own = { ...MAPPING, id: null, firstId: 10, vectors: [{ name: 'v', column: 'x' }], payload: ['a'], shardKey: 'k' };
  assert.deepEqual(mapRow({ x: new Float32Array([1]), a: 1, b: 2, k: 't1' }, 3, own), {
    point: { id: 13, vector: { v: [1] }, payload: { a: 1 } },
    shardKey: 't1',
  });
  assert.throws(() => mapRow({ vector: [1] }, 0, MAPPING), /--id/);
  assert.throws(() => mapRow({ id: 1, vector: 'nonsense' }, 0, MAPPING), /column 'vector'/);
});

test('lines of points keep every digit, and an import goes on behind the rows that are written', async (t) => {
  const path = join(await temporaryFolder(t), 'a.jsonl');
  writeFileSync(
    path,
    '{"id":1,"vector":[1],"payload":{"x":1.0}}\n\n{"id":2,"vector":[2],"y":2.0}\n{"id":3,"payload":{"z":12345678901234567890}}\n',
  );
  const { cursors, points } = await pointsOf(optionsOf(path));
  assert.equal(
    points.map((point) => stringifyJson(point)).join(),
    '{"id":1,"vector":[1],"payload":{"x":1.0}},{"id":2,"vector":[2],"payload":{"y":2.0}},{"id":3,"vector":{},"payload":{"z":12345678901234567890}}',
  );
  assert.deepEqual(cursors, [2, 3]);
  assert.deepEqual((await pointsOf(optionsOf(path), 2)).points, points.slice(2));
  writeFileSync(path, '{"id":1}\n{broken\n');
  await assert.rejects(pointsOf(optionsOf(path)), /a\.jsonl, line 2: /);
});

test('rows of one request that have several shard keys are written key by key, and only the last of them moves the cursor', async (t) => {
  const path = join(await temporaryFolder(t), 'a.csv');
  writeFileSync(path, 'id,key\n1,a\n2,b\n3,a\n');
  const { cursors, points } = await pointsOf(optionsOf(path, { mapping: { ...MAPPING, shardKey: 'key' } }));
  assert.deepEqual([points.length, cursors], [3, [0, 2, 3]]);
});

/** A file of NumPy: [rows, dim] float32, little-endian. */
function npy(shape: readonly number[], numbers: readonly number[], descr = '<f4'): Buffer {
  const header = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${shape.join(', ')}), }\n`;
  const head = Buffer.from(`\u0093NUMPY\u0001\u0000\u0000\u0000${header}`, 'latin1');
  head.writeUInt16LE(header.length, 8);
  return Buffer.concat([head, Buffer.from(Float32Array.from(numbers).buffer)]);
}

test('an array of NumPy is rows of vectors with the payloads of a file beside it, from any row on', async (t) => {
  const folder = await temporaryFolder(t);
  const [path, payloads] = [join(folder, 'a.npy'), join(folder, 'p.jsonl')];
  writeFileSync(path, npy([3, 2], [1, 2, 3, 4, 5, 0.5]));
  writeFileSync(payloads, '{"n":0}\n{"n":1}\n{"n":2}\n');
  const options = optionsOf(path, { payloads, mapping: { ...MAPPING, id: null, firstId: 7 } });
  assert.equal((await openFileSource(options)).total, 3);
  assert.deepEqual((await pointsOf(options, 1)).points, [
    { id: 8, vector: [3, 4], payload: { n: 1 } },
    { id: 9, vector: [5, 0.5], payload: { n: 2 } },
  ]);
  writeFileSync(path, npy([1, 2, 2], [1, 2, 3, 4]));
  assert.deepEqual((await pointsOf(options)).points, [
    {
      id: 7,
      vector: [
        [1, 2],
        [3, 4],
      ],
      payload: { n: 0 },
    },
  ]);
  writeFileSync(path, npy([1, 2], [1, 2], '<i8'));
  await assert.rejects(pointsOf(options), /astype/);
  writeFileSync(path, npy([9, 2], [1, 2]));
  await assert.rejects(pointsOf(options), /ends early/);
});

test('what is written as Parquet is read back: ids of both kinds, dense, sparse and missing vectors, payloads with every digit', async (t) => {
  const path = join(await temporaryFolder(t), 'a.parquet');
  const points = [
    { id: 18446744073709551615n, vector: { '': [0.5, 1], words: { indices: [1], values: [2] } }, payload: { n: 12345678901234567890n } },
    { id: '2b0b2c1e-7d3a-4d0e-9c55-111111111111', vector: [1, 2], payload: {} },
    { id: 3, vector: {}, payload: { text: 'ä' } },
  ];
  const writer = await openParquetWriter(
    path,
    [
      { name: '', isDense: true },
      { name: 'words', isDense: false },
    ],
    false,
  );
  await writer.write(points);
  await writer.end();
  assert.deepEqual((await pointsOf(optionsOf(path))).points, points);
  assert.deepEqual((await pointsOf(optionsOf(path), 2)).points, points.slice(2));
  assert.ok(zlib.gunzipSync !== undefined);
});

test('a collection that is made for a file has the vectors of its first point', () => {
  assert.deepEqual(inferredVectors([1, 2], 'Dot'), { vectors: { size: 2, distance: 'Dot' } });
  assert.deepEqual(inferredVectors({ a: [[1, 2, 3]], w: { indices: [1], values: [1] }, t: { text: 'x', model: 'bm25' } }, 'Cosine'), {
    vectors: { a: { size: 3, distance: 'Cosine', multivector_config: { comparator: 'max_sim' } } },
    sparse_vectors: { w: {}, t: { modifier: 'idf' } },
  });
  assert.throws(() => inferredVectors({}, 'Dot'), /--vector/);
});

test('settings of a collection become the requests that make another one like it', () => {
  const info = {
    config: {
      params: { vectors: { size: 2, distance: 'Dot', on_disk: null }, shard_number: 2, read_fan_out_factor: 1 },
      hnsw_config: { m: 8, payload_m: null },
      optimizer_config: { indexing_threshold: 1 },
      wal_config: null,
      quantization_config: { scalar: { type: 'int8' } },
      metadata: { from: 'here' },
    },
    payload_schema: {
      city: { data_type: 'keyword', points: 3 },
      n: { data_type: 'integer', points: 3, params: { type: 'integer', range: false } },
    },
  };
  assert.deepEqual(copiedSettings(info as unknown as Parameters<typeof copiedSettings>[0]), {
    create: {
      vectors: { size: 2, distance: 'Dot' },
      shard_number: 2,
      hnsw_config: { m: 8 },
      optimizers_config: { indexing_threshold: 1 },
      quantization_config: { scalar: { type: 'int8' } },
      metadata: { from: 'here' },
    },
    change: { params: { read_fan_out_factor: 1 } },
    indexes: [
      { field_name: 'city', field_schema: 'keyword' },
      { field_name: 'n', field_schema: { type: 'integer', range: false } },
    ],
  });
});

test('the state of another import, or what is none, is not gone on with', async (t) => {
  const path = join(await temporaryFolder(t), 'state.json');
  assert.equal(readImportState(path, 'a', 'b'), null);
  const state = { version: 1, from: 'a', to: 'b', cursor: { key: 0, offset: 18446744073709551615n }, points: 5 } as const;
  writeImportState(path, state);
  assert.deepEqual(readImportState(path, 'a', 'b'), state);
  assert.throws(() => readImportState(path, 'other', 'b'), /--state/);
  writeFileSync(path, '{"version"');
  assert.throws(() => readImportState(path, 'a', 'b'), /--restart/);
});

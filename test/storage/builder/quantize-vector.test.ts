import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import type { CollectionConfig, QuantizationConfig } from '../../../protocols/model/collection.js';
import { quantizationSetting } from '../../../storage/builder/quantization-settings.js';
import { initChecksum } from '../../../storage/disk/checksum.js';
import type { SegmentHandle } from '../../../storage/segment/handle.js';
import { loadSealed } from '../../../storage/segment/sealed.js';
import { buildSegment, clusteredRows, freeControl, makeConfig, makeJob, makeSource, payloadsFrom } from './fixture.js';

const ROWS = 700;
const DIM = 24;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'troupe-quantize-'));
after(() => fs.rmSync(folder, { recursive: true }));

const rows = clusteredRows(ROWS, DIM, { clusters: 20, range: 1, spread: 0.2, seed: 4 });
const params = { size: DIM, distance: 'Euclid' } as const;
const configOf = (quantization: QuantizationConfig | null): CollectionConfig => ({
  ...makeConfig(params),
  quantization_config: quantization,
});

async function build(config: CollectionConfig, segmentId: number): Promise<SegmentHandle> {
  await initChecksum();
  const source = makeSource({ id: 1, rows: ROWS, vectors: { '': { params, of: (row) => rows[row] } }, idOf: (row) => row });
  const job = makeJob({ folder, config, sources: [source], rows: [ROWS], segmentId });
  return (await buildSegment(job, () => payloadsFrom(() => '{}'), freeControl)).handle;
}

const load = (segment: number) =>
  loadSealed(path.join(folder, 'segments', String(segment)), { readers: 3, onDiskPayload: true, fields: new Map() });

function codesOf({ memory, layout, rows: count }: SegmentHandle): { codes: Buffer; table: Buffer } {
  const codes = layout.vectors[0]?.codes;
  if (!codes) throw new Error('no codes');
  return {
    codes: Buffer.from(memory.buffer, codes.offset, count * codes.stride),
    table: Buffer.from(memory.buffer, codes.table, codes.tableBytes),
  };
}

test('codes of every kind come back from their file as they were made, and a damaged file is done without', async () => {
  const settings: QuantizationConfig[] = [
    { scalar: { type: 'int8', quantile: 0.9 } },
    { product: { compression: 'x16' } },
    { binary: { encoding: 'one_and_half_bits' } },
    { turbo: {} },
  ];
  for (const [at, setting] of settings.entries()) {
    const segment = 10 + at;
    const config = configOf(setting);
    const built = await build(config, segment);
    const { handle, damages } = await load(segment);
    assert.deepEqual(damages, []);
    assert.deepEqual(
      handle.layout.vectors,
      built.layout.vectors.map((vector, n) => ({ ...vector, ...placesOf(handle, n) })),
    );
    assert.deepEqual(handle.layout.vectors[0]?.quantization, quantizationSetting(config, ''));
    const [made, read] = [codesOf(built), codesOf(handle)];
    assert.ok(made.codes.equals(read.codes) && made.table.equals(read.table) && made.codes.some((byte) => byte !== 0));

    const file = path.join(folder, 'segments', String(segment), 'codes.0');
    const bytes = fs.readFileSync(file);
    const last = bytes.length - 1;
    bytes[last] = (bytes[last] as number) ^ 1;
    fs.writeFileSync(file, bytes);
    const damaged = await load(segment);
    assert.deepEqual(damaged.damagedFiles, ['codes.0']);
    assert.equal(damaged.handle.layout.vectors[0]?.codes, null);
    assert.notEqual(damaged.handle.layout.vectors[0]?.graph, null);
  }
});

/** Where the arrays of a loaded vector are: a loaded memory may have other scratch before them. */
function placesOf(handle: SegmentHandle, n: number) {
  const { presence, offset, codes, graph } = handle.layout.vectors[n] as SegmentHandle['layout']['vectors'][number];
  return { presence, offset, codes, graph };
}

test('a quantile clips the range of 8-bit codes, but not of whole numbers that fit in it', async () => {
  const scaleOf = async (quantile: number | null, segment: number) =>
    (await build(configOf({ scalar: { type: 'int8', quantile } }), segment)).layout.vectors[0]?.codes?.scale as number;
  const [all, most, half] = [await scaleOf(1, 20), await scaleOf(0.9, 21), await scaleOf(0.5, 22)];
  assert.ok(half < most && most < all, `${half} ${most} ${all}`);
  rows.forEach((row, at) => {
    rows[at] = row.map((value) => Math.round(value * 50));
  });
  assert.equal(await scaleOf(0.5, 23), 1);
});

test('equal settings come to equal texts, whatever their order and whatever memory they ask for', () => {
  const textOf = (setting: QuantizationConfig | null) => JSON.stringify(quantizationSetting(configOf(setting), ''));
  assert.equal(
    textOf({ binary: { query_encoding: 'binary', encoding: 'one_bit' } }),
    textOf({ binary: { encoding: 'one_bit', query_encoding: 'binary', always_ram: true } }),
  );
  assert.equal(textOf({ turbo: {} }), textOf({ turbo: { bits: 'bits4', always_ram: false } }));
  assert.equal(textOf({ scalar: { type: 'int8', quantile: null } }), textOf({ scalar: { type: 'int8' } }));
  assert.notEqual(textOf({ scalar: { type: 'int8', quantile: 0.9 } }), textOf({ scalar: { type: 'int8' } }));
  assert.equal(textOf(null), 'null');
  const own = { ...makeConfig({ ...params, quantization_config: { turbo: {} } }), quantization_config: { binary: {} } };
  assert.deepEqual(quantizationSetting(own, ''), { turbo: { bits: 'bits4' } });
  const multi = { ...makeConfig({ ...params, multivector_config: { comparator: 'max_sim' } }), quantization_config: { turbo: {} } };
  assert.deepEqual(quantizationSetting(multi, ''), { turbo: { bits: 'bits4' } });
});

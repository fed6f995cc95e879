import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { QuantizationConfig } from '../../protocols/model/collection.js';
import type { Matrix, Metric } from '../../vectors/kernel-api.js';
import { CENTROIDS, type CodeSpec, codeShape, codeSpec, layersOf } from '../../vectors/quantizer-spec.js';
import { LevelCoder, trainLevels } from '../../vectors/quantizers/levels.js';
import { ProductCoder } from '../../vectors/quantizers/product.js';
import { Rotation } from '../../vectors/quantizers/rotation.js';
import { referenceScore, referenceTop } from '../../vectors/reference.js';
import { makeSegment, randomOf, SEED, type Segment } from './segment.js';

const METRICS: Metric[] = ['dot', 'l2', 'l1'];
const binary = (
  encoding: 'one_bit' | 'one_and_half_bits' | 'two_bits',
  query_encoding: 'default' | 'binary' | 'scalar4bits' | 'scalar8bits',
) => ({ binary: { encoding, query_encoding } }) as const;
const turbo = (bits: 'bits1' | 'bits1_5' | 'bits2' | 'bits4') => ({ turbo: { bits } }) as const;
const product = (compression: 'x4' | 'x8' | 'x16' | 'x32' | 'x64') => ({ product: { compression } }) as const;

/** Each with the least correlation of its scores with exact ones on normal data, for products and distances. */
const SETTINGS: readonly (readonly [QuantizationConfig, number])[] = [
  [binary('one_bit', 'binary'), 0.55],
  [binary('one_bit', 'scalar4bits'), 0.72],
  [binary('one_bit', 'scalar8bits'), 0.72],
  [binary('one_and_half_bits', 'default'), 0.8],
  [binary('two_bits', 'default'), 0.88],
  [turbo('bits1'), 0.72],
  [turbo('bits1_5'), 0.8],
  [turbo('bits2'), 0.88],
  [turbo('bits4'), 0.98],
  [product('x4'), 0.99],
  [product('x8'), 0.96],
  [product('x16'), 0.8],
  [product('x32'), 0.6],
  [product('x64'), 0.4],
];

const nameOf = (config: QuantizationConfig) => JSON.stringify(config).replaceAll('"', '');

interface Quantized {
  readonly segment: Segment;
  readonly matrix: Matrix;
  readonly spec: CodeSpec;
}

async function quantize(config: QuantizationConfig, metric: Metric, values: Float32Array, dim: number): Promise<Quantized> {
  const rows = values.length / dim;
  const spec = codeSpec(config, metric) as CodeSpec;
  const shape = codeShape(spec, dim);
  const segment = makeSegment(rows, dim, rows * shape.stride + shape.tableBytes + 4096, undefined, shape.queryBytes);
  const table = new Float32Array(segment.memory.buffer, segment.take(shape.tableBytes), shape.tableBytes / 4);
  const offset = segment.take(rows * shape.stride + 64);
  const bytes = new Uint8Array(segment.memory.buffer);
  const plain = { metric, offset, stride: shape.stride, dim };
  if (spec.kind === 'product') {
    const coder = new ProductCoder(spec.partDim, dim, table);
    await coder.train(values, async () => {});
    coder.encode(values, bytes, offset, shape.stride);
    return { segment, spec, matrix: { ...plain, element: 'product', product: { codebook: table.byteOffset, partDim: spec.partDim } } };
  }
  trainLevels(spec, metric, values, dim, table);
  const coder = new LevelCoder(spec, metric, dim, table);
  for (let row = 0; row < rows; row++) {
    const at = offset + row * shape.stride;
    coder.encode(values.subarray(row * dim, (row + 1) * dim), bytes.subarray(at, at + shape.stride));
  }
  return { segment, spec, matrix: { ...plain, element: 'levels', levels: coder } };
}

function scoresOf({ segment, matrix }: Quantized, query: Float32Array): Float64Array {
  segment.kernels.setQuery(segment.slot, matrix, query);
  const ranked = segment.kernels.scan(segment.slot, matrix, 0, segment.rows, segment.everything, segment.rows);
  const scores = new Float64Array(segment.rows);
  for (let i = 0; i < ranked.count; i++) scores[ranked.rows[i] as number] = ranked.scores[i] as number;
  return scores;
}

/** What the kernels have to come to, from the bytes in memory alone. */
function plainScore({ segment, matrix, spec }: Quantized, query: Float32Array, row: number): number {
  const { dim } = matrix;
  const at = matrix.offset + row * matrix.stride;
  const view = new DataView(segment.memory.buffer);
  const { codeBytes, queryBytes } = codeShape(spec, dim);
  if (spec.kind === 'product') {
    const book = matrix.product?.codebook as number;
    let sum = 0;
    for (let i = 0; i < dim; i++) {
      const part = Math.floor(i / spec.partDim);
      const number = view.getUint8(at + part);
      const centroid = view.getFloat32(book + (i * CENTROIDS + number) * 4, true);
      sum += referenceScore(matrix.metric, [centroid], [query[i] as number]);
    }
    return sum;
  }
  const coded = new Uint8Array(queryBytes);
  const { kernel, factor, cross, constant } = (matrix.levels as LevelCoder).writeQuery(query, coded);
  let sum = 0;
  if (spec.bits === 4) {
    const levels = new Int8Array(coded.buffer, 0, 16);
    const words = new Int16Array(coded.buffer, 16);
    for (let i = 0; i < codeBytes * 2; i++) {
      const level = levels[(view.getUint8(at + (i >> 1)) >> ((i & 1) * 4)) & 15] as number;
      const word = words[(i & ~31) + (i & 1) * 16 + ((i & 31) >> 1)] as number;
      sum += kernel === 'halfBytesL1' ? Math.abs(level - word) : level * word;
    }
  } else {
    const layers = layersOf(spec.queryBits);
    for (let bit = 0; bit < codeBytes * 8; bit++) {
      if (((view.getUint8(at + (bit >> 3)) >> (bit & 7)) & 1) === 0) continue;
      if (layers === 8) {
        sum += new Int8Array(coded.buffer)[(bit >> 7) * 128 + (7 - (bit & 7)) * 16 + ((bit >> 3) & 15)] as number;
        continue;
      }
      for (let layer = 0; layer < layers; layer++) {
        const byte = coded[(bit >> 7) * 16 * layers + layer * 16 + ((bit >> 3) & 15)] as number;
        if (((byte >> (bit & 7)) & 1) === 1) sum += layer === layers - 1 ? -(2 ** layer) : 2 ** layer;
      }
    }
  }
  return view.getFloat32(at + codeBytes, true) * (factor * sum + cross) + view.getFloat32(at + codeBytes + 4, true) + constant;
}

function normalOf(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

function normals(count: number, random: () => number): Float32Array {
  return Float32Array.from({ length: count }, () => normalOf(random));
}

function correlation(a: ArrayLike<number>, b: ArrayLike<number>): number {
  const mean = (values: ArrayLike<number>) => Array.from(values).reduce((sum, value) => sum + value, 0) / values.length;
  const [meanA, meanB] = [mean(a), mean(b)];
  let [ab, aa, bb] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [(a[i] as number) - meanA, (b[i] as number) - meanB];
    ab += x * y;
    aa += x * x;
    bb += y * y;
  }
  return ab / Math.sqrt(aa * bb);
}

for (const [config] of SETTINGS) {
  test(`kernels score ${nameOf(config)} as the bytes of rows and query say, whatever the dimension and metric`, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(1, 3, 16, 17, 64, 127, 130, 257),
        fc.constantFrom(...METRICS),
        fc.integer(),
        fc.constantFrom(1, 1e-3, 1e4),
        async (dim, metric, seed, scale) => {
          const random = randomOf(seed);
          const values = normals(13 * dim, random).map((value) => value * scale);
          const quantized = await quantize(config, metric, values, dim);
          const query = normals(dim, random).map((value) => value * scale);
          const scores = scoresOf(quantized, query);
          let magnitude = 0;
          for (let i = 0; i < dim; i++) magnitude += (Math.abs(query[i] as number) + 4 * scale) * 4 * scale;
          if (metric === 'l1') magnitude = 8 * scale * dim;
          for (let row = 0; row < 13; row++) {
            const expected = plainScore(quantized, query, row);
            assert.ok(Math.abs((scores[row] as number) - expected) <= magnitude * 1e-5, `${scores[row]} for ${expected}`);
          }
        },
      ),
      { seed: SEED, numRuns: 25 },
    );
  });
}

test('sums of bits with the largest numbers of 8 bits stay exact in wide vectors', async () => {
  const dim = 5000;
  for (const sign of [1, -1]) {
    const values = Float32Array.from({ length: 6 * dim }, (_, i) => (i < 3 * dim ? 1 : -1));
    const quantized = await quantize(binary('one_bit', 'scalar8bits'), 'dot', values, dim);
    const query = new Float32Array(dim).fill(sign);
    const scores = scoresOf(quantized, query);
    for (let row = 0; row < 6; row++) {
      const expected = plainScore(quantized, query, row);
      assert.ok(Math.abs((scores[row] as number) - expected) <= dim * 1e-5, `${scores[row]} for ${expected}`);
    }
  }
});

for (const [config, bound] of SETTINGS) {
  test(`scores of ${nameOf(config)} go with the exact ones, also of data far from the origin`, async () => {
    const [rows, dim] = [1500, 96];
    const random = randomOf(SEED);
    for (const metric of METRICS) {
      for (const shift of [0, 5]) {
        // A little structure, as real data have: product quantization lives on it.
        const spread = Float32Array.from({ length: dim }, () => 0.5 + random());
        const values = normals(rows * dim, random).map((value, i) => value * (spread[i % dim] as number) + shift);
        const quantized = await quantize(config, metric, values, dim);
        const query = normals(dim, random).map((value, i) => value * (spread[i] as number) + shift);
        const exact = Array.from({ length: rows }, (_, row) => referenceScore(metric, values.subarray(row * dim, (row + 1) * dim), query));
        const reached = correlation(scoresOf(quantized, query), exact);
        assert.ok(reached >= bound - (metric === 'l1' ? 0.2 : 0), `${metric}, shifted by ${shift}: ${reached}`);
      }
    }
  });
}

test('scores of four and two bits are free of bias: they average to the exact ones', async () => {
  const [rows, dim] = [2000, 128];
  const random = randomOf(SEED);
  const values = normals(rows * dim, random);
  const query = normals(dim, random);
  for (const config of [turbo('bits4'), turbo('bits2'), turbo('bits1')]) {
    const scores = scoresOf(await quantize(config, 'l2', values, dim), query);
    let [sum, exact] = [0, 0];
    for (let row = 0; row < rows; row++) {
      sum += scores[row] as number;
      exact += referenceScore('l2', values.subarray(row * dim, (row + 1) * dim), query);
    }
    assert.ok(Math.abs(sum / exact - 1) < 0.01, `${nameOf(config)}: ${sum / exact}`);
  }
});

test('turbo codes of four bits find neighbours whatever single components carry, as the rotation spreads them', async () => {
  const [rows, dim] = [1000, 100];
  const random = randomOf(SEED);
  const values = normals(rows * dim, random).map((value, i) => (i % dim < 3 ? value * 50 : value));
  const quantized = await quantize(turbo('bits4'), 'dot', values, dim);
  let found = 0;
  for (let n = 0; n < 20; n++) {
    const query = normals(dim, random);
    const exact = Array.from({ length: rows }, (_, row) => ({
      row,
      score: referenceScore('dot', values.subarray(row * dim, (row + 1) * dim), query),
    }));
    const scores = scoresOf(quantized, query);
    const near = referenceTop(
      Array.from(scores, (score, row) => ({ row, score })),
      20,
    ).map(({ row }) => row);
    for (const { row } of referenceTop(exact, 10)) if (near.includes(row)) found++;
  }
  assert.ok(found >= 190, `${found} of 200`);
});

test('a rotation keeps lengths and products, and is the same each time', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 300 }), fc.integer(), (dim, seed) => {
      const random = randomOf(seed);
      const [a, b] = [normals(dim, random), normals(dim, random)];
      const [turnedA, turnedB] = [a.slice(), b.slice()];
      new Rotation(dim).apply(turnedA);
      new Rotation(dim).apply(turnedB);
      const again = a.slice();
      new Rotation(dim).apply(again);
      assert.deepEqual(again, turnedA);
      assert.ok(Math.abs(referenceScore('dot', a, b) - referenceScore('dot', turnedA, turnedB)) < 1e-4 * dim);
    }),
    { seed: SEED, numRuns: 50 },
  );
});

test('rows without spread, rows of zeros and rows that hold no numbers are coded, and score without NaN', async () => {
  const dim = 20;
  const values = new Float32Array(8 * dim).fill(3);
  values.fill(0, dim, 2 * dim);
  values[2 * dim] = Number.NaN;
  values[3 * dim] = Number.POSITIVE_INFINITY;
  for (const [config] of SETTINGS) {
    for (const metric of METRICS) {
      const quantized = await quantize(config, metric, values, dim);
      for (const query of [new Float32Array(dim), new Float32Array(dim).fill(3), Float32Array.from({ length: dim }, (_, i) => i)]) {
        const scores = scoresOf(quantized, query);
        assert.ok(
          scores.every((score) => !Number.isNaN(score)),
          `${nameOf(config)} ${metric}`,
        );
      }
    }
  }
});

test('rows of bytes: 784 components take what their setting promises', () => {
  const bytes = SETTINGS.map(([config]) => `${nameOf(config)} ${codeShape(codeSpec(config, 'l2') as CodeSpec, 784).stride}`);
  assert.deepEqual(bytes, [
    '{binary:{encoding:one_bit,query_encoding:binary}} 108',
    '{binary:{encoding:one_bit,query_encoding:scalar4bits}} 108',
    '{binary:{encoding:one_bit,query_encoding:scalar8bits}} 108',
    '{binary:{encoding:one_and_half_bits,query_encoding:default}} 156',
    '{binary:{encoding:two_bits,query_encoding:default}} 204',
    '{turbo:{bits:bits1}} 108',
    '{turbo:{bits:bits1_5}} 156',
    '{turbo:{bits:bits2}} 204',
    '{turbo:{bits:bits4}} 408',
    '{product:{compression:x4}} 784',
    '{product:{compression:x8}} 392',
    '{product:{compression:x16}} 196',
    '{product:{compression:x32}} 100',
    '{product:{compression:x64}} 52',
  ]);
});

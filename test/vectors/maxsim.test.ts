import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { KernelExpired, type Metric } from '../../vectors/kernel-api.js';
import { maxSimilarity } from '../../vectors/max-similarity.js';
import { CENTROIDS, codeShape, maxSimTableBytes } from '../../vectors/quantizer-spec.js';
import { referenceScore } from '../../vectors/reference.js';
import { makeSegment, matrixBytes, type PlainElement, randomOf, SEED, storeRows } from './segment.js';

const DIMS = [1, 2, 5, 16, 31, 96, 128];
const DISTANCES = { dot: 'Dot', l2: 'Euclid', l1: 'Manhattan' } as const;

/** Rows with these numbers of vectors; MaxSim of those listed, by the kernel and by hand. */
function scores(options: { element: PlainElement; metric: Metric; dim: number; counts: readonly number[]; tokens: number; seed: number }) {
  const { element, metric, dim, counts, tokens, seed } = options;
  const random = randomOf(seed);
  const vectors = counts.reduce((sum, count) => sum + count, 0);
  const whole = element === 'u8';
  const component = () => (whole ? Math.floor(random() * 256) : random() * 2 - 1);
  const values = Float32Array.from({ length: vectors * dim }, component);
  const segment = makeSegment(counts.length, dim, matrixBytes(element, vectors, dim) + counts.length * 4 + 256);
  const { matrix, meaning } = storeRows(segment, element, metric, values, dim);
  const at = segment.take((counts.length + 1) * 4);
  const offsets = new Uint32Array(segment.memory.buffer, at, counts.length + 1);
  counts.forEach((count, row) => {
    offsets[row + 1] = (offsets[row] as number) + count;
  });
  const query = Float32Array.from({ length: tokens * dim }, component);
  const listed = Uint32Array.from(counts.keys()).filter(() => random() < 0.8);
  new Uint32Array(segment.memory.buffer, segment.slot + segment.scratch.rows, counts.length).set(listed);
  const sums = segment.kernels.maxSim(segment.slot, matrix, at, listed.length, query);
  const expected = [...listed].map((row) => {
    let sum = 0;
    for (let token = 0; token < tokens; token++) {
      let best = Number.NEGATIVE_INFINITY;
      for (let vector = offsets[row] as number; vector < (offsets[row + 1] as number); vector++) {
        const stored = meaning.subarray(vector * dim, (vector + 1) * dim);
        best = Math.max(best, referenceScore(metric, stored, query.subarray(token * dim, (token + 1) * dim)));
      }
      sum += best;
    }
    const stored = Float32Array.from(meaning.subarray((offsets[row] as number) * dim, (offsets[row + 1] as number) * dim));
    return { sum, plain: maxSimilarity(DISTANCES[metric], query, stored, dim) };
  });
  return { sums: [...sums], expected };
}

test('MaxSim of listed rows is the sum over the query of the best score, for every element and metric', () => {
  fc.assert(
    fc.property(
      fc.record({
        element: fc.constantFrom<PlainElement>('f32', 'f16', 'u8'),
        metric: fc.constantFrom<Metric>('dot', 'l2', 'l1'),
        dim: fc.constantFrom(...DIMS),
        counts: fc.array(fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 1, max: 40 }) }, fc.integer({ min: 500, max: 1100 })), {
          minLength: 1,
          maxLength: 30,
        }),
        tokens: fc.integer({ min: 1, max: 6 }),
        seed: fc.nat(),
      }),
      (options) => {
        const { sums, expected } = scores(options);
        assert.equal(sums.length, expected.length);
        const largest = options.element === 'u8' ? 255 : 2;
        const scale = options.metric === 'l1' ? largest : largest ** 2;
        const tolerance = 1e-6 * scale * options.dim * options.tokens + 1e-30;
        expected.forEach(({ sum, plain }, at) => {
          assert.ok(Math.abs((sums[at] as number) - sum) <= tolerance, `row ${at}: ${sums[at]} instead of ${sum}`);
          assert.ok(Math.abs(plain - sum) <= tolerance, `row ${at}: ${plain} instead of ${sum}`);
        });
      },
    ),
    { seed: SEED, numRuns: 150 },
  );
});

/** Rows of product codes at random: MaxSim by the kernel, by its way for one vector of the query at a time, and how often each asked for the time. */
function productScores(options: { partDim: number; metric: Metric; dim: number; counts: readonly number[]; tokens: number; seed: number }) {
  const { partDim, metric, dim, counts, tokens, seed } = options;
  const spec = { kind: 'product', partDim } as const;
  const { codeBytes, stride, tableBytes, queryBytes } = codeShape(spec, dim);
  const vectors = counts.reduce((sum, count) => sum + count, 0);
  const scored = [queryBytes + maxSimTableBytes(spec, dim), queryBytes].map((room) => {
    const random = randomOf(seed);
    let asked = 0;
    const expired = () => {
      asked++;
      return false;
    };
    const segment = makeSegment(counts.length, dim, tableBytes + vectors * stride + counts.length * 4 + 1024, expired, room);
    const { buffer } = segment.memory;
    const codebook = segment.take(tableBytes);
    new Float32Array(buffer, codebook, tableBytes / 4).forEach((_, at, table) => {
      // Components behind the last stay 0, as codebooks have them.
      const component = Math.floor(at / CENTROIDS);
      table[at] = component < dim ? random() * 2 - 1 : 0;
    });
    const offset = segment.take(vectors * stride + 64);
    const codes = new Uint8Array(buffer, offset, vectors * stride);
    for (let at = 0; at < codes.length; at++) codes[at] = at % stride < codeBytes ? Math.floor(random() * CENTROIDS) : 0;
    const at = segment.take((counts.length + 1) * 4);
    const offsets = new Uint32Array(buffer, at, counts.length + 1);
    counts.forEach((count, row) => {
      offsets[row + 1] = (offsets[row] as number) + count;
    });
    new Uint32Array(buffer, segment.slot + segment.scratch.rows, counts.length).set([...counts.keys()]);
    const query = Float32Array.from({ length: tokens * dim }, () => random() * 4 - 2);
    const matrix = { element: 'product', metric, offset, stride, dim, product: { codebook, partDim } } as const;
    const sums = [...segment.kernels.maxSim(segment.slot, matrix, at, counts.length, query)];
    return { sums, asked, work: segment.kernels.takeScored() };
  });
  return scored as [(typeof scored)[0], (typeof scored)[0]];
}

test('MaxSim by product codes with eight vectors of the query at once is that with one after the other, but for the rounding of tables', () => {
  fc.assert(
    fc.property(
      fc.record({
        partDim: fc.constantFrom(1, 2, 4, 8, 16),
        metric: fc.constantFrom<Metric>('dot', 'l2', 'l1'),
        dim: fc.constantFrom(...DIMS),
        counts: fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 30 }),
        tokens: fc.integer({ min: 1, max: 19 }),
        seed: fc.nat(),
      }),
      (options) => {
        const [together, each] = productScores(options);
        const { dim, tokens, partDim } = options;
        const parts = Math.ceil(dim / partDim);
        assert.equal(together.asked, Math.ceil(tokens / 8));
        assert.ok(each.asked >= tokens);
        assert.equal(together.work, each.work);
        // A component is worth 9 at most, and a step is at most a 65,000th of what all are worth; each part rounds by half a step.
        const tolerance = tokens * (9 * dim) * (parts / 65_000 + 1e-5);
        each.sums.forEach((sum, row) => {
          assert.ok(Math.abs((together.sums[row] as number) - sum) <= tolerance, `row ${row}: ${together.sums[row]} instead of ${sum}`);
        });
      },
    ),
    { seed: SEED, numRuns: 100 },
  );
});

test('MaxSim by product codes with more parts than tables have room for takes one vector of the query after the other', () => {
  assert.equal(maxSimTableBytes({ kind: 'product', partDim: 1 }, 129), 0);
  const [together, each] = productScores({ partDim: 1, metric: 'dot', dim: 129, counts: [3, 1], tokens: 9, seed: SEED });
  assert.deepEqual(together, each);
});

test('MaxSim stops at the time limit', () => {
  const segment = makeSegment(2, 4, 4096, () => true);
  const { matrix } = storeRows(segment, 'f32', 'dot', new Float32Array(8), 4);
  const at = segment.take(12);
  new Uint32Array(segment.memory.buffer, at, 3).set([0, 1, 2]);
  assert.throws(() => segment.kernels.maxSim(segment.slot, matrix, at, 1, new Float32Array(4)), KernelExpired);
});

test('cosine MaxSim divides lengths out, and is 0 for a vector without one', () => {
  assert.equal(maxSimilarity('Cosine', Float32Array.of(2, 0), Float32Array.of(0, 5, 3, 0), 2), 1);
  assert.equal(maxSimilarity('Cosine', Float32Array.of(0, 0), Float32Array.of(3, 0), 2), 0);
});

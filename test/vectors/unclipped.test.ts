import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Metric } from '../../vectors/kernel-api.js';
import { encodeCodes } from '../../vectors/quantize.js';
import { ComponentRange, greatestLoss, maxSimInterval } from '../../vectors/unclipped.js';
import { makeSegment, matrixBytes, randomOf, SEED, storeRows } from './segment.js';

// The last two have no room for all vectors of the query at once, or for two of them.
const DIMS = [1, 5, 64, 500, 4100];
const TOKENS_MAX = 40;

test('MaxSim of the originals lies in the interval that MaxSim of the codes gives, for every metric', () => {
  fc.assert(
    fc.property(
      fc.record({
        metric: fc.constantFrom<Metric>('dot', 'l2', 'l1'),
        dim: fc.constantFrom(...DIMS),
        counts: fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 8 }),
        tokens: fc.integer({ min: 1, max: TOKENS_MAX }),
        // Components around 0, all on one side of it, far away from the query's, or whole.
        shape: fc.constantFrom('centred', 'shifted', 'far', 'whole'),
        seed: fc.nat(),
      }),
      ({ metric, dim, counts, tokens, shape, seed }) => {
        const random = randomOf(seed);
        const component = () => {
          if (shape === 'whole') return Math.floor(random() * 200);
          return random() + random() - 1 + (shape === 'shifted' ? 50 : 0);
        };
        const vectors = counts.reduce((sum, count) => sum + count, 0);
        const values = Float32Array.from({ length: vectors * dim }, component);
        const query = Float32Array.from({ length: tokens * dim }, () => component() + (shape === 'far' ? 3 : 0));
        const range = new ComponentRange();
        range.add(values);
        const codes = range.codes();
        // A single number says nothing about the others.
        if (codes === null) return;
        const bytes = new Uint8Array(values.length);
        encodeCodes(values, dim, dim, codes, bytes, 0);
        const lost = greatestLoss(values, dim, bytes, 0, dim, codes);
        if (shape === 'whole') assert.equal(lost, 0);
        const segment = makeSegment(counts.length, dim, 2 * matrixBytes('f32', vectors, dim) + 1024);
        const at = segment.take((counts.length + 1) * 4);
        const offsets = new Uint32Array(segment.memory.buffer, at, counts.length + 1);
        counts.forEach((count, row) => {
          offsets[row + 1] = (offsets[row] as number) + count;
        });
        const list = () =>
          new Uint32Array(segment.memory.buffer, segment.slot + segment.scratch.rows, counts.length).set([...counts.keys()]);
        const original = storeRows(segment, 'f32', metric, values, dim).matrix;
        const coded = storeRows(segment, 'code', metric, Float32Array.from(bytes), dim, codes).matrix;
        list();
        const scores = segment.kernels.maxSim(segment.slot, original, at, counts.length, query).slice();
        list();
        const byCodes = segment.kernels.maxSim(segment.slot, coded, at, counts.length, query);
        const interval = maxSimInterval(metric, { ...codes, lost }, query, dim);
        if (interval === null) return;
        scores.forEach((score, row) => {
          const code = byCodes[row] as number;
          const [least, most] = [interval.least(code), interval.most(code)];
          assert.ok(least <= score && score <= most, `row ${row}: ${score} by the originals, ${code} by codes: ${least} to ${most}`);
          // An interval that lets everything pass would be of no use: one and a half steps of a code for each component.
          if (metric !== 'l2' && shape === 'centred') {
            const wide = 2 * (1.5 * codes.scale + 1e-3) * dim * tokens;
            assert.ok(most - least <= wide, `row ${row}: ${most - least} wide`);
          }
        });
      },
    ),
    { seed: SEED, numRuns: 120 },
  );
});

test('components of which a few lie far outside get no unclipped codes, and components without a spread do', () => {
  const outlier = new ComponentRange();
  outlier.add(Float32Array.from({ length: 10_000 }, (_, i) => (i === 7 ? 1e6 : Math.sin(i))));
  assert.equal(outlier.codes(), null);
  const even = new ComponentRange();
  even.add(Float32Array.from({ length: 10_000 }, (_, i) => Math.sin(i)));
  assert.ok(even.codes() !== null);
  const whole = new ComponentRange();
  whole.add(Float32Array.of(3, 3, 3));
  assert.deepEqual(whole.codes(), { scale: 1, origin: 3 });
  assert.equal(new ComponentRange().codes(), null);
});

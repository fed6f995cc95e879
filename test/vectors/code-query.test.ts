import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fitsCodes, paddedDim, writeCodeQuery } from '../../vectors/code-query.js';
import type { Metric } from '../../vectors/kernel-api.js';

const METRICS: Metric[] = ['dot', 'l2', 'l1'];
const PLAIN = { scale: 1, origin: 0 };

test('a query of whole codes is exact, one between codes or far away is not', () => {
  for (const metric of METRICS) {
    assert.ok(fitsCodes(metric, PLAIN, Float32Array.of(0, 255, 17)));
    assert.ok(!fitsCodes(metric, PLAIN, Float32Array.of(0, 0.5)));
    assert.ok(!fitsCodes(metric, PLAIN, Float32Array.of(1e9)));
    assert.ok(!fitsCodes(metric, PLAIN, Float32Array.of(Number.NaN)));
  }
  assert.ok(fitsCodes('l2', { scale: 0.5, origin: 3 }, Float32Array.of(3, 3.5, 100)));
  assert.ok(!fitsCodes('l2', { scale: 0.5, origin: 3 }, Float32Array.of(3.25)));
});

test('the 16-bit query leaves room for the sums of every dimension', () => {
  for (const dim of [1, 784, 65_536]) {
    const padded = paddedDim(dim);
    for (const value of [1e30, -1e30, 3.3, 255]) {
      for (const metric of METRICS) {
        const out = new Int16Array(padded);
        const { far } = writeCodeQuery(metric, PLAIN, new Float32Array(dim).fill(value), out);
        // A lane of four sums a quarter of the terms.
        const squares = metric === 'l2' && !far;
        const lane = out.reduce((sum, q) => sum + (squares ? Math.max(q * q, (255 - q) ** 2) : 255 * Math.abs(q)), 0) / 4;
        assert.ok(lane <= 2 ** 31, `${metric} of ${value} in ${dim} dimensions: ${lane}`);
      }
    }
  }
});

test('the padding of the 16-bit query is zero', () => {
  const out = new Int16Array(16).fill(7);
  writeCodeQuery('l2', { scale: 1, origin: -5 }, Float32Array.of(1, 2, 3), out);
  assert.deepEqual([...out], [6, 7, 8, ...new Array(13).fill(0)]);
});

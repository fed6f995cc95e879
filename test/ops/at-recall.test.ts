import assert from 'node:assert/strict';
import { test } from 'node:test';
import { atRecall } from '../../ops/bench/common/at-recall.js';

const SEARCHES = [
  { recall: 0.9, cpuMs: 1 },
  { recall: 0.98, cpuMs: 3 },
  { recall: 1, cpuMs: 5 },
];

test('CPU at a recall lies between those of the measurements around it; none is made up beyond the best', () => {
  assert.ok(Math.abs((atRecall(SEARCHES, 0.94) ?? 0) - 2) < 1e-9);
  assert.equal(atRecall(SEARCHES, 0.98), 3);
  assert.equal(atRecall(SEARCHES, 0.5), 1, 'all are above it');
  assert.equal(atRecall(SEARCHES.slice(0, 2), 0.99), null);
  assert.equal(atRecall([], 0.5), null);
});

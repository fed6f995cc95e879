import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NodePace } from '../../../actors/optimizer/pace.js';

test('the pace of a node is what all replicas got within the last seconds', () => {
  const pace = new NodePace();
  assert.equal(pace.bytesPerSecond(0), 0);
  for (let nowMs = 0; nowMs < 20_000; nowMs += 50) {
    pace.came(1000, nowMs);
    pace.came(500, nowMs);
  }
  const steady = pace.bytesPerSecond(20_000);
  assert.ok(Math.abs(steady - 30_000) < 300, `${steady}`);
  for (let nowMs = 20_000; nowMs < 30_000; nowMs += 50) pace.came(100, nowMs);
  const slower = pace.bytesPerSecond(30_000);
  assert.ok(Math.abs(slower - 2000) < 20, `${slower}`);
});

test('it falls once nothing comes, and a pause does not count for what comes after it', () => {
  const pace = new NodePace();
  for (let nowMs = 0; nowMs < 4000; nowMs += 100) pace.came(1000, nowMs);
  assert.ok(pace.bytesPerSecond(14_000) < 3000);
  pace.came(1000, 14_000);
  pace.came(1000, 14_500);
  assert.equal(pace.bytesPerSecond(15_000), 2000);
});

test("many bytes at once are a quarter of a second's", () => {
  const pace = new NodePace();
  pace.came(1000, 7);
  assert.equal(pace.bytesPerSecond(7), 4000);
});

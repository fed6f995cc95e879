import assert from 'node:assert/strict';
import { test } from 'node:test';
import { project } from '../../../web/model/projection.js';

test('the first direction is that of the most variance, the second is at a right angle to it', () => {
  // A flat ellipse in three dimensions: x spreads by 10, z by 2, y not at all.
  const rows = Float32Array.from(Array.from({ length: 200 }, (_, at) => [10 * Math.cos(at), 5, 2 * Math.sin(at)]).flat());
  const places = project(rows, 3);
  const spread = (axis: 0 | 1): number => Math.max(...places.filter((_, at) => at % 2 === axis).map(Math.abs));
  assert.ok(Math.abs(spread(0) - 1) < 0.01, `${spread(0)}`);
  assert.ok(Math.abs(spread(1) - 0.2) < 0.01, `${spread(1)}`);
});

test('equal rows, one row and none have places', () => {
  assert.deepEqual([...project(Float32Array.of(1, 2, 1, 2), 2)], [0, 0, 0, 0]);
  assert.deepEqual([...project(Float32Array.of(3, 4), 2)], [0, 0]);
  assert.deepEqual([...project(new Float32Array(0), 2)], []);
  assert.deepEqual([...project(new Float32Array(0), 0)], []);
});

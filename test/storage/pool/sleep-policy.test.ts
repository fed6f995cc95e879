import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseSleepers, isSmallAndQuiet, type SleepLimits } from '../../../storage/pool/sleep-policy.js';
import { sampleSegment, sampleStats } from '../../actors/samples.js';

const LIMITS: SleepLimits = { awakeKept: 2, awakeMax: 4, idleTicks: 10 };

test('the replicas that were used last stay awake, however long ago that was', () => {
  assert.deepEqual(chooseSleepers([1, 5], 1000, LIMITS), []);
  assert.deepEqual(chooseSleepers([1, 5, 3, 2], 1000, LIMITS), [0, 3]);
});

test('beyond those a replica falls asleep when it is idle, or when too many are awake, but not while it is in use', () => {
  assert.deepEqual(chooseSleepers([95, 96, 97], 100, LIMITS), []);
  assert.deepEqual(chooseSleepers([90, 96, 97], 100, LIMITS), [0]);
  assert.deepEqual(chooseSleepers([97, 95, 96, 98, 99, 99], 100, LIMITS), [1, 2]);
  assert.deepEqual(chooseSleepers([100, 100, 100, 100, 100, 100], 100, LIMITS), []);
});

test('a replica with work of its own, many rows or large vectors stays awake', () => {
  const segment = sampleSegment({ rows: 100, deleted: 0, vectorBytes: 10_000 });
  assert.equal(isSmallAndQuiet(sampleStats([segment])), true);
  assert.equal(isSmallAndQuiet(sampleStats([segment], { queuedOperations: 1 })), false);
  assert.equal(isSmallAndQuiet(sampleStats([segment], { deferredPoints: 1 })), false);
  assert.equal(isSmallAndQuiet(sampleStats([{ ...segment, building: true }])), false);
  assert.equal(isSmallAndQuiet(sampleStats([{ ...segment, rows: 20_000 }])), false);
  assert.equal(isSmallAndQuiet(sampleStats([{ ...segment, vectorBytes: 8 << 20 }])), false);
});

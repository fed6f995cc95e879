import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FreedMemory } from '../../../storage/pool/freed-memory.js';
import { sampleSegment, sampleStats } from '../../actors/samples.js';

test('small replicas that are closed are collected together, a large one at once', () => {
  const freed = new FreedMemory();
  const small = sampleStats([sampleSegment({ vectorBytes: 1000 })]);
  const worth = Array.from({ length: 1000 }, () => freed.isWorthCollecting(small)).filter((is) => is);
  assert.ok(worth.length >= 5 && worth.length <= 10, `${worth.length} collections for 1000 small replicas`);
  const large = sampleStats([sampleSegment({ vectorBytes: 64 << 20 })]);
  assert.equal(freed.isWorthCollecting(large), true);
  assert.equal(freed.isWorthCollecting(null), false);
});

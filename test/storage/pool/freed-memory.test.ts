import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FreedMemory } from '../../../storage/pool/freed-memory.js';
import { sampleSegment, sampleStats } from '../../actors/samples.js';

test('small replicas that are closed are collected together, a large one at once', () => {
  const freed = new FreedMemory();
  const collections = (kind: 'appendable' | 'sealed') => {
    const small = sampleStats([sampleSegment({ kind, vectorBytes: 1000 })]);
    return Array.from({ length: 5000 }, () => freed.isWorthCollecting(small)).filter((is) => is).length;
  };
  assert.equal(collections('appendable'), 1);
  const sealed = collections('sealed');
  assert.ok(sealed >= 25 && sealed <= 50, `${sealed} collections for 5000 small replicas with memories of their own`);
  const large = sampleStats([sampleSegment({ vectorBytes: 64 << 20 })]);
  assert.equal(freed.isWorthCollecting(large), true);
  assert.equal(freed.isWorthCollecting(null), false);
});

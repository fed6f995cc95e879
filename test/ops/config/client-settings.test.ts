import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectionLimits } from '../../../ops/config/client-settings.js';
import { resolveSettings } from '../../../ops/config/resolve.js';

const GIB = 2 ** 30;
const settingsOf = (variables: Record<string, string>) => resolveSettings([{ kind: 'environment', variables }]).settings;

test('without settings, connections are as many as the descriptors and the memory of the process allow', () => {
  const limitsOf = (descriptors: number | null, memoryBytes: number) => connectionLimits(settingsOf({}), { descriptors, memoryBytes });
  assert.deepEqual(limitsOf(1_048_576, 64 * GIB), { max: 16_384, maxPerClient: 8192 });
  assert.deepEqual(limitsOf(4096, 64 * GIB), { max: 512, maxPerClient: 256 });
  assert.deepEqual(limitsOf(1_048_576, GIB / 2), { max: 2048, maxPerClient: 1024 });
  assert.deepEqual(limitsOf(256, GIB), { max: 64, maxPerClient: 32 });
  assert.deepEqual(limitsOf(null, 64 * GIB), { max: 1024, maxPerClient: 512 });
});

test('settings go before that', () => {
  const room = { descriptors: 1024, memoryBytes: GIB };
  const one = settingsOf({ SERVICE__SERVICE__MAX_CONNECTIONS: '5001' });
  assert.deepEqual(connectionLimits(one, room), { max: 5001, maxPerClient: 2501 });
  const both = settingsOf({ SERVICE__SERVICE__MAX_CONNECTIONS: '5000', SERVICE__SERVICE__MAX_CONNECTIONS_PER_CLIENT: '7' });
  assert.deepEqual(connectionLimits(both, room), { max: 5000, maxPerClient: 7 });
});

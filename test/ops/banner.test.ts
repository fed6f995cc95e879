import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startBanner } from '../../ops/banner.js';
import { resolveSettings } from '../../ops/config/resolve.js';

function banner(tree: object, isColoured = false): string {
  const { settings } = resolveSettings([{ kind: 'tree', name: 'settings', tree: tree as Record<string, unknown> }]);
  return startBanner(settings, { rest: 'http://0.0.0.0:6333', grpc: '0.0.0.0:6334', version: '1.2.3' }, isColoured);
}

test('a terminal shows addresses that can be clicked, where the data is, and that no key is asked for', () => {
  const text = banner({ storage: { storage_path: '/data/troupe' } });
  assert.match(text, /Troupe 1\.2\.3\n/);
  assert.match(text, /Dashboard +http:\/\/localhost:6333\/dashboard\n/);
  assert.match(text, /API +http:\/\/localhost:6333\/docs\n/);
  assert.match(text, /gRPC +localhost:6334\n/);
  assert.match(text, /Data +\/data\/troupe\n/);
  assert.match(text, /Keys +none are set/);
  assert.ok(!text.includes('\u001b') && banner({}, true).includes('\u001b'));
});

test('a key is told of and not shown, and pages that are not served are not named', () => {
  const text = banner({ service: { api_key: 'secret-key', jwt_rbac: true, enable_static_content: false } });
  assert.match(text, /Keys +clients need one, or a token\n/);
  assert.ok(!text.includes('secret-key') && !text.includes('dashboard'));
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resolveSettings } from '../../ops/config/resolve.js';
import { exposureNotice, exposureOf } from '../../ops/exposure.js';

const exposure = (service: Record<string, unknown>) =>
  exposureOf(resolveSettings([{ kind: 'tree', name: 'test', tree: { service } }]).settings);

test('a node that asks for no key is exposed wherever others than its own machine reach it', () => {
  for (const host of ['0.0.0.0', '::', '10.1.2.3', 'db.example.org', '::ffff:0.0.0.0']) assert.notEqual(exposure({ host }), null, host);
  for (const host of ['127.0.0.1', '127.1.1.1', '::1', 'localhost', 'LOCALHOST', '::ffff:127.0.0.1'])
    assert.equal(exposure({ host }), null, host);
});

test('a node with any key is not exposed, and an empty key is none', () => {
  for (const key of ['api_key', 'alt_api_key', 'read_only_api_key']) {
    assert.equal(exposure({ [key]: 'k' }), null, key);
    assert.notEqual(exposure({ [key]: '' }), null, key);
  }
});

test('the warning says where the node listens, who may do what, and what to do', () => {
  assert.match(exposure({}) as string, /no API key and listens on all interfaces: whoever reaches it can .* delete everything/);
  assert.match(
    exposure({ host: '10.1.2.3', allow_clients: ['10.0.0.0/8'] }) as string,
    /listens on 10\.1\.2\.3: every client at an address of service\.allow_clients/,
  );
  const lines = exposureNotice(exposure({}) as string)
    .trimEnd()
    .split('\n');
  assert.ok(lines.length >= 6);
  assert.equal(new Set(lines.map(({ length }) => length)).size, 1, 'a frame around all lines');
  for (const remedy of ['--secured', 'service.host', 'service.allow_clients'])
    assert.ok(
      lines.some((line) => line.includes(remedy)),
      remedy,
    );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unavailableSettings } from '../../../ops/config/available.js';
import { resolveSettings } from '../../../ops/config/resolve.js';
import type { NodeSettings } from '../../../ops/config/settings.js';
import { snapshotProblems, snapshotStoreFor, snapshotUrlsAllowed } from '../../../ops/config/snapshot-settings.js';
import { isListed } from '../../../storage/snapshot-store/address-rules.js';
import { LocalSnapshotStore } from '../../../storage/snapshot-store/local.js';
import { S3SnapshotStore } from '../../../storage/snapshot-store/s3.js';

const S3 = 'SERVICE__STORAGE__SNAPSHOTS_CONFIG__S3_CONFIG__';

function settingsOf(variables: Record<string, string>): NodeSettings {
  return resolveSettings([{ kind: 'environment', variables }]).settings;
}

function s3(given: Record<string, string>): NodeSettings {
  const variables = Object.fromEntries(Object.entries(given).map(([key, value]) => [`${S3}${key}`, value]));
  return settingsOf({ SERVICE__STORAGE__SNAPSHOTS_CONFIG__SNAPSHOTS_STORAGE: 's3', ...variables });
}

test('snapshots in S3 are available, with all that they need from variables', () => {
  const settings = s3({ BUCKET: 'b', REGION: 'eu', ACCESS_KEY: 'a', SECRET_KEY: 's', ENDPOINT_URL: 'http://127.0.0.1:9000' });
  assert.deepEqual(unavailableSettings(settings), []);
  assert.deepEqual(snapshotProblems(settings), []);
  assert.ok(snapshotStoreFor(settings, 0, () => 0) instanceof S3SnapshotStore);
  assert.ok(snapshotStoreFor(settingsOf({}), 0, () => 0) instanceof LocalSnapshotStore);
  assert.deepEqual(snapshotProblems(s3({ BUCKET: 'b', ENDPOINT_URL: 'https://store.test' })), []);
  assert.deepEqual(snapshotProblems(s3({ BUCKET: 'b', REGION: 'eu' })), []);
});

test('what S3 lacks is told by its key', () => {
  const key = 'storage.snapshots_config.s3_config';
  const lacks: [Record<string, string>, string[]][] = [
    [{}, [`${key}.bucket`, `${key}.region`]],
    [{ BUCKET: '', REGION: 'eu' }, [`${key}.bucket`]],
    [{ BUCKET: 'b', REGION: 'eu', ACCESS_KEY: 'a' }, [`${key}.secret_key`]],
    [{ BUCKET: 'b', REGION: 'eu', SECRET_KEY: 's' }, [`${key}.access_key`]],
    [{ BUCKET: 'b', ENDPOINT_URL: 'store:9000' }, [`${key}.endpoint_url`]],
    [{ BUCKET: 'b', ENDPOINT_URL: 'no url' }, [`${key}.endpoint_url`]],
  ];
  for (const [given, keys] of lacks)
    assert.deepEqual(
      snapshotProblems(s3(given)).map((line) => line.split(':')[0]),
      keys,
    );
  assert.deepEqual(snapshotProblems(settingsOf({ [`${S3}ENDPOINT_URL`]: 'no url' })), [], 'settings of a store that is not used');
});

test('the addresses that archives may be fetched from are a list, in YAML and with commas in a variable', () => {
  const tree = { service: { snapshot_url_allow: ['10.0.0.0/8', 'store.test'] } };
  const fromYaml = resolveSettings([{ kind: 'tree', name: 'x', tree }]).settings;
  const fromVariable = settingsOf({ SERVICE__SERVICE__SNAPSHOT_URL_ALLOW: '10.0.0.0/8, store.test' });
  for (const settings of [fromYaml, fromVariable]) {
    assert.deepEqual(snapshotProblems(settings), []);
    assert.equal(isListed('x', '10.1.2.3', snapshotUrlsAllowed(settings)), true);
    assert.equal(isListed('store.test', '127.0.0.1', snapshotUrlsAllowed(settings)), true);
    assert.equal(isListed('x', '127.0.0.1', snapshotUrlsAllowed(settings)), false);
  }
  assert.deepEqual(settingsOf({ SERVICE__SERVICE__SNAPSHOT_URL_ALLOW: '' }).service.snapshot_url_allow, []);
  const [line = ''] = snapshotProblems(settingsOf({ SERVICE__SERVICE__SNAPSHOT_URL_ALLOW: 'http://store' }));
  assert.match(line, /^service\.snapshot_url_allow: "http:\/\/store" is neither/);
  assert.throws(
    () => resolveSettings([{ kind: 'tree', name: 'x', tree: { service: { snapshot_url_allow: 'store' } } }]),
    /snapshot_url_allow: expected a list of strings/,
  );
});

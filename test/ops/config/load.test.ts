import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadSettings } from '../../../ops/config/load.js';
import { SettingsError } from '../../../ops/config/resolve.js';

function withFolder(files: Record<string, string>, run: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-config-'));
  try {
    mkdirSync(join(folder, 'config'));
    for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
    run(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test('files are read in order: config, run mode, local, --config-path; variables come last', () => {
  const files = {
    'config/config.yaml':
      'service: { http_port: 1, host: one, metrics_prefix: one }\nlog_level: one\nstorage: { storage_path: one, snapshots_path: one }',
    'config/production.yaml': 'service: { host: two, metrics_prefix: two }\nlog_level: two\nstorage: { snapshots_path: two }',
    'config/local.yaml': 'service: { metrics_prefix: three }\nlog_level: three',
    'extra.yaml': 'log_level: four\nservice: { max_workers: 4 }',
  };
  withFolder(files, (folder) => {
    const environment = { RUN_MODE: 'production', SERVICE__SERVICE__MAX_WORKERS: '5' };
    const { settings } = loadSettings({ folder, configPath: join(folder, 'extra.yaml'), environment });
    assert.equal(settings.service.http_port, 1);
    assert.equal(settings.storage.storage_path, 'one');
    assert.equal(settings.storage.snapshots_path, 'two');
    assert.equal(settings.service.host, 'two');
    assert.equal(settings.service.metrics_prefix, 'three');
    assert.equal(settings.log_level, 'four');
    assert.equal(settings.service.max_workers, 5);
  });
});

test('without any file the defaults stand', () => {
  withFolder({}, (folder) => {
    assert.equal(loadSettings({ folder, configPath: undefined, environment: {} }).settings.log_level, 'INFO');
  });
});

test('an empty file says nothing; broken YAML and a missing --config-path are told', () => {
  withFolder({ 'config/config.yaml': '', 'broken.yaml': 'a: [1' }, (folder) => {
    loadSettings({ folder, configPath: undefined, environment: {} });
    const load = (configPath: string) => () => loadSettings({ folder, configPath: join(folder, configPath), environment: {} });
    assert.throws(
      load('broken.yaml'),
      (error: SettingsError) => error instanceof SettingsError && /broken\.yaml: cannot be read/.test(error.message),
    );
    assert.throws(load('none.yaml'), /--config-path: no such file/);
  });
});

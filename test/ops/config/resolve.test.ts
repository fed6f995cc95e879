import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unavailableSettings } from '../../../ops/config/available.js';
import { collectionDefaults, optimizersOverwrite } from '../../../ops/config/collection-defaults.js';
import { resolveSettings, SettingsError, type SettingsSource } from '../../../ops/config/resolve.js';
import { BUILT_IN_DEFAULTS } from '../../../protocols/rest/collections.js';

function tree(value: unknown, name = 'a.yaml'): SettingsSource {
  return { kind: 'tree', name, tree: value };
}

function environment(variables: Record<string, string>): SettingsSource {
  return { kind: 'environment', variables };
}

function problemsOf(...sources: SettingsSource[]): readonly string[] {
  try {
    resolveSettings(sources);
  } catch (error) {
    assert.ok(error instanceof SettingsError);
    return error.problems;
  }
  return [];
}

test('nothing given: the built-in defaults, and collections get the defaults of the API', () => {
  const { settings, warnings } = resolveSettings([]);
  assert.deepEqual(warnings, []);
  assert.equal(settings.service.http_port, 6333);
  assert.equal(settings.service.grpc_port, 6334);
  assert.equal(settings.storage.storage_path, './storage');
  assert.equal(settings.service.max_request_size_mb, 32);
  assert.equal(settings.storage.recovery_mode, null);
  assert.deepEqual(unavailableSettings(settings), []);
  assert.deepEqual(collectionDefaults(settings), BUILT_IN_DEFAULTS);
});

test('default limits of strict mode are ones that a request could ask for', () => {
  const strictOf = (strict_mode: object) => resolveSettings([tree({ storage: { collection: { strict_mode } } })]).settings;
  const limits = { enabled: true, max_query_limit: 7, multivector_config: { m: { max_vectors: 2 } } };
  assert.deepEqual(collectionDefaults(strictOf(limits)).strictMode, limits);
  for (const wrong of [{ max_query_limit: 0 }, { enabled: 'yes' }, { max_querry_limit: 7 }])
    assert.match(unavailableSettings(strictOf(wrong))[0] as string, /^storage\.collection\.strict_mode: /, JSON.stringify(wrong));
});

test('a default quantization is one that a request could ask for', () => {
  const scalar = resolveSettings([
    environment({
      SERVICE__STORAGE__COLLECTION__QUANTIZATION__SCALAR__TYPE: 'int8',
      SERVICE__STORAGE__COLLECTION__QUANTIZATION__SCALAR__QUANTILE: '0.9',
    }),
  ]).settings;
  assert.deepEqual(unavailableSettings(scalar), []);
  assert.deepEqual(collectionDefaults(scalar).quantization, { scalar: { type: 'int8', quantile: 0.9 } });
  const { settings } = resolveSettings([tree({ storage: { collection: { quantization: { magic: {} } } } })]);
  assert.match(unavailableSettings(settings)[0] as string, /^storage\.collection\.quantization: /);
});

test('the later source wins, key by key', () => {
  const { settings } = resolveSettings([
    tree({ service: { http_port: 1, host: 'a' }, log_level: 'WARN' }),
    tree({ service: { http_port: 2 } }, 'b.yaml'),
    environment({ SERVICE__SERVICE__HTTP_PORT: '3', OTHER: 'x' }),
  ]);
  assert.equal(settings.service.http_port, 3);
  assert.equal(settings.service.host, 'a');
  assert.equal(settings.log_level, 'WARN');
});

test('variables are read by the type of their key', () => {
  const { settings, warnings } = resolveSettings([
    environment({
      SERVICE__SERVICE__METRICS_PREFIX: '123',
      SERVICE__SERVICE__ENABLE_CORS: 'false',
      SERVICE__SERVICE__GRPC_PORT: 'null',
      SERVICE__SERVICE__API_KEY: '',
      SERVICE__STORAGE__OPTIMIZERS__DELETED_THRESHOLD: '0.5',
      SERVICE__STORAGE__PERFORMANCE__OPTIMIZER_CPU_BUDGET: '-1',
      SERVICE__STORAGE__COLLECTION__STRICT_MODE__MAX_QUERY_LIMIT: '7',
      SERVICE__STORAGE__COLLECTION__STRICT_MODE__ENABLED: 'false',
    }),
  ]);
  assert.deepEqual(warnings, []);
  assert.equal(settings.service.metrics_prefix, '123');
  assert.equal(settings.service.enable_cors, false);
  assert.equal(settings.service.grpc_port, null);
  assert.equal(settings.service.api_key, null);
  assert.equal(settings.storage.optimizers.deleted_threshold, 0.5);
  assert.equal(settings.storage.performance.optimizer_cpu_budget, -1);
  assert.deepEqual(settings.storage.collection.strict_mode, { max_query_limit: 7, enabled: false });
});

test('an unknown key is a warning that names key and source', () => {
  const { warnings } = resolveSettings([
    tree({ storage: { colour: 1 }, nonsense: { a: 1 } }),
    environment({ SERVICE__SERVICE__COLOUR: 'red', SERVICE__CONSTRUCTOR: 'x' }),
  ]);
  assert.deepEqual(warnings, [
    'unknown setting `storage.colour` (a.yaml)',
    'unknown setting `nonsense` (a.yaml)',
    'unknown setting `constructor` (environment variable SERVICE__CONSTRUCTOR)',
    'unknown setting `service.colour` (environment variable SERVICE__SERVICE__COLOUR)',
  ]);
});

test('a wrong type or an impossible value names key, expectation and source', () => {
  const cases: [SettingsSource, string][] = [
    [tree({ service: { http_port: 'x' } }), 'service.http_port: expected an integer from 0 to 65535, got "x" (a.yaml)'],
    [tree({ service: { http_port: 65536 } }), 'service.http_port: expected an integer from 0 to 65535, got 65536 (a.yaml)'],
    [tree({ service: 5 }), 'service: expected a group of settings, got 5 (a.yaml)'],
    [tree([1]), '(document): expected a group of settings, got [1] (a.yaml)'],
    [tree({ logger: { format: 'xml' } }), 'logger.format: expected one of `text`, `json`, got "xml" (a.yaml)'],
    [
      tree({ storage: { optimizers: { deleted_threshold: 1.5 } } }),
      'storage.optimizers.deleted_threshold: expected a number from 0 to 1, got 1.5 (a.yaml)',
    ],
    [
      environment({ SERVICE__STORAGE__WAL__WAL_CAPACITY_MB: '0' }),
      'storage.wal.wal_capacity_mb: expected an integer of 1 or more, got 0 (environment variable SERVICE__STORAGE__WAL__WAL_CAPACITY_MB)',
    ],
    [environment({ SERVICE__STORAGE: 'x' }), 'storage: expected a group of settings, got "x" (environment variable SERVICE__STORAGE)'],
    [
      environment({ SERVICE__SERVICE__ENABLE_TLS: 'maybe' }),
      'service.enable_tls: expected `true` or `false`, got "maybe" (environment variable SERVICE__SERVICE__ENABLE_TLS)',
    ],
  ];
  for (const [source, problem] of cases) assert.deepEqual(problemsOf(source), [problem]);
});

test('every problem is told at once', () => {
  assert.equal(problemsOf(tree({ service: { http_port: -1, host: 5 } }), environment({ SERVICE__CLUSTER__ENABLED: '5' })).length, 3);
});

test('older names of settings still work', () => {
  const { settings, warnings } = resolveSettings([
    tree({ storage: { optimizers: { memmap_threshold_kb: 5, indexing_threshold: 6 }, hnsw_index: { full_scan_threshold: 70 } } }),
  ]);
  assert.deepEqual(warnings, []);
  assert.equal(settings.storage.optimizers.memmap_threshold, 5);
  assert.equal(settings.storage.optimizers.indexing_threshold_kb, 6);
  assert.equal(collectionDefaults(settings).hnsw.full_scan_threshold, 70);
});

test('optimizers_overwrite is no default of new collections: it goes before the settings of all, under their names', () => {
  const { settings } = resolveSettings([
    tree({
      storage: {
        optimizers: { indexing_threshold_kb: 5, flush_interval_sec: 9 },
        optimizers_overwrite: { indexing_threshold: 0, max_segment_size_kb: 7, deleted_threshold: 0.5 },
      },
    }),
  ]);
  assert.equal(collectionDefaults(settings).optimizers.indexing_threshold, 5);
  assert.deepEqual(optimizersOverwrite(settings), { indexing_threshold: 0, max_segment_size: 7, deleted_threshold: 0.5 });
  assert.deepEqual(optimizersOverwrite(resolveSettings([]).settings), {});
});

test('settings of later releases are refused by key when switched on', () => {
  const on: [string, string][] = [
    // Without a key that tokens could be signed with.
    ['SERVICE__SERVICE__JWT_RBAC', 'true'],
    ['SERVICE__STORAGE__NODE_TYPE', 'Listener'],
  ];
  for (const [name, value] of on) {
    const refused = unavailableSettings(resolveSettings([environment({ [name]: value })]).settings);
    const key = name.slice('SERVICE__'.length).toLowerCase().replaceAll('__', '.');
    assert.equal(refused.length, 1, name);
    assert.ok(refused[0]?.startsWith(`${key}: not available`), refused[0]);
  }
});

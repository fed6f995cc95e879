import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TroupeError } from '../../../protocols/errors.js';
import { parseJson } from '../../../protocols/json.js';
import { settingsWithoutEffect } from '../../../protocols/rest/collection-hints.js';
import {
  applyCollectionChange,
  BUILT_IN_DEFAULTS,
  type CollectionDefaults,
  decodeCreateCollection,
  decodeUpdateCollection,
} from '../../../protocols/rest/collections.js';

const VECTORS = { size: 8, distance: 'Cosine' };

function create(body: unknown, defaults: CollectionDefaults = BUILT_IN_DEFAULTS) {
  return decodeCreateCollection(parseJson(JSON.stringify(body)), defaults);
}

function patch(config: ReturnType<typeof create>, body: unknown) {
  return applyCollectionChange(config, decodeUpdateCollection(parseJson(JSON.stringify(body))));
}

function codeOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof TroupeError, String(error));
    return error.code;
  }
  return 'ok';
}

test('a collection of one vector gets every default, in the shape that clients read', () => {
  assert.deepEqual(create({ vectors: VECTORS }), {
    params: {
      vectors: { size: 8, distance: 'Cosine' },
      shard_number: 1,
      replication_factor: 1,
      write_consistency_factor: 1,
      on_disk_payload: true,
    },
    hnsw_config: { m: 16, ef_construct: 100, full_scan_threshold: 10000, max_indexing_threads: 0, on_disk: false },
    optimizer_config: {
      deleted_threshold: 0.2,
      vacuum_min_vector_number: 1000,
      default_segment_number: 0,
      max_segment_size: null,
      memmap_threshold: null,
      indexing_threshold: 10000,
      flush_interval_sec: 5,
      max_optimization_threads: null,
      prevent_unoptimized: null,
    },
    wal_config: { wal_capacity_mb: 32, wal_segments_ahead: 0, wal_retain_closed: 1 },
    quantization_config: null,
  });
});

test('null means «not given» for every option', () => {
  const nulls = ['shard_number', 'sharding_method', 'on_disk_payload', 'hnsw_config', 'optimizers_config', 'sparse_vectors', 'metadata'];
  const body = { vectors: VECTORS, ...Object.fromEntries(nulls.map((name) => [name, null])) };
  assert.deepEqual(create(body), create({ vectors: VECTORS }));
});

test('given options replace the defaults one by one', () => {
  const config = create({
    vectors: { ...VECTORS, on_disk: true, datatype: 'float16', hnsw_config: { m: 4 } },
    hnsw_config: { ef_construct: 64 },
    optimizers_config: { indexing_threshold: 0, max_optimization_threads: 2 },
    wal_config: { wal_capacity_mb: 1 },
    replication_factor: 2,
    on_disk_payload: false,
    metadata: { owner: 'x', deep: { n: null } },
    strict_mode_config: { enabled: false, max_query_limit: 5 },
  });
  assert.deepEqual(config.params.vectors, { size: 8, distance: 'Cosine', hnsw_config: { m: 4 }, on_disk: true, datatype: 'float16' });
  assert.equal(config.hnsw_config.ef_construct, 64);
  assert.equal(config.hnsw_config.m, 16);
  assert.equal(config.optimizer_config.indexing_threshold, 0);
  assert.equal(config.optimizer_config.max_optimization_threads, 2);
  assert.equal(config.wal_config.wal_capacity_mb, 1);
  assert.equal(config.params.replication_factor, 2);
  assert.equal(config.params.on_disk_payload, false);
  assert.deepEqual(config.metadata, { owner: 'x', deep: { n: null } });
  assert.deepEqual(config.strict_mode_config, { enabled: false, max_query_limit: 5 });
});

test('the node can set other defaults', () => {
  const defaults = { ...BUILT_IN_DEFAULTS, vectorsOnDisk: true, onDiskPayload: false, strictMode: { max_timeout: 3 } };
  const config = create({ vectors: VECTORS, strict_mode_config: { max_query_limit: 2 } }, defaults);
  assert.deepEqual(config.params.vectors, { ...VECTORS, on_disk: true });
  assert.equal(config.params.on_disk_payload, false);
  assert.deepEqual(config.strict_mode_config, { max_timeout: 3, max_query_limit: 2 });
});

test('named vectors may have any name, also one of the parameters of a vector or of every object', () => {
  for (const name of ['', 'size', 'distance', '__proto__', 'constructor', 'вектор']) {
    const body = `{"vectors":{${JSON.stringify(name)}:{"size":2,"distance":"Dot"}}}`;
    const { vectors } = decodeCreateCollection(parseJson(body), BUILT_IN_DEFAULTS).params;
    assert.deepEqual(Object.entries(vectors), [[name, { size: 2, distance: 'Dot' }]], name);
  }
  assert.deepEqual(create({}).params.vectors, {});
  assert.deepEqual(create({ vectors: {} }).params.vectors, {});
  assert.equal(
    codeOf(() => create({ vectors: { 'a/b': VECTORS } })),
    'wrongInput',
  );
});

test('a wrong type is malformed, a value out of its range is invalid', () => {
  const cases: [unknown, string][] = [
    [[], 'malformedBody'],
    [{ vectors: 4 }, 'malformedBody'],
    [{ vectors: [VECTORS] }, 'malformedBody'],
    [{ vectors: { size: 4 } }, 'malformedBody'],
    [{ vectors: { distance: 'Dot' } }, 'malformedBody'],
    [{ vectors: { size: 0, distance: 'Dot' } }, 'malformedBody'],
    [{ vectors: { size: 1.5, distance: 'Dot' } }, 'malformedBody'],
    [{ vectors: { size: '4', distance: 'Dot' } }, 'malformedBody'],
    [{ vectors: { size: 4, distance: 'dot' } }, 'malformedBody'],
    [{ vectors: { a: VECTORS, b: { size: 4 } } }, 'malformedBody'],
    [{ vectors: { size: 65536, distance: 'Dot' } }, 'ok'],
    [{ vectors: { size: 65537, distance: 'Dot' } }, 'invalidValue'],
    [{ vectors: { ...VECTORS, datatype: 'float64' } }, 'malformedBody'],
    [{ vectors: { ...VECTORS, datatype: 'turbo4' } }, 'ok'],
    [{ sparse_vectors: { a: { index: { datatype: 'turbo4' } } } }, 'invalidValue'],
    [{ sparse_vectors: { '': {} } }, 'wrongInput'],
    [{ shard_number: 0 }, 'invalidValue'],
    [{ shard_number: -1 }, 'malformedBody'],
    [{ replication_factor: 0 }, 'invalidValue'],
    [{ sharding_method: 'hash' }, 'malformedBody'],
    [{ sharding_method: 'auto' }, 'ok'],
    [{ sharding_method: 'custom' }, 'ok'],
    [{ hnsw_config: { ef_construct: 3 } }, 'invalidValue'],
    [{ hnsw_config: { ef_construct: 4 } }, 'ok'],
    [{ hnsw_config: { m: '16' } }, 'malformedBody'],
    [{ hnsw_config: { full_scan_threshold: 9 } }, 'invalidValue'],
    [{ optimizers_config: { deleted_threshold: 1 } }, 'ok'],
    [{ optimizers_config: { deleted_threshold: 1.01 } }, 'invalidValue'],
    [{ optimizers_config: { vacuum_min_vector_number: 99 } }, 'invalidValue'],
    [{ optimizers_config: { max_segment_size: 0 } }, 'invalidValue'],
    [{ optimizers_config: { max_optimization_threads: 'many' } }, 'malformedBody'],
    [{ wal_config: { wal_capacity_mb: 0 } }, 'invalidValue'],
    [{ strict_mode_config: { max_resident_memory_percent: 101 } }, 'invalidValue'],
    [{ strict_mode_config: { enabled: 'yes' } }, 'malformedBody'],
    [{ metadata: [1] }, 'malformedBody'],
    [{ unheard_of: 1 }, 'ok'],
  ];
  for (const [body, code] of cases) {
    assert.equal(
      codeOf(() => create(body)),
      code,
      JSON.stringify(body),
    );
  }
});

test('settings without effect are kept, and told', () => {
  assert.deepEqual(settingsWithoutEffect(create({ vectors: VECTORS })), []);
  const multi = { ...VECTORS, multivector_config: { comparator: 'max_sim' }, quantization_config: { scalar: { type: 'int8' } } };
  const told = (body: object): string[] => settingsWithoutEffect(create(body)).map((line) => line.replace(/: .*|\. .*/s, ''));
  const inline = { hnsw_config: { inline_storage: true } };
  assert.deepEqual(told({ vectors: { ...VECTORS, ...inline } }), [
    "The `hnsw_config.inline_storage` option for vector '' requires quantization to be enabled",
  ]);
  assert.deepEqual(told({ vectors: { a: { ...multi, ...inline } } }), [
    "The `hnsw_config.inline_storage` option for vector 'a' is not compatible with multivectors",
  ]);
  assert.deepEqual(
    told({ vectors: { a: VECTORS }, quantization_config: { binary: {} }, hnsw_config: { inline_storage: true, on_disk: true } }),
    [
      "The `hnsw_config.inline_storage` option for vector 'a' has no effect",
      "The `hnsw_config.on_disk` option for vector 'a' has no effect",
    ],
  );
  const filed = { ...VECTORS, on_disk: true };
  assert.deepEqual(told({ vectors: filed, hnsw_config: { on_disk: true } }), []);
  // Rows lie in one order only.
  assert.deepEqual(told({ vectors: { a: filed, b: filed }, hnsw_config: { on_disk: true } }), [
    "The `hnsw_config.on_disk` option for vector 'b' has no effect",
  ]);
  assert.deepEqual(told({ vectors: { a: { ...multi, on_disk: true }, b: { ...VECTORS, datatype: 'turbo4' } } }), [
    "The `on_disk` option for vector 'a' has no effect",
    "The `turbo4` datatype of vector 'b' is kept as `float16`",
  ]);
  assert.deepEqual(
    told({ sparse_vectors: { s: { index: { on_disk: true, datatype: 'uint8' } } }, wal_config: { wal_segments_ahead: 1 } }),
    [
      "The `index.on_disk` option for sparse vector 's' has no effect",
      "The `index.datatype` option for sparse vector 's' has no effect",
      'The `wal_config.wal_segments_ahead` option has no effect',
    ],
  );
});

test('a change touches what it names and leaves the given configuration alone', () => {
  const before = create({ vectors: { a: VECTORS, b: VECTORS }, hnsw_config: { m: 20 }, metadata: { keep: 1, drop: 2 } });
  const copy = structuredClone(before);
  const after = patch(before, {
    hnsw_config: { ef_construct: 40 },
    optimizers_config: { indexing_threshold: 7, max_optimization_threads: 'auto', deleted_threshold: null },
    params: { replication_factor: 3, read_fan_out_delay_ms: 5 },
    vectors: { a: { on_disk: true, hnsw_config: { m: 9 } } },
    strict_mode_config: { max_query_limit: 9 },
    metadata: { drop: null, add: [1] },
    quantization_config: 'Disabled',
  });
  assert.deepEqual(before, copy);
  assert.deepEqual(after.hnsw_config, { ...before.hnsw_config, ef_construct: 40 });
  assert.deepEqual(after.optimizer_config, { ...before.optimizer_config, indexing_threshold: 7 });
  assert.deepEqual(after.params.vectors, { a: { ...VECTORS, on_disk: true, hnsw_config: { m: 9 } }, b: VECTORS });
  assert.equal(after.params.replication_factor, 3);
  assert.equal(after.params.read_fan_out_delay_ms, 5);
  assert.deepEqual(after.strict_mode_config, { max_query_limit: 9 });
  assert.deepEqual(after.metadata, { keep: 1, add: [1] });
  assert.deepEqual(patch(after, { strict_mode_config: { max_timeout: 1, max_query_limit: null } }).strict_mode_config, {
    max_query_limit: 9,
    max_timeout: 1,
  });
  assert.deepEqual(patch(after, {}), after);
});

test('the unnamed vector is changed by the empty name, and only where it is', () => {
  const single = create({ vectors: VECTORS });
  assert.deepEqual(patch(single, { vectors: { '': { on_disk: true } } }).params.vectors, { ...VECTORS, on_disk: true });
  const named = create({ vectors: { a: VECTORS } });
  for (const name of ['', 'zzz', 'constructor']) {
    assert.equal(
      codeOf(() => patch(named, { vectors: { [name]: { on_disk: true } } })),
      'wrongInput',
    );
  }
  assert.equal(
    codeOf(() => patch(single, { vectors: { a: { on_disk: true } } })),
    'wrongInput',
  );
  assert.equal(
    codeOf(() => patch(single, { sparse_vectors: { words: {} } })),
    'wrongInput',
  );
});

test('a sparse vector is changed part by part', () => {
  const before = create({ vectors: VECTORS, sparse_vectors: { words: { index: { on_disk: false } }, other: {} } });
  const once = patch(before, { sparse_vectors: { words: { index: { full_scan_threshold: 7 } } } });
  assert.deepEqual(once.params.sparse_vectors, { words: { index: { on_disk: false, full_scan_threshold: 7 } }, other: {} });
  const twice = patch(once, { sparse_vectors: { words: { modifier: 'idf' } } });
  assert.deepEqual(twice.params.sparse_vectors?.words, { index: { on_disk: false, full_scan_threshold: 7 }, modifier: 'idf' });
});

test('a change is checked like a creation', () => {
  const config = create({ vectors: VECTORS });
  const cases: [unknown, string][] = [
    [[], 'malformedBody'],
    [{ params: { replication_factor: 0 } }, 'malformedBody'],
    [{ hnsw_config: { ef_construct: 1 } }, 'invalidValue'],
    [{ optimizers_config: { indexing_threshold: 'x' } }, 'malformedBody'],
    [{ vectors: { on_disk: true } }, 'malformedBody'],
    [{ quantization_config: 'disabled' }, 'malformedBody'],
    [{ quantization_config: { scalar: { type: 'int4' } } }, 'malformedBody'],
    [{ vectors: { '': { quantization_config: { scalar: { type: 'int8', quantile: 2 } } } } }, 'invalidValue'],
  ];
  for (const [body, code] of cases) {
    assert.equal(
      codeOf(() => patch(config, body)),
      code,
      JSON.stringify(body),
    );
  }
});

test('metadata does not grow without end by changes', () => {
  const half = (key: string) => ({ metadata: { [key]: 'x'.repeat(600_000) } });
  const one = patch(create({ vectors: VECTORS }), half('a'));
  assert.throws(() => patch(one, half('b')), /^TroupeError: Wrong input: metadata would have 1200\d\d\d characters/);
  assert.deepEqual(patch(one, { metadata: { a: null, ...half('b').metadata } }).metadata, half('b').metadata);
});

test('metadata keeps integers beyond 2^53 and odd keys', () => {
  const config = decodeCreateCollection(parseJson('{"metadata":{"n":18446744073709551615,"__proto__":1}}'), BUILT_IN_DEFAULTS);
  assert.equal(config.metadata?.n, 18446744073709551615n);
  assert.deepEqual(Object.keys(config.metadata ?? {}), ['n', '__proto__']);
});

test('a collection has dense, multi and sparse vectors', () => {
  const vectors = { a: { size: 4, distance: 'Dot' }, m: { size: 2, distance: 'Cosine', multivector_config: { comparator: 'max_sim' } } };
  const sparse = { words: { modifier: 'idf', index: { on_disk: true, datatype: 'float16', full_scan_threshold: 10 } }, plain: {} };
  const { params } = create({ vectors, sparse_vectors: sparse });
  assert.deepEqual([params.vectors, params.sparse_vectors], [vectors, sparse]);
  assert.deepEqual([create({}).params.vectors, create({}).params.sparse_vectors], [{}, undefined]);
  const refusals: [object, string][] = [
    [{ vectors: { ...VECTORS, multivector_config: {} } }, 'malformedBody'],
    [{ vectors: { ...VECTORS, multivector_config: { comparator: 'avg' } } }, 'malformedBody'],
    [{ vectors, sparse_vectors: { a: {} } }, 'wrongInput'],
    [{ sparse_vectors: { 'a/b': {} } }, 'wrongInput'],
    [{ sparse_vectors: { words: { modifier: 'bm25' } } }, 'malformedBody'],
    [{ sparse_vectors: { words: { index: { datatype: 'int4' } } } }, 'malformedBody'],
    [{ sparse_vectors: { words: 4 } }, 'malformedBody'],
  ];
  for (const [body, code] of refusals)
    assert.equal(
      codeOf(() => create(body)),
      code,
      JSON.stringify(body),
    );
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseJson } from '../../../protocols/json.js';
import type { JsonValue } from '../../../protocols/model/payload.js';
import { UNKNOWN_FIELDS_MAX, type UnknownField } from '../../../protocols/model/unknown-fields.js';
import type { OperationName } from '../../../protocols/openapi/operations.js';
import { findUnknownFields } from '../../../protocols/openapi/unknown-fields.js';

function found(operation: OperationName, body: JsonValue): UnknownField[] {
  const into = { refuse: false, found: [] as UnknownField[] };
  findUnknownFields(operation, body, into);
  return into.found;
}

function names(operation: OperationName, body: JsonValue): string[] {
  return found(operation, body).map(({ name }) => name);
}

test('unknown fields are found at any depth, with the known field that is nearest', () => {
  const body = { query: [1, 2], limitt: 3, params: { hnsw_eff: 8, quantization: { rescor: true } }, banana: 1 };
  assert.deepEqual(found('query_points', body), [
    { name: 'limitt', meant: 'limit' },
    { name: 'params.hnsw_eff', meant: 'hnsw_ef' },
    { name: 'params.quantization.rescor', meant: 'rescore' },
    { name: 'banana', meant: null },
  ]);
});

test('a field that a request has over and over is told once', () => {
  const points = Array.from({ length: 100 }, (_, id) => ({ id, vectr: [1], vector: [1] }));
  assert.deepEqual(found('upsert_points', { points }), [{ name: 'points[].vectr', meant: 'vector' }]);
  assert.deepEqual(names('batch_update', { operations: [{ upsert: { points } }, { delete: { points: [1], wait: true } }] }), [
    'operations[].upsert.points[].vectr',
    'operations[].delete.wait',
  ]);
});

test('prefetches are searched at any depth', () => {
  let prefetch: JsonValue = { query: [1], limt: 1 };
  for (let depth = 0; depth < 60; depth++) prefetch = depth % 2 === 0 ? [{ prefetch }] : { prefetch };
  assert.equal(names('query_points', { prefetch, query: { fusion: 'rrf' } }).length, 1);
  for (let depth = 0; depth < 100_000; depth++) prefetch = { prefetch };
  assert.deepEqual(names('query_points', { prefetch, limt: 1 }), ['limt'], 'deeper than decoders go');
});

test('what users name is not unknown: payloads, vectors, metadata; nor what is refused elsewhere', () => {
  const payload = { any: { thing: [{ at: 'all' }] } };
  const points = [
    {
      id: 1,
      vector: { mine: [1, 2], sparse: { indices: [1], values: [1] }, text: { text: 'a', model: 'bm25', options: { k: 1 } } },
      payload,
    },
    { id: 2, vector: [[1], [2]], payload },
  ];
  assert.deepEqual(names('upsert_points', { points, shard_key: 'a', update_filter: { must: [{ kee: 1 }] } }), []);
  assert.deepEqual(names('upsert_points', { batch: { ids: [1], vectors: { mine: [[1]] }, payloads: [payload] } }), []);
  assert.deepEqual(names('create_collection', { vectors: { mine: { size: 1, distance: 'Dot' } }, metadata: payload }), []);
  assert.deepEqual(names('set_payload', { payload, points: [1], key: 'a' }), []);
  assert.deepEqual(names('create_collection', { vectors: { mine: { size: 1, distance: 'Dot', dim: 3 } } }), ['vectors.mine.dim']);
});

test('other spellings that are taken are known where they are taken', () => {
  assert.deepEqual(names('search_points', { vector: [1], top: 3, with_vectors: true }), []);
  assert.deepEqual(found('query_points', { query: [1], top: 3, with_vectors: true }), [{ name: 'top', meant: 'limit' }]);
});

test('names that objects inherit are unknown like others, and hurt nothing', () => {
  const body = parseJson(Buffer.from('{"__proto__":{"a":1},"constructor":1,"toString":2}'));
  assert.deepEqual(names('count_points', body), ['__proto__', 'constructor', 'toString']);
});

test('only so many fields are told, and only the beginning of long names', () => {
  const body = Object.fromEntries(Array.from({ length: 10 }, (_, at) => [`${'x'.repeat(100_000)}${at}`, at]));
  const all = names('count_points', body);
  assert.equal(all.length, 1, 'names of one beginning are one');
  assert.equal(all[0]?.length, 65);
  const short = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`unknown-${at}`, at]));
  assert.equal(names('count_points', short).length, UNKNOWN_FIELDS_MAX);
});

test('where unknown fields are errors, the first one is told with the known fields', () => {
  const refuse = { refuse: true, found: [] };
  assert.throws(
    () => findUnknownFields('count_points', { exct: true }, refuse),
    (error: Error & { code?: string; detail?: string }) =>
      error.code === 'malformedBody' &&
      error.detail ===
        '`request body`: unknown field `exct` (did you mean `exact`?), expected one of `explain`, `shard_key`, `filter`, `exact`',
  );
});

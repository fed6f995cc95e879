import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KeyedShard, ShardKeySelector } from '../../../protocols/model/cluster.js';
import type { UpdateOperation } from '../../../protocols/model/update.js';
import { ringsOf, selectShards } from '../../../storage/sharding/keys.js';

const AUTO: readonly KeyedShard[] = [0, 1].map((id) => ({ id, key: null }));
const KEYED: readonly KeyedShard[] = [
  { id: 0, key: 'a' },
  { id: 1, key: 7 },
  { id: 2, key: 7 },
  { id: 3, key: '7', active: false },
];
const keys = (...given: (string | number)[]): ShardKeySelector => ({ kind: 'keys', keys: given });
const upsert: UpdateOperation = { kind: 'upsert', batch: { ids: [1], payloads: [undefined], vectors: [] } };
const remove: UpdateOperation = { kind: 'deletePoints', selector: { kind: 'ids', ids: [1] } };

test('a read goes to the shards of its keys, each once and in order, and without keys to all', () => {
  assert.deepEqual(selectShards(KEYED, null), [0, 1, 2, 3]);
  assert.deepEqual(selectShards(KEYED, keys(7, 'a', 7)), [0, 1, 2]);
  assert.deepEqual(selectShards(KEYED, keys('7')), [3]);
  assert.deepEqual(selectShards([], undefined), []);
  for (const [shards, key] of [[KEYED, 'b'], [AUTO, 'a'], [[], 'a']] as const) // biome-ignore format: a table
    assert.throws(() => selectShards(shards, keys(key)), { code: 'badRequest', detail: `Shard key "${key}" not found` });
});

test('a fallback stands for a target of which a shard does not serve', () => {
  const asked = (target: string | number, fallback: string | number) => selectShards(KEYED, { kind: 'fallback', target, fallback });
  assert.deepEqual(asked(7, 'a'), [1, 2]);
  assert.deepEqual(asked('7', 'a'), [0]);
  assert.deepEqual(asked('b', 'a'), [0]);
  assert.throws(() => asked('b', 'c'), { code: 'badRequest', detail: 'Shard key "c" not found' });
});

test('a key that waits to be filled has nothing: reads and writes of all keys leave it out, and those of its own are refused', () => {
  const shards: readonly KeyedShard[] = [
    { id: 0, key: 'a' },
    { id: 1, key: 'b', active: false, closed: true },
  ];
  assert.deepEqual(selectShards(shards, null), [0]);
  assert.deepEqual(selectShards(shards, { kind: 'fallback', target: 'b', fallback: 'a' }), [0]);
  assert.deepEqual(
    ringsOf(shards, true, remove, null).map((ring) => ring.shards),
    [[0]],
  );
  const refused = { code: 'unavailable', detail: /shard key "b" is not filled yet/ };
  assert.throws(() => selectShards(shards, keys('a', 'b')), refused);
  assert.throws(() => selectShards(shards, { kind: 'fallback', target: 'c', fallback: 'b' }), refused);
  assert.throws(() => ringsOf(shards, true, upsert, keys('b')), refused);
  const index: UpdateOperation = { kind: 'createFieldIndex', field: 'f', schema: { type: 'keyword' } };
  // The agreed index comes to the key when it is filled.
  assert.deepEqual(ringsOf(shards.slice(1), true, index, null), []);
});

test('a write goes to a ring for each key, and points need keys where shards have some', () => {
  const rings = (shards: readonly KeyedShard[], operation: UpdateOperation, selector: ShardKeySelector | null) =>
    ringsOf(shards, shards !== AUTO, operation, selector).map((ring) => ring.shards);
  assert.deepEqual(rings(AUTO, upsert, null), [[0, 1]]);
  assert.deepEqual(rings(KEYED, upsert, keys(7)), [[1, 2]]);
  assert.deepEqual(rings(KEYED, upsert, keys('a', 7)), [[0], [1, 2]]);
  assert.deepEqual(rings(KEYED, remove, null), [[0], [1, 2], [3]]);
  assert.deepEqual(rings([], remove, null), []);
  assert.throws(() => rings(KEYED, upsert, null), { code: 'wrongInput', detail: 'Shard key not specified' });
  assert.throws(() => rings([], upsert, null), { code: 'wrongInput', detail: 'Shard key not specified' });
  assert.throws(() => rings(AUTO, remove, keys('a')), { code: 'wrongInput', detail: 'Shard key "a" not found' });
});

test('an index goes to the shards of all keys, and to none before there is a key', () => {
  const index: UpdateOperation = { kind: 'createFieldIndex', field: 'f', schema: { type: 'keyword' } };
  assert.equal(ringsOf(KEYED, true, index, null).length, 3);
  assert.deepEqual(ringsOf([], true, index, null), []);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  METADATA_BYTES_MAX,
  METADATA_KEY_BYTES_MAX,
  METADATA_KEYS_MAX,
  METADATA_VALUE_BYTES_MAX,
} from '../../../cluster/apply/apply-metadata.js';
import { decodeState, encodeState } from '../../../cluster/state/state-codec.js';
import { CUSTOM, Log } from '../samples.js';

test('small values are kept under keys, replaced and deleted', () => {
  const log = new Log();
  const set = (key: string, value: string | null) => log.say({ kind: 'setMetadata', key, value });
  assert.equal(set('a', '{"x":1}'), 'done');
  assert.equal(set('a', '{"x":1}'), 'unchanged');
  assert.equal(set('__proto__', 'null'), 'done');
  assert.equal(set('a', '2'), 'done');
  assert.equal(set('none', null), 'unchanged');
  assert.deepEqual([...log.state.metadata].sort(), [
    ['__proto__', 'null'],
    ['a', '2'],
  ]);
  assert.deepEqual(decodeState(encodeState(log.state)).metadata, log.state.metadata);
  assert.equal(set('__proto__', null), 'done');
  assert.deepEqual([...log.state.metadata.keys()], ['a']);
});

test('a key, a value, their number and their sum have limits; what is there can be made smaller at all of them', () => {
  const log = new Log();
  const set = (key: string, value: string | null) => log.say({ kind: 'setMetadata', key, value });
  assert.match(set('k'.repeat(METADATA_KEY_BYTES_MAX + 1), '1'), /^wrongInput: the key has 257 bytes/);
  assert.match(set('k', '1'.repeat(METADATA_VALUE_BYTES_MAX + 1)), /^wrongInput: the value has 65537 bytes/);
  const value = '1'.repeat(METADATA_VALUE_BYTES_MAX);
  const fit = Math.floor(METADATA_BYTES_MAX / (METADATA_VALUE_BYTES_MAX + 2));
  for (let n = 0; n < fit; n++) assert.equal(set(`v${n}`, value), 'done');
  assert.match(set('more', value), /^wrongInput: the cluster's metadata would have \d+ bytes/);
  for (let n = 0; n < fit; n++) assert.equal(set(`v${n}`, n === 0 ? '1' : null), 'done');
  for (let n = 1; n < METADATA_KEYS_MAX; n++) set(`n${n}`, '0');
  assert.equal(log.state.metadata.size, METADATA_KEYS_MAX);
  assert.match(set('more', '0'), /^wrongInput: the cluster's metadata have 1000 keys/);
  assert.equal(set('n1', '2'), 'done');
});

test('the indexes of a collection with shard keys are kept for keys that come, and are those of this collection alone', () => {
  const log = new Log();
  log.propose({ kind: 'createCollection', name: 'a', config: CUSTOM, placement: [] });
  const uid = log.state.collections.get('a')?.uid ?? 0;
  const set = (field: string, type: 'keyword' | 'integer' | null, of = uid) =>
    log.say({ kind: 'setPayloadIndex', collection: 'a', uid: of, field, schema: type === null ? null : { type } });
  assert.equal(set('n', 'integer'), 'done');
  assert.equal(set('n', 'integer'), 'unchanged');
  assert.equal(set('__proto__', 'keyword'), 'done');
  assert.match(set('m', 'integer', uid + 1), /^notFound: Collection `a` doesn't exist/);
  assert.deepEqual(decodeState(encodeState(log.state)), log.state);
  assert.equal(set('n', null), 'done');
  assert.equal(set('n', null), 'unchanged');
  assert.deepEqual([...(log.state.collections.get('a')?.payloadIndexes ?? [])], [['__proto__', { type: 'keyword' }]]);
  assert.equal(set('__proto__', null), 'done');
  assert.doesNotMatch(Buffer.from(encodeState(log.state)).toString(), /payloadIndexes|metadata":\[\{"key/, 'as earlier releases write it');
});

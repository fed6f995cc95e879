import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { decodeConfigFile, encodeConfigFile } from '../../../actors/collection/config-file.js';
import { encodeChecked } from '../../../storage/disk/checked-file.js';
import { initChecksum } from '../../../storage/disk/checksum.js';
import { sampleConfig } from '../samples.js';

before(initChecksum);

const STORED = { name: 'Bilder 日', config: { ...sampleConfig(), metadata: { big: 18_446_744_073_709_551_615n, text: '"\u0000' } } };

test('a configuration comes back as it was, integers beyond a double too', () => {
  assert.deepEqual(decodeConfigFile(encodeConfigFile(STORED), 'config.json'), STORED);
});

test('the file is JSON', () => {
  const text = Buffer.from(encodeConfigFile({ name: 'a', config: sampleConfig() })).toString();
  const parsed = JSON.parse(text);
  assert.equal(parsed.format, 1);
  assert.equal(parsed.collection.name, 'a');
});

test('any flipped bit is found and the file named', () => {
  const bytes = encodeConfigFile(STORED);
  for (let at = 0; at < bytes.length; at++) {
    const torn = Uint8Array.from(bytes);
    torn[at] = (torn[at] as number) ^ 1;
    assert.throws(
      () => decodeConfigFile(torn, '/data/config.json'),
      { code: 'storage', detail: /\/data\/config\.json (is damaged|has format)/ },
      `byte ${at}`,
    );
  }
});

test('any missing end is found', () => {
  const bytes = encodeConfigFile(STORED);
  for (let length = 0; length < bytes.length; length++) {
    assert.throws(() => decodeConfigFile(bytes.subarray(0, length), 'config.json'), { code: 'storage' }, `${length} bytes`);
  }
});

test('a file of a later format is not read', () => {
  const later = Buffer.from(Buffer.from(encodeConfigFile(STORED)).toString('latin1').replace('"format":1', '"format":2'), 'latin1');
  assert.throws(() => decodeConfigFile(later, 'config.json'), { detail: 'config.json has format 2, this version reads 1' });
});

test('a collection of a cluster says which one it is, and one of a node of its own is written as before there were clusters', () => {
  const belonging = { clusterId: 'c1', peerId: 3, uid: 7, revision: 9, shards: [1, 4], index: 9 };
  assert.deepEqual(decodeConfigFile(encodeConfigFile({ ...STORED, belonging }), 'config.json'), { ...STORED, belonging });
  assert.doesNotMatch(Buffer.from(encodeConfigFile(STORED)).toString(), /belonging/);
});

test('a collection of a node of its own has the shards that it was made with, and one of an earlier release a single one', () => {
  const { config } = STORED;
  const stored = { name: 'a', config: { ...config, params: { ...config.params, shard_number: 3 } } };
  const bytes = encodeConfigFile(stored);
  assert.match(Buffer.from(bytes).toString(), /"shards":\[0,1,2\]/);
  assert.deepEqual(decodeConfigFile(bytes, 'config.json'), stored);
  const earlier = decodeConfigFile(encodeChecked('collection', stored), 'config.json');
  assert.deepEqual(earlier, { name: 'a', config: { ...config, params: { ...config.params, shard_number: 1 } } });
});

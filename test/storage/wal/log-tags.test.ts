import assert from 'node:assert/strict';
import { test } from 'node:test';
import { initChecksum } from '../../../storage/disk/checksum.js';
import { decodeLogTags, encodeLogTags } from '../../../storage/wal/log-tags.js';
import { SEAL_BYTES } from '../../../storage/wal/records.js';

test('tags are read as they were written, in the words that the record has always had', async () => {
  await initChecksum();
  const tags = { base: { peer: 1, term: 2, index: 3 }, runs: [{ peer: 4, term: 5, index: 6 }], failed: 7, origin: null };
  const record = encodeLogTags(tags);
  assert.deepEqual(decodeLogTags(record), tags);
  assert.equal(
    Buffer.from(record.subarray(SEAL_BYTES)).toString(),
    '{"format":1,"base":{"peer":1,"clock":2,"tick":3},"runs":[{"peer":4,"clock":5,"tick":6}],"failed":7}',
  );
  const timed = { ...tags, origin: { index: 3, timeMs: 1_764_100_000_000 } };
  assert.deepEqual(decodeLogTags(encodeLogTags(timed)), timed);
});

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { TroupeError } from '../../../protocols/errors.js';
import { ArchiveError } from '../../../storage/archive/archive-error.js';
import { decodeManifestFile, encodeManifestFile, MANIFEST_LIMITS } from '../../../storage/archive/manifest.js';
import { BLOCK_BYTES, memberName, readHeader, writeHeader } from '../../../storage/archive/members.js';
import { initChecksum } from '../../../storage/disk/checksum.js';
import { CONTENT, manifestOf } from './archives.js';

before(initChecksum);

test('a manifest that is encoded is decoded to the same, keys named like members of objects too', () => {
  const manifest = manifestOf(CONTENT);
  const decoded = decodeManifestFile(encodeManifestFile(manifest));
  assert.deepEqual(decoded, manifest);
  const description = decoded.collections[0]?.description as object;
  assert.deepEqual(Object.keys(description), ['config', '__proto__']);
  assert.equal(Object.getPrototypeOf(description), Object.prototype);
  assert.equal('isOdd' in description, false);
});

test('a manifest that could not be read again is not written: the fault is of whoever made it', () => {
  const manifest = manifestOf(CONTENT);
  const wrong = [
    { ...manifest, createdAt: 'yesterday' },
    { ...manifest, kind: 'shard' as const, collections: [] },
    manifestOf({ '../evil': new Uint8Array(1) }),
    manifestOf({ 'lmdb/data.mdb': new Uint8Array(1), lmdb: new Uint8Array(1) }),
  ];
  for (const one of wrong)
    assert.throws(
      () => encodeManifestFile(one),
      (error) => error instanceof TroupeError && error.code === 'internal',
    );
});

test('a manifest over the bounds is refused as too large, before it is parsed', () => {
  const bytes = encodeManifestFile(manifestOf(CONTENT));
  const isTooLarge = (error: unknown): boolean => error instanceof ArchiveError && error.problem === 'tooLarge';
  const limits = { ...MANIFEST_LIMITS, manifestBytesMax: bytes.length };
  assert.ok(decodeManifestFile(bytes, limits));
  assert.throws(() => decodeManifestFile(Buffer.concat([bytes, Buffer.from(' ')]), limits), isTooLarge);
  assert.throws(() => encodeManifestFile(manifestOf(CONTENT), { ...limits, manifestBytesMax: bytes.length - 1 }), isTooLarge);
  assert.throws(() => encodeManifestFile(manifestOf(CONTENT), { ...MANIFEST_LIMITS, filesMax: 6 }), isTooLarge);
});

test('a header keeps names up to what a tar can hold, and sizes beyond 8 GiB', () => {
  const block = Buffer.alloc(BLOCK_BYTES);
  const sizes = [0, 1, 8 * 2 ** 30 - 1, 8 * 2 ** 30, 5 * 2 ** 40];
  const paths = ['a', 'x'.repeat(99), `segments/3/index.${'x'.repeat(93)}`, `${'d'.repeat(100)}/${'x'.repeat(99)}`, 'x'.repeat(255)];
  for (const path of paths) {
    for (const bytes of sizes) {
      const name = memberName(123_456, 4_294_967_295, 17, { path, bytes });
      writeHeader(block, 0, name, bytes, new Date('2242-01-01T00:00:00Z'));
      assert.deepEqual(readHeader(block), { name, bytes, problem: null });
    }
  }
});

test('a path that no header can hold has its place in the shard as its name, so no two members have one name', () => {
  const long = (letter: string) => ({ path: `segments/3/index.${letter.repeat(100)}`, bytes: 1 });
  assert.equal(memberName(0, 4, 17, long('a')), 'collections/0/shards/4/.long-names/17');
  assert.notEqual(memberName(0, 4, 17, long('a')), memberName(0, 4, 18, long('b')));
  assert.equal(memberName(0, 4, 17, { path: 'segments/3/index.city', bytes: 1 }), 'collections/0/shards/4/segments/3/index.city');
});

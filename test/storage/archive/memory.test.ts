import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { before, test } from 'node:test';
import { unpackedShard } from '../../../storage/archive/members.js';
import { packToFile } from '../../../storage/archive/pack.js';
import { unpackArchive } from '../../../storage/archive/unpack.js';
import { initChecksum } from '../../../storage/disk/checksum.js';
import { blockOf, folderFor, manifestOf, ROOM } from './archives.js';

before(initChecksum);

const MEBIBYTE = 2 ** 20;
/** Some chunks, with those that are not collected yet. */
const MEMORY_BYTES_MAX = 24 * MEBIBYTE;

test('200 MB are packed and unpacked in memory of some chunks', async (t) => {
  const folder = folderFor(t);
  const shard = path.join(folder, 'shard');
  fs.mkdirSync(path.join(shard, 'rows'), { recursive: true });
  const bytes = 200 * MEBIBYTE + 1;
  fs.writeFileSync(path.join(shard, 'rows/1'), 'begin');
  fs.truncateSync(path.join(shard, 'rows/1'), bytes);
  const file = path.join(folder, 'a.snapshot');
  const manifest = manifestOf({ 'rows/1': { length: bytes } as Uint8Array });
  const packing = memoryWatch();
  const { sha256 } = await packToFile({ manifest, folderOf: () => shard, onProgress: packing.look }, file, 0);
  const unpacking = memoryWatch();
  const target = path.join(folder, 'unpacked');
  await unpackArchive({ from: file, folder: target, limits: ROOM, expectedSha256: sha256, onProgress: unpacking.look });
  assert.equal(fs.statSync(path.join(unpackedShard(target, 0, 0), 'rows/1')).size, bytes);
  for (const { looks, peakBytes } of [packing, unpacking]) {
    assert.ok(looks() >= 200, `${looks()} looks`);
    assert.ok(peakBytes() < MEMORY_BYTES_MAX, `${peakBytes() / MEBIBYTE} MB`);
  }
});

test('memory does not grow with the bytes that a manifest claims and that do not come', async (t) => {
  const folder = folderFor(t);
  const header = blockOf({ name: 'manifest.json', data: new Uint8Array(0), size: 64 * MEBIBYTE });
  const file = path.join(folder, 'a.snapshot');
  fs.writeFileSync(file, Buffer.concat([header, Buffer.alloc(3 * MEBIBYTE, 0x20)]));
  const watch = memoryWatch();
  const request = { from: file, folder: path.join(folder, 'unpacked'), limits: ROOM, expectedSha256: null, onProgress: watch.look };
  await assert.rejects(unpackArchive(request), /truncated/);
  watch.look();
  assert.ok(watch.peakBytes() < MEMORY_BYTES_MAX, `${watch.peakBytes() / MEBIBYTE} MB`);
});

/** How much more memory there is for bytes than now, whenever it looks. */
function memoryWatch(): { look: () => void; looks: () => number; peakBytes: () => number } {
  const now = (): number => {
    const { arrayBuffers, external } = process.memoryUsage();
    return Math.max(arrayBuffers, external);
  };
  const start = now();
  let looks = 0;
  let peak = 0;
  return {
    look() {
      looks++;
      peak = Math.max(peak, now() - start);
    },
    looks: () => looks,
    peakBytes: () => peak,
  };
}

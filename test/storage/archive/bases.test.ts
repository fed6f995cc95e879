/** Archives that leave out the files of their base, and what they need to be whole again. */

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { before, type TestContext, test } from 'node:test';
import { BASE_START_BYTES, BASES_MAX, baseAtStart, chainOfBases } from '../../../storage/archive/bases.js';
import { decodeManifestFile, encodeManifestFile } from '../../../storage/archive/manifest.js';
import { unpackedShard } from '../../../storage/archive/members.js';
import { packToFile } from '../../../storage/archive/pack.js';
import type { BaseFile } from '../../../storage/archive/port.js';
import { hashFile, manifestOfFile } from '../../../storage/archive/read-archive.js';
import { leaveOutBase } from '../../../storage/archive/read-base.js';
import { unpackArchive } from '../../../storage/archive/unpack.js';
import { initChecksum } from '../../../storage/disk/checksum.js';
import { CONTENT, contentOf, folderFor, manifestOf, pattern, ROOM, type ShardContent, writeShard } from './archives.js';

before(initChecksum);

const CHANGED: ShardContent = { ...CONTENT, 'lmdb/data.mdb': pattern(3 * 2 ** 20 + 17, 9), 'segments/4/vectors.0': pattern(900, 7) };
const AGAIN: ShardContent = { ...CHANGED, 'rows/7': pattern(600, 8) };

/** Packs a shard's content on a base. */
async function packedOn(folder: string, content: ShardContent, name: string, base: BaseFile | null): Promise<BaseFile> {
  const shard = path.join(folder, `shard-of-${name}`);
  writeShard(shard, content);
  const folderOf = () => shard;
  const manifest = base === null ? manifestOf(content) : await leaveOutBase(manifestOf(content), folderOf, base, {});
  const file = path.join(folder, name);
  const { sha256 } = await packToFile({ manifest, folderOf }, file, 0);
  return { name, sha256, file };
}

async function chained(t: TestContext): Promise<{ folder: string; whole: BaseFile; first: BaseFile; second: BaseFile }> {
  const folder = folderFor(t);
  const whole = await packedOn(folder, CONTENT, 'whole.snapshot', null);
  const first = await packedOn(folder, CHANGED, 'first.snapshot', whole);
  return { folder, whole, first, second: await packedOn(folder, AGAIN, 'second.snapshot', first) };
}

function unpack({ file }: BaseFile, bases: readonly BaseFile[], folder: string) {
  return unpackArchive({ from: file, bases, folder, limits: ROOM, expectedSha256: null });
}

test('an archive leaves out what its base has with the same path, size and checksum, and comes back whole with a chain of bases', async (t) => {
  const { first, folder, second, whole } = await chained(t);
  const left = async ({ file }: BaseFile) => (await manifestOfFile(file)).collections[0]?.shards[0]?.files.filter((one) => one.inBase);
  const paths = (await left(first))?.map((file) => file.path).sort();
  const unchanged = Object.keys(CONTENT).filter((name) => name !== 'lmdb/data.mdb');
  assert.deepEqual(paths, unchanged.sort(), 'a file of the same size with other bytes is in the archive');
  assert.equal((await left(second))?.length, Object.keys(AGAIN).length - 1, 'all but the changed rows');
  assert.ok(fs.statSync(second.file).size < fs.statSync(whole.file).size / 10, 'the changed database is in the first one');
  for (const [archive, bases, content] of [
    [first, [whole], CHANGED],
    [second, [first, whole], AGAIN],
  ] as const) {
    const target = path.join(folder, `out-${archive.name}`);
    const { manifest } = await unpack(archive, bases, target);
    assert.deepEqual(
      contentOf(unpackedShard(target, 0, 0)),
      Object.fromEntries(Object.entries(content).map(([k, v]) => [k, Buffer.from(v)])),
    );
    assert.equal(manifest.base, undefined);
  }
});

test('without a base, with another one, or with a damaged one, nothing is unpacked, and the message names the base', async (t) => {
  const { first, folder, second, whole } = await chained(t);
  const target = path.join(folder, 'out');
  const refused = async (archive: BaseFile, bases: readonly BaseFile[], detail: RegExp) => {
    await assert.rejects(unpack(archive, bases, target), (error: Error & { problem?: string; detail?: string }) => {
      assert.equal(error.problem, 'base', String(error));
      assert.match(error.detail ?? '', detail);
      return true;
    });
    assert.equal(fs.existsSync(target), false);
  };
  await refused(first, [], /needs its base whole\.snapshot .*put that file back/);
  await refused(second, [first], /needs its base whole\.snapshot/);
  await refused(first, [second], /needs its base whole\.snapshot/);
  const bytes = fs.readFileSync(whole.file);
  for (const at of [1000, 3 * 2 ** 20, bytes.length - 20]) {
    const damaged = Buffer.from(bytes);
    damaged[at] = (damaged[at] as number) ^ 1;
    fs.writeFileSync(whole.file, damaged);
    await refused(first, [whole], /base whole\.snapshot/);
  }
  fs.writeFileSync(whole.file, bytes.subarray(0, bytes.length / 2));
  await refused(first, [whole], /base whole\.snapshot .*truncated/);
});

test('a base that has other bytes than the manifest says for a file is refused, though its SHA-256 is right', async (t) => {
  const { folder, whole } = await chained(t);
  const shard = path.join(folder, 'shard-of-first.snapshot');
  const folderOf = () => shard;
  const files = manifestOf(CONTENT).collections[0]?.shards[0]?.files.map((file) => ({ ...file, inBase: '0123456789abcdef' }));
  const [collection] = manifestOf(CONTENT).collections;
  const shards = [{ ...(collection?.shards[0] as NonNullable<typeof collection>['shards'][number]), files: files ?? [] }];
  const { name, sha256 } = whole;
  const manifest = manifestOf(CONTENT, {
    base: { name, sha256 },
    collections: [{ ...(collection as NonNullable<typeof collection>), shards }],
  });
  const file = path.join(folder, 'guessed.snapshot');
  await packToFile({ manifest, folderOf }, file, 0);
  const target = path.join(folder, 'out');
  await assert.rejects(unpack({ name: 'guessed.snapshot', sha256: '', file }, [whole], target), { problem: 'base' });
  assert.equal(fs.existsSync(target), false);
});

test('an archive without a base has format 1 as before, one with a base has format 2, and its first bytes name the base', async (t) => {
  const { first, whole } = await chained(t);
  const start = ({ file }: BaseFile) => fs.readFileSync(file).subarray(0, BASE_START_BYTES);
  assert.equal(baseAtStart(start(whole)), null);
  assert.deepEqual(baseAtStart(start(first)), { name: whole.name, sha256: whole.sha256 });
  assert.match(start(whole).toString('utf8', 512), /^\{"format":1,"checksum":"\w{16}","manifest":\{"format":1,"kind"/);
  assert.match(start(first).toString('utf8', 512), /^\{"format":1,"checksum":"\w{16}","manifest":\{"format":2,"base"/);
  const odd = { name: '"\u{1f600}é, "kind".snapshot', sha256: whole.sha256 };
  const manifest = manifestOf(CONTENT, { base: odd });
  const encoded = encodeManifestFile(manifest);
  assert.deepEqual(baseAtStart(Buffer.concat([Buffer.alloc(512), encoded]).subarray(0, BASE_START_BYTES)), odd);
  assert.deepEqual(decodeManifestFile(encoded).base, odd);
  assert.throws(() => encodeManifestFile(manifestOf(CONTENT, { base: { ...odd, name: '../x.snapshot' } })), /base\.name/);
  assert.throws(() => encodeManifestFile(manifestOf(CONTENT, { base: { ...odd, sha256: 'x' } })), /base\.sha256/);
});

test('the SHA-256 that is asked for is that of the archive itself, without its bases', async (t) => {
  const { first, folder, whole } = await chained(t);
  const { sha256 } = await hashFile(first.file);
  const request = { from: first.file, bases: [whole], folder: path.join(folder, 'out'), limits: ROOM };
  await assert.rejects(unpackArchive({ ...request, expectedSha256: whole.sha256 }), { problem: 'wrongSha256' });
  assert.equal((await unpackArchive({ ...request, expectedSha256: sha256 })).sha256, sha256);
});

test('a ring of bases, a chain that is too long and a base that is missing are refused with their names', async () => {
  const sha256 = 'a'.repeat(64);
  const ring = async ({ name }: { name: string }) => ({ base: { name: name === 'a' ? 'b' : 'a', sha256 } });
  await assert.rejects(chainOfBases({ name: 'a', sha256 }, ring), /its base a is a base of itself/);
  const down = async ({ name }: { name: string }) => ({ base: name === '1' ? null : { name: String(Number(name) - 1), sha256 } });
  assert.equal((await chainOfBases({ name: String(BASES_MAX), sha256 }, down)).length, BASES_MAX);
  await assert.rejects(chainOfBases({ name: String(BASES_MAX + 1), sha256 }, down), /more than 32 bases/);
  await assert.rejects(
    chainOfBases({ name: 'gone.snapshot', sha256 }, async () => null),
    /needs its base gone\.snapshot/,
  );
  assert.deepEqual(await chainOfBases(null, ring), []);
});

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { before, test } from 'node:test';
import { reasonOf, TroupeError } from '../../../protocols/errors.js';
import type { ArchiveManifest } from '../../../storage/archive/manifest.js';
import { unpackedShard } from '../../../storage/archive/members.js';
import { ARCHIVE_CHUNK_BYTES, packArchive, packToFile } from '../../../storage/archive/pack.js';
import { hashFile, manifestOfFile } from '../../../storage/archive/read-archive.js';
import { unpackArchive } from '../../../storage/archive/unpack.js';
import { verifyArchive } from '../../../storage/archive/verify.js';
import { initChecksum } from '../../../storage/disk/checksum.js';
import { archiveOf, CONTENT, contentOf, folderFor, manifestOf, membersOf, packed, pattern, ROOM, SMALL, writeShard } from './archives.js';

before(initChecksum);

test('what is packed comes back byte by byte, and the manifest with it', async (t) => {
  const folder = folderFor(t);
  const file = await packed(folder, CONTENT);
  const target = path.join(folder, 'unpacked');
  const { bytes, manifest, sha256 } = await unpackArchive({ from: file, folder: target, limits: ROOM, expectedSha256: null });
  assert.deepEqual(contentOf(unpackedShard(target, 0, 0)), contentOf(path.join(folder, 'shard-of-made.snapshot')));
  assert.deepEqual(manifest, manifestOf(CONTENT));
  assert.equal(bytes, fs.statSync(file).size);
  assert.equal(sha256, createHash('sha256').update(fs.readFileSync(file)).digest('hex'));
  assert.deepEqual(await hashFile(file), { bytes, sha256 });
  assert.deepEqual(await manifestOfFile(file), manifest);
});

test('a full archive has many collections with many shards, with and without files, and its aliases', async (t) => {
  const folder = folderFor(t);
  const shard = { key: 'k', points: 0, at: { peer: 7, term: 2, index: 3 } };
  const files = Object.entries(SMALL).map(([name, { length }]) => ({ path: name, bytes: length }));
  const manifest: ArchiveManifest = {
    ...manifestOf({}),
    kind: 'full',
    aliases: [{ alias: 'a', collection: 'one' }],
    collections: [
      {
        name: 'one',
        description: null,
        shards: [
          { ...shard, id: 4, files },
          { ...shard, id: 2, key: 18_446_744_073_709_551_615n, files: [] },
        ],
      },
      { name: 'none', description: { deep: [{ __proto__x: 1 }] }, shards: [] },
      { name: 'two', description: 'text', shards: [{ ...shard, id: 4, files }] },
    ],
  };
  const source = path.join(folder, 'source');
  writeShard(source, SMALL);
  const file = path.join(folder, 'full.snapshot');
  await packToFile({ manifest, folderOf: () => source }, file, 0);
  const target = path.join(folder, 'unpacked');
  const unpacked = await unpackArchive({ from: file, folder: target, limits: ROOM, expectedSha256: null });
  assert.deepEqual(unpacked.manifest, manifest);
  for (const collection of [0, 2]) assert.deepEqual(contentOf(unpackedShard(target, collection, 4)), contentOf(source));
  assert.deepEqual(fs.readdirSync(unpackedShard(target, 0, 2)), []);
  assert.deepEqual(await verify(file), []);
});

test('an archive is a plain tar that other programs list and unpack', async (t) => {
  const folder = folderFor(t);
  const file = await packed(folder, SMALL);
  const names = execFileSync('tar', ['-tf', file], { encoding: 'utf8' }).trim().split('\n');
  assert.deepEqual(names, ['manifest.json', ...Object.keys(SMALL).map((name) => `collections/0/shards/0/${name}`), 'checksums.json']);
  execFileSync('tar', ['-xf', file, '-C', folder]);
  assert.deepEqual(contentOf(path.join(folder, 'collections/0/shards/0')), contentOf(path.join(folder, 'shard-of-made.snapshot')));
});

test('an archive that is made by hand as the format says is taken', async (t) => {
  const folder = folderFor(t);
  const file = path.join(folder, 'hand.snapshot');
  fs.writeFileSync(file, archiveOf(membersOf(SMALL)));
  assert.deepEqual(await verify(file), []);
});

test('an archive comes as a stream of chunks of any size, too', async (t) => {
  const folder = folderFor(t);
  const file = await packed(folder, CONTENT);
  const bytes = fs.readFileSync(file);
  for (const size of [1, 511, 512, 1_000_003]) {
    const target = path.join(folder, `unpacked-${size}`);
    const whole = size === 1 ? archiveOf(membersOf(SMALL)) : bytes;
    async function* stream(): AsyncGenerator<Uint8Array> {
      for (let at = 0; at < whole.length; at += size) yield whole.subarray(at, at + size);
    }
    const { sha256 } = await unpackArchive({ from: stream(), folder: target, limits: ROOM, expectedSha256: null });
    assert.equal(sha256, createHash('sha256').update(whole).digest('hex'));
    const expected = size === 1 ? SMALL : CONTENT;
    assert.deepEqual(
      contentOf(unpackedShard(target, 0, 0)),
      Object.fromEntries(Object.entries(expected).map(([name, data]) => [name, Buffer.from(data)])),
    );
  }
});

test('chunks have 1 MB at most, are as many bytes as was said before, and are the bytes that are hashed', async (t) => {
  const folder = folderFor(t);
  const shard = path.join(folder, 'shard');
  writeShard(shard, CONTENT);
  const hash = createHash('sha256');
  const sizes: number[] = [];
  const told: (readonly [number, number])[] = [];
  const source = {
    manifest: manifestOf(CONTENT),
    folderOf: () => shard,
    onProgress: (done: number, total: number) => void told.push([done, total]),
  };
  const { bytes, sha256 } = await packArchive(source, (chunk) => {
    sizes.push(chunk.length);
    hash.update(chunk);
  });
  assert.equal(sha256, hash.digest('hex'));
  assert.equal(
    sizes.reduce((sum, size) => sum + size, 0),
    bytes,
  );
  assert.ok(
    sizes.slice(0, -1).every((size) => size === ARCHIVE_CHUNK_BYTES) && (sizes.at(-1) as number) <= ARCHIVE_CHUNK_BYTES,
    sizes.join(),
  );
  assert.deepEqual(told.at(-1), [bytes, bytes]);
  assert.equal(told.length, sizes.length);
});

test('of a file that grows while it is packed, exactly the bytes of the manifest are taken', async (t) => {
  const folder = folderFor(t);
  const shard = path.join(folder, 'shard');
  const content = { 'lmdb/data.mdb': pattern(2 ** 20, 1), 'rows/7': pattern(3 * 2 ** 20 + 5, 2) };
  writeShard(shard, content);
  const chunks: Buffer[] = [];
  await packArchive({ manifest: manifestOf(content), folderOf: () => shard }, (chunk) => {
    fs.appendFileSync(path.join(shard, 'rows/7'), pattern(100_000, chunks.length));
    chunks.push(Buffer.from(chunk));
  });
  assert.ok(fs.statSync(path.join(shard, 'rows/7')).size > content['rows/7'].length);
  const file = path.join(folder, 'a.snapshot');
  fs.writeFileSync(file, Buffer.concat(chunks));
  const target = path.join(folder, 'unpacked');
  await unpackArchive({ from: file, folder: target, limits: ROOM, expectedSha256: null });
  assert.deepEqual(contentOf(unpackedShard(target, 0, 0)), content);
});

test('a file that is shorter than the manifest says, a link or a missing one ends the packing, and no archive is left', async (t) => {
  const folder = folderFor(t);
  const shard = path.join(folder, 'shard');
  writeShard(shard, SMALL);
  const file = path.join(folder, 'a.snapshot');
  const pack = () => packToFile({ manifest: manifestOf(SMALL), folderOf: () => shard }, file, 0);
  const rows = path.join(shard, 'rows/7');
  const changes = [() => fs.truncateSync(rows, 511), () => fs.rmSync(rows), () => fs.symlinkSync(path.join(shard, 'format.json'), rows)];
  for (const change of changes) {
    change();
    await assert.rejects(pack, (error) => reasonOf(error) === 'damaged' && (error as TroupeError).detail.startsWith(rows));
    assert.equal(fs.existsSync(file), false);
  }
});

test('packing writes over no file, and unpacking into no folder that is there', async (t) => {
  const folder = folderFor(t);
  const file = await packed(folder, SMALL);
  const before = fs.readFileSync(file);
  await assert.rejects(packed(folder, SMALL), (error) => error instanceof TroupeError && error.code === 'storage');
  assert.deepEqual(fs.readFileSync(file), before);
  const target = path.join(folder, 'there');
  fs.mkdirSync(target);
  fs.writeFileSync(path.join(target, 'mine'), 'mine');
  const request = { from: file, folder: target, limits: ROOM, expectedSha256: null };
  await assert.rejects(unpackArchive(request), (error) => error instanceof TroupeError && error.code === 'storage');
  assert.deepEqual(contentOf(target), { mine: Buffer.from('mine') });
});

test('a cancelled pack leaves no file, a cancelled unpack no folder', async (t) => {
  const folder = folderFor(t);
  const file = await packed(folder, CONTENT);
  const isCancelled = (error: unknown): boolean => error instanceof TroupeError && error.code === 'unavailable';
  const shard = path.join(folder, 'shard-of-made.snapshot');
  const half = path.join(folder, 'half.snapshot');
  for (const after of [1, 3]) {
    const cancel = new AbortController();
    let told = 0;
    let wasThere = false;
    const onProgress = (): void => {
      wasThere ||= fs.existsSync(half) || fs.existsSync(path.join(folder, 'half'));
      if (++told === after) cancel.abort();
    };
    const options = { signal: cancel.signal, onProgress };
    await assert.rejects(packToFile({ manifest: manifestOf(CONTENT), folderOf: () => shard, ...options }, half, 0), isCancelled);
    assert.deepEqual([wasThere, fs.existsSync(half)], [true, false]);
  }
  for (const after of [2, 4]) {
    const cancel = new AbortController();
    let told = 0;
    let wasThere = false;
    const onProgress = (): void => {
      wasThere ||= fs.existsSync(path.join(folder, 'half'));
      if (++told === after) cancel.abort();
    };
    const request = {
      from: file,
      folder: path.join(folder, 'half'),
      limits: ROOM,
      expectedSha256: null,
      signal: cancel.signal,
      onProgress,
    };
    await assert.rejects(unpackArchive(request), isCancelled);
    assert.deepEqual([wasThere, fs.existsSync(path.join(folder, 'half'))], [true, false]);
  }
});

test('what has no room on the disk is refused before anything is written', async (t) => {
  const folder = folderFor(t);
  const file = await packed(folder, SMALL);
  const target = path.join(folder, 'unpacked');
  const limits = { ...ROOM, freeBytesMin: 2 ** 52 };
  const isFull = (error: unknown): boolean => error instanceof TroupeError && error.code === 'outOfDisk' && error.outcome === 'none';
  await assert.rejects(unpackArchive({ from: file, folder: target, limits, expectedSha256: null }), isFull);
  const shard = path.join(folder, 'shard-of-made.snapshot');
  const other = path.join(folder, 'other.snapshot');
  await assert.rejects(packToFile({ manifest: manifestOf(SMALL), folderOf: () => shard }, other, 2 ** 52), isFull);
  assert.deepEqual([fs.existsSync(target), fs.existsSync(other)], [false, false]);
});

async function verify(file: string): Promise<string[]> {
  const problems: string[] = [];
  await verifyArchive(file, { tell: (problem) => problems.push(problem) });
  return problems;
}

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { before, test } from 'node:test';
import { ArchiveError } from '../../../storage/archive/archive-error.js';
import { MANIFEST_LIMITS } from '../../../storage/archive/manifest.js';
import { readArchive, streamSource } from '../../../storage/archive/read-archive.js';
import { unpackArchive } from '../../../storage/archive/unpack.js';
import { verifyArchive } from '../../../storage/archive/verify.js';
import { initChecksum } from '../../../storage/disk/checksum.js';
import { archiveOf, CONTENT, folderFor, membersOf, packed, ROOM, SMALL } from './archives.js';

before(initChecksum);

test('an archive that ends too early, anywhere, is refused, and nothing of it is left', async (t) => {
  const folder = folderFor(t);
  const whole = fs.readFileSync(await packed(folder, SMALL));
  for (const length of offsets(whole.length, 151)) {
    const error = await refusal(folder, whole.subarray(0, length));
    const expected = length < 512 ? ['foreign'] : ['truncated'];
    assert.deepEqual([error?.problem], expected, `${length} bytes: ${error?.detail}`);
  }
});

test('a flipped bit is found in every byte of an archive', async (t) => {
  const folder = folderFor(t);
  const whole = fs.readFileSync(await packed(folder, SMALL));
  // Reading alone writes nothing, so it can be done for each byte. Of the first header, every bit.
  for (let at = 0; at < whole.length; at++) {
    for (const bit of at < 512 ? [0, 1, 2, 3, 4, 5, 6, 7] : [at % 8])
      await assert.rejects(readAll(flipped(whole, at, bit)), ArchiveError, `bit ${bit} of byte ${at}`);
  }
  await readAll(whole);
  for (const at of offsets(whole.length, 97)) assert.notEqual(await refusal(folder, flipped(whole, at, at % 8)), null, `byte ${at}`);
});

test('a flipped bit of a large archive is told with the file that has it, by unpacking and by verify', async (t) => {
  const folder = folderFor(t);
  const whole = fs.readFileSync(await packed(folder, CONTENT));
  const data = whole.indexOf(CONTENT['lmdb/data.mdb'] as Uint8Array);
  const vectors = whole.indexOf(CONTENT['segments/3/vectors.0'] as Uint8Array);
  assert.ok(data > 0 && vectors > data);
  for (const at of [data, data + 2 ** 20, data + 3 * 2 ** 20 + 16]) {
    const error = await refusal(folder, flipped(whole, at, 0));
    assert.equal(error?.problem, 'damaged');
    assert.match(error?.detail ?? '', /`lmdb\/data\.mdb` of shard 0 of collection `one`/);
  }
  const file = path.join(folder, 'twice.snapshot');
  fs.writeFileSync(file, flipped(flipped(whole, data + 5, 0), vectors + 5, 7));
  const problems: string[] = [];
  const looked = await verifyArchive(file, { tell: (problem) => problems.push(problem) });
  assert.deepEqual(
    problems.map((problem) => /checksum of `(.*?)`/.exec(problem)?.[1]),
    ['lmdb/data.mdb', 'segments/3/vectors.0'],
  );
  assert.equal(looked?.bytes, whole.length);
});

test('whoever knows the SHA-256 is told that this is another archive, whatever else is wrong with it', async (t) => {
  const folder = folderFor(t);
  const sound = archiveOf(membersOf(SMALL));
  const expected = 'ab'.repeat(32);
  for (const bytes of [sound, sound.subarray(0, 3000), Buffer.from('nothing')]) {
    const error = await refusal(folder, bytes, expected);
    assert.deepEqual([error?.problem, error?.expected, error?.actual?.length], ['wrongSha256', expected, 64]);
  }
  const { createHash } = await import('node:crypto');
  const hash = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex').toUpperCase();
  assert.equal(await refusal(folder, sound, hash(sound)), null);
  const cut = sound.subarray(0, 3000);
  assert.equal((await refusal(folder, cut, hash(cut)))?.problem, 'truncated');
});

/** Errors: as reading; what is damaged is thrown. */
function readAll(bytes: Buffer): Promise<unknown> {
  async function* stream(): AsyncGenerator<Uint8Array> {
    yield bytes;
  }
  const nothing = (): void => {};
  const damaged = (error: ArchiveError): never => {
    throw error;
  };
  const visitor = { begin: nothing, beginFile: nothing, bytes: nothing, endFile: nothing, endShard: nothing, damaged };
  return readArchive(streamSource(stream()), MANIFEST_LIMITS, visitor);
}

function flipped(whole: Buffer, at: number, bit: number): Buffer {
  const bytes = Buffer.from(whole);
  bytes[at] = (bytes[at] as number) ^ (1 << bit);
  return bytes;
}

/** Places from 0 on, with steps of `step`, and those around blocks. */
function offsets(length: number, step: number): number[] {
  const places = new Set<number>();
  for (let at = 0; at < length; at += step) places.add(at);
  for (let at = 512; at < length; at += 512) for (const near of [at - 1, at, at + 1]) places.add(near);
  places.add(length - 1);
  return [...places].filter((at) => at < length).sort((a, b) => a - b);
}

/** What an archive is refused for, null if it is taken. */
async function refusal(folder: string, bytes: Uint8Array, expectedSha256: string | null = null): Promise<ArchiveError | null> {
  const file = path.join(folder, 'tried.snapshot');
  const target = path.join(folder, 'tried');
  fs.writeFileSync(file, bytes);
  try {
    await unpackArchive({ from: file, folder: target, limits: ROOM, expectedSha256 });
    fs.rmSync(target, { recursive: true });
    return null;
  } catch (error) {
    assert.ok(error instanceof ArchiveError, String(error));
    assert.equal(fs.existsSync(target), false);
    return error;
  }
}

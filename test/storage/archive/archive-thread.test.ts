import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { before, type TestContext, test } from 'node:test';
import { reasonOf, TroupeError } from '../../../protocols/errors.js';
import { ArchiveError } from '../../../storage/archive/archive-error.js';
import { ArchiveThread, type ArchiveThreadSettings } from '../../../storage/archive/archive-thread.js';
import { unpackedShard } from '../../../storage/archive/members.js';
import type { PackOrder } from '../../../storage/archive/port.js';
import { hashFile } from '../../../storage/archive/read-archive.js';
import { initChecksum } from '../../../storage/disk/checksum.js';
import { CONTENT, contentOf, folderFor, manifestOf, packed, pattern, ROOM, type ShardContent, SMALL, writeShard } from './archives.js';

before(initChecksum);

/** Larger than what a stream has on its way. */
const LARGE = { 'rows/1': pattern(8 * 2 ** 20, 1) };

const LONG_BYTES = 2 ** 31;

test('the thread packs, hashes, reads the manifest and unpacks, and tells of its progress', async (t) => {
  const { folder, thread } = open(t);
  const order = orderOf(folder, CONTENT);
  const file = path.join(folder, 'a.snapshot');
  const told: (readonly [number, number])[] = [];
  const onProgress = (done: number, total: number): void => void told.push([done, total]);
  const made = await thread.pack(order, file, { onProgress });
  assert.deepEqual(made, await hashFile(file));
  assert.deepEqual(told.at(-1), [made.bytes, made.bytes]);
  assert.deepEqual(await thread.hash(file), made);
  assert.deepEqual(await thread.manifestOf(file), order.manifest);
  const target = path.join(folder, 'unpacked');
  const unpacked = await thread.unpack({ file, folder: target, limits: ROOM, expectedSha256: made.sha256 }, { onProgress });
  assert.deepEqual(unpacked, { ...made, manifest: order.manifest });
  assert.deepEqual(contentOf(unpackedShard(target, 0, 0)), contentOf(path.join(folder, 'shard')));
  assert.deepEqual(told.at(-1), [made.bytes, made.bytes]);
});

test('a stream is the archive, as long as was said, in chunks that the taker may keep', async (t) => {
  const { folder, thread } = open(t);
  const order = orderOf(folder, LARGE);
  const { bytes, chunks } = await thread.packStream(order);
  const kept: Uint8Array[] = [];
  for await (const chunk of chunks) kept.push(chunk);
  const streamed = Buffer.concat(kept);
  assert.equal(streamed.length, bytes);
  const file = path.join(folder, 'a.snapshot');
  await thread.pack(order, file);
  assert.ok(streamed.equals(fs.readFileSync(file)));
});

test('a stream that nobody takes holds up no other work, and ends with its iteration', async (t) => {
  const { folder, thread } = open(t);
  const order = orderOf(folder, LARGE);
  const stalled = await thread.packStream(order);
  await thread.pack(order, path.join(folder, 'a.snapshot'));
  for await (const _ of stalled.chunks) break;
  assert.deepEqual(await stalled.chunks.next(), { done: true, value: undefined });
});

test('streams over the bound are refused as busy, until one ends', async (t) => {
  const { folder, thread } = open(t);
  const order = orderOf(folder, LARGE);
  const streams = await Promise.all(Array.from({ length: 16 }, () => thread.packStream(order)));
  await assert.rejects(thread.packStream(order), (error) => codeOf(error) === 'busy');
  for await (const _ of streams[0]?.chunks ?? []);
  await (await thread.packStream(order)).chunks.return?.();
});

test('more works than take turns are all done', async (t) => {
  const { folder, thread } = open(t);
  const order = orderOf(folder, SMALL);
  const made = await Promise.all(Array.from({ length: 20 }, (_, n) => thread.pack(order, path.join(folder, `${n}.snapshot`))));
  assert.equal(new Set(made.map(({ sha256 }) => sha256)).size, 1);
  assert.equal(fs.readdirSync(folder).filter((name) => name.endsWith('.snapshot')).length, 20);
});

test('errors keep their code, reason and fields on their way from the thread', async (t) => {
  const { folder, thread } = open(t);
  const file = await packed(folder, SMALL);
  const target = path.join(folder, 'unpacked');
  const expected = '0'.repeat(64);
  const { sha256 } = await hashFile(file);
  await assert.rejects(thread.unpack({ file, folder: target, limits: ROOM, expectedSha256: expected }), (error) => {
    assert.ok(error instanceof ArchiveError);
    assert.deepEqual([error.code, error.problem, error.expected, error.actual], ['wrongInput', 'wrongSha256', expected, sha256]);
    return true;
  });
  assert.equal(fs.existsSync(target), false);
  const order = orderOf(folder, SMALL);
  fs.truncateSync(path.join(folder, 'shard/rows/7'), 3);
  await assert.rejects(thread.pack(order, path.join(folder, 'b.snapshot')), (error) => reasonOf(error) === 'damaged');
  await assert.rejects(thread.hash(path.join(folder, 'nothing')), (error) => codeOf(error) === 'storage');
  const { chunks } = await thread.packStream(order);
  await assert.rejects(chunks.next(), (error) => reasonOf(error) === 'damaged');
});

test('a work is cancelled by its signal before, while it waits, and while it runs, and leaves nothing', async (t) => {
  const { folder, thread } = open(t);
  // Zeros that take no room of the disk: so much that no work ends before it is cancelled.
  const order = orderOf(folder, { 'rows/1': { length: LONG_BYTES } as Uint8Array });
  const running = Array.from({ length: 4 }, async (_, n) => {
    const cancel = new AbortController();
    const file = path.join(folder, `${n}.snapshot`);
    await assert.rejects(thread.pack(order, file, { signal: cancel.signal, onProgress: () => cancel.abort() }), isUnavailable);
    return file;
  });
  const waits = new AbortController();
  const waiting = assert.rejects(thread.pack(order, path.join(folder, 'waits.snapshot'), { signal: waits.signal }), isUnavailable);
  waits.abort();
  await waiting;
  await assert.rejects(thread.hash(path.join(folder, 'shard/rows/1'), { signal: AbortSignal.abort() }), isUnavailable);
  for (const file of await Promise.all(running)) assert.equal(fs.existsSync(file), false);
  const cancel = new AbortController();
  const { chunks } = await thread.packStream(order, { signal: cancel.signal });
  cancel.abort();
  await assert.rejects(async () => {
    for await (const _ of chunks);
  }, isUnavailable);
  assert.deepEqual(fs.readdirSync(folder), ['shard']);
});

test('a thread that breaks gives `unavailable` to all its callers, what it had begun is removed, and the next work starts another', async (t) => {
  const lost: string[] = [];
  const { folder, thread } = open(t, { entry: new URL('./throwing-thread.js', import.meta.url), onLost: (reason) => lost.push(reason) });
  const order = orderOf(folder, SMALL);
  const file = path.join(folder, 'a.snapshot');
  const unpack = { file: 'any', folder: path.join(folder, 'unpacked'), limits: ROOM, expectedSha256: null };
  const works = [thread.pack(order, file), thread.unpack(unpack), thread.packStream(order)];
  for (const work of works) await assert.rejects(work, isUnavailable);
  assert.deepEqual(fs.readdirSync(folder), ['shard']);
  assert.match(lost.join(), /this thread breaks/);
  await assert.rejects(thread.pack(order, file), isUnavailable);
  assert.equal(lost.length, 2);
});

test('a stream of a thread that is lost ends with `unavailable` where it is, never as if it were whole', async (t) => {
  const { folder, thread } = open(t);
  const { chunks } = await thread.packStream(orderOf(folder, LARGE));
  await chunks.next();
  await thread.close();
  await assert.rejects(async () => {
    for await (const _ of chunks);
  }, isUnavailable);
});

test('the thread is there while there is work, and a closed one takes none', async (t) => {
  const { folder, thread } = open(t, { idleMs: 1 });
  assert.equal(thread.isUp, false);
  const order = orderOf(folder, SMALL);
  const work = thread.pack(order, path.join(folder, 'a.snapshot'));
  assert.equal(thread.isUp, true);
  await work;
  await until(() => !thread.isUp);
  await thread.hash(path.join(folder, 'a.snapshot'));
  await thread.close();
  assert.equal(thread.isUp, false);
  await assert.rejects(thread.pack(order, path.join(folder, 'b.snapshot')), isUnavailable);
});

function open(t: TestContext, settings: ArchiveThreadSettings = {}): { folder: string; thread: ArchiveThread } {
  const folder = folderFor(t);
  const thread = new ArchiveThread(settings);
  t.after(() => thread.close());
  return { folder, thread };
}

function orderOf(folder: string, content: ShardContent): PackOrder {
  const shard = path.join(folder, 'shard');
  const isLong = Object.values(content).some(({ length }) => length === LONG_BYTES);
  writeShard(shard, isLong ? { 'rows/1': new Uint8Array(1) } : content);
  if (isLong) fs.truncateSync(path.join(shard, 'rows/1'), LONG_BYTES);
  return { manifest: manifestOf(content), folders: [[shard]] };
}

function codeOf(error: unknown): string | null {
  return error instanceof TroupeError ? error.code : null;
}

function isUnavailable(error: unknown): boolean {
  return codeOf(error) === 'unavailable';
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 1));
}

/**
 * Opening a replica where something is lacking. In native code a failed opening ends the process, so each test opens in a process of its own
 * and asks how that ended.
 */

import assert from 'node:assert/strict';
import fs, { existsSync, mkdirSync, readFileSync, rmSync, statfsSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { mock, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { ErrorFacts } from '../../../protocols/errors.js';
import { Environment } from '../../../storage/disk/lmdb.js';
import { SnapshotReader } from '../../../storage/disk/lmdb-reader.js';
import { SegmentRows } from '../../../storage/replica/segment-rows.js';
import { verifyReplicas } from '../../../storage/verify/verify-lmdb.js';
import { ROWS_INLINE_BYTES_MAX } from '../../../storage/wal/stored-value.js';
import { noPrlimit, printedBy, smallFileSystem } from '../../machine.js';
import { Replica, specOf, temporaryFolder, upsert } from './support.js';

const OPENER = fileURLToPath(new URL('./opening-process.js', import.meta.url));
const PAGE_BYTES = 4096;
/** Of a process that is to meet the limit. */
const FILES_MAX = 200;

/** The outcome of each try, null for one that opened. wrapper: a command that the process runs under. */
function outcomes<Outcome = ErrorFacts | null>(lack: string, folder: string, wrapper: readonly string[] = []): Outcome[] {
  return printedBy([...wrapper, process.execPath, OPENER, lack, folder]);
}

function assertLack(outcome: ErrorFacts | null | undefined, pattern: RegExp): void {
  assert.equal(outcome?.code, 'storage');
  assert.equal(outcome?.outcome, 'none', outcome?.detail);
  assert.match(outcome?.detail ?? '', pattern);
}

test('an environment that meets a lack of file descriptors is refused with the limit, and opens when some are free', {
  skip: noPrlimit,
}, (t) => {
  const [first, ...rest] = outcomes('descriptors', temporaryFolder(t), ['prlimit', `--nofile=${FILES_MAX}:${FILES_MAX}`]);
  assert.equal(first, null);
  assertLack(rest[0], / 0 more files can be opened, and \d+ are needed \(EMFILE; the limit is (200|not known)\); raise `ulimit -n`/);
  assertLack(rest[8], / 8 more files can be opened, and \d+ are needed \(EMFILE; the limit is 200\); raise `ulimit -n`/);
  assert.equal(rest.at(-1), null);
  for (const outcome of rest) if (outcome !== null) assertLack(outcome, /EMFILE/);
});

test('an environment that meets a lack of addresses is refused with the figures, and opens when there are enough', {
  skip: noPrlimit,
}, (t) => {
  const [first, ...rest] = outcomes('addresses', temporaryFolder(t));
  assert.equal(first, null);
  assertLack(rest[0], /takes 0\.3 GiB of addresses, and of [\d.]+ GiB that the process can have [\d.]+ are taken; raise `ulimit -v`/);
  assert.equal(rest.at(-1), null);
});

test('a small replica takes under a GiB of addresses, so that tens of thousands fit a process', (t) => {
  if (process.platform !== 'linux') return t.skip('needs /proc to count addresses');
  const [gibibytes] = outcomes<number>('nothing, for many', temporaryFolder(t));
  assert.ok(gibibytes !== undefined && gibibytes < 1, `${gibibytes} GiB each`);
});

test('a replica that meets a full disk is refused with the figures, and opens when there is room again', (t) => {
  const folder = smallFileSystem(t, 8);
  if (folder === null) return;
  const tries = outcomes('disk', folder);
  const full = tries.filter((_, at) => at % 2 === 0);
  const roomy = tries.filter((_, at) => at % 2 === 1);
  assertLack(full[0], /more bytes cannot be written \(ENOSPC; \d+ bytes are free\); make room on the disk/);
  assert.deepEqual(
    roomy,
    roomy.map(() => null),
  );
});

test('a replica whose disk another program fills refuses changes before LMDB meets it, and makes them when there is room again', async (t) => {
  const disk = smallFileSystem(t, 16);
  if (disk === null) return;
  const folder = path.join(disk, '0');
  const replica = await Replica.within(t, specOf(folder));
  const points = (from: number) =>
    upsert(Array.from({ length: 40 }, (_, n) => ({ id: from + n, seed: n, payload: { text: 'x'.repeat(5000) } })));
  replica.apply(points(0));
  const filler = path.join(disk, 'filler');
  const leave = (bytes: number) => {
    rmSync(filler, { force: true });
    const { bavail, bsize } = statfsSync(disk);
    writeFileSync(filler, new Uint8Array(bavail * bsize - bytes));
  };
  for (const left of [0, 50_000, 150_000, 250_000]) {
    leave(left);
    assert.throws(
      () => replica.apply(points(100)),
      /data\.mdb: cannot write: up to \d+ bytes more are needed, and \d+ are free; make room on the disk/,
      `${left} bytes are left`,
    );
    assert.equal(replica.points().size, 40);
  }
  rmSync(filler);
  replica.apply(points(100));
  assert.equal(replica.points().size, 80);
});

for (const [what, content] of [
  ['100 bytes', new Uint8Array(100)],
  ['garbage', Uint8Array.from({ length: 3 * PAGE_BYTES }, (_, at) => (at * 31) & 255)],
  ['one page of zeros', new Uint8Array(PAGE_BYTES)],
] as const) {
  test(`an unfinished replica whose LMDB file holds ${what} is made anew`, (t) => {
    const folder = temporaryFolder(t);
    mkdirSync(path.join(folder, 'lmdb'));
    writeFileSync(path.join(folder, 'lmdb', 'data.mdb'), content);
    assert.deepEqual(outcomes('nothing', folder), [null]);
  });
}

test('a replica that was cut off while it was made is made anew; one that was made names its damage', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await Replica.open(specOf(folder));
  replica.apply(upsert([{ id: 1, seed: 1 }]));
  await replica.close();
  const data = path.join(folder, 'lmdb', 'data.mdb');
  const whole = readFileSync(data);
  const lastPage = Buffer.from(whole);
  for (const page of [0, PAGE_BYTES]) lastPage.writeBigUInt64LE(1n << 40n, page + 144);
  const spoiled: [Buffer, RegExp][] = [
    [whole.subarray(0, PAGE_BYTES), /data\.mdb: the second meta page is cut off/],
    [whole.subarray(0, PAGE_BYTES + 100), /data\.mdb: the second meta page is cut off/],
    [lastPage, /data\.mdb: a meta page names pages that the file does not have/],
  ];
  for (const [content, damage] of spoiled) {
    writeFileSync(data, content);
    const [outcome] = outcomes('nothing', folder);
    assert.equal(outcome?.code, 'storage');
    assert.match(outcome?.detail ?? '', damage);
    assert.notEqual((await verifyReplicas([folder])).get(folder), null);
  }
  truncateSync(data, PAGE_BYTES);
  fs.rmSync(path.join(folder, 'format.json'));
  assert.deepEqual(outcomes('nothing', folder), [null]);
});

test('an opening reads all that rows have in files through one buffer: one for each was garbage that could end a nearly full node', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await Replica.open(specOf(folder));
  const POINTS = 3000;
  for (let batch = 0; batch < 3; batch++)
    replica.apply(upsert(Array.from({ length: POINTS }, (_, at) => ({ id: batch * POINTS + at, seed: at }))));
  await replica.close();

  const read: Uint8Array[] = [];
  const { loadChunk } = SegmentRows.prototype;
  mock.method(SegmentRows.prototype, 'loadChunk', function (this: SegmentRows, bytes: Uint8Array) {
    read.push(bytes);
    return loadChunk.call(this, bytes);
  });
  t.after(() => mock.restoreAll());
  const again = await Replica.within(t, specOf(folder));
  assert.equal(again.store.stats().points, 3 * POINTS);
  const fromFiles = read.filter(({ length }) => length > ROWS_INLINE_BYTES_MAX);
  assert.ok(fromFiles.length >= 3, String(read.map(({ length }) => length)));
  assert.equal(new Set(fromFiles.map(({ buffer }) => buffer)).size, 1);
});

test('200 readers have places in an environment that so many threads may read', async (t) => {
  const folder = path.join(temporaryFolder(t), 'lmdb');
  const environment = Environment.open(folder, (made) => made.put('meta', Buffer.from('a'), Buffer.from('b')), undefined, 200);
  t.after(() => environment.close());
  const readers: SnapshotReader[] = [];
  t.after(() => Promise.all(readers.map((reader) => reader.close())));
  for (let number = 0; number < 200; number++) {
    const reader = SnapshotReader.openReadOnly(folder);
    readers.push(reader);
    reader.refresh();
    assert.equal(reader.get('meta', Buffer.from('a'))?.length, 1);
  }
});

test('the folders of a new replica and of its first segment are on disk before what they hold counts', async (t) => {
  const folder = temporaryFolder(t);
  const synced = syncedFolders(t);
  const replica = await Replica.within(t, specOf(folder));
  assert.ok(synced().has(path.join(folder, 'lmdb')), 'the entry of data.mdb may be lost');
  const { beginSegmentFolder, segmentFolder } = await import('../../../storage/segment/sealed.js');
  beginSegmentFolder(segmentFolder(folder, 7));
  assert.ok(existsSync(path.join(folder, 'segments')));
  assert.ok(synced.since().has(folder), 'the entry of segments may be lost');
  assert.equal(replica.store.stats().points, 0);
});

/** Notes which folders are synchronised. */
function syncedFolders(t: TestContext): { (): Set<string>; since(): Set<string> } {
  const names = new Map<number, string>();
  let folders = new Set<string>();
  const { fsyncSync, openSync } = fs;
  mock.method(fs, 'openSync', (...given: Parameters<typeof openSync>) => {
    const descriptor = openSync(...given);
    names.set(descriptor, String(given[0]));
    return descriptor;
  });
  mock.method(fs, 'fsyncSync', (descriptor: number) => {
    folders.add(names.get(descriptor) ?? '');
    fsyncSync(descriptor);
  });
  t.after(() => mock.restoreAll());
  const all = (): Set<string> => {
    const seen = folders;
    folders = new Set();
    return seen;
  };
  return Object.assign(all, { since: all });
}

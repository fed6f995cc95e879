import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { LocalSnapshotStore } from '../../../storage/snapshot-store/local.js';
import { smallFileSystem } from '../../machine.js';
import { testStore } from './store-contract.js';
import { archiveIn, FULL, noEnd, PICTURES, SHARD, sha256OfFile, temporaryFolder } from './support.js';

const BYTES = 300_000;

testStore('local', BYTES, async (t) => new LocalSnapshotStore({ folder: join(temporaryFolder(t), 'not', 'there'), freeBytesMin: 0 }));

/** A store on a file system of its own, so that archives are copied there. */
function smallStore(t: TestContext, megabytes: number, freeBytesMin = 0): { folder: string; store: LocalSnapshotStore } | null {
  const folder = smallFileSystem(t, megabytes);
  return folder === null ? null : { folder, store: new LocalSnapshotStore({ folder, freeBytesMin }) };
}

function everything(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();
}

test('archives lie in the folders of their collection and shard, each with its checksum beside it', async (t) => {
  const folder = temporaryFolder(t);
  const store = new LocalSnapshotStore({ folder, freeBytesMin: 0 });
  const temp = temporaryFolder(t);
  for (const place of [FULL, PICTURES, SHARD]) {
    const { file, sha256 } = archiveIn(temp, 10);
    await store.put(place, 'a.snapshot', file, sha256, noEnd());
  }
  assert.deepEqual(everything(folder), [
    '+4dy+20+50ictures/a.snapshot',
    '+4dy+20+50ictures/a.snapshot.checksum',
    '+4dy+20+50ictures/shards/3/a.snapshot',
    '+4dy+20+50ictures/shards/3/a.snapshot.checksum',
    'a.snapshot',
    'a.snapshot.checksum',
  ]);
  await assert.rejects(store.remove(SHARD, 'b.snapshot'), {
    message: `Not found: Snapshot "${join(folder, '+4dy+20+50ictures/shards/3/b.snapshot')}" not found`,
  });
});

test('an archive that somebody has copied there is listed without a checksum, and so is one with a damaged checksum', async (t) => {
  const folder = temporaryFolder(t);
  const store = new LocalSnapshotStore({ folder, freeBytesMin: 0 });
  archiveIn(folder, 10, 'a.snapshot');
  archiveIn(folder, 11, 'b.snapshot');
  writeFileSync(join(folder, 'b.snapshot.checksum'), 'abc');
  archiveIn(folder, 12, 'no-archive.tar');
  assert.deepEqual(
    (await store.list(FULL)).map(({ name, size, checksum }) => ({ name, size, checksum })),
    [
      { name: 'a.snapshot', size: 10, checksum: null },
      { name: 'b.snapshot', size: 11, checksum: null },
    ],
  );
});

test('links are not followed: neither to archives nor to folders of collections (Store-B2)', async (t) => {
  const folder = temporaryFolder(t);
  const outside = temporaryFolder(t);
  const { file, sha256 } = archiveIn(outside, 10, 'secret.snapshot');
  const store = new LocalSnapshotStore({ folder, freeBytesMin: 0 });
  symlinkSync(file, join(folder, 'secret.snapshot'));
  symlinkSync(outside, join(folder, '+4dy+20+50ictures'));
  mkdirSync(join(folder, 'folder.snapshot'));
  assert.deepEqual(await store.list(FULL), []);
  assert.deepEqual(await store.list(PICTURES), []);
  for (const [place, name] of [
    [FULL, 'secret.snapshot'],
    [FULL, 'folder.snapshot'],
    [PICTURES, 'secret.snapshot'],
  ] as const) {
    await assert.rejects(store.open(place, name, null), { code: 'notFound' });
    await assert.rejects(store.remove(place, name), { code: 'notFound' });
  }
  await assert.rejects(store.put(PICTURES, 'new.snapshot', file, sha256, noEnd()), /is no folder, so no snapshots can be kept there/);
  assert.deepEqual(readdirSync(outside), ['secret.snapshot']);
});

test('a link in the place of the checksum is not read', async (t) => {
  const folder = temporaryFolder(t);
  archiveIn(folder, 10, 'a.snapshot');
  const elsewhere = join(temporaryFolder(t), 'text');
  writeFileSync(elsewhere, 'a'.repeat(64));
  symlinkSync(elsewhere, join(folder, 'a.snapshot.checksum'));
  assert.equal((await new LocalSnapshotStore({ folder, freeBytesMin: 0 }).describe(FULL, 'a.snapshot')).checksum, null);
});

test('a pipe among the archives holds nobody up', async (t) => {
  const folder = temporaryFolder(t);
  if (spawnSync('mkfifo', [join(folder, 'a.snapshot')]).status !== 0) return t.skip('needs mkfifo');
  const store = new LocalSnapshotStore({ folder, freeBytesMin: 0 });
  assert.deepEqual(await store.list(FULL), []);
  await assert.rejects(store.open(FULL, 'a.snapshot', null), { code: 'notFound' });
});

test('an archive from another file system is copied, whole and with its checksum', async (t) => {
  const small = smallStore(t, 16);
  if (small === null) return;
  const { file, sha256 } = archiveIn(temporaryFolder(t), 5_000_000);
  const record = await small.store.put(PICTURES, 'a.snapshot', file, sha256, noEnd());
  assert.equal(record.size, 5_000_000);
  assert.equal(await sha256OfFile(join(small.folder, '+4dy+20+50ictures/a.snapshot')), sha256);
  assert.equal(existsSync(file), false);
  assert.deepEqual(everything(small.folder), ['+4dy+20+50ictures/a.snapshot', '+4dy+20+50ictures/a.snapshot.checksum']);
});

test('a disk without room refuses an archive, keeps nothing of it, and leaves the file', async (t) => {
  const small = smallStore(t, 4);
  if (small === null) return;
  const { file, sha256 } = archiveIn(temporaryFolder(t), 5_000_000);
  await assert.rejects(small.store.put(FULL, 'a.snapshot', file, sha256, noEnd()), (error: Error) => {
    assert.match(error.message, /^Out of disk space: no room for .*bytes are free, \d+ are needed.*remove snapshots or other files/);
    return true;
  });
  assert.deepEqual(everything(small.folder), []);
  assert.equal(existsSync(file), true);
});

test('a disk that fills up meanwhile is an error of the catalogue, and keeps nothing', async (t) => {
  const small = smallStore(t, 4);
  if (small === null) return;
  // On the small disk itself: the archive needs no copy, but its checksum finds no room.
  const { file, sha256 } = archiveIn(small.folder, 1000);
  const filler = join(small.folder, 'filler');
  spawnSync('dd', ['if=/dev/zero', `of=${filler}`, 'bs=4096']);
  await assert.rejects(small.store.put(FULL, 'a.snapshot', file, sha256, noEnd()), { code: 'outOfDisk' });
  rmSync(filler);
  assert.deepEqual(everything(small.folder), ['made.tmp']);
  assert.equal((await small.store.put(FULL, 'a.snapshot', file, sha256, noEnd())).checksum, sha256);
});

test('a copy that is cancelled leaves nothing, and the file', async (t) => {
  const small = smallStore(t, 64);
  if (small === null) return;
  const { file, sha256 } = archiveIn(temporaryFolder(t), 20_000_000);
  const end = new AbortController();
  const putting = small.store.put(FULL, 'a.snapshot', file, sha256, end.signal);
  while (everything(small.folder).length === 0) await new Promise(setImmediate);
  end.abort();
  await assert.rejects(putting, { code: 'unavailable' });
  assert.deepEqual(everything(small.folder), []);
  assert.equal(existsSync(file), true);
});

test('of two puts under one name at the same time, one is refused', async (t) => {
  const folder = temporaryFolder(t);
  const store = new LocalSnapshotStore({ folder, freeBytesMin: 0 });
  const temp = temporaryFolder(t);
  const [one, other] = [archiveIn(temp, 1000, 'one'), archiveIn(temp, 2000, 'other')];
  const results = await Promise.allSettled([one, other].map(({ file, sha256 }) => store.put(FULL, 'a.snapshot', file, sha256, noEnd())));
  assert.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected'],
  );
  assert.equal(readFileSync(join(folder, 'a.snapshot.checksum'), 'utf8').trim(), await sha256OfFile(join(folder, 'a.snapshot')));
});

test('a sweep removes drafts and lone checksums, and nothing else', async (t) => {
  const folder = temporaryFolder(t);
  const shard = join(folder, 'c', 'shards', '0');
  mkdirSync(shard, { recursive: true });
  const left = ['.x.unfinished', '.x.unfinished.checksum', 'gone.snapshot.checksum'];
  const kept = ['a.snapshot', 'a.snapshot.checksum', '.gitkeep', 'notes.checksum'];
  for (const place of [folder, join(folder, 'c'), shard]) for (const name of [...left, ...kept]) writeFileSync(join(place, name), '');
  const outside = temporaryFolder(t);
  writeFileSync(join(outside, '.x.unfinished'), '');
  symlinkSync(outside, join(folder, 'linked'));
  assert.equal(await new LocalSnapshotStore({ folder, freeBytesMin: 0 }).sweep(), 9);
  for (const place of [folder, join(folder, 'c'), shard]) {
    assert.deepEqual(
      readdirSync(place)
        .filter((name) => !['c', 'shards', 'linked'].includes(name))
        .sort(),
      [...kept].sort(),
    );
  }
  assert.deepEqual(readdirSync(outside), ['.x.unfinished']);
  assert.equal(await new LocalSnapshotStore({ folder: join(folder, 'not-there'), freeBytesMin: 0 }).sweep(), 0);
});

test('a folder that cannot be written is an error that says so', async (t) => {
  if (process.getuid?.() === 0) {
    // The administrator may write anywhere: a file in the place of the folder is refused to everybody.
    const file = join(temporaryFolder(t), 'file');
    writeFileSync(file, '');
    const { file: archive, sha256 } = archiveIn(temporaryFolder(t), 10);
    await assert.rejects(new LocalSnapshotStore({ folder: file, freeBytesMin: 0 }).put(FULL, 'a.snapshot', archive, sha256, noEnd()), {
      code: 'storage',
    });
    return;
  }
  const folder = mkdtempSync(join(temporaryFolder(t), 'closed-'), 'utf8');
  spawnSync('chmod', ['a-w', folder]);
  const { file, sha256 } = archiveIn(temporaryFolder(t), 10);
  await assert.rejects(new LocalSnapshotStore({ folder, freeBytesMin: 0 }).put(FULL, 'a.snapshot', file, sha256, noEnd()), {
    message: /give this process the right to write there/,
  });
});

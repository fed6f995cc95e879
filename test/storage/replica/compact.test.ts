/** LMDB's file of a replica never became smaller: what deletions, builds and the log gave back stayed with it for ever. */

import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { damagedMeta } from '../../../storage/disk/lmdb-meta.js';
import { hasRoomForCopy, isWorthCompacting, moveCopyInPlace } from '../../../storage/replica/compact.js';
import { planCompaction, type SeenFile } from '../../../storage/replica/database-file.js';
import { readSleepRecord } from '../../../storage/replica/sleep-record.js';
import { verifyReplicas } from '../../../storage/verify/verify-lmdb.js';
import { smallFileSystem } from '../../machine.js';
import { addFreePages } from './free-pages.js';
import { byIds, Replica, specOf, temporaryFolder, upsert } from './support.js';

const MEBIBYTE = 1 << 20;
const OPERATIONS = 2700;
/** Fewer commits take less time. */
const TOGETHER = 300;
const KEPT = 200;
const database = (folder: string): string => path.join(folder, 'lmdb', 'data.mdb');
const sizeOf = (folder: string): number => statSync(database(folder)).size;

/** A replica whose log had 21 MB of operations in its database; open. */
async function withShortenedLog(t: TestContext, folder: string): Promise<Replica> {
  const replica = await Replica.within(t, specOf(folder));
  replica.apply(upsert(KEPT_IDS.map((id) => ({ id, seed: id, payload: { id } }))));
  // Deletions of what is not there take room in the log alone.
  const nothing = byIds(...Array.from({ length: 1000 }, (_, at) => 1_000_000 + at));
  const operations = Array.from({ length: TOGETHER }, () => ({ kind: 'deletePoints', selector: nothing }) as const);
  for (let at = 0; at < OPERATIONS; at += TOGETHER) replica.logThenApply(...operations);
  assert.ok(replica.store.stats().walBytes > 20 * MEBIBYTE, `${replica.store.stats().walBytes} bytes`);
  replica.store.retention.limit(0);
  while (replica.store.shortenLog());
  return replica;
}

/** A replica whose database had 21 MB of other records. */
async function withFreePages(t: TestContext, folder: string): Promise<Replica> {
  const replica = await Replica.within(t, specOf(folder));
  replica.apply(upsert(KEPT_IDS.map((id) => ({ id, seed: id, payload: { id } }))));
  addFreePages(replica);
  return replica;
}

const KEPT_IDS = Array.from({ length: KEPT }, (_, id) => id);
const idsOf = (replica: Replica): number[] => [...replica.points().values()].map(({ payload }) => Number(payload.id)).sort((a, b) => a - b);

test('a database is copied when at least half of it and 4 MB are free, and the disk has room for the copy', () => {
  const space = (bytes: number, freeBytes: number) => ({ bytes: bytes * MEBIBYTE, freeBytes: freeBytes * MEBIBYTE });
  assert.equal(isWorthCompacting(space(8, 4)), true);
  assert.equal(isWorthCompacting(space(9, 4)), false);
  assert.equal(isWorthCompacting(space(3, 3)), false);
  assert.equal(hasRoomForCopy(space(100, 60), 48 * MEBIBYTE), true);
  assert.equal(hasRoomForCopy(space(100, 60), 47 * MEBIBYTE), false);
});

test('what a shortened log has freed in the database is told, and given back to the disk when the replica is opened; nothing else changes', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await withShortenedLog(t, folder);
  const told = replica.store.environment.space();
  assert.ok(told.freeBytes > 16 * MEBIBYTE && told.bytes > told.freeBytes, JSON.stringify(told));
  const { last } = replica.store.log.position;
  await replica.close();
  const before = sizeOf(folder);

  const again = await Replica.within(t, specOf(folder));
  assert.ok(sizeOf(folder) < before - 16 * MEBIBYTE, `${sizeOf(folder)} bytes of ${before}`);
  const { bytes, freeBytes } = again.store.stats().database ?? { bytes: 0, freeBytes: 0 };
  assert.ok(bytes < before - 16 * MEBIBYTE && freeBytes < bytes / 2, `${freeBytes} of ${bytes} bytes`);
  assert.deepEqual([again.warnings, idsOf(again), again.store.log.position.last], [[], KEPT_IDS, last]);
  assert.equal(existsSync(path.join(folder, 'compact')), false);
  again.apply(upsert([{ id: KEPT, seed: 1, payload: { id: KEPT } }]));
  await again.close();

  // A start checks the file before LMDB opens it.
  assert.equal(damagedMeta(database(folder)), null);
  assert.deepEqual(await verifyReplicas([folder]), new Map([[folder, null]]));
  const third = await Replica.within(t, specOf(folder));
  assert.deepEqual(idsOf(third), [...KEPT_IDS, KEPT]);
});

test('a replica that falls asleep gives the room back then, and its record is of the smaller file', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await withFreePages(t, folder);
  const before = replica.store.environment.space().bytes;
  const stats = await replica.store.close('sleeps');
  assert.ok(sizeOf(folder) < before - 16 * MEBIBYTE);
  assert.equal(stats.database?.bytes, sizeOf(folder));
  const record = await readSleepRecord(folder, 'test/0');
  assert.deepEqual([record?.points, record?.database], [KEPT, stats.database]);
  assert.deepEqual(await verifyReplicas([folder]), new Map([[folder, null]]));
});

test('what a crash leaves of a copy is removed, and the record of a sleeping replica does not outlive the file that it was of', async (t) => {
  const folder = temporaryFolder(t);
  await (await withFreePages(t, folder)).close();
  mkdirSync(path.join(folder, 'compact'));
  writeFileSync(path.join(folder, 'compact', 'data.mdb'), readFileSync(database(folder)).subarray(0, 10_000));
  assert.notEqual(await readSleepRecord(folder, 'test/0'), null);
  const again = await Replica.within(t, specOf(folder));
  assert.equal(existsSync(path.join(folder, 'asleep.json')), false);
  assert.equal(existsSync(path.join(folder, 'compact')), false);
  assert.deepEqual(idsOf(again), KEPT_IDS);
});

test('where the disk has no room for a copy, the replica opens as it is', async (t) => {
  const disk = smallFileSystem(t, 72);
  if (disk === null) return;
  const folder = path.join(disk, 'r');
  mkdirSync(folder);
  await (await withFreePages(t, folder)).close();
  const before = sizeOf(folder);
  writeFileSync(path.join(disk, 'filler'), Buffer.alloc(69 * MEBIBYTE - before));
  const again = await Replica.within(t, specOf(folder));
  assert.equal(sizeOf(folder), before);
  assert.deepEqual([again.warnings, idsOf(again)], [[], KEPT_IDS]);
});

const SEEN: SeenFile = {
  space: { bytes: 40 * MEBIBYTE, freeBytes: 30 * MEBIBYTE },
  isQuiet: true,
  isBusy: false,
  looks: 0,
  failures: 0,
};

test('the file of a replica in use is copied once nothing is committed, or built, between two looks; in the end, although writes go on', () => {
  const planOf = (seen: Partial<SeenFile>) => planCompaction({ ...SEEN, ...seen });
  assert.equal(planOf({}), 'copy');
  assert.equal(planOf({ space: { bytes: 40 * MEBIBYTE, freeBytes: 10 * MEBIBYTE } }), 'nothing');
  assert.deepEqual([planOf({ isBusy: true }), planOf({ isBusy: true, looks: 100 })], ['look', 'look']);
  assert.deepEqual([planOf({ isQuiet: false, looks: 11 }), planOf({ isQuiet: false, looks: 12 })], ['look', 'copy']);
  const after = (failures: number, looks: number) => planOf({ failures, looks });
  assert.deepEqual(
    [after(1, 1), after(1, 2), after(5, 31), after(5, 32), after(60, 255), after(60, 256)],
    ['look', 'copy', 'look', 'copy', 'look', 'copy'],
  );
});

/** Whether a copy is made at the second look: the first one cannot know whether writes go on. */
async function lookTwice({ store }: Replica): Promise<boolean> {
  return (await store.file.look()) || (await store.file.look());
}

/** As `lookTwice`, after a copy that came to nothing: some looks are left out then. */
async function lookedUntilCopied({ store }: Replica): Promise<boolean> {
  for (let looks = 0; looks < 8; looks++) if (await store.file.look()) return true;
  return false;
}

test('a replica in use gives the room back: a reader that has the file open goes on to read it, and sees the next write in the smaller one', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await withFreePages(t, folder);
  const before = sizeOf(folder);
  const seen = replica.seen();
  assert.equal(await lookTwice(replica), true);
  assert.equal(sizeOf(folder), before);
  await replica.store.takeSmallerFile();
  assert.ok(sizeOf(folder) < before - 16 * MEBIBYTE, `${sizeOf(folder)} bytes of ${before}`);
  assert.equal(replica.store.stats().database?.bytes, sizeOf(folder));
  assert.deepEqual(replica.seen(false), seen, 'what was read before the change of files');
  assert.deepEqual([replica.points(), existsSync(path.join(folder, 'compact'))], [seen, false]);

  replica.apply(upsert([{ id: KEPT, seed: 1, payload: { id: KEPT } }]));
  assert.deepEqual(idsOf(replica), [...KEPT_IDS, KEPT]);
  assert.equal(await lookTwice(replica), false, 'there is nothing more to give back');
  await replica.close();
  assert.deepEqual([replica.warnings, await verifyReplicas([folder])], [[], new Map([[folder, null]])]);
  const again = await Replica.within(t, specOf(folder));
  assert.deepEqual(idsOf(again), [...KEPT_IDS, KEPT]);
});

test('a reader that reads nothing lets go of a file that has been replaced: it would keep its room on the disk', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await withFreePages(t, folder);
  replica.points();
  const opened = () =>
    readFileSync('/proc/self/maps', 'utf8')
      .split('\n')
      .filter((line) => line.includes(folder) && line.endsWith('(deleted)')).length;
  await lookTwice(replica);
  await replica.store.takeSmallerFile();
  assert.ok(opened() > 0);
  replica.view.leaveReplaced();
  assert.equal(opened(), 0);
  assert.equal(replica.published.at(-1), replica.published.at(-2), 'readers are told of the generation again');
});

test('what is committed while a copy is made, or before it is taken, is not lost: the copy is given up', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await withFreePages(t, folder);
  const before = sizeOf(folder);
  const add = (id: number) => replica.apply(upsert([{ id, seed: id, payload: { id } }]));
  await replica.store.file.look();
  const looking = replica.store.file.look();
  add(KEPT);
  assert.equal(await looking, false);
  assert.equal(await lookedUntilCopied(replica), true);
  add(KEPT + 1);
  await replica.store.takeSmallerFile();
  assert.deepEqual([sizeOf(folder) >= before, existsSync(path.join(folder, 'compact'))], [true, false]);
  assert.deepEqual([replica.warnings, idsOf(replica)], [[], [...KEPT_IDS, KEPT, KEPT + 1]]);
});

test('a crash at any moment of the exchange leaves a whole file', async (t) => {
  const folder = temporaryFolder(t);
  const replica = await withFreePages(t, folder);
  const crashed = new Map<string, string>();
  /** The files as a crash at this moment leaves them. */
  const crash = (moment: string): string => {
    const left = path.join(temporaryFolder(t), 'r');
    cpSync(folder, left, { recursive: true });
    crashed.set(moment, left);
    return left;
  };
  await lookTwice(replica);
  crash('copied');
  const between = crash('lock file moved');
  renameSync(path.join(between, 'compact', 'lock.mdb'), path.join(between, 'lmdb', 'lock.mdb'));
  moveCopyInPlace(folder);
  crash('in place');
  for (const [moment, left] of crashed) {
    assert.deepEqual(await verifyReplicas([left]), new Map([[left, null]]), moment);
    const again = await Replica.within(t, specOf(left));
    assert.deepEqual([idsOf(again), existsSync(path.join(left, 'compact'))], [KEPT_IDS, false], moment);
  }
});

test('where the disk has no room for a copy, or it cannot take its place, a replica in use goes on in its file', async (t) => {
  const disk = smallFileSystem(t, 72);
  if (disk === null) return;
  const folder = path.join(disk, 'r');
  mkdirSync(folder);
  const replica = await withFreePages(t, folder);
  const before = sizeOf(folder);
  const filler = path.join(disk, 'filler');
  writeFileSync(filler, Buffer.alloc(69 * MEBIBYTE - before));
  assert.equal(await lookTwice(replica), false);
  writeFileSync(filler, '');
  assert.equal(await lookedUntilCopied(replica), true);
  renameSync(path.join(folder, 'compact', 'data.mdb'), path.join(folder, 'compact', 'elsewhere'));
  await replica.store.takeSmallerFile();
  assert.equal(sizeOf(folder), before);
  replica.apply(upsert([{ id: KEPT, seed: 1, payload: { id: KEPT } }]));
  assert.deepEqual([replica.warnings.length, idsOf(replica)], [1, [...KEPT_IDS, KEPT]]);
});

/** LMDB's file of a replica never became smaller: what deletions, builds and the log gave back stayed with it for ever. */

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { damagedMeta } from '../../../storage/disk/lmdb-meta.js';
import { hasRoomForCopy, isWorthCompacting } from '../../../storage/replica/compact.js';
import { readSleepRecord } from '../../../storage/replica/sleep-record.js';
import { verifyReplicas } from '../../../storage/verify/verify-lmdb.js';
import { smallFileSystem } from '../../machine.js';
import { byIds, Replica, specOf, temporaryFolder, upsert } from './support.js';

const MEBIBYTE = 1 << 20;
const OPERATIONS = 2700;
const KEPT = 200;
const database = (folder: string): string => path.join(folder, 'lmdb', 'data.mdb');
const sizeOf = (folder: string): number => statSync(database(folder)).size;

/** A replica whose log had 21 MB of operations in its database; open. */
async function withFreePages(t: TestContext, folder: string): Promise<Replica> {
  const replica = await Replica.within(t, specOf(folder));
  replica.apply(upsert(KEPT_IDS.map((id) => ({ id, seed: id, payload: { id } }))));
  // Deletions of what is not there take room in the log alone.
  const nothing = byIds(...Array.from({ length: 1000 }, (_, at) => 1_000_000 + at));
  for (let at = 0; at < OPERATIONS; at++) replica.logThenApply({ kind: 'deletePoints', selector: nothing });
  assert.ok(replica.store.stats().walBytes > 20 * MEBIBYTE, `${replica.store.stats().walBytes} bytes`);
  replica.store.retention.limit(0);
  while (replica.store.shortenLog());
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
  const replica = await withFreePages(t, folder);
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
  const stats = await replica.store.close(true);
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
  const disk = smallFileSystem(t, 40);
  if (disk === null) return;
  const folder = path.join(disk, 'r');
  mkdirSync(folder);
  await (await withFreePages(t, folder)).close();
  const before = sizeOf(folder);
  writeFileSync(path.join(disk, 'filler'), Buffer.alloc(37 * MEBIBYTE - before));
  const again = await Replica.within(t, specOf(folder));
  assert.equal(sizeOf(folder), before);
  assert.deepEqual([again.warnings, idsOf(again)], [[], KEPT_IDS]);
});

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { Environment } from '../../../storage/disk/lmdb.js';
import { damagedMeta, newestTransaction, noteFailedCommit } from '../../../storage/disk/lmdb-meta.js';
import { temporaryFolder } from '../replica/support.js';

const PAGE_BYTES = 4096;
/** Bytes of a meta page that LMDB writes with a commit, and two fields of them. */
const WRITTEN_FROM = 40;
const WRITTEN_TO = 168;
const LAST_PAGE_AT = 144;
const TRANSACTION_AT = 152;
const KEY = Buffer.from('key');
const NOT_IN_ORDER = 'the meta pages do not follow each other';

const newestPage = (bytes: Buffer): number => {
  const numberOf = (page: number) => bytes.readBigUInt64LE(page * PAGE_BYTES + TRANSACTION_AT);
  return numberOf(0) > numberOf(1) ? 0 : 1;
};

async function commits(folder: string, values: readonly number[]): Promise<void> {
  const environment = Environment.open(folder, () => {});
  for (const value of values) environment.write(() => environment.put('meta', KEY, Buffer.of(value)));
  await environment.close();
}

/** A file of which the commit after the value 4 failed, as LMDB leaves it: the new meta page with the numbers of the one that was there. */
async function withFailedCommit(t: TestContext): Promise<{ folder: string; file: string; failed: bigint }> {
  const folder = path.join(temporaryFolder(t), 'lmdb');
  const file = path.join(folder, 'data.mdb');
  await commits(folder, [1, 2, 3, 4]);
  const before = readFileSync(file);
  const last = newestTransaction(file) as bigint;
  await commits(folder, [5]);
  const bytes = readFileSync(file);
  const failed = last + 1n;
  assert.equal(newestTransaction(file), failed);
  const page = newestPage(bytes) * PAGE_BYTES;
  for (const at of [LAST_PAGE_AT, TRANSACTION_AT]) before.copy(bytes, page + at, page + at, page + at + 8);
  writeFileSync(file, bytes);
  return { folder, file, failed };
}

test('a commit whose meta page could not be written leaves a file in order if it was noted, and the commit before counts', async (t) => {
  const { folder, file, failed } = await withFailedCommit(t);
  assert.equal(damagedMeta(file), NOT_IN_ORDER);
  noteFailedCommit(file, failed - 2n);
  assert.equal(damagedMeta(file), NOT_IN_ORDER, 'another commit was noted');
  noteFailedCommit(file, failed);
  assert.equal(damagedMeta(file), null);
  assert.equal(newestTransaction(file), failed - 1n);

  const environment = Environment.open(folder, () => {});
  assert.equal(environment.get('meta', KEY)?.[0], 4);
  environment.write(() => environment.put('meta', KEY, Buffer.of(6)));
  await environment.close();
  assert.deepEqual([damagedMeta(file), newestTransaction(file)], [null, failed]);
});

test('a note of a commit that failed long ago excuses no damaged number', async (t) => {
  const { folder, file, failed } = await withFailedCommit(t);
  noteFailedCommit(file, failed);
  await commits(folder, [6, 7, 8]);
  const bytes = readFileSync(file);
  for (const bit of [1n, 2n, 64n]) {
    const damaged = Buffer.from(bytes);
    const at = newestPage(bytes) * PAGE_BYTES + TRANSACTION_AT;
    damaged.writeBigUInt64LE(damaged.readBigUInt64LE(at) ^ bit, at);
    writeFileSync(file, damaged);
    assert.equal(damagedMeta(file), NOT_IN_ORDER);
  }
});

test('what LMDB writes of a meta page leaves the note as it is', async (t) => {
  const { folder, file, failed } = await withFailedCommit(t);
  noteFailedCommit(file, failed);
  const before = readFileSync(file);
  await commits(folder, [6, 7]);
  const after = readFileSync(file);
  for (const page of [0, PAGE_BYTES])
    assert.deepEqual(after.subarray(page + WRITTEN_TO, page + PAGE_BYTES), before.subarray(page + WRITTEN_TO, page + PAGE_BYTES));
  assert.notDeepEqual(after.subarray(WRITTEN_FROM, WRITTEN_TO), before.subarray(WRITTEN_FROM, WRITTEN_TO));
});

/** What every store does, whatever it keeps archives in: the tests of each store run these. */

import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { type TestContext, test } from 'node:test';
import { TroupeError } from '../../../protocols/errors.js';
import type { SnapshotStore } from '../../../storage/snapshot-store/snapshot-store.js';
import { archiveIn, bytesIn, FULL, noEnd, PICTURES, SHARD, temporaryFolder } from './support.js';

const NAME = 'one-2026.snapshot';

/** bytes: of the archives. */
export function testStore(what: string, bytes: number, open: (t: TestContext) => Promise<SnapshotStore>): void {
  test(`${what}: an archive that was put is listed with its size and checksum, in its own place alone`, async (t) => {
    const store = await open(t);
    const temp = temporaryFolder(t);
    for (const place of [FULL, PICTURES, SHARD]) {
      assert.deepEqual(await store.list(place), []);
      const { file, sha256 } = archiveIn(temp, bytes);
      const before = new Date(Math.floor(Date.now() / 1000) * 1000 - 2000).toISOString().slice(0, 19);
      const record = await store.put(place, NAME, file, sha256, noEnd());
      assert.deepEqual({ ...record, creationTime: '' }, { name: NAME, creationTime: '', size: bytes, checksum: sha256 });
      assert.match(record.creationTime, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/);
      assert.ok(record.creationTime >= before, `${record.creationTime} is before ${before}`);
      assert.deepEqual(await store.list(place), [record]);
      assert.deepEqual(await store.describe(place, NAME), record);
      assert.equal(existsSync(file), false, 'the file was taken away');
    }
    assert.deepEqual(await store.list({ kind: 'collection', collection: 'my pictures' }), []);
    assert.deepEqual(await store.list({ kind: 'shard', collection: 'My Pictures', shardId: 30 }), []);
  });

  test(`${what}: an archive is read whole and in ranges`, async (t) => {
    const store = await open(t);
    const { content, file, sha256 } = archiveIn(temporaryFolder(t), bytes);
    await store.put(PICTURES, NAME, file, sha256, noEnd());
    const whole = await store.open(PICTURES, NAME, null);
    assert.equal(whole.size, bytes);
    assert.ok(content.equals(await bytesIn(whole.stream)));
    for (const [start, end] of [
      [0, 9],
      [10, 4109],
      [bytes - 7, bytes - 1],
    ] as const) {
      const part = await store.open(PICTURES, NAME, { start, end });
      assert.equal(part.size, bytes);
      assert.ok(content.subarray(start, end + 1).equals(await bytesIn(part.stream)), `${start} to ${end}`);
    }
  });

  test(`${what}: a stream that is not read to its end can be destroyed`, async (t) => {
    const store = await open(t);
    const { file, sha256 } = archiveIn(temporaryFolder(t), bytes);
    await store.put(FULL, NAME, file, sha256, noEnd());
    const { stream } = await store.open(FULL, NAME, null);
    stream.on('error', () => undefined);
    const closed = new Promise((resolve) => stream.once('close', resolve));
    stream.destroy();
    await closed;
    await store.remove(FULL, NAME);
  });

  test(`${what}: an archive is there as a file until it is released, and stays in the store`, async (t) => {
    const store = await open(t);
    const temp = temporaryFolder(t);
    const { content, file, sha256 } = archiveIn(temp, bytes);
    await store.put(SHARD, NAME, file, sha256, noEnd());
    const local = await store.localFile(SHARD, NAME, temp, noEnd());
    assert.ok(content.equals(await readFile(local.path)));
    await local.release();
    assert.deepEqual(readdirSync(temp), []);
    assert.equal((await store.describe(SHARD, NAME)).checksum, sha256);
  });

  test(`${what}: what is removed is gone, and not there a second time`, async (t) => {
    const store = await open(t);
    const temp = temporaryFolder(t);
    for (const place of [FULL, SHARD]) {
      const { file, sha256 } = archiveIn(temp, bytes);
      await store.put(place, NAME, file, sha256, noEnd());
      await store.remove(place, NAME);
      assert.deepEqual(await store.list(place), []);
      for (const call of [
        () => store.remove(place, NAME),
        () => store.describe(place, NAME),
        () => store.open(place, NAME, null),
        () => store.localFile(place, NAME, temp, noEnd()),
      ]) {
        await assert.rejects(
          call,
          (error) => error instanceof TroupeError && error.code === 'notFound' && / not found$/.test(error.detail),
        );
      }
    }
    await assert.rejects(store.remove(FULL, NAME), { message: `Not found: Snapshot ${NAME} not found` });
  });

  test(`${what}: a name is given once, and the file of the refused archive stays`, async (t) => {
    const store = await open(t);
    const temp = temporaryFolder(t);
    const first = archiveIn(temp, bytes);
    await store.put(FULL, NAME, first.file, first.sha256, noEnd());
    const second = archiveIn(temp, bytes + 1);
    await assert.rejects(store.put(FULL, NAME, second.file, second.sha256, noEnd()), { code: 'conflict' });
    assert.equal(existsSync(second.file), true);
    assert.equal((await store.describe(FULL, NAME)).checksum, first.sha256);
  });

  test(`${what}: a cancelled put leaves nothing in the store, and the file where it was`, async (t) => {
    const store = await open(t);
    const temp = temporaryFolder(t);
    const { file, sha256 } = archiveIn(temp, bytes);
    await assert.rejects(store.put(PICTURES, NAME, file, sha256, AbortSignal.abort()), { code: 'unavailable' });
    const reason = new TroupeError('timeout', 'too late');
    await assert.rejects(store.put(PICTURES, NAME, file, sha256, AbortSignal.abort(reason)), reason);
    assert.equal(existsSync(file), true);
    assert.deepEqual(await store.list(PICTURES), []);
  });

  test(`${what}: names that climb out, hide or are no snapshots are not found`, async (t) => {
    const store = await open(t);
    const { file, sha256 } = archiveIn(temporaryFolder(t), bytes);
    await store.put(PICTURES, NAME, file, sha256, noEnd());
    const wrong = [
      '../../config.json',
      `../${NAME}`,
      `./${NAME}`,
      `a\\${NAME}`,
      '.hidden.snapshot',
      `${NAME}.checksum`,
      '..',
      '',
      `\0.snapshot`,
    ];
    for (const name of [...wrong, '.snapshot', `${'x'.repeat(300)}.snapshot`, `${NAME}\n.snapshot`, '\ud800.snapshot']) {
      await assert.rejects(store.open(PICTURES, name, null), { code: 'notFound' }, name);
      await assert.rejects(store.remove(PICTURES, name), { code: 'notFound' }, name);
      await assert.rejects(store.describe(PICTURES, name), { code: 'notFound' }, name);
    }
    await assert.rejects(store.describe(FULL, '../../config.json'), { message: 'Not found: Snapshot ../../config.json not found' });
  });

  test(`${what}: lists begin with the oldest, and with the lesser name within a second`, async (t) => {
    const store = await open(t);
    const temp = temporaryFolder(t);
    for (const name of ['c.snapshot', 'a.snapshot', 'b.snapshot']) {
      const { file, sha256 } = archiveIn(temp, bytes);
      await store.put(FULL, name, file, sha256, noEnd());
    }
    const listed = await store.list(FULL);
    assert.equal(listed.length, 3);
    const keys = listed.map(({ creationTime, name }) => `${creationTime} ${name}`);
    assert.deepEqual(keys, [...keys].sort());
  });
}

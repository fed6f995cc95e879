import assert from 'node:assert/strict';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { initChecksum } from '../../../storage/disk/checksum.js';
import { Environment } from '../../../storage/disk/lmdb.js';
import { openReplicaView } from '../../../storage/replica/reader-view.js';
import { encodeReplicaState, STATE_KEY } from '../../../storage/wal/records.js';
import { temporaryFolder } from './support.js';

/** A replica with one appendable segment, of which there are so many rows. */
async function openCommitted(t: TestContext, rows: number) {
  await initChecksum();
  const folder = path.join(temporaryFolder(t), 'lmdb');
  const environment = Environment.open(folder, () => {});
  const put = (commit: number): void => {
    const state = encodeReplicaState({ generation: 1, commit, appliedOperation: 0, appendable: new Map([[1, rows]]) });
    environment.put('meta', STATE_KEY, state);
  };
  const commit = (number: number): void => environment.write(() => put(number));
  commit(1);
  const view = openReplicaView(folder);
  t.after(async () => {
    await view.close();
    await environment.close();
  });
  // Only the test lets time pass.
  t.mock.timers.enable({ apis: ['setTimeout'] });
  t.mock.method(performance, 'now', () => 5000);
  return { commit, commits: environment.commits, environment, put, view };
}

test('a snapshot is held for a moment while no commit comes, each commit is seen at once, and nothing is held for long', async (t) => {
  const { commit, commits, environment, put, view } = await openCommitted(t, 1);
  const first = view.refresh(commits);
  view.release();
  assert.equal(view.refresh(commits), first);
  commit(2);
  const second = view.refresh(commits);
  assert.equal(second.commit, 2);
  const open = environment.begin();
  put(3);
  assert.equal(view.refresh(commits), second, 'what is not committed is not seen');
  open.commit();
  const third = view.refresh(commits);
  assert.equal(third.commit, 3);
  assert.notEqual(view.refresh(new Int32Array(commits)), third, 'the count of another opening');
  const fourth = view.refresh(commits);
  view.release();
  t.mock.timers.tick(10);
  assert.notEqual(view.refresh(commits), fourth, 'it was let go');
});

test('where LMDB has no rows, the state is known until the next commit, and no snapshot keeps old pages meanwhile', async (t) => {
  const { commit, commits, environment, view } = await openCommitted(t, 0);
  const first = view.refresh(commits);
  t.mock.timers.tick(60_000);
  assert.equal(view.refresh(commits), first);
  view.release();
  const { bytes } = environment.space();
  for (let number = 2; number <= 100; number++) commit(number);
  const grown = environment.space().bytes - bytes;
  assert.ok(grown < 30 * 4096, `${grown} bytes: a snapshot keeps a page or more of each commit`);
  assert.equal(view.refresh(commits).commit, 100);
});

import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { initChecksum } from '../../../storage/disk/checksum.js';
import { Environment } from '../../../storage/disk/lmdb.js';
import { openReplicaView } from '../../../storage/replica/reader-view.js';
import { encodeReplicaState, STATE_KEY } from '../../../storage/wal/records.js';
import { temporaryFolder } from './support.js';

test('a snapshot is held for a moment while no commit comes, each commit is seen at once, and nothing is held for long', async (t) => {
  await initChecksum();
  const folder = path.join(temporaryFolder(t), 'lmdb');
  const environment = Environment.open(folder, () => {});
  const commit = (number: number): void => {
    const state = encodeReplicaState({ generation: 1, commit: number, appliedOperation: 0, appendable: new Map() });
    environment.write(() => environment.put('meta', STATE_KEY, state));
  };
  commit(1);
  const view = openReplicaView(folder);
  const { commits } = environment;
  // Only the test lets time pass.
  t.mock.timers.enable({ apis: ['setTimeout'] });
  t.mock.method(performance, 'now', () => 5000);
  const first = view.refresh(commits);
  view.release();
  assert.equal(view.refresh(commits), first);
  commit(2);
  const second = view.refresh(commits);
  assert.equal(second.commit, 2);
  const open = environment.begin();
  environment.put('meta', STATE_KEY, encodeReplicaState({ generation: 1, commit: 3, appliedOperation: 0, appendable: new Map() }));
  assert.equal(view.refresh(commits), second, 'what is not committed is not seen');
  open.commit();
  const third = view.refresh(commits);
  assert.equal(third.commit, 3);
  assert.notEqual(view.refresh(new Int32Array(commits)), third, 'the count of another opening');
  const fourth = view.refresh(commits);
  view.release();
  t.mock.timers.tick(10);
  assert.notEqual(view.refresh(commits), fourth, 'it was let go');
  await view.close();
  await environment.close();
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TransferBoard } from '../../../actors/transfers/board.js';
import type { MigrationTask } from '../../../cluster/apply/migration.js';
import type { TransferRecord } from '../../../cluster/state/state.js';
import { noProgress } from '../../../cluster/transfer/progress.js';

const TASK: MigrationTask = {
  name: 'one',
  collection: 'c',
  uid: 7,
  shardId: 0,
  term: 3,

  startedAt: 5,
};
const TRANSFER: TransferRecord = {
  shardId: 0,
  from: 11,
  to: 12,
  toShardId: 4,
  method: 'stream_records',
  sync: true,
  targetIsNew: false,
  startedAt: 5,
};

test('how far points are that go to another key is told of all transfers of their shard, and why the last try failed', () => {
  const board = new TransferBoard();
  const begun = noProgress('stream_records', 'copying', 1000);
  board.showMigration(TASK, { ...begun, total: 300, sent: 100, sendingSinceMs: 1000, bytes: 4000, failures: 1, cause: 'a peer was away' });
  const comment = (change: Partial<TransferRecord>) => board.comment('c', { ...TRANSFER, ...change }, 2000);
  const expected =
    'copying, 100 of 300 points (33 %), 100 points/s, ETA 2 s, 4000 bytes, running for 1 s, 1 failed try, the last one: a peer was away';
  assert.equal(comment({}), expected);
  assert.equal(comment({ toShardId: 5 }), expected);
  // A move of the same shard, another shard, an earlier copy.
  for (const other of [{ toShardId: null }, { shardId: 1 }, { startedAt: 4 }]) assert.equal(comment(other), null);
  const { migrations } = board.report({ nowMs: 2000, dateMs: 2000 }, (name) => name, false) as {
    migrations: readonly Record<string, unknown>[];
  };
  assert.deepEqual(
    migrations.map(({ cause, collection, points_sent, shard_id, stage }) => ({ cause, collection, points_sent, shard_id, stage })),
    [{ cause: 'hidden', collection: 'c', points_sent: 100, shard_id: 0, stage: 'copying' }],
  );
  board.showMigration(TASK, null);
  assert.equal(comment({}), null);
});

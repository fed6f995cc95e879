import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CollectionCluster, TransferReport } from '../../../web/model/api-types.js';
import { progressSentence, type TransferRow, transferRows } from '../../../web/model/transfers.js';

const CLUSTER: CollectionCluster = {
  peer_id: 1,
  shard_count: 2,
  local_shards: [
    { shard_id: 0, points_count: 10, state: 'Active' },
    { shard_id: 1, points_count: 10, state: 'Active' },
  ],
  remote_shards: [
    { shard_id: 0, peer_id: 2, state: 'Partial' },
    { shard_id: 1, peer_id: 3, state: 'Dead' },
  ],
  shard_transfers: [{ shard_id: 0, from: 1, to: 2, sync: true, method: 'stream_records', comment: 'filling, 1 of 2 points' }],
};
const REPORT: TransferReport = {
  collection: 'c',
  shard_id: 0,
  from: 1,
  to: 2,
  method: 'stream_records',
  stage: 'filling',
  points_total: 4000,
  points_sent: 1000,
  rate: 250,
  eta_seconds: 12,
  failures: 0,
  cause: null,
};

function rows(running: readonly TransferReport[], failure: string | null = null): TransferRow[] {
  return transferRows({ collections: [{ name: 'c', cluster: CLUSTER }], running, failureOf: () => failure });
}

test('a transfer of the asked node has its figures, another one the words of the node that runs it', () => {
  const [own] = rows([REPORT]);
  assert.equal(own?.sentence, 'filling, 1,000 of 4,000 points, 250 points a second, 12 s left');
  assert.equal(own?.share, 0.25);
  assert.deepEqual(own?.abort, { abort_transfer: { shard_id: 0, from_peer_id: 1, to_peer_id: 2 } });
  const [other] = rows([]);
  assert.equal(other?.sentence, 'filling, 1 of 2 points');
  assert.equal(other?.share, null);
});

test('a Dead replica without a transfer is listed with what it waits for, and there is nothing to give up', () => {
  const [, waits] = rows([], 'connection refused');
  assert.equal(waits?.sentence, 'waits until its node can be reached: connection refused');
  assert.equal(waits?.abort, null);
  assert.match(rows([])[1]?.sentence ?? '', /^waits for its turn/);
  const alone = { ...CLUSTER, local_shards: [], shard_transfers: [] };
  const [none] = transferRows({ collections: [{ name: 'c', cluster: alone }], running: [], failureOf: () => null });
  assert.match(none?.sentence ?? '', /^waits for an Active replica/);
});

test('files are told in bytes, and failed tries with the reason of the last one', () => {
  const { points_sent: _, points_total: __, ...rest } = REPORT;
  const files = {
    ...rest,
    stage: 'copying files',
    bytes_total: 2e9,
    bytes_sent: 5e8,
    rate: 1e7,
    eta_seconds: null,
    failures: 2,
    cause: 'disk full',
  };
  assert.equal(progressSentence(files), 'copying files, 500 MB of 2 GB, 10 MB a second, 2 failed tries, the last: disk full');
});

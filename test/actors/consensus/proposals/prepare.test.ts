import assert from 'node:assert/strict';
import { test } from 'node:test';
import { prepare } from '../../../../actors/consensus/proposals/prepare.js';
import { type CollectionRecord, emptyState } from '../../../../cluster/state/state.js';
import { sampleConfig } from '../../samples.js';

test('a move by wal_delta to a peer that has nothing of the shard sends records, as does the usual method where it is that', () => {
  const replicas = new Map([
    [1, 'Active'],
    [2, 'Dead'],
  ] as const);
  const shard = { key: null, replicas, since: new Map([...replicas.keys()].map((peer) => [peer, 2])), leader: 1, term: 1 };
  const record = { config: sampleConfig(), shards: new Map([[0, shard]]) } as unknown as CollectionRecord;
  const state = { ...emptyState('c1'), collections: new Map([['c', record]]) };
  const methodTo = (to: number, method: 'wal_delta' | null) => {
    const setup = { kind: 'moveShard', shardId: 0, toShardId: null, from: 1, to, method } as const;
    const operation = prepare({ kind: 'updateCollectionCluster', collection: 'c', update: setup }, state, { transferMethod: 'wal_delta' });
    return operation.kind === 'startTransfer' ? operation.method : null;
  };
  assert.deepEqual(
    [methodTo(3, 'wal_delta'), methodTo(3, null), methodTo(2, 'wal_delta')],
    ['stream_records', 'stream_records', 'wal_delta'],
  );
});

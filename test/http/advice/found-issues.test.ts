import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  balanceIssues,
  type DeadReplica,
  deadIssues,
  diskIssues,
  fullPeerIssues,
  memoryIssues,
  replicaLoads,
} from '../../../http/advice/found-issues.js';
import { FakeCluster } from '../fake-cluster.js';

const GB = 2 ** 30;
const collection = (name: string, vectorBytes: number, rest = {}) => ({ name, vectorBytes, inMemory: true, quantized: false, ...rest });

test('memory is no issue while a fifth of the budget is free, and no collection is looked at', () => {
  const never = (): never => assert.fail('no collection is of interest');
  assert.deepEqual(memoryIssues({ budgetBytes: 10 * GB, usedBytes: 7.9 * GB }, never), []);
});

test('with little memory left each large collection is advised codes, then disk, then more memory', () => {
  const found = memoryIssues({ budgetBytes: 10 * GB, usedBytes: 9 * GB }, () => [
    collection('plain', 4 * GB),
    collection('coded', 3 * GB, { quantized: true }),
    collection('on disk', 3 * GB, { quantized: true, inMemory: false }),
    collection('small', GB),
  ]);
  assert.deepEqual(
    found.map(({ id }) => id),
    ['MEMORY/plain', 'MEMORY/coded', 'MEMORY/on disk'],
  );
  assert.equal(
    found[0]?.description,
    'The process uses 9.0 GB of the 10.0 GB that it may have, and the vectors of collection `plain` take 4.0 GB on this node.',
  );
  assert.equal(found[0]?.action?.path, '/collections/plain');
  assert.match(found[1]?.solution ?? '', /^Leave the originals on disk/);
  assert.match(found[2]?.solution ?? '', /more memory/);
});

test('with little memory left and no large collection the node is the issue', () => {
  assert.deepEqual(
    memoryIssues({ budgetBytes: 10 * GB, usedBytes: 9 * GB }, () => []).map(({ id }) => id),
    ['MEMORY'],
  );
});

test('a disk is an issue from twice its mark on, and says when writes are refused', () => {
  assert.deepEqual(diskIssues({ freeBytes: 3 * GB, freeBytesMin: GB, isLow: false }), []);
  assert.match(
    diskIssues({ freeBytes: 1.5 * GB, freeBytesMin: GB, isLow: false })[0]?.description ?? '',
    /From 1.0 GB .* writes are refused/,
  );
  assert.match(diskIssues({ freeBytes: 0.5 * GB, freeBytesMin: GB, isLow: true })[0]?.description ?? '', /512 MB are free .* are refused/);
});

test('a full disk of another peer is an issue of its own', () => {
  assert.deepEqual(fullPeerIssues(null), []);
  const found = fullPeerIssues({ peerId: 11, fullPeers: new Set([11, 12]) });
  assert.deepEqual(
    found.map(({ id }) => id),
    ['DISK/peer 12'],
  );
});

test('peers are out of balance with three replicas and half as many more, unless moves are under way', () => {
  const loads = (...counts: number[]) => new Map(counts.map((count, at) => [at + 1, count]));
  assert.deepEqual(balanceIssues(loads(4, 2, 3), 0), []);
  assert.deepEqual(balanceIssues(loads(40, 37), 0), []);
  assert.deepEqual(balanceIssues(loads(5), 0), []);
  assert.deepEqual(balanceIssues(loads(0, 3), 1), []);
  const [issue] = balanceIssues(loads(2, 6, 0), 0);
  assert.equal(issue?.description, 'Peer 2 has 6 replicas, and peer 3 has 0: one works more than the other.');
  assert.deepEqual(issue?.action, { method: 'POST', path: '/cluster/rebalance' });
});

test('only peers that take replicas are compared', () => {
  const state = new FakeCluster().agreed;
  const all = replicaLoads(state);
  assert.deepEqual(
    [...all.keys()],
    state.membership.map(({ peerId }) => peerId),
  );
  const marks = new Map([[12, { listens: true, leaving: null }]]);
  assert.equal(replicaLoads({ ...state, marks }).has(12), false);
});

test('a replica is an issue once it is Dead for a minute; what to do depends on whether its node is there', () => {
  const dead: DeadReplica = {
    collection: 'c',
    shardId: 3,
    peerId: 12,
    deadMs: 59_000,
    peerConnected: false,
    others: ['Active', 'Dead'],
    reason: 'connection refused',
  };
  assert.deepEqual(deadIssues([dead]), []);
  const [away] = deadIssues([{ ...dead, deadMs: 185_000 }]);
  assert.equal(
    away?.description,
    'The replica of shard 3 of collection `c` on peer 12 is Dead since at least 3 minutes (connection refused). 1 Active replica answers meanwhile.',
  );
  assert.match(away?.solution ?? '', /^Start the node again/);
  const [there] = deadIssues([{ ...dead, deadMs: 185_000, peerConnected: true, others: ['Dead'], reason: null }]);
  assert.match(there?.description ?? '', /No replica of the shard is Active/);
  assert.match(there?.solution ?? '', /filled by itself/);
});

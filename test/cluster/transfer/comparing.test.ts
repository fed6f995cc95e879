import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ComparedAt, followReplicas, nextComparison } from '../../../cluster/transfer/comparing.js';
import { stateOf } from './support.js';

const STATE = stateOf(
  [
    { 1: 'Active', 2: 'Active', 3: 'Dead' },
    { 1: 'Active', 2: 'Active' },
    { 1: 'Active', 2: 'Active' },
  ],
  [],
  { 2: 2 },
);

test('each follower of the shards led here has its turn once in a period, the one that waited longest first', () => {
  let compared: ComparedAt = new Map();
  const turns: string[] = [];
  for (let tick = 0; tick <= 30; tick += 1) {
    compared = followReplicas(STATE, 1, compared, tick);
    const next = nextComparison(STATE, 1, compared, 10, tick);
    if (next === null) continue;
    turns.push(`${tick}: ${next.shardId} on ${next.peerId}`);
    compared = new Map(compared).set(next.name, tick);
  }
  assert.deepEqual(turns, ['10: 0 on 2', '11: 1 on 2', '20: 0 on 2', '21: 1 on 2', '30: 0 on 2']);
});

test('a shard with a transfer is left to it', () => {
  const state = stateOf([{ 1: 'Active', 2: 'Active', 3: 'Partial' }], [{ from: 1, to: 3 }]);
  assert.equal(nextComparison(state, 1, new Map([['5/0/2', -1000]]), 10, 100), null);
});

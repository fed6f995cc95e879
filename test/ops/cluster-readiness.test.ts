import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClusterStatus } from '../../actors/consensus/cluster-api.js';
import { membershipWaitsFor } from '../../ops/cluster-readiness.js';
import { FakeCluster } from '../http/fake-cluster.js';

const status = new FakeCluster().status();
const raft = status.raft as NonNullable<ClusterStatus['raft']>;
const caughtUp = { ...status, carriedOut: raft.commitIndex };

test('a peer that comes back is not ready before it has heard of a leader, or has looked for one in vain', () => {
  assert.equal(membershipWaitsFor(caughtUp), null);
  const alone = { ...caughtUp, raft: { ...raft, leader: null } };
  assert.equal(membershipWaitsFor(alone), 'the node has not heard of a leader yet');
  assert.equal(membershipWaitsFor({ ...alone, leaderless: true }), null);
});

test('a peer says what keeps it from being ready', () => {
  const behind = { ...caughtUp, carriedOut: raft.commitIndex - 1 };
  assert.match(membershipWaitsFor(behind) ?? '', /carries out what is agreed: \d+ of \d+/);
  const learner = { ...caughtUp, raft: { ...raft, membership: raft.membership.map((member) => ({ ...member, voter: false })) } };
  assert.match(membershipWaitsFor(learner) ?? '', /no vote/);
  assert.equal(
    membershipWaitsFor({ ...caughtUp, phase: 'Joining', raft: null, error: 'nobody is there' }),
    'the node is joining its cluster: nobody is there',
  );
});

test('a peer that comes back is not ready while it may know less than what was agreed before, unless there is nobody to ask', () => {
  const behind = { ...caughtUp, caughtUp: false };
  assert.equal(membershipWaitsFor(behind), 'the node does not know yet what its cluster has agreed on meanwhile');
  assert.equal(membershipWaitsFor({ ...behind, raft: { ...raft, leader: null }, leaderless: true }), null);
});

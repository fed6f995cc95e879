import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isAloneWithout } from '../../../../actors/consensus/membership/alone.js';
import type { MemberConsensus, ProposalCall } from '../../../../actors/consensus/state.js';
import { mayTakeLeads } from '../../../../cluster/apply/lead-taking.js';
import type { ClusterCommand } from '../../../../cluster/state/commands.js';
import { founder } from '../one-member.js';

const OTHER = 22;

const GIVE_LEAD: ClusterCommand = { kind: 'changeLeader', collection: 'a', uid: 3, shardId: 0, to: OTHER, term: 1 };

/** One of two voters, whose own proposals below `doneBelow` are known to be done. */
function pair({ doneBelow = 1, lastOpen = 0, proposed = [] as ClusterCommand[], learners = 0 } = {}): MemberConsensus {
  const { state } = founder();
  const member = (peerId: number, voter: boolean) => ({ peerId, uri: `http://${peerId}:6335`, version: '1.0.0', voter });
  const own = state.identity.peerId;
  const membership = [member(own, true), member(OTHER, true), ...Array.from({ length: learners }, (_, at) => member(33 + at, false))];
  const sessions = new Map([[own, { session: state.identity.starts, doneBelow, outcomes: new Map() }]]);
  const proposals = proposed.map((operation) => ({ what: { kind: 'operation', operation, sequence: 9 } }) as unknown as ProposalCall);
  return {
    ...state,
    connected: new Set(),
    raft: { ...state.raft, membership, appliedIndex: state.raft.log.entries.length + 1 },
    agreed: { ...state.agreed, sessions },
    calls: { ...state.calls, lastOpen, proposals },
    // What a node that has just started may have pledged before is over.
    ticks: state.survival.givenUntilTick,
  };
}

test('one of two nodes is alone while the other is away, and not while it is there, nor with a learner that may get a vote', () => {
  assert.equal(isAloneWithout(pair(), OTHER), true);
  assert.equal(isAloneWithout({ ...pair(), connected: new Set([OTHER]) }, OTHER), false);
  assert.equal(isAloneWithout(pair({ learners: 1 }), OTHER), false);
  assert.equal(isAloneWithout(pair(), 33), false);
});

test('who asked to lead no more is not alone while that is open: the other one may have it in its log', () => {
  assert.equal(isAloneWithout(pair({ proposed: [GIVE_LEAD] }), OTHER), false);
  assert.equal(isAloneWithout(pair({ proposed: [{ kind: 'noop' }] }), OTHER), true);
  assert.equal(isAloneWithout(pair({ lastOpen: 4, doneBelow: 4 }), OTHER), false, 'it ended with an open outcome');
  assert.equal(isAloneWithout(pair({ lastOpen: 4, doneBelow: 5 }), OTHER), true, 'something behind it was applied');
});

test('a session of which nothing is applied yet says nothing of the one before', () => {
  const member = pair();
  const later = { ...member, identity: { ...member.identity, starts: member.identity.starts + 1 } };
  assert.equal(isAloneWithout(later, OTHER), false);
});

test('what may take a lead: the own replica’s state and changes of leaders, not what collections are called', () => {
  const change = { collection: 'a', uid: 3, shardId: 0, from: null, to: 'Dead', term: 1 } as const;
  assert.equal(mayTakeLeads({ kind: 'setReplicaStates', changes: [{ ...change, peerId: 11 }] }, 11), true);
  assert.equal(mayTakeLeads({ kind: 'setReplicaStates', changes: [{ ...change, peerId: OTHER }] }, 11), false);
  assert.equal(mayTakeLeads(GIVE_LEAD, 11), true);
  assert.equal(mayTakeLeads({ kind: 'changeAliases', actions: [] }, 11), false);
});

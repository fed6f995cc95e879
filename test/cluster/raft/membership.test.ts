import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changed } from '../../../cluster/raft/membership.js';
import type { MembershipChange, RaftInput } from '../../../cluster/raft/messages.js';
import type { PeerId } from '../../../protocols/model/cluster.js';
import { NOTHING_STORED } from '../../../protocols/model/consensus.js';
import {
  agreed,
  Company,
  effectsOf,
  entry,
  heard,
  leader,
  member,
  onDisk,
  peer,
  progress,
  sent,
  stored,
  take,
  ticks,
  voters,
} from './peers.js';

function changing(change: MembershipChange, id = 1): RaftInput {
  return { kind: 'propose', id, proposal: { kind: 'membership', change } };
}

function outcomes(company: Company, of: PeerId): readonly (string | number)[] {
  return effectsOf(company.effects.get(of) ?? [], 'proposed').map(({ outcome }) =>
    outcome.kind === 'refused' ? outcome.reason : outcome.index,
  );
}

const { voter: _, ...four } = member(4);

test('a change gives the membership after it, the very same one if it is so, null if it cannot be', () => {
  const members = voters(1, 2, 5);
  assert.deepEqual(changed(members, { kind: 'addLearner', member: four }), [...voters(1, 2), member(4, false), member(5)]);
  const { voter: __, ...two } = member(2);
  assert.equal(changed(members, { kind: 'addLearner', member: two }), members);
  assert.deepEqual(changed(members, { kind: 'announce', member: { ...two, uri: 'http://new:1' } })?.[1], {
    ...two,
    uri: 'http://new:1',
    voter: true,
  });
  assert.equal(changed(members, { kind: 'announce', member: four }), null);
  assert.equal(changed(members, { kind: 'promote', peerId: 4 }), null);
  assert.equal(changed(members, { kind: 'promote', peerId: 1 }), members);
  assert.deepEqual(changed(members, { kind: 'remove', peerId: 2 }), voters(1, 5));
  assert.equal(changed(members, { kind: 'remove', peerId: 9 }), members);
  assert.equal(changed([member(1), member(2, false)], { kind: 'remove', peerId: 1 }), null);
});

test('a leader changes no membership before it has committed in its term (Raft-R6)', () => {
  const state = leader(voters(1, 2, 3));
  const early = take(state, changing({ kind: 'addLearner', member: four }));
  assert.deepEqual(effectsOf(early.effects, 'proposed')[0]?.outcome, { kind: 'refused', reason: 'membershipPending' });
  const ready = take(state, agreed(state, 2, 2), changing({ kind: 'addLearner', member: four }));
  assert.equal(effectsOf(ready.effects, 'proposed')[0]?.outcome.kind, 'accepted');
});

test('one change at a time, which counts as soon as it is in the log (Raft-R9)', () => {
  const state = leader(voters(1, 2, 3));
  const { state: next, effects } = take(
    state,
    agreed(state, 2, 2),
    changing({ kind: 'addLearner', member: four }),
    changing({ kind: 'remove', peerId: 3 }),
  );
  assert.equal(next.membership.length, 4);
  assert.ok(progress(next, 4));
  assert.deepEqual(
    effectsOf(effects, 'proposed').map(({ outcome }) => outcome.kind),
    ['accepted', 'refused'],
  );
});

test('what is already so is accepted as an entry to wait for; what cannot be is refused', () => {
  const company = Company.of(3);
  company.tick(5);
  company.input(2, changing({ kind: 'promote', peerId: 3 }, 1));
  company.input(2, changing({ kind: 'promote', peerId: 9 }, 2));
  assert.deepEqual(outcomes(company, 2), [3, 'membershipInvalid']);
  assert.equal(company.state(2).appliedIndex, 3);
});

test('a learner gets the log and has no vote', () => {
  const company = Company.of(3);
  company.tick(5);
  company.start(4, NOTHING_STORED);
  company.input(1, changing({ kind: 'addLearner', member: four }));
  company.tick(2);
  assert.equal(company.state(4).appliedIndex, company.state(1).appliedIndex);
  company.stopped.add(2).add(3);
  const { commitIndex } = company.state(1);
  company.input(1, { kind: 'propose', id: 9, proposal: { kind: 'operation', bytes: new Uint8Array(1) } });
  assert.equal(company.state(1).commitIndex, commitIndex, 'two voters of three are needed, whatever learners have');
});

test('a learner that is promoted votes', () => {
  const company = Company.of(1);
  const { voter: ___, ...two } = member(2);
  company.start(2, NOTHING_STORED);
  company.input(1, changing({ kind: 'addLearner', member: two }));
  company.tick(1);
  company.input(1, changing({ kind: 'promote', peerId: 2 }));
  company.cut.add(2);
  const { commitIndex } = company.state(1);
  company.input(1, { kind: 'propose', id: 9, proposal: { kind: 'operation', bytes: new Uint8Array(1) } });
  assert.equal(company.state(1).commitIndex, commitIndex);
  company.cut.clear();
  company.tick(1);
  assert.ok(company.state(1).commitIndex > commitIndex);
});

test('a membership that is taken back gives way to the one before it (Raft-R9)', () => {
  const added = { index: 3, term: 2, payload: { kind: 'membership', membership: [...voters(1, 2, 3), member(4, false)] } } as const;
  const has = peer(stored(voters(1, 2, 3), { entries: [entry(2, 2), added] }));
  assert.deepEqual([has.membership.length, has.membershipIndex], [4, 3]);
  const { state } = heard(has, {
    kind: 'append',
    from: 2,
    to: 1,
    term: 3,
    prevIndex: 2,
    prevTerm: 2,
    entries: [entry(3, 3)],
    commit: 2,
    round: 1,
  });
  assert.deepEqual([state.membership, state.membershipIndex], [voters(1, 2, 3), 1]);
});

test('a removed peer is told when its removal is committed, and whenever it asks afterwards', () => {
  const company = Company.of(3);
  company.tick(5);
  company.cut.add(3);
  company.input(1, changing({ kind: 'remove', peerId: 3 }));
  assert.equal(company.state(1).membership.length, 2);
  assert.equal(effectsOf(company.effects.get(3) ?? [], 'removed').length, 0, 'it was cut off');
  company.cut.clear();
  company.tick(6);
  assert.ok(effectsOf(company.effects.get(3) ?? [], 'removed').length > 0);
  assert.deepEqual([company.leader, company.state(1).term], [1, 2], 'and it disturbs nobody');
});

test('a stranger is called removed only by a leader that a majority confirms after it asked (Raft-R7)', () => {
  const state = leader(voters(1, 2, 3));
  const committed = take(state, agreed(state, 2, 2)).state;
  const asked = heard(committed, { kind: 'preVote', from: 9, to: 1, term: 8, lastIndex: 1, lastTerm: 1, transfer: false });
  assert.equal(sent(asked.effects, 'notMember').length, 0);
  const round = asked.state.role.kind === 'Leader' ? asked.state.role.round : 0;
  assert.equal(sent(take(asked.state, agreed(state, 2, 2, round - 1)).effects, 'notMember').length, 0);
  const [verdict] = sent(take(asked.state, agreed(state, 2, 2, round)).effects, 'notMember');
  assert.equal(verdict?.to, 9);
});

test('a stranger whose addition may still be under way is not called removed', () => {
  const company = Company.of(3);
  company.tick(6);
  const follower = company.state(2);
  const { commitIndex, term } = follower;
  for (const [lastIndex, told] of [
    [commitIndex + 1, 0],
    [commitIndex, 1],
  ] as const) {
    const asked = heard(follower, { kind: 'preVote', from: 9, to: 2, term: term + 1, lastIndex, lastTerm: term, transfer: false });
    const [read] = sent(asked.effects, 'readIndex');
    const answer = { kind: 'readIndexReply', from: 1, to: 2, term, id: read?.id ?? 0, index: commitIndex } as const;
    assert.equal(sent(ticks(heard(asked.state, answer).state, 1).effects, 'notMember').length, told);
  }
});

test('a removed peer that knows none of the newer peers is told by a follower, which asks the leader', () => {
  const company = Company.of(3);
  company.tick(5);
  company.cut.add(3);
  const { voter: ____, ...late } = member(4);
  company.start(4, NOTHING_STORED);
  company.input(1, changing({ kind: 'addLearner', member: late }));
  company.tick(1);
  company.input(1, changing({ kind: 'promote', peerId: 4 }));
  company.input(1, changing({ kind: 'remove', peerId: 3 }));
  company.input(1, { kind: 'transferLeadership', to: 4 });
  assert.equal(company.leader, 4);
  company.cut.clear();
  company.tick(8);
  assert.ok(effectsOf(company.effects.get(3) ?? [], 'removed').length > 0);
  assert.equal(company.leader, 4);
});

test('a leader that removed itself counts others only, steps down at the commit, and has another one elected', () => {
  const company = Company.of(3);
  company.tick(5);
  company.input(1, changing({ kind: 'remove', peerId: 1 }));
  assert.equal(company.state(1).role.kind, 'Follower');
  assert.ok(company.leader === 2 || company.leader === 3);
  assert.equal(effectsOf(company.effects.get(1) ?? [], 'removed').length, 1);
  company.tick(40);
  assert.ok(company.leader === 2 || company.leader === 3);
});

test('who has the only copy of its own removal may still campaign', () => {
  const removal = { index: 2, term: 1, payload: { kind: 'membership', membership: voters(2) } } as const;
  const company = new Company();
  company.start(1, stored(voters(1, 2), { entries: [removal] }));
  company.start(2, stored(voters(1, 2)));
  company.tick(20);
  assert.equal(company.leader, 2);
  assert.deepEqual(company.state(2).membership, voters(2));
  assert.ok(effectsOf(company.effects.get(1) ?? [], 'removed').length > 0);
});

test('leadership goes to a voter once it has the whole log, and proposals are refused meanwhile', () => {
  const state = leader(voters(1, 2, 3));
  const found = take(state, agreed(state, 2, 2)).state;
  const pending = take(found, { kind: 'propose', id: 1, proposal: { kind: 'operation', bytes: new Uint8Array(1) } }).state;
  const asked = take(pending, { kind: 'transferLeadership', to: 2 });
  assert.equal(sent(asked.effects, 'timeoutNow').length, 0);
  const refusal = take(asked.state, { kind: 'propose', id: 2, proposal: { kind: 'operation', bytes: new Uint8Array(1) } });
  assert.deepEqual(effectsOf(refusal.effects, 'proposed')[0]?.outcome, { kind: 'refused', reason: 'transferring' });
  assert.equal(sent(take(asked.state, agreed(state, 2, 3)).effects, 'timeoutNow')[0]?.to, 2);
  // It is given up after an election timeout.
  const later = ticks(take(asked.state, agreed(state, 3, 3)).state, 5).state;
  assert.equal(later.role.kind === 'Leader' && later.role.transfer, null);
});

test('who is told to take over campaigns at once, past pre-votes and leases', () => {
  const company = Company.of(3);
  company.tick(5);
  const { term } = company.state(1);
  company.input(1, { kind: 'transferLeadership', to: 3 });
  assert.deepEqual([company.leader, company.state(3).term], [3, term + 1]);
  company.tick(1);
  assert.equal(company.state(1).leader, 3);
});

test('a peer meets memberships from before it came without taking itself for removed', () => {
  const first = { index: 1, term: 1, payload: { kind: 'membership', membership: voters(2) } } as const;
  const second = { index: 2, term: 1, payload: { kind: 'membership', membership: [member(1, false), member(2)] } } as const;
  const append = {
    kind: 'append',
    from: 2,
    to: 1,
    term: 1,
    prevIndex: 0,
    prevTerm: 0,
    entries: [first, second],
    commit: 2,
    round: 1,
  } as const;
  const { state, effects } = onDisk(heard(peer(NOTHING_STORED), append));
  assert.equal(effectsOf(effects, 'removed').length, 0);
  assert.equal(state.belonged, true);
});

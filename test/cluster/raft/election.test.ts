import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Company, effectsOf, entry, heard, leader, onDisk, peer, sent, stored, take, ticks, voters } from './peers.js';

const vote = { kind: 'vote', from: 2, to: 1, term: 2, lastIndex: 1, lastTerm: 1, transfer: false } as const;

test('a follower that hears of no leader asks for pre-votes in the next term and keeps its own', () => {
  const { state, effects } = ticks(peer(stored(voters(1, 2, 3))), 5);
  assert.equal(state.role.kind, 'PreCandidate');
  assert.equal(state.term, 1);
  assert.deepEqual(
    sent(effects, 'preVote').map(({ to, term, lastIndex, lastTerm }) => [to, term, lastIndex, lastTerm]),
    [
      [2, 2, 1, 1],
      [3, 2, 1, 1],
    ],
  );
  assert.equal(effectsOf(effects, 'persist').length, 0);
});

test('a majority of pre-votes makes a candidate, which writes its own vote before it asks for others', () => {
  const asking = ticks(peer(stored(voters(1, 2, 3))), 5).state;
  const { state, effects } = heard(asking, { kind: 'preVoteReply', from: 3, to: 1, term: 2, granted: true });
  assert.equal(state.role.kind, 'Candidate');
  assert.equal(state.term, 2);
  const [first, second] = effects;
  assert.ok(first?.kind === 'persist' && second?.kind === 'send');
  assert.deepEqual(first.write.hardState, { term: 2, votedFor: 1, commit: 1 });
  assert.deepEqual(
    second.messages.map(({ kind }) => kind),
    ['vote', 'vote'],
  );
});

test('a candidate with a majority leads only once its own vote is on disk (Raft-R2)', () => {
  const asking = ticks(peer(stored(voters(1, 2, 3))), 5).state;
  const candidate = heard(asking, { kind: 'preVoteReply', from: 3, to: 1, term: 2, granted: true }).state;
  const voted = heard(candidate, { kind: 'voteReply', from: 2, to: 1, term: 2, granted: true }).state;
  const all = heard(voted, { kind: 'voteReply', from: 3, to: 1, term: 2, granted: true }).state;
  assert.equal(all.role.kind, 'Candidate');
  const { state, effects } = take(all, { kind: 'persisted', write: 1 });
  assert.equal(state.role.kind, 'Leader');
  assert.deepEqual(
    effectsOf(effects, 'persist').map(({ write }) => write.entries),
    [[{ index: 2, term: 2, payload: { kind: 'empty' } }]],
  );
});

test('a majority of refusals ends a candidacy', () => {
  const asking = ticks(peer(stored(voters(1, 2, 3))), 5).state;
  const once = heard(asking, { kind: 'preVoteReply', from: 3, to: 1, term: 1, granted: false }).state;
  assert.equal(once.role.kind, 'PreCandidate');
  assert.equal(heard(once, { kind: 'preVoteReply', from: 2, to: 1, term: 1, granted: false }).state.role.kind, 'Follower');
});

test('after a split vote a candidate does not wait for a whole election timeout', () => {
  const asking = ticks(peer(stored(voters(1, 2, 3))), 5).state;
  const candidate = onDisk(heard(asking, { kind: 'preVoteReply', from: 3, to: 1, term: 2, granted: true })).state;
  const refused = heard(candidate, { kind: 'voteReply', from: 2, to: 1, term: 2, granted: false }).state;
  assert.equal(refused.role.kind, 'Candidate');
  assert.equal(ticks(refused, 1).state.role.kind, 'PreCandidate');
});

test('a lone voter leads without a tick', () => {
  const company = Company.of(1);
  assert.equal(company.leader, 1);
  assert.deepEqual(company.indexesApplied(1), [2]);
});

test('a vote is given once in a term, written before it is told, and given again to the same candidate', () => {
  const first = heard(peer(stored(voters(1, 2, 3))), vote);
  assert.deepEqual(
    first.effects.map(({ kind }) => kind),
    ['persist', 'send', 'roleChanged'],
  );
  assert.equal(first.state.votedFor, 2);
  assert.equal(sent(first.effects, 'voteReply')[0]?.granted, true);
  assert.equal(sent(heard(first.state, { ...vote, from: 3 }).effects, 'voteReply')[0]?.granted, false);
  const again = heard(first.state, vote).effects;
  assert.equal(sent(again, 'voteReply')[0]?.granted, true);
  assert.equal(effectsOf(again, 'persist').length, 0);
});

test('a candidate with an older log gets no vote: the last term counts, then the length', () => {
  const mine = peer(stored(voters(1, 2, 3), { entries: [entry(2, 2), entry(3, 3)] }));
  for (const [lastIndex, lastTerm, granted] of [
    [9, 2, false],
    [2, 3, false],
    [3, 3, true],
    [2, 4, true],
  ] as const) {
    const { effects } = heard(mine, { ...vote, term: 5, lastIndex, lastTerm });
    assert.equal(sent(effects, 'voteReply')[0]?.granted, granted, `${lastIndex}/${lastTerm}`);
    const asked = heard(mine, { ...vote, kind: 'preVote', term: 5, lastIndex, lastTerm });
    assert.equal(sent(asked.effects, 'preVoteReply')[0]?.granted, granted);
    assert.equal(asked.state, mine, 'a pre-vote changes nothing');
  }
});

test('who has heard of a leader listens to no candidate, but to one that the leader sends (Raft-R10)', () => {
  const company = Company.of(3);
  company.tick(5);
  const follower = company.state(2);
  assert.equal(follower.leader, 1);
  const late = { ...vote, from: 3, to: 2, term: 9, lastIndex: 9, lastTerm: 9 };
  assert.deepEqual(heard(follower, late), { state: follower, effects: [] });
  assert.deepEqual(heard(follower, { ...late, kind: 'preVote' }), { state: follower, effects: [] });
  assert.equal(heard(company.state(1), { ...late, to: 1 }).state.role.kind, 'Leader');
  assert.equal(sent(heard(follower, { ...late, transfer: true }).effects, 'voteReply')[0]?.granted, true);
  assert.equal(sent(heard(ticks(follower, 5).state, late).effects, 'voteReply')[0]?.granted, true);
});

test('a leader that hears of no majority for an election timeout steps down and gives up what it was asked', () => {
  const reading = take(leader(voters(1, 2, 3)), { kind: 'readIndex', id: 7 }).state;
  // New followers count as heard of until the first check.
  const checked = ticks(reading, 5);
  assert.equal(checked.state.role.kind, 'Leader');
  const { state, effects } = ticks(checked.state, 5);
  assert.equal(state.role.kind, 'Follower');
  assert.equal(state.leader, null);
  assert.deepEqual(effectsOf(effects, 'readReady'), [{ kind: 'readReady', id: 7, index: null }]);
});

test('a leader that a majority answers stays', () => {
  let now = leader(voters(1, 2, 3));
  for (let round = 0; round < 20; round++) {
    now = heard(ticks(now, 1).state, { kind: 'appendReply', from: 2, to: 1, term: 2, matched: true, index: 2, logTerm: 0, round }).state;
  }
  assert.equal(now.role.kind, 'Leader');
});

test('a peer with a higher term gets back in: the answer to the leader’s append carries it', () => {
  const company = Company.of(3);
  company.tick(5);
  assert.equal(company.leader, 1);
  company.states.set(3, { ...company.state(3), term: 9, leader: null });
  company.tick(12);
  assert.ok(company.leader !== null);
  assert.ok(company.state(1).term >= 9);
  assert.equal(new Set([1, 2, 3].map((id) => company.state(id).term)).size, 1);
  assert.equal(new Set([1, 2, 3].map((id) => company.state(id).commitIndex)).size, 1);
});

test('a peer that was cut off comes back without an election', () => {
  const company = Company.of(3);
  company.tick(5);
  const { term } = company.state(1);
  company.cut.add(3);
  company.tick(40);
  assert.equal(company.state(3).role.kind, 'PreCandidate');
  company.cut.clear();
  company.tick(5);
  assert.deepEqual([company.leader, company.state(3).leader, company.state(3).term], [1, 1, term]);
});

test('with the leader gone the others elect one of them, and an old leader follows it', () => {
  const company = Company.of(3);
  company.tick(5);
  company.cut.add(1);
  company.tick(12);
  assert.ok(company.leader === 2 || company.leader === 3);
  company.cut.clear();
  company.tick(2);
  assert.equal(company.state(1).role.kind, 'Follower');
  assert.equal(company.state(1).leader, company.leader);
});

test('a learner never campaigns', () => {
  const state = peer(stored([...voters(2, 3), { ...voters(1)[0]!, voter: false }]));
  const { state: later, effects } = ticks(state, 50);
  assert.equal(later.role.kind, 'Follower');
  assert.equal(sent(effects, 'vote').length, 0);
  assert.ok(sent(effects, 'preVote').length > 0, 'it asks, to hear if it was removed');
});

test('the same seed waits the same number of ticks', () => {
  const ran = () => onDisk(ticks(peer(stored(voters(1, 2, 3)), { electionTicksSpread: 9 }), 40)).effects;
  assert.deepEqual(ran(), ran());
});

/** Raft-R11: one of two voters has ended, and had promised to do nothing alone. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { applied, effectsOf, entry, heard, leader, onDisk, peer, stored, take, ticks, voters } from './peers.js';

const GONE = { kind: 'gone', peer: 2 } as const;
const BACK = { kind: 'gone', peer: null } as const;
const PAIR = voters(1, 2);

function propose(byte: number) {
  return { kind: 'propose', id: byte, proposal: { kind: 'operation', bytes: Uint8Array.of(byte) } } as const;
}

test('a follower of one that has ended leads the next term at once, once its vote is on disk', () => {
  const following = heard(peer(stored(PAIR)), {
    kind: 'append',
    from: 2,
    to: 1,
    term: 1,
    prevIndex: 1,
    prevTerm: 1,
    entries: [entry(2, 1)],
    commit: 1,
    round: 1,
  }).state;
  const { state } = take(onDisk({ state: following, effects: [] }).state, GONE);
  assert.equal(state.role.kind, 'Candidate');
  const leads = onDisk({ state, effects: [] });
  assert.equal(leads.state.role.kind, 'Leader');
  assert.equal(leads.state.term, 2);
  assert.equal(leads.state.commitIndex, 3, 'what the other one had sent, and the new term’s own entry');
});

test('a leader commits alone while the other one of two is gone, and no more when it is back', () => {
  const before = leader(PAIR);
  const alone = onDisk(take(before, GONE, propose(7)));
  assert.equal(alone.state.commitIndex, 3);
  const back = onDisk(take(alone.state, BACK, propose(8)));
  assert.equal(back.state.commitIndex, 3);
  assert.deepEqual(effectsOf(back.effects, 'proposed').length, 1, 'it is taken, and waits');
});

test('a leader without the other one of two goes on leading and answers reads', () => {
  const alone = ticks(onDisk(take(leader(PAIR), GONE)).state, 20);
  assert.equal(alone.state.role.kind, 'Leader');
  const asked = take(alone.state, { kind: 'readIndex', id: 5 });
  assert.deepEqual(effectsOf(asked.effects, 'readReady'), [{ kind: 'readReady', id: 5, index: alone.state.commitIndex }]);
});

test('whoever is heard of is not gone', () => {
  const alone = onDisk(take(leader(PAIR), GONE)).state;
  const next = heard(alone, { kind: 'preVote', from: 2, to: 1, term: 1, lastIndex: 1, lastTerm: 1, transfer: false }).state;
  assert.equal(next.gone, null);
  assert.equal(onDisk(take(next, propose(9))).state.commitIndex, alone.commitIndex);
});

test('of three, the other two must agree although one of them is gone', () => {
  const three = onDisk(take(leader(voters(1, 2, 3)), GONE, propose(7)));
  assert.deepEqual(applied(three.effects), []);
  assert.equal(three.state.commitIndex, 1);
});

test('a learner that gets its vote while one of two is gone makes three: from then on two of them must agree', () => {
  const alone = onDisk(take(leader(PAIR), GONE)).state;
  const added = onDisk(
    take(alone, {
      kind: 'propose',
      id: 1,
      proposal: { kind: 'membership', change: { kind: 'addLearner', member: { peerId: 3, uri: 'http://3:1', version: '1' } } },
    }),
  ).state;
  assert.equal(added.commitIndex, added.membershipIndex);
  const promoted = onDisk(
    take(added, { kind: 'propose', id: 2, proposal: { kind: 'membership', change: { kind: 'promote', peerId: 3 } } }),
  ).state;
  assert.equal(promoted.membership.filter(({ voter }) => voter).length, 3);
  assert.ok(promoted.commitIndex < promoted.membershipIndex, 'the new voter has to have it');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LeaderRole, RaftState } from '../../../cluster/raft/state.js';
import { agreed, Company, effectsOf, heard, leader, sent, take, ticks, voters } from './peers.js';

function round(state: RaftState): number {
  return (state.role as LeaderRole).round;
}

test('a read is answered with the commit index when a majority has answered a later heartbeat (Raft-R7)', () => {
  const first = leader(voters(1, 2, 3));
  const state = take(first, agreed(first, 2, 2)).state;
  const asked = take(state, { kind: 'readIndex', id: 5 });
  assert.equal(sent(asked.effects, 'append').length, 2, 'a heartbeat goes at once');
  const early = take(asked.state, agreed(state, 2, 2, round(state)));
  assert.equal(effectsOf(early.effects, 'readReady').length, 0, 'an earlier one says nothing');
  const { effects } = take(early.state, agreed(state, 2, 2, round(asked.state)));
  assert.deepEqual(effectsOf(effects, 'readReady'), [{ kind: 'readReady', id: 5, index: 2 }]);
});

test('reads that come while a round is under way share the next one', () => {
  const first = leader(voters(1, 2, 3));
  const state = take(first, agreed(first, 2, 2)).state;
  const asked = take(state, ...[1, 2, 3, 4].map((id) => ({ kind: 'readIndex', id }) as const));
  assert.equal(sent(asked.effects, 'append').length, 2);
  const one = take(asked.state, agreed(state, 2, 2, round(asked.state)));
  assert.deepEqual(
    effectsOf(one.effects, 'readReady').map(({ id }) => id),
    [1],
  );
  const all = take(one.state, agreed(state, 2, 2, round(one.state)));
  assert.deepEqual(
    effectsOf(all.effects, 'readReady').map(({ id }) => id),
    [2, 3, 4],
  );
});

test('a new leader answers reads once it has committed in its term (Raft-R6)', () => {
  const state = leader(voters(1, 2, 3));
  const asked = take(state, { kind: 'readIndex', id: 5 }).state;
  const confirmed = take(asked, agreed(state, 2, 1, round(asked)));
  assert.equal(effectsOf(confirmed.effects, 'readReady').length, 0);
  const { effects } = take(confirmed.state, agreed(state, 2, 2, round(asked)));
  assert.deepEqual(effectsOf(effects, 'readReady'), [{ kind: 'readReady', id: 5, index: 2 }]);
});

test('a lone voter answers its reads itself', () => {
  const company = Company.of(1);
  company.input(1, { kind: 'readIndex', id: 1 });
  company.input(1, { kind: 'readIndex', id: 2 });
  assert.deepEqual(
    effectsOf(company.effects.get(1) ?? [], 'readReady').map(({ id, index }) => [id, index]),
    [
      [1, 2],
      [2, 2],
    ],
  );
});

test('a follower’s reads and proposals go to the leader and come back', () => {
  const company = Company.of(3);
  company.tick(5);
  company.input(3, { kind: 'propose', id: 1, proposal: { kind: 'operation', bytes: new Uint8Array(1) } });
  company.input(3, { kind: 'readIndex', id: 2 });
  const effects = company.effects.get(3) ?? [];
  assert.deepEqual(effectsOf(effects, 'proposed')[0]?.outcome, { kind: 'accepted', index: 3, term: 2 });
  assert.deepEqual(effectsOf(effects, 'readReady'), [{ kind: 'readReady', id: 2, index: 3 }]);
  assert.equal(company.state(3).forwarded.size, 0);
});

test('without a leader, requests are given up at once', () => {
  const company = Company.of(3);
  company.input(3, { kind: 'propose', id: 1, proposal: { kind: 'operation', bytes: new Uint8Array(1) } });
  company.input(3, { kind: 'readIndex', id: 2 });
  const effects = company.effects.get(3) ?? [];
  assert.deepEqual(effectsOf(effects, 'proposed')[0]?.outcome, { kind: 'refused', reason: 'noLeader' });
  assert.deepEqual(effectsOf(effects, 'readReady'), [{ kind: 'readReady', id: 2, index: null }]);
});

test('requests that get no answer are given up when the leader is lost, or after two election timeouts', () => {
  const company = Company.of(3);
  company.tick(5);
  const asked = take(company.state(3), { kind: 'readIndex', id: 2 }).state;
  const lost = ticks(asked, 5);
  assert.deepEqual(effectsOf(lost.effects, 'readReady'), [{ kind: 'readReady', id: 2, index: null }]);
  let now = asked;
  const given: unknown[] = [];
  for (let tick = 0; tick < 10; tick++) {
    const taken = ticks(now, 1);
    given.push(...effectsOf(taken.effects, 'readReady'));
    now = heard(taken.state, {
      kind: 'append',
      from: 1,
      to: 3,
      term: 2,
      prevIndex: 2,
      prevTerm: 2,
      entries: [],
      commit: 2,
      round: tick,
    }).state;
  }
  assert.equal(given.length, 1);
});

test('a peer that is no leader refuses what is forwarded to it', () => {
  const company = Company.of(3);
  company.tick(5);
  const follower = company.state(2);
  const proposal = { kind: 'operation', bytes: new Uint8Array(1) } as const;
  const proposed = heard(follower, { kind: 'propose', from: 3, to: 2, term: 2, id: 1, proposal });
  assert.deepEqual(sent(proposed.effects, 'proposeReply')[0]?.outcome, { kind: 'refused', reason: 'noLeader' });
  const read = heard(follower, { kind: 'readIndex', from: 3, to: 2, term: 2, id: 1 });
  assert.equal(sent(read.effects, 'readIndexReply')[0]?.index, null);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startRaft } from '../../../cluster/raft/start.js';
import { NOTHING_STORED } from '../../../protocols/model/consensus.js';
import { applied, CONFIG, effectsOf, entry, member, peer, stored, ticks, voters } from './peers.js';

const entries = [entry(2, 2), entry(3, 2), entry(4, 3)];

test('a start restores the snapshot and applies again what was applied or is known to be committed', () => {
  for (const [commit, wasApplied, expected] of [
    [1, 1, []],
    [3, 1, [2, 3]],
    [2, 4, [2, 3, 4]],
  ] as const) {
    const { state, effects } = startRaft(
      CONFIG,
      stored(voters(1, 2, 3), { entries, hardState: { term: 3, votedFor: 2, commit }, applied: wasApplied }),
      1,
    );
    assert.equal(effectsOf(effects, 'restore')[0]?.snapshot.index, 1);
    assert.deepEqual(applied(effects), expected);
    assert.equal(state.commitIndex, Math.max(commit, wasApplied));
  }
});

test('a restart remembers its term and its vote, and knows no leader', () => {
  const state = peer(stored(voters(1, 2, 3), { entries, hardState: { term: 7, votedFor: 2, commit: 2 } }));
  assert.deepEqual([state.term, state.votedFor, state.leader, state.role.kind], [7, 2, null, 'Follower']);
});

test('a peer with nothing on its disk waits to be spoken to', () => {
  const { state, effects } = ticks(peer(NOTHING_STORED), 100);
  assert.equal(state.role.kind, 'Follower');
  assert.deepEqual(effects, []);
});

test('entries from before the snapshot’s end stay for late followers, without the first, whose predecessor is not known', () => {
  const snapshot = { index: 4, term: 3, membership: voters(1, 2, 3), data: new Uint8Array(0) };
  const { log, appliedIndex } = peer(stored([], { snapshot, entries: [...entries, entry(5, 3)], applied: 4 }));
  assert.deepEqual(
    log.entries.map(({ index }) => index),
    [3, 4, 5],
  );
  assert.deepEqual([log.termBefore, appliedIndex], [2, 4]);
});

test('entries that end before the snapshot’s end are nothing to go on', () => {
  const snapshot = { index: 9, term: 3, membership: voters(1, 2, 3), data: new Uint8Array(0) };
  assert.deepEqual(peer(stored([], { snapshot, entries, applied: 9 })).log.entries, []);
});

test('a lone voter campaigns at its start; one with a learner too', () => {
  for (const members of [voters(1), [member(1), member(2, false)]]) {
    const { state, effects } = startRaft(CONFIG, stored(members), 1);
    assert.equal(state.role.kind, 'Candidate');
    assert.deepEqual(effectsOf(effects, 'persist')[0]?.write.hardState, { term: 2, votedFor: 1, commit: 1 });
  }
});

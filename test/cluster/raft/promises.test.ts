import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkEntries, checkMembership, checkStep } from '../../../cluster/raft/promises.js';
import type { RaftState } from '../../../cluster/raft/state.js';
import { entry, heard, leader, member, peer, stored, take, voters } from './peers.js';

/** A follower of term 2 that has entries 2 and 3, of which 2 is committed. */
const FOLLOWER = peer(
  stored(voters(1, 2, 3), {
    hardState: { term: 2, votedFor: 2, commit: 2 },
    entries: [entry(2, 1), entry(3, 2)],
  }),
);

function broken(id: string, text: RegExp): { name: string; id: string; message: RegExp } {
  return { name: 'BrokenInvariant', id, message: text };
}

for (const [what, change, id, text] of [
  ['a term that goes back', { term: 1 }, 'Raft-R2', /term 2 goes back to 1/],
  ['a second vote in a term', { votedFor: 3 }, 'Raft-R2', /the vote for peer 2 in term 2 becomes one for 3/],
  ['a commit index that goes back', { commitIndex: 1, appliedIndex: 1 }, 'Raft-R4', /commit 2 goes back to 1/],
  ['a commit index beyond the log', { commitIndex: 4 }, 'Raft-R4', /4 is committed in a log that ends at 3/],
  ['entries that count as on disk and are not in the log', { persistedIndex: 4 }, 'Raft-R4', /4 counts as on disk/],
  ['more that is applied than is committed', { appliedIndex: 3 }, 'Raft-R5', /3 is applied, 2 committed/],
  ['an applied index that goes back', { appliedIndex: 1 }, 'Raft-R5', /applied 2 goes back to 1/],
] as readonly (readonly [string, Partial<RaftState>, string, RegExp])[]) {
  test(`${what} breaks a step`, () => {
    assert.doesNotThrow(() => checkStep(FOLLOWER, FOLLOWER));
    assert.throws(() => checkStep(FOLLOWER, { ...FOLLOWER, ...change }), broken(id, text));
  });
}

test('a leader that commits an entry of an earlier term by itself breaks its step', () => {
  const before = leader(voters(1, 2, 3), { entries: [entry(2, 1)] });
  assert.throws(
    () => checkStep(before, { ...before, commitIndex: 2 }),
    broken('Raft-R3', /the leader of term 2 commits 2, an entry of term 1/),
  );
});

test('a snapshot beyond the commit index breaks a step', () => {
  const snapshot = { index: 3, term: 2, membership: voters(1, 2, 3), data: new Uint8Array(0) };
  const after = { ...FOLLOWER, log: { ...FOLLOWER.log, snapshot } };
  assert.throws(() => checkStep(FOLLOWER, after), broken('Raft-R8', /the snapshot ends at 3, 2 is committed/));
});

test('entries follow the log without a gap, in terms that do not fall, and replace none that is committed', () => {
  const { log } = FOLLOWER;
  assert.doesNotThrow(() => checkEntries(log, 2, [entry(3, 2), entry(4, 2)]));
  assert.throws(() => checkEntries(log, 2, [entry(2, 2)]), broken('Raft-R4', /entry 2 is replaced, 2 is committed/));
  assert.throws(() => checkEntries(log, 2, [entry(5, 2)]), broken('Raft-R12', /entry 5 cannot follow a log that ends at 3/));
  assert.throws(() => checkEntries(log, 2, [entry(4, 2), entry(6, 2)]), broken('Raft-R12', /entry 6 comes after entry 4/));
  assert.throws(() => checkEntries(log, 2, [entry(4, 1)]), broken('Raft-R12', /entry 4 of term 1 comes after one of term 2/));
});

test('memberships differ by one peer, which comes, goes or changes', () => {
  const three = voters(1, 2, 3);
  for (const next of [voters(1, 2), voters(1, 2, 3, 4), [...voters(1, 2), member(3, false)], three])
    assert.doesNotThrow(() => checkMembership(three, next));
  assert.throws(() => checkMembership(three, voters(1)), broken('Raft-R9', /2 peers change at once, from 1, 2, 3 to 1$/));
  assert.throws(() => checkMembership(three, voters(1, 2, 4)), broken('Raft-R9', /2 peers change at once/));
});

test('a follower stops where its leader has another entry in the place of a committed one', () => {
  const message = {
    kind: 'append',
    from: 2,
    to: 1,
    term: 2,
    prevIndex: 1,
    prevTerm: 1,
    entries: [entry(2, 2)],
    commit: 2,
    round: 1,
  } as const;
  assert.throws(() => heard(FOLLOWER, message), broken('Raft-R4', /the leader of term 2 has entry 2\/2 where 2\/1 is committed/));
});

test('a write that was never made cannot be on disk', () => {
  const write = FOLLOWER.writes + 1;
  assert.throws(() => take(FOLLOWER, { kind: 'persisted', write }), broken('Raft-R1', /is on disk, \d+ were made/));
});

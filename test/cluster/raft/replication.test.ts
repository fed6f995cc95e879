import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RaftInput } from '../../../cluster/raft/messages.js';
import type { RaftState } from '../../../cluster/raft/state.js';
import {
  agreed,
  applied,
  Company,
  effectsOf,
  entry,
  heard,
  leader,
  onDisk,
  peer,
  progress,
  sent,
  stored,
  take,
  ticks,
  voters,
} from './peers.js';

const append = { kind: 'append', from: 2, to: 1, term: 2, prevIndex: 1, prevTerm: 1, entries: [], commit: 1, round: 1 } as const;

function proposing(bytes = 1, id = 1): RaftInput {
  return { kind: 'propose', id, proposal: { kind: 'operation', bytes: new Uint8Array(bytes) } };
}

function refused(state: RaftState, from: number, index: number, logTerm: number): RaftInput {
  return { kind: 'receive', message: { kind: 'appendReply', from, to: 1, term: state.term, matched: false, index, logTerm, round: 0 } };
}

test('a proposal is written and sent at once, and committed when a majority of disks has it (Raft-R4)', () => {
  const state = take(leader(voters(1, 2, 3)), agreed(leader(voters(1, 2, 3)), 2, 2)).state;
  const asked = take(state, proposing());
  assert.deepEqual(
    asked.effects.map(({ kind }) => kind),
    ['persist', 'sendEarly', 'proposed'],
  );
  assert.deepEqual(effectsOf(asked.effects, 'proposed')[0]?.outcome, { kind: 'accepted', index: 3, term: 2 });
  // One follower's disk alone is no majority of three.
  const answered = take(asked.state, agreed(asked.state, 2, 3)).state;
  assert.equal(answered.commitIndex, 2);
  const written = take(answered, { kind: 'persisted', write: answered.writes });
  assert.equal(written.state.commitIndex, 3);
  assert.deepEqual(applied(written.effects), [3]);
});

test('a leader whose disk is slow commits by the others, and applies when its own disk has it (Raft-R5)', () => {
  const first = leader(voters(1, 2, 3));
  const asked = take(first, agreed(first, 2, 2), proposing()).state;
  const answered = take(asked, agreed(asked, 2, 3), agreed(asked, 3, 3));
  assert.equal(answered.state.commitIndex, 3);
  assert.deepEqual(applied(answered.effects), []);
  assert.deepEqual(applied(onDisk(answered).effects), [3]);
});

test('an entry of an earlier term is committed only with one of the leader’s own (Raft-R3)', () => {
  const state = leader(voters(1, 2, 3), { entries: [entry(2, 1), entry(3, 1)] });
  assert.equal(state.term, 2);
  const old = take(state, agreed(state, 2, 3), agreed(state, 3, 3));
  assert.equal(old.state.commitIndex, 1);
  const own = take(old.state, agreed(state, 2, 4));
  assert.equal(own.state.commitIndex, 4);
  assert.deepEqual(applied(own.effects), [2, 3, 4]);
});

test('a follower writes entries before it answers, and applies them when they are committed and on its disk', () => {
  const { state, effects } = heard(peer(stored(voters(1, 2, 3))), { ...append, entries: [entry(2, 2), entry(3, 2)], commit: 2 });
  assert.deepEqual(
    effects.map(({ kind }) => kind),
    ['persist', 'send', 'roleChanged'],
  );
  assert.equal(sent(effects, 'appendReply')[0]?.index, 3);
  assert.equal(state.commitIndex, 2);
  assert.deepEqual(applied(take(state, { kind: 'persisted', write: 1 }).effects), [2]);
});

test('a follower’s commit index goes no further than what it knows to agree', () => {
  const longer = peer(stored(voters(1, 2, 3), { entries: [entry(2, 1), entry(3, 1)] }));
  const { state } = heard(longer, { ...append, entries: [entry(2, 1)], commit: 3 });
  assert.equal(state.commitIndex, 2);
});

test('entries that came already change nothing, and those behind them stay', () => {
  const has = peer(stored(voters(1, 2, 3), { entries: [entry(2, 2), entry(3, 2), entry(4, 2)] }));
  const { state, effects } = heard(has, { ...append, entries: [entry(2, 2), entry(3, 2)] });
  assert.equal(effectsOf(effects, 'persist').length, 0);
  assert.equal(state.log.entries.length, 3);
  assert.equal(sent(effects, 'appendReply')[0]?.index, 3);
});

test('entries that contradict the leader’s go, with all behind them', () => {
  const has = peer(stored(voters(1, 2, 3), { entries: [entry(2, 2), entry(3, 2), entry(4, 2)] }));
  const { state, effects } = heard(has, { ...append, term: 3, prevIndex: 2, prevTerm: 2, entries: [entry(3, 3)] });
  assert.deepEqual(state.log.entries, [entry(2, 2), entry(3, 3)]);
  assert.deepEqual(effectsOf(effects, 'persist')[0]?.write.entries, [entry(3, 3)]);
  assert.equal(state.persistedIndex, 2);
});

test('entries that were taken back while they were being written do not count as written', () => {
  const first = heard(peer(stored(voters(1, 2, 3))), { ...append, entries: [entry(2, 2), entry(3, 2)] }).state;
  const second = heard(first, { ...append, from: 3, term: 3, entries: [entry(2, 3)] }).state;
  const { state } = take(second, { kind: 'persisted', write: 1 });
  assert.equal(state.persistedIndex, 1);
  assert.equal(take(state, { kind: 'persisted', write: 2 }).state.persistedIndex, 2);
});

test('a late append from before the commit index is answered with it', () => {
  const has = peer(stored(voters(1, 2, 3), { entries: [entry(2, 2), entry(3, 2)], hardState: { term: 2, votedFor: null, commit: 3 } }));
  const { state, effects } = heard(has, { ...append, entries: [entry(2, 2)] });
  assert.equal(sent(effects, 'appendReply')[0]?.index, 3);
  assert.deepEqual(state.log, has.log);
});

test('a refusal hints at the last entry whose term is not higher, and probing skips a term at a time', () => {
  const follower = peer(stored(voters(1, 2, 3), { entries: [entry(2, 2), entry(3, 2), entry(4, 4), entry(5, 4)] }));
  const late = heard(follower, { ...append, term: 5, prevIndex: 5, prevTerm: 3 });
  const [hint] = sent(late.effects, 'appendReply');
  assert.deepEqual([hint?.matched, hint?.index, hint?.logTerm], [false, 3, 2]);
  const state = leader(voters(1, 2, 3), { entries: [entry(2, 1), entry(3, 3), entry(4, 3), entry(5, 3)] });
  const probed = take(state, refused(state, 2, 4, 2));
  assert.equal(progress(probed.state, 2).nextIndex, 3);
  assert.equal(sent(probed.effects, 'append')[0]?.prevIndex, 2);
});

test('a follower that lacks entries says where its log ends', () => {
  const { effects } = heard(peer(stored(voters(1, 2, 3))), { ...append, prevIndex: 9, prevTerm: 2 });
  const [hint] = sent(effects, 'appendReply');
  assert.deepEqual([hint?.matched, hint?.index, hint?.logTerm], [false, 1, 1]);
});

test('a probe goes alone until it is answered; then entries go as they come, up to the window', () => {
  const state = leader(voters(1, 2, 3), {}, { appendsInFlightMax: 2 });
  assert.deepEqual(progress(state, 2).mode, { kind: 'Probe', waiting: true });
  assert.equal(sent(take(state, proposing()).effects, 'append').length, 0);
  const found = take(state, agreed(state, 2, 2)).state;
  const [one, two, three] = [1, 2, 3].map((count) => take(found, ...new Array<RaftInput>(count).fill(proposing())));
  assert.deepEqual(
    [one, two, three].map((taken) => sent(taken!.effects, 'append').filter(({ to }) => to === 2).length),
    [1, 2, 2],
  );
  // Each answer lets another one go.
  const next = take(three!.state, agreed(state, 2, 3));
  const [freed] = sent(next.effects, 'append').filter(({ to, entries }) => to === 2 && entries.length > 0);
  assert.deepEqual(
    freed?.entries.map(({ index }) => index),
    [5],
  );
});

test('an append has at most its bytes, and one larger entry goes alone', () => {
  const state = leader(voters(1, 2, 3), {}, { appendBytesMax: 100 });
  const asked = take(state, proposing(10), proposing(10), proposing(500), proposing(10));
  const { effects } = take(asked.state, agreed(asked.state, 2, 2));
  assert.deepEqual(
    sent(effects, 'append')
      .filter(({ entries }) => entries.length > 0)
      .map(({ entries }) => entries.map(({ index }) => index)),
    [[3, 4], [5], [6]],
  );
});

test('a heartbeat finds out that entries were lost, and they go again', () => {
  const state = leader(voters(1, 2, 3));
  const lost = take(state, agreed(state, 2, 2), proposing(), proposing()).state;
  const beat = ticks(lost, 1);
  assert.equal(sent(beat.effects, 'append').find(({ to }) => to === 2)?.prevIndex, 4);
  const again = take(beat.state, refused(lost, 2, 2, 2));
  assert.deepEqual(
    sent(again.effects, 'append').map(({ prevIndex, entries }) => [prevIndex, entries.length]),
    [[2, 2]],
  );
  assert.equal(progress(take(again.state, agreed(lost, 2, 4)).state, 2).mode.kind, 'Replicate');
});

test('a peer that cannot be reached is probed', () => {
  const state = leader(voters(1, 2, 3));
  const lost = take(state, agreed(state, 2, 2), proposing(), { kind: 'unreachable', peer: 2 }).state;
  assert.deepEqual([progress(lost, 2).mode.kind, progress(lost, 2).nextIndex], ['Probe', 3]);
});

test('too large an operation is refused, and any while too much waits to be committed', () => {
  const state = leader(voters(1, 2, 3), {}, { entryBytesMax: 100, uncommittedBytesMax: 150 });
  const outcomes = effectsOf(take(state, proposing(101), proposing(100), proposing(100), proposing(1)).effects, 'proposed');
  assert.deepEqual(
    outcomes.map(({ outcome }) => (outcome.kind === 'refused' ? outcome.reason : outcome.index)),
    ['tooLarge', 3, 4, 'busy'],
  );
  const full = take(state, proposing(100), proposing(100)).state;
  const freed = take(onDisk({ state: full, effects: [] }).state, agreed(full, 2, 4), proposing(1));
  assert.equal(effectsOf(freed.effects, 'proposed')[0]?.outcome.kind, 'accepted');
});

test('logs that went apart agree again, whatever was not committed', () => {
  const company = Company.of(5);
  company.tick(5);
  company.cut.add(1).add(2);
  for (let id = 0; id < 3; id++) company.input(1, proposing(1, id));
  company.tick(12);
  const next = company.leader as number;
  assert.ok(next > 2);
  for (let id = 0; id < 2; id++) company.input(next, proposing(2, id));
  company.cut.clear();
  company.tick(3);
  const logs = [1, 2, 3, 4, 5].map((id) => company.state(id).log.entries);
  for (const log of logs) assert.deepEqual(log, logs[next - 1]);
  assert.equal(new Set([1, 2, 3, 4, 5].map((id) => company.state(id).commitIndex)).size, 1);
});

test('every peer applies every committed entry once and in order', () => {
  const company = Company.of(3);
  company.tick(5);
  for (let id = 0; id < 50; id++) company.input(1 + (id % 3), proposing(1, id));
  const all = Array.from({ length: 51 }, (_, place) => place + 2);
  for (const id of [1, 2, 3]) assert.deepEqual(company.indexesApplied(id), all);
});

test('what changes nothing gives back the very same state', () => {
  const company = Company.of(3);
  company.tick(5);
  const follower = company.state(2);
  assert.equal(take(follower, { kind: 'persisted', write: 1 }).state, follower);
  assert.equal(heard(follower, { kind: 'voteReply', from: 3, to: 2, term: 1, granted: true }).state, follower);
});

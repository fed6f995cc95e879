import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RaftMessage } from '../../../cluster/raft/messages.js';
import type { PeerId } from '../../../protocols/model/cluster.js';
import { NOTHING_STORED } from '../../../protocols/model/consensus.js';
import {
  agreed,
  applied,
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

const DATA = Uint8Array.from({ length: 10 }, (_, place) => place);

/** A part of a snapshot at `index` of term `term`, from peer 2. */
function part(index: number, term: number, offset: number, bytes: number, forced = false): RaftMessage {
  const snapshot = { index, term, membership: voters(1, 2, 3) };
  const chunk = DATA.subarray(offset, offset + bytes);
  return { kind: 'installSnapshot', from: 2, to: 1, term: 5, snapshot, offset, totalBytes: DATA.length, chunk, forced, round: 4 };
}

function proposeSome(company: Company, at: PeerId, count: number): void {
  for (let id = 0; id < count; id++) {
    company.input(at, { kind: 'propose', id: 1000 + id, proposal: { kind: 'operation', bytes: new Uint8Array(1) } });
  }
}

test('compacting writes the snapshot and the first entry that stays, and keeps a few before its end', () => {
  const entries = [entry(2, 1), entry(3, 1), entry(4, 1), entry(5, 1)];
  const has = peer(stored(voters(1, 2, 3), { entries, hardState: { term: 1, votedFor: null, commit: 5 } }), { entriesKept: 2 });
  const { state, effects } = take(has, { kind: 'compact', index: 4, data: DATA });
  const [persist] = effectsOf(effects, 'persist');
  assert.deepEqual(persist?.write.snapshot, { index: 4, term: 1, membership: voters(1, 2, 3), data: DATA });
  assert.equal(persist?.write.firstIndex, 3);
  assert.deepEqual(
    state.log.entries.map(({ index }) => index),
    [3, 4, 5],
  );
  assert.equal(take(state, { kind: 'compact', index: 4, data: DATA }).state, state, 'once is enough');
  assert.equal(take(has, { kind: 'compact', index: 6, data: DATA }).state, has, 'not what is not applied');
});

test('a snapshot has the membership as of its index, not a later one', () => {
  const later = { index: 3, term: 1, payload: { kind: 'membership', membership: [...voters(1, 2, 3), member(4, false)] } } as const;
  const has = peer(stored(voters(1, 2, 3), { entries: [entry(2, 1), later], hardState: { term: 1, votedFor: null, commit: 3 } }));
  assert.equal(has.membership.length, 4);
  const { state } = take(has, { kind: 'compact', index: 2, data: DATA });
  assert.equal(state.log.snapshot?.membership.length, 3);
  assert.equal(state.membership.length, 4);
});

test('parts are gathered in order; a part that is not next is answered with what is there', () => {
  const empty = peer(NOTHING_STORED);
  const first = heard(empty, part(7, 3, 0, 4));
  assert.deepEqual(
    sent(first.effects, 'installSnapshotReply').map(({ nextOffset, done }) => [nextOffset, done]),
    [[4, false]],
  );
  for (const [offset, next] of [
    [0, 4],
    [8, 4],
  ] as const) {
    const { state, effects } = heard(first.state, part(7, 3, offset, 2));
    assert.equal(sent(effects, 'installSnapshotReply')[0]?.nextOffset, next);
    assert.equal(state.incoming?.bytes, 4);
  }
  // Another snapshot begins anew.
  assert.equal(sent(heard(first.state, part(8, 3, 4, 6)).effects, 'installSnapshotReply')[0]?.nextOffset, 0);
});

test('a snapshot is written before it is answered, and handed out when it is on disk', () => {
  const first = heard(peer(NOTHING_STORED), part(7, 3, 0, 4)).state;
  const { state, effects } = heard(first, part(7, 3, 4, 6));
  const [persist, send] = effects;
  assert.ok(persist?.kind === 'persist' && send?.kind === 'send');
  assert.deepEqual(persist.write.snapshot?.data, DATA);
  assert.equal(sent(effects, 'installSnapshotReply')[0]?.done, true);
  assert.equal(effectsOf(effects, 'restore').length, 0);
  const written = onDisk({ state, effects: [] });
  assert.deepEqual(effectsOf(written.effects, 'restore')[0]?.snapshot.data, DATA);
  assert.deepEqual([written.state.appliedIndex, written.state.commitIndex, written.state.persistedIndex], [7, 7, 7]);
  assert.deepEqual(written.state.membership, voters(1, 2, 3));
});

test('a snapshot that contradicts the log clears it; entries behind one that agrees stay (Raft-R8)', () => {
  const entries = [entry(2, 2), entry(3, 2), entry(4, 2)];
  const has = peer(stored(voters(1, 2, 3), { entries }));
  const cleared = heard(has, part(3, 4, 0, 10));
  assert.deepEqual(cleared.state.log.entries, []);
  assert.equal(effectsOf(cleared.effects, 'persist')[0]?.write.clearEntries, true);
  assert.equal(cleared.state.persistedIndex, 0, 'nothing of the new log is on disk yet');
  const kept = heard(has, part(3, 2, 0, 10));
  assert.deepEqual(kept.state.log.entries, [entry(4, 2)]);
  const [persist] = effectsOf(kept.effects, 'persist');
  assert.deepEqual([persist?.write.clearEntries, persist?.write.firstIndex], [false, 4]);
});

test('a snapshot of what is committed already is answered and left alone', () => {
  const has = peer(stored(voters(1, 2, 3), { entries: [entry(2, 2), entry(3, 2)], hardState: { term: 5, votedFor: null, commit: 3 } }));
  const { state, effects } = heard(has, part(3, 2, 0, 10));
  assert.equal(sent(effects, 'installSnapshotReply')[0]?.done, true);
  assert.equal(state.log, has.log);
});

test('a snapshot that was asked for takes the place of the state, and entries behind it are applied again', () => {
  const entries = [entry(2, 2), entry(3, 2), entry(4, 2)];
  const has = peer(stored(voters(1, 2, 3), { entries, hardState: { term: 5, votedFor: null, commit: 4 } }));
  const { state, effects } = onDisk(heard(has, part(3, 2, 0, 10, true)));
  assert.equal(effectsOf(effects, 'restore')[0]?.snapshot.index, 3);
  assert.deepEqual(applied(effects), [4]);
  assert.deepEqual([state.commitIndex, state.appliedIndex], [4, 4]);
});

test('a snapshot that was asked for is left alone where a committed entry behind it would be missing (Raft-R8)', () => {
  const snapshot = { index: 6, term: 2, membership: voters(1, 2, 3), data: DATA };
  const has = peer(stored([], { snapshot, hardState: { term: 5, votedFor: null, commit: 6 }, applied: 6 }));
  assert.equal(heard(has, part(3, 2, 0, 10, true)).state.log, has.log);
});

test('a state from before this peer came does not say that it was removed', () => {
  const came = { index: 2, term: 2, payload: { kind: 'membership', membership: voters(1, 2, 3) } } as const;
  const has = peer(stored(voters(2, 3), { entries: [came], hardState: { term: 5, votedFor: null, commit: 2 }, applied: 2 }));
  const before = { ...(part(1, 1, 0, 10, true) as Extract<RaftMessage, { kind: 'installSnapshot' }>) };
  const old = { ...before, snapshot: { ...before.snapshot, membership: voters(2, 3) } };
  const { state, effects } = onDisk(heard(has, old));
  assert.equal(effectsOf(effects, 'removed').length, 0);
  assert.deepEqual([applied(effects), state.belonged], [[2], true]);
});

test('a follower that needs entries which are gone gets the snapshot in parts, and then what is behind it', () => {
  const company = Company.of(3, { entriesKept: 0, snapshotChunkBytes: 3 });
  company.tick(5);
  company.cut.add(3);
  proposeSome(company, 1, 20);
  company.input(1, { kind: 'compact', index: 20, data: DATA });
  proposeSome(company, 1, 3);
  company.cut.clear();
  company.tick(3);
  const restored = effectsOf(company.effects.get(3) ?? [], 'restore').at(-1);
  assert.deepEqual([restored?.snapshot.index, restored?.snapshot.data], [20, DATA]);
  assert.deepEqual(company.indexesApplied(3), [21, 22, 23, 24, 25]);
  assert.equal(company.state(3).appliedIndex, company.state(1).appliedIndex);
  assert.equal(progress(company.state(1), 3).mode.kind, 'Replicate');
});

test('a part without an answer goes again after an election timeout', () => {
  const state = leader(voters(1, 2, 3), {}, { entriesKept: 0 });
  const committed = onDisk(take(state, agreed(state, 2, 2))).state;
  const compacted = onDisk(take(committed, { kind: 'compact', index: 2, data: DATA })).state;
  const behind = take(compacted, {
    kind: 'receive',
    message: { kind: 'appendReply', from: 3, to: 1, term: 2, matched: false, index: 0, logTerm: 0, round: 0 },
  });
  assert.equal(sent(behind.effects, 'installSnapshot').length, 1);
  const heardOf = heard(behind.state, {
    kind: 'appendReply',
    from: 2,
    to: 1,
    term: 2,
    matched: true,
    index: 2,
    logTerm: 0,
    round: 1,
  }).state;
  assert.equal(sent(ticks(heardOf, 4).effects, 'installSnapshot').length, 0);
  assert.equal(sent(ticks(heardOf, 5).effects, 'installSnapshot').length, 1);
});

test('a follower that asks for the state gets one as new as the leader’s', () => {
  const company = Company.of(3);
  company.tick(5);
  proposeSome(company, 1, 5);
  const before = company.state(3).appliedIndex;
  company.input(3, { kind: 'requestSnapshot' });
  assert.equal(effectsOf(company.effects.get(1) ?? [], 'snapshotWanted').length, 1);
  company.input(1, { kind: 'compact', index: before, data: DATA });
  assert.deepEqual(effectsOf(company.effects.get(3) ?? [], 'restore').at(-1)?.snapshot.data, DATA);
  assert.equal(company.state(3).appliedIndex, before);
  // The log has it now.
  company.input(2, { kind: 'requestSnapshot' });
  assert.equal(effectsOf(company.effects.get(1) ?? [], 'snapshotWanted').length, 1);
  assert.deepEqual(effectsOf(company.effects.get(2) ?? [], 'restore').at(-1)?.snapshot.data, DATA);
});

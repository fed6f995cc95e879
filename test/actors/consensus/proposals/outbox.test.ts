import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConsensusEffect } from '../../../../actors/consensus/messages.js';
import { afterWrites, settled, withWrite } from '../../../../actors/consensus/proposals/outbox.js';
import { EMPTY_OUTBOX } from '../../../../actors/consensus/state.js';
import { NO_WRITE } from '../../../../protocols/model/consensus.js';

const said = (text: string): ConsensusEffect => ({ kind: 'log', level: 'info', text });

test('what follows no write happens at once', () => {
  assert.deepEqual(afterWrites(EMPTY_OUTBOX, said('a')), { outbox: EMPTY_OUTBOX, effects: [said('a')] });
});

test('Raft-R1: what follows a write waits for it and for all before it, and keeps its order', () => {
  const first = withWrite(EMPTY_OUTBOX, NO_WRITE, 7);
  assert.deepEqual(first.effects, [{ kind: 'write', number: 1, write: NO_WRITE }]);
  const one = afterWrites(first.outbox, said('after the first'));
  const second = withWrite(one.outbox, NO_WRITE, null);
  const two = afterWrites(second.outbox, said('after the second'));
  const three = afterWrites(two.outbox, said('and another'));
  assert.deepEqual([...one.effects, ...two.effects, ...three.effects], []);
  const written = settled(three.outbox, 1);
  assert.deepEqual([written.effects, written.raftWrite], [[said('after the first')], 7]);
  const all = settled(written.outbox, 2);
  assert.deepEqual([all.effects, all.raftWrite], [[said('after the second'), said('and another')], null]);
  assert.deepEqual(all.outbox, { ...EMPTY_OUTBOX, writes: 2 });
});

test('a write that is on disk says so for those before it', () => {
  const one = withWrite(EMPTY_OUTBOX, NO_WRITE, 1);
  const two = withWrite(afterWrites(one.outbox, said('a')).outbox, NO_WRITE, 2);
  const written = settled(two.outbox, 2);
  assert.deepEqual([written.effects, written.raftWrite, written.outbox.pending], [[said('a')], 2, []]);
});

test('a vote that is to be written is the only one of its term, however Raft came to it', () => {
  const vote = (term: number, votedFor: number) => ({ ...NO_WRITE, hardState: { term, votedFor, commit: 0 } });
  const { outbox } = withWrite(EMPTY_OUTBOX, vote(3, 1), 1);
  assert.doesNotThrow(() => withWrite(outbox, vote(4, 2), 2));
  assert.throws(() => withWrite(outbox, vote(3, 2), 2), { name: 'BrokenInvariant', id: 'Raft-R2' });
  assert.throws(() => withWrite(outbox, vote(2, 1), 2), { name: 'BrokenInvariant', id: 'Raft-R2' });
});

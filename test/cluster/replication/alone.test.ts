import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FAIL_TICKS, NOTE_RETRY_TICKS } from '../../../cluster/replication/figures.js';
import type { ReplicationEffect } from '../../../cluster/replication/messages.js';
import type { ErrorFacts } from '../../../protocols/errors.js';
import { NO_TAG } from '../../../protocols/model/shard-log.js';
import { assignment, Machine, tag } from './machine.js';

const PAIR = assignment({ 1: 'Active', 2: 'Active' });
const LOST: ErrorFacts = { code: 'timeout', detail: 'no answer' };
const FULL: ErrorFacts = { code: 'storage', detail: 'the disk is full' };
const DONE = { kind: 'done', changed: 0 } as const;

/** A leader that waits with a write for a peer which has not answered for so long that it is to be Dead. */
function waiting(): { readonly machine: Machine; readonly caller: number } {
  const machine = new Machine().leading(PAIR).give({ kind: 'aheadNoted', isAhead: false });
  const caller = machine.written([11]);
  failUntilJudged(machine);
  return { machine, caller };
}

function failUntilJudged(machine: Machine): void {
  for (let tick = 0; tick <= 2 * FAIL_TICKS; tick++) {
    const { role } = machine.state;
    const busy = role.kind === 'Leading' ? role.channels.get(2)?.busy : null;
    if (busy != null) machine.give({ kind: 'callFailed', run: machine.run, peer: 2, call: busy.call, error: LOST, isLost: true });
    machine.ticks(1);
    if (machine.all('judgeAlone').length > 0) return;
  }
  throw new Error('nobody asks whether the peer can be made Dead');
}

function judged(machine: Machine, isAlone: boolean): readonly ReplicationEffect[] {
  return machine.give({ kind: 'aloneJudged', run: machine.run, peer: 2, isAlone }).effects;
}

/** The peer is back, and has everything. */
function catchUp(machine: Machine, index: number): void {
  machine.ticks(1);
  machine.answer(2, machine.callTo(2, 'position').call, { kind: 'position', last: tag(index), base: NO_TAG });
  const [read] = machine.all('read');
  machine.give({ kind: 'readDone', run: machine.run, peer: 2, call: read?.call ?? 0, part: { kind: 'entries', entries: [] } });
}

test('a leader goes on alone only once its disk says so, and the peer is still away then', () => {
  const { machine, caller } = waiting();
  assert.deepEqual(judged(machine, true), [{ kind: 'noteAhead', isAhead: true }]);
  assert.deepEqual(judged(machine, true), [], 'it is being written');
  machine.give({ kind: 'aheadNoted', isAhead: true });
  assert.deepEqual(machine.effects, [{ kind: 'judgeAlone', run: machine.run, peer: 2 }]);
  judged(machine, true);
  assert.deepEqual(machine.acknowledged, [caller]);
});

test('a peer that is back by the time the disk says so is not passed over', () => {
  const { machine } = waiting();
  judged(machine, true);
  machine.give({ kind: 'aheadNoted', isAhead: true });
  assert.deepEqual(judged(machine, false), [{ kind: 'proposeDead', peer: 2, from: 'Active', term: 4 }]);
  assert.deepEqual(machine.acknowledged, []);
});

test('what cannot be noted is not acknowledged, and is tried again with the next judgement', () => {
  const { machine, caller } = waiting();
  judged(machine, true);
  machine.give({ kind: 'noteFailed', isAhead: true, error: FULL });
  assert.deepEqual(machine.effects, [{ kind: 'log', level: 'warn', text: 'it cannot go on alone: the disk is full' }]);
  failUntilJudged(machine);
  assert.deepEqual(judged(machine, true), [{ kind: 'noteAhead', isAhead: true }]);
  machine.give({ kind: 'aheadNoted', isAhead: true });
  judged(machine, true);
  assert.deepEqual(machine.acknowledged, [caller]);
});

test('the death of a peer is proposed once at a time, and again where it was not agreed', () => {
  const { machine } = waiting();
  const dead: ReplicationEffect = { kind: 'proposeDead', peer: 2, from: 'Active', term: 4 };
  assert.deepEqual(judged(machine, false), [dead]);
  assert.deepEqual(judged(machine, false), []);
  machine.give({ kind: 'deathProposed', peer: 2, error: LOST });
  assert.deepEqual(machine.effects, [{ kind: 'log', level: 'info', text: 'that peer 2 is Dead is not agreed: no answer' }]);
  assert.deepEqual(judged(machine, false), [dead]);
});

test('the note is taken back once the others have everything, and tried again where the disk refuses', () => {
  const { machine } = waiting();
  judged(machine, true);
  machine.give({ kind: 'aheadNoted', isAhead: true });
  judged(machine, true);
  catchUp(machine, 11);
  assert.deepEqual(machine.all('noteAhead'), [{ kind: 'noteAhead', isAhead: false }]);
  machine.give({ kind: 'noteFailed', isAhead: false, error: FULL });
  assert.deepEqual(machine.all('noteAhead'), []);
  assert.deepEqual(machine.ticks(NOTE_RETRY_TICKS - 1).all('noteAhead'), []);
  assert.deepEqual(machine.ticks(1).all('noteAhead'), [{ kind: 'noteAhead', isAhead: false }]);
  machine.give({ kind: 'aheadNoted', isAhead: false });
  assert.equal(machine.state.ahead.isAhead, false);
});

test('while the note is being taken back nothing is acknowledged alone: it has to be written again first', () => {
  const { machine } = waiting();
  judged(machine, true);
  machine.give({ kind: 'aheadNoted', isAhead: true });
  judged(machine, true);
  catchUp(machine, 11);
  const caller = machine.written([12]);
  failUntilJudged(machine);
  assert.deepEqual(judged(machine, true), []);
  machine.give({ kind: 'aheadNoted', isAhead: false });
  assert.deepEqual(machine.all('judgeAlone').length, 1);
  assert.deepEqual(judged(machine, true), [{ kind: 'noteAhead', isAhead: true }]);
  machine.give({ kind: 'aheadNoted', isAhead: true });
  judged(machine, true);
  assert.deepEqual(machine.acknowledged, [caller]);
});

test('a note of an earlier life is taken back as soon as the others have everything', () => {
  const machine = new Machine().give({ kind: 'aheadNoted', isAhead: true }).leading(PAIR);
  assert.deepEqual(machine.state.ahead, { isAhead: true, writing: false, retryAt: 0 });
  const caller = machine.written([11]);
  assert.deepEqual(machine.acknowledged, []);
  machine.answer(2, machine.callTo(2, 'append').call, DONE);
  assert.deepEqual(machine.acknowledged, [caller]);
});

test('a replica that does not lead yet waits for a peer that cannot be made Dead, and notes nothing', () => {
  const machine = new Machine().opened(PAIR);
  machine.give({ kind: 'located', run: machine.run, last: tag(10, 3) }).give({ kind: 'barrierPassed', run: machine.run, assignment: PAIR });
  assert.equal(machine.role, 'Syncing');
  assert.deepEqual(judged(machine, true), []);
  assert.deepEqual(judged(machine, false), [{ kind: 'proposeDead', peer: 2, from: 'Active', term: 4 }]);
});

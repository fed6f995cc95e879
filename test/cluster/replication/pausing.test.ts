import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PAUSE_TICKS } from '../../../cluster/replication/figures.js';
import { assignment, Machine } from './machine.js';

const PAIR = assignment({ 1: 'Active', 2: 'Active' });
const DONE = { kind: 'done', changed: 0 } as const;

function refusedBy(machine: Machine): [number, string][] {
  return machine.all('refuse').map(({ caller, error }) => [caller, error.code]);
}

test('a leader that pauses takes nothing more, and says so when all that was begun is on every replica', () => {
  const machine = new Machine().leading(PAIR);
  const begun = machine.write();
  const [{ write } = { write: 0 }] = machine.all('logWrite');
  machine.give({ kind: 'pause', caller: 7 });
  assert.deepEqual(machine.all('answer'), []);
  const late = machine.write();
  assert.deepEqual(refusedBy(machine), [[late, 'conflict']]);
  machine.logged(write, [11]);
  assert.deepEqual(machine.all('answer'), []);
  machine.answer(2, machine.callTo(2, 'append').call, DONE);
  assert.deepEqual(machine.acknowledged, [begun]);
  assert.deepEqual(machine.all('answer'), [{ kind: 'answer', caller: 7, answer: true }]);
});

test('nothing is left open when a leader that has paused leads no more', () => {
  const machine = new Machine().leading(PAIR).give({ kind: 'pause', caller: 7 });
  assert.deepEqual(machine.all('answer'), [{ kind: 'answer', caller: 7, answer: true }]);
  machine.assign({ ...PAIR, leader: 2, term: 5 });
  assert.deepEqual(refusedBy(machine), []);
});

test('a leader leads on when its pause is ended, or after a while when nobody does', () => {
  const resumed = new Machine().leading(PAIR).give({ kind: 'pause', caller: 7 }).give({ kind: 'resume' });
  resumed.write();
  assert.equal(resumed.all('logWrite').length, 1);
  const left = new Machine().leading(PAIR).give({ kind: 'pause', caller: 7 });
  left.ticks(PAUSE_TICKS - 1).write();
  assert.equal(left.all('logWrite').length, 0);
  left.ticks(1).write();
  assert.equal(left.all('logWrite').length, 1);
});

test('who waits for a pause hears that it has ended, or that another one leads', () => {
  const ended = new Machine().leading(PAIR);
  ended.write();
  ended.give({ kind: 'pause', caller: 7 }).give({ kind: 'resume' });
  assert.deepEqual(refusedBy(ended), [[7, 'unavailable']]);
  const changed = new Machine().leading(PAIR);
  const open = changed.write();
  changed.give({ kind: 'pause', caller: 7 }).assign({ ...PAIR, leader: 2, term: 5 });
  assert.deepEqual(refusedBy(changed), [
    [open, 'unavailable'],
    [7, 'conflict'],
  ]);
  assert.deepEqual(refusedBy(changed.give({ kind: 'pause', caller: 8 })), [[8, 'conflict']]);
});

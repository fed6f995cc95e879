import assert from 'node:assert/strict';
import { once } from 'node:events';
import test from 'node:test';
import { Worker } from 'node:worker_threads';
import { TroupeError } from '../../../protocols/errors.js';
import { steadyNowMs } from '../../../storage/threads/clock.js';
import { Deadline } from '../../../storage/threads/deadline.js';
import { ScratchTurns, scratchTurns } from '../../../storage/threads/scratch-turns.js';
import type { TurnTask } from './turn-taker.js';

const NEVER = new Deadline();
const OVER = Object.assign(new Deadline(), { deadlineMs: 0 });

const readersOf = (count: number) => {
  const holders = scratchTurns(count);
  return Array.from({ length: count }, (_, reader) => new ScratchTurns(holders, reader)) as [ScratchTurns, ...ScratchTurns[]];
};

const isRefused = (turns: ScratchTurns, level: number, deadline = OVER): boolean => {
  try {
    turns.take(level, deadline);
    return false;
  } catch (error) {
    assert.ok(error instanceof TroupeError && error.code === 'timeout');
    return true;
  }
};

test('two readers take turns at level 1, four at level 2, and others are not in their way', () => {
  const [a, b, c, d, e] = readersOf(5) as [ScratchTurns, ScratchTurns, ScratchTurns, ScratchTurns, ScratchTurns];
  a.take(1, NEVER);
  a.take(1, NEVER);
  assert.ok(isRefused(b, 1));
  assert.ok(!isRefused(c, 1));
  assert.ok(isRefused(d, 1));
  a.take(2, NEVER);
  assert.ok(isRefused(c, 2));
  assert.ok(!isRefused(e, 2));
  assert.ok(isRefused(e, 3) === false);
  a.giveBack();
  assert.ok(!isRefused(b, 1));
  assert.ok(!isRefused(c, 2));
});

test('who waits gives up at its deadline, and keeps no turn that it has got on the way once its read is over', () => {
  const [a, b, c] = readersOf(4) as [ScratchTurns, ScratchTurns, ScratchTurns];
  c.take(2, NEVER);
  const startedMs = steadyNowMs();
  assert.ok(isRefused(a, 2, Object.assign(new Deadline(), { deadlineMs: startedMs + 30 })));
  assert.ok(steadyNowMs() - startedMs >= 30);
  assert.ok(isRefused(b, 1));
  a.giveBack();
  assert.ok(!isRefused(b, 1));
});

test('a read that nobody waits for any more gives up its place', () => {
  const [a, b] = readersOf(2) as [ScratchTurns, ScratchTurns];
  a.take(1, NEVER);
  assert.ok(isRefused(b, 1, Object.assign(new Deadline(), { gone: Int32Array.of(1) })));
});

test('what a lost reader held is given back, and nothing that another one holds', () => {
  const [a, b, c] = readersOf(4) as [ScratchTurns, ScratchTurns, ScratchTurns];
  a.take(2, NEVER);
  b.giveBackAll();
  c.giveBackAll();
  assert.ok(isRefused(c, 2));
  c.giveBack();
  a.giveBackAll();
  assert.ok(!isRefused(b, 1));
  b.giveBack();
  assert.ok(!isRefused(c, 2));
});

test('threads that need scratch of different levels, in any order, never use the same at once, and all come to an end', async () => {
  const readers = 6;
  const turns = scratchTurns(readers);
  const used = new Int32Array(new SharedArrayBuffer(turns.byteLength));
  const ends = Array.from({ length: readers }, async (_, reader) => {
    const task: TurnTask = { reader, turns, used, reads: 300 };
    const worker = new Worker(new URL('./turn-taker.js', import.meta.url), { workerData: task });
    const [clashes] = (await once(worker, 'message')) as [number];
    return clashes;
  });
  assert.deepEqual(await Promise.all(ends), Array(readers).fill(0));
  assert.ok(turns.every((holder) => holder === 0));
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../../ops/random.js';
import { type LogHolder, type LogNeed, logBudgetBytes, planLogs, sleepingBytesMax, writersPart } from '../../../storage/wal/log-budget.js';
import { testSeed } from '../../seed.js';

const MEBIBYTE = 1 << 20;
const holder = (need: LogNeed, keptMegabytes: number, wantedMegabytes = 64): LogHolder => ({
  need,
  keptBytes: keptMegabytes * MEBIBYTE,
  wantedBytes: wantedMegabytes * MEBIBYTE,
});
const megabytes = (holders: readonly LogHolder[], part: number): number[] =>
  planLogs(holders, part * MEBIBYTE).bytesMax.map((bytes) => Math.round((bytes / MEBIBYTE) * 10) / 10);

test('while there is enough for all, each log keeps what it wants', () => {
  const holders = [holder('idle', 0), holder('written', 3), holder('followed', 64)];
  assert.deepEqual(megabytes(holders, 192), [64, 64, 64]);
  assert.equal(planLogs(holders, 192 * MEBIBYTE).bytesMaxOfNew, Number.POSITIVE_INFINITY);
});

test('a log that another replica reads comes first, then those that are written, and those that nobody uses get what is left', () => {
  const holders = [holder('idle', 64), holder('written', 20), holder('followed', 10), holder('idle', 2)];
  assert.deepEqual(megabytes(holders, 150), [36, 48, 64, 2]);
  assert.deepEqual(megabytes(holders, 100), [0, 36, 64, 0]);
  assert.deepEqual(megabytes(holders, 50), [0, 0, 50, 0]);
});

test('within a class small wants are met before large ones, which share the rest', () => {
  assert.deepEqual(megabytes([holder('followed', 0, 4), holder('followed', 0), holder('followed', 0)], 64), [4, 30, 30]);
});

test('whatever the needs are, all logs together keep no more than their part, and none more than it wants', () => {
  const random = seededRandom(testSeed());
  const needs: readonly LogNeed[] = ['followed', 'written', 'idle'];
  for (let round = 0; round < 300; round++) {
    const holders = Array.from({ length: 1 + Math.floor(random.unit() * 300) }, () =>
      holder(needs[Math.floor(random.unit() * 3)] as LogNeed, Math.floor(random.unit() * 80), 1 + Math.floor(random.unit() * 64)),
    );
    const part = Math.floor(random.unit() * 2000) * MEBIBYTE;
    const { bytesMax } = planLogs(holders, part);
    assert.ok(bytesMax.reduce((sum, bytes) => sum + bytes, 0) <= part, `round ${round}`);
    for (const [at, bytes] of bytesMax.entries()) assert.ok(bytes >= 0 && bytes <= (holders[at] as LogHolder).wantedBytes);
  }
});

test('the logs of 5,000 replicas, almost all of them asleep, stay within the budget: each kept 64 MB before, 320 GB together', () => {
  const budget = logBudgetBytes(null, 100e9, 4e9);
  assert.equal(budget, 4e9);
  const asleep = 4744 * sleepingBytesMax({ budgetBytes: budget, isRestorable: false }, 0);
  const part = writersPart(budget, asleep, 1);
  const awake = Array.from({ length: 256 }, () => holder('written', 64));
  const kept = planLogs(awake, part).bytesMax.reduce((sum, bytes) => sum + bytes, asleep);
  assert.ok(kept <= budget, `${kept} of ${budget} bytes`);
});

test('where restores to a point in time are wanted, a log stays when its replica falls asleep, as long as those asleep keep half of the budget', () => {
  const share = { budgetBytes: 1000 * MEBIBYTE, isRestorable: true };
  assert.equal(sleepingBytesMax(share, 0), 500 * MEBIBYTE);
  assert.equal(sleepingBytesMax(share, 400 * MEBIBYTE), 100 * MEBIBYTE);
  assert.equal(sleepingBytesMax(share, 600 * MEBIBYTE), sleepingBytesMax({ ...share, isRestorable: false }, 0));
});

test('the budget is a share of the disk, bounded by the memory that the node plans with, unless it is set', () => {
  assert.equal(logBudgetBytes(null, 20e9, 64e9), 1e9);
  assert.equal(logBudgetBytes(null, 1e12, 2e9), 2e9);
  assert.equal(logBudgetBytes(null, 24 * MEBIBYTE, 2e9), 64 * MEBIBYTE);
  assert.equal(logBudgetBytes(10, 1e12, 2e9), 10 * MEBIBYTE);
});

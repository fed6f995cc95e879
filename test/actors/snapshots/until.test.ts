import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ReachFacts, reachOfShard } from '../../../actors/snapshots/until.js';
import type { LogReach } from '../../../protocols/model/shard-log.js';

const tag = (index: number) => ({ peer: 7, term: 2, index });
const noon = Date.UTC(2026, 10, 25, 12);
const FACTS: ReachFacts = { shardId: 3, at: tag(10), timeMs: noon, untilMs: noon + 60_000, nowMs: noon + 120_000 };
const REACH: LogReach = {
  kind: 'reaches',
  fromMs: noon,
  to: tag(14),
  toMs: noon + 50_000,
  operations: 4,
  bytes: 400,
  nextMs: noon + 70_000,
};

test('the log brings a snapshot up to the last operation before the time', () => {
  assert.deepEqual(reachOfShard(FACTS, REACH), {
    shardId: 3,
    from: { tag: tag(10), timeMs: noon },
    to: { tag: tag(14), timeMs: noon + 50_000 },
    operations: 4,
    bytes: 400,
    nextMs: noon + 70_000,
  });
});

test('the very moment of the last operation of the snapshot is within reach, and so is now', () => {
  const nothing: LogReach = { kind: 'reaches', fromMs: noon, to: tag(10), toMs: noon, operations: 0, bytes: 0, nextMs: null };
  assert.equal(reachOfShard({ ...FACTS, untilMs: noon }, nothing).to.tag.index, 10);
  assert.equal(reachOfShard({ ...FACTS, untilMs: FACTS.nowMs }, nothing).operations, 0);
});

for (const [what, facts, reach, message] of [
  ['a time to come', { untilMs: noon + 120_001 }, {}, /`until` is 2026-11-25T12:02:00.001Z, and it is 2026-11-25T12:02:00.000Z now/],
  [
    'a time before the snapshot',
    { untilMs: noon - 1 },
    {},
    /has operations of shard 3 up to 2026-11-25T12:00:00.000Z: take an older snapshot/,
  ],
  ['a snapshot without times', { timeMs: null }, {}, /does not say when the last operation of shard 3 was/],
  [
    'a log whose operation has another time',
    {},
    { fromMs: noon + 1 },
    /operation 10 of the log is of 2026-11-25T12:00:00.001Z, and that of the snapshot of/,
  ],
  ['a log that does not know that time', {}, { fromMs: null }, /does not know when operation 10 was/],
  ['a log with another operation', {}, { kind: 'diverged', last: tag(12) }, /ends with operation 12 and does not have operation 10/],
  [
    'a log that begins later',
    {},
    { kind: 'compacted', base: tag(11), firstMs: noon + 2000 },
    /begins after operation 11, of 2026-11-25T12:00:02.000Z, and the snapshot ends with operation 10, of 2026-11-25T12:00:00.000Z/,
  ],
  ['an operation without a time', {}, { kind: 'untimed', at: tag(12) }, /operation 12 of shard 3 has no time/],
] as const)
  test(`${what} is refused, with the figures`, () => {
    assert.throws(() => reachOfShard({ ...FACTS, ...facts }, { ...REACH, ...reach } as LogReach), { code: 'wrongInput', message });
  });

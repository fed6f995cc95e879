import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CallStats, countedAnswers, countedCalls } from '../../../actors/context/call-stats.js';
import { type DataAnswer, type DataCall, LostAnswer, NotReached } from '../../../cluster/data-messages.js';
import { TroupeError } from '../../../protocols/errors.js';

const SHARD_MAP: DataCall = { kind: 'shardMap', collection: 'c', uid: 1 };
const MISSING: DataCall = { kind: 'missing', shard: { collection: 'c', uid: 1, shardId: 0 }, ids: [], timeoutMs: 1, shardMapVersion: 0 };

test('each call is counted by its kind and by what became of it, and what it comes to is passed on', async () => {
  let now = 0;
  const watch = { clock: { nowMs: () => now, dateMs: () => now }, preciseMs: () => now };
  const ends: (DataAnswer | Error)[] = [
    { kind: 'shardMap', shardMapVersion: 7, showsAll: true },
    new TroupeError('conflict', 'not here'),
    new NotReached('no connection'),
    new LostAnswer('timeout', 'too late'),
    new Error('a bug'),
  ];
  const end = async (): Promise<DataAnswer> => {
    now += 10;
    const next = ends.shift() as DataAnswer | Error;
    if (next instanceof Error) throw next;
    return next;
  };
  const made = new CallStats();
  const calls = countedCalls({ call: end }, made, watch);
  assert.deepEqual(await calls.call(2, SHARD_MAP, 100), { kind: 'shardMap', shardMapVersion: 7, showsAll: true });
  for (const call of [SHARD_MAP, MISSING, MISSING, MISSING]) await assert.rejects(calls.call(2, call, 100));
  const shown = made.counts().map(({ durations: { count, lastMs, totalMs }, kind, outcome }) => [kind, outcome, count, totalMs, lastMs]);
  assert.deepEqual(shown, [
    ['missing', 'internal', 1, 10, 50],
    ['missing', 'lost', 1, 10, 40],
    ['missing', 'unreached', 1, 10, 30],
    ['shardMap', 'conflict', 1, 10, 20],
    ['shardMap', 'ok', 1, 10, 10],
  ]);
  const answered = new CallStats();
  const answer = countedAnswers(async () => ({ kind: 'shardMap', shardMapVersion: 1, showsAll: true }), answered, watch);
  assert.deepEqual(await answer(3, SHARD_MAP), { kind: 'shardMap', shardMapVersion: 1, showsAll: true });
  assert.deepEqual(
    answered.counts().map(({ kind, outcome }) => [kind, outcome]),
    [['shardMap', 'ok']],
  );
});

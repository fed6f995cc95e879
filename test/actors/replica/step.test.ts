import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ReplicaEffect, ReplicaMessage, WriteMessage } from '../../../actors/replica/messages.js';
import { active, closing, dead, initializing, listener, partial, type ReplicaState } from '../../../actors/replica/state.js';
import { REPLICA_MOVES, startReplica, stepReplica } from '../../../actors/replica/step.js';
import type { ErrorFacts } from '../../../protocols/errors.js';
import { incompleteRows, printMoves } from '../move-table.js';
import { indexedSegment, sampleConfig, sampleStats } from '../samples.js';

const CONFIG = sampleConfig();
const BROKEN: ErrorFacts = { code: 'storage', detail: 'segments/3/vectors is damaged' };
const DEAD: ErrorFacts = { code: 'unavailable', detail: 'the replica is Dead: segments/3/vectors is damaged' };
const BODY = new TextEncoder().encode('{}');

const WRITE: WriteMessage = {
  kind: 'write',
  operation: 'upsertPoints',
  wait: true,
  request: { path: {}, query: {}, body: null, deadlineMs: 0 },
  replyTo: 7,
};

function kinds(effects: readonly ReplicaEffect[]): string {
  return effects.map((effect) => effect.kind).join(' ');
}

function states(): ReplicaState[] {
  return [initializing(CONFIG, 0, null), active(CONFIG), partial(CONFIG), listener(CONFIG), dead(CONFIG, BROKEN, 1), closing()];
}

test('every state has an answer to every message', () => {
  assert.deepEqual(incompleteRows(REPLICA_MOVES), []);
  assert.equal(
    printMoves(REPLICA_MOVES),
    [
      'Initializing: opened becomeActive, openFailed becomeDead, failed becomeDead, stats considerStats, configure keepConfig, write refuse, writePart refuse, indexCreated answerNow, install refuse, close close',
      'Active: failed becomeDead, stats considerStats, configure configure, write write, writePart write, indexCreated answerWhenIndexed, optimizerGaveUp noteOptimizer, install install, close close',
      'Partial: failed becomeDead, stats considerStats, configure configure, write write, writePart write, indexCreated answerWhenIndexed, optimizerGaveUp noteOptimizer, install install, close close',
      'Listener: failed becomeDead, stats considerStats, configure configure, write write, writePart write, indexCreated answerWhenIndexed, optimizerGaveUp noteOptimizer, install install, close close',
      'Dead: retry openAgain, stats considerStats, configure keepConfig, write refuse, writePart refuse, indexCreated answerNow, install install, close close',
      'Closing: configure refuse, write refuse, writePart refuse, indexCreated answerNow, install refuse, closed finish',
    ].join('\n'),
  );
});

test('a message that means nothing in a state leaves the very same state', () => {
  for (const state of states()) {
    const step = stepReplica(state, { kind: 'closed' });
    if (state.kind !== 'Closing') assert.equal(step.state, state);
    if (state.kind !== 'Closing') assert.deepEqual(step.effects, []);
  }
});

test('a replica starts Initializing and opens its files', () => {
  const { state, effects } = startReplica(CONFIG);
  assert.deepEqual(state, initializing(CONFIG, 0, null));
  assert.equal(kinds(effects), 'announce open');
});

test('an opened replica becomes Active, starts its optimizer and tells its shard', () => {
  const stats = sampleStats();
  const { state, effects } = stepReplica(initializing(CONFIG, 3, BROKEN), { kind: 'opened', stats });
  assert.deepEqual(state, active(CONFIG));
  assert.deepEqual(effects, [
    { kind: 'announce', reason: null },
    { kind: 'startOptimizer' },
    { kind: 'considerStats', stats },
    { kind: 'tellOpened' },
  ]);
});

test('a replica whose files are exchanged is closed to everybody until it is open with the new ones', () => {
  const message: ReplicaMessage = { kind: 'install', staged: '/staged', replyTo: 9 };
  for (const state of [active(CONFIG), partial(CONFIG), dead(CONFIG, BROKEN, 3)]) {
    const step = stepReplica(state, message);
    assert.deepEqual(step.state, initializing(CONFIG, 0, null));
    assert.equal(kinds(step.effects), 'announce stopOptimizer install');
    assert.equal(kinds(stepReplica(step.state, message).effects), 'refuse');
  }
});

test('a configuration that changed during opening is given to the engine afterwards', () => {
  const changed = sampleConfig({ indexing_threshold: 77 });
  const kept = stepReplica(initializing(CONFIG, 0, null), { kind: 'configure', config: changed, replyTo: 1 });
  assert.deepEqual(kept.effects, [{ kind: 'configured', replyTo: 1 }]);
  const { state, effects } = stepReplica(kept.state, { kind: 'opened', stats: sampleStats() });
  assert.deepEqual(state, active(changed));
  assert.equal(kinds(effects), 'announce startOptimizer configure considerStats tellOpened');
});

test('a replica that cannot be opened becomes Dead, tells why, and tries again later', () => {
  const { state, effects } = stepReplica(initializing(CONFIG, 2, BROKEN), { kind: 'openFailed', error: BROKEN });
  assert.deepEqual(state, dead(CONFIG, BROKEN, 3));
  assert.deepEqual(effects, [
    { kind: 'announce', reason: DEAD },
    { kind: 'stopOptimizer' },
    { kind: 'retryLater', attempt: 3 },
    { kind: 'tellDied', error: BROKEN },
  ]);
});

test('a Dead replica that tries again keeps its reason until it is open', () => {
  const { state, effects } = stepReplica(dead(CONFIG, BROKEN, 3), { kind: 'retry' });
  assert.deepEqual(state, initializing(CONFIG, 3, BROKEN));
  assert.deepEqual(effects, [{ kind: 'open' }]);
  assert.deepEqual(stepReplica(state, WRITE).effects, [{ kind: 'refuse', replyTo: 7, error: DEAD }]);
});

test('a Dead replica refuses writes with the reason', () => {
  const state = dead(CONFIG, BROKEN, 1);
  const step = stepReplica(state, WRITE);
  assert.equal(step.state, state);
  assert.deepEqual(step.effects, [{ kind: 'refuse', replyTo: 7, error: DEAD }]);
});

test('a replica that is being opened or closed refuses writes', () => {
  const opening = stepReplica(initializing(CONFIG, 0, null), WRITE).effects;
  assert.deepEqual(opening, [
    { kind: 'refuse', replyTo: 7, error: { code: 'unavailable', detail: 'the replica is being opened', retryAfterMs: 1000 } },
  ]);
  const ending = stepReplica(closing(), WRITE).effects;
  assert.deepEqual(ending, [{ kind: 'refuse', replyTo: 7, error: { code: 'unavailable', detail: 'the replica is being closed' } }]);
});

test('Active, Partial and Listener replicas hand writes on at once', () => {
  for (const state of [active(CONFIG), partial(CONFIG), listener(CONFIG)]) {
    const step = stepReplica(state, WRITE);
    assert.equal(step.state, state);
    assert.deepEqual(step.effects, [{ kind: 'write', write: WRITE }]);
  }
});

test('an Active replica that the engine gives up becomes Dead and tries again', () => {
  const { state, effects } = stepReplica(active(CONFIG), { kind: 'failed', error: BROKEN });
  assert.deepEqual(state, dead(CONFIG, BROKEN, 1));
  assert.equal(kinds(effects), 'announce stopOptimizer retryLater tellDied');
});

const LACKING = sampleStats([
  indexedSegment({ id: 4, missingFields: ['color'] }),
  indexedSegment({ id: 5, missingFields: ['color', 'size'] }),
]);

function created(stats: typeof LACKING | null): Extract<ReplicaMessage, { kind: 'indexCreated' }> {
  return { kind: 'indexCreated', answer: { replyTo: 9, body: BODY }, stats };
}

test('the answer to an index creation waits until every sealed segment has the index', () => {
  const held = stepReplica(active(CONFIG), created(LACKING));
  assert.deepEqual(held.effects, []);
  const first = sampleStats([indexedSegment({ id: 4 }), indexedSegment({ id: 5, missingFields: ['color'] })]);
  const waiting = stepReplica(held.state, { kind: 'stats', stats: first });
  assert.equal(kinds(waiting.effects), 'considerStats');
  const second = sampleStats([indexedSegment({ id: 4 }), indexedSegment({ id: 5 })]);
  const answered = stepReplica(waiting.state, { kind: 'stats', stats: second });
  assert.deepEqual(answered.state, active(CONFIG));
  assert.deepEqual(answered.effects, [
    { kind: 'answer', answer: { replyTo: 9, body: BODY } },
    { kind: 'considerStats', stats: second },
  ]);
});

test('a segment that a build replaced holds up no answer', () => {
  const held = stepReplica(active(CONFIG), created(LACKING));
  const answered = stepReplica(held.state, { kind: 'stats', stats: sampleStats([indexedSegment({ id: 6 })]) });
  assert.equal(kinds(answered.effects), 'answer considerStats');
});

test('an index creation with nothing missing is answered at once', () => {
  const { state, effects } = stepReplica(active(CONFIG), created(sampleStats()));
  assert.deepEqual(state, active(CONFIG));
  assert.deepEqual(effects, [{ kind: 'answer', answer: { replyTo: 9, body: BODY } }]);
});

test('answers that wait for an index end with the reason when the replica dies', () => {
  const held = stepReplica(active(CONFIG), created(LACKING));
  const { effects } = stepReplica(held.state, { kind: 'failed', error: BROKEN });
  assert.deepEqual(
    effects.filter((effect) => effect.kind === 'refuse'),
    [{ kind: 'refuse', replyTo: 9, error: DEAD }],
  );
});

test('an optimizer that gave up leaves its replica Active', () => {
  const state = active(CONFIG);
  const step = stepReplica(state, { kind: 'optimizerGaveUp', error: BROKEN });
  assert.equal(step.state, state);
  assert.deepEqual(step.effects, [{ kind: 'optimizerGaveUp', error: BROKEN }]);
});

test('closing stops the optimizer before the files, and ends when they are closed', () => {
  const step = stepReplica(active(CONFIG), { kind: 'close' });
  assert.deepEqual(step.state, closing());
  assert.equal(kinds(step.effects), 'announce stopOptimizer close');
  assert.equal(kinds(stepReplica(step.state, { kind: 'closed' }).effects), 'tellClosedAndStop');
});

test('a replica that closes while it is being opened takes no notice of the opening', () => {
  const closed = stepReplica(initializing(CONFIG, 0, null), { kind: 'close' });
  const late = stepReplica(closed.state, { kind: 'opened', stats: sampleStats() });
  assert.equal(late.state, closed.state);
  assert.deepEqual(late.effects, []);
});

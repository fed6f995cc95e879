import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstallMessage, ReplicaEffect, ReplicaMessage } from '../../../actors/replica/messages.js';
import { closingReplica, failedReplica, openingReplica, type ReplicaLife, servingReplica } from '../../../actors/replica/state.js';
import { startReplica, stepReplica } from '../../../actors/replica/step.js';
import type { ErrorFacts } from '../../../protocols/errors.js';
import type { Written } from '../../../protocols/model/update.js';
import { indexedSegment, sampleConfig, sampleStats } from '../samples.js';

const CONFIG = sampleConfig();
const BROKEN: ErrorFacts = { code: 'storage', detail: 'segments/3/vectors is damaged' };
const DEAD: ErrorFacts = { code: 'unavailable', detail: 'the replica is Dead: segments/3/vectors is damaged' };
const WRITTEN: Written = { numbers: [7], status: 'completed' };

const INSTALL: InstallMessage = { kind: 'install', staged: 'files', replyTo: 7 };

function kinds(effects: readonly ReplicaEffect[]): string {
  return effects.map((effect) => effect.kind).join(' ');
}

function states(): ReplicaLife[] {
  return [openingReplica(CONFIG, 0, null), servingReplica(CONFIG), failedReplica(CONFIG, BROKEN, 1), closingReplica()];
}

test('a message that means nothing in a state leaves the very same state', () => {
  for (const state of states()) {
    const step = stepReplica(state, { kind: 'closed' });
    if (state.kind !== 'Closing') assert.equal(step.state, state);
    if (state.kind !== 'Closing') assert.deepEqual(step.effects, []);
  }
});

test('a replica starts Opening and opens its files', () => {
  const { state, effects } = startReplica(CONFIG);
  assert.deepEqual(state, openingReplica(CONFIG, 0, null));
  assert.equal(kinds(effects), 'announce open');
});

test('an opened replica becomes Serving, starts its optimizer and tells its shard', () => {
  const stats = sampleStats();
  const { state, effects } = stepReplica(openingReplica(CONFIG, 3, BROKEN), { kind: 'opened', stats });
  assert.deepEqual(state, servingReplica(CONFIG));
  assert.deepEqual(effects, [
    { kind: 'announce', state: 'Serving', reason: null },
    { kind: 'startOptimizer' },
    { kind: 'considerStats', stats },
    { kind: 'tellOpened' },
  ]);
});

test('a replica whose files are exchanged is closed to everybody until it is open with the new ones', () => {
  const message: ReplicaMessage = { kind: 'install', staged: '/staged', replyTo: 9 };
  for (const state of [servingReplica(CONFIG), failedReplica(CONFIG, BROKEN, 3)]) {
    const step = stepReplica(state, message);
    assert.deepEqual(step.state, openingReplica(CONFIG, 0, null));
    assert.equal(kinds(step.effects), 'announce stopOptimizer install');
    assert.equal(kinds(stepReplica(step.state, message).effects), 'refuse');
  }
});

test('a configuration that changed during opening is given to the engine afterwards', () => {
  const changed = sampleConfig({ indexing_threshold: 77 });
  const kept = stepReplica(openingReplica(CONFIG, 0, null), { kind: 'configure', config: changed, replyTo: 1 });
  assert.deepEqual(kept.effects, [{ kind: 'configured', replyTo: 1 }]);
  const { state, effects } = stepReplica(kept.state, { kind: 'opened', stats: sampleStats() });
  assert.deepEqual(state, servingReplica(changed));
  assert.equal(kinds(effects), 'announce startOptimizer configure considerStats tellOpened');
});

test('a replica that cannot be opened becomes Failed, tells why, and tries again later', () => {
  const { state, effects } = stepReplica(openingReplica(CONFIG, 2, BROKEN), { kind: 'openFailed', error: BROKEN });
  assert.deepEqual(state, failedReplica(CONFIG, BROKEN, 3));
  assert.deepEqual(effects, [
    { kind: 'announce', state: 'Failed', reason: DEAD },
    { kind: 'stopOptimizer' },
    { kind: 'retryLater', attempt: 3 },
    { kind: 'tellFailed', error: BROKEN },
  ]);
});

test('a Failed replica that tries again keeps its reason until it is open', () => {
  const { state, effects } = stepReplica(failedReplica(CONFIG, BROKEN, 3), { kind: 'retry' });
  assert.deepEqual(state, openingReplica(CONFIG, 3, BROKEN));
  assert.deepEqual(effects, [{ kind: 'open', isDamaged: false }]);
  const damaged = failedReplica(CONFIG, { ...BROKEN, reason: 'damaged' }, 1);
  assert.deepEqual(stepReplica(damaged, { kind: 'retry' }).effects, [{ kind: 'open', isDamaged: true }]);
  assert.deepEqual(stepReplica(state, INSTALL).effects, [{ kind: 'refuse', replyTo: 7, error: DEAD }]);
});

test('a replica that is being opened or closed takes no other files', () => {
  const opening = stepReplica(openingReplica(CONFIG, 0, null), INSTALL).effects;
  assert.deepEqual(opening, [
    { kind: 'refuse', replyTo: 7, error: { code: 'unavailable', detail: 'the replica is being opened', retryAfterMs: 1000 } },
  ]);
  const ending = stepReplica(closingReplica(), INSTALL).effects;
  assert.deepEqual(ending, [{ kind: 'refuse', replyTo: 7, error: { code: 'unavailable', detail: 'the replica is being closed' } }]);
});

test('a Serving replica that fails in the engine becomes Failed and tries again', () => {
  const { state, effects } = stepReplica(servingReplica(CONFIG), { kind: 'failed', error: BROKEN });
  assert.deepEqual(state, failedReplica(CONFIG, BROKEN, 1));
  assert.equal(kinds(effects), 'announce stopOptimizer retryLater tellFailed');
});

const LACKING = sampleStats([
  indexedSegment({ id: 4, missingFields: ['color'] }),
  indexedSegment({ id: 5, missingFields: ['color', 'size'] }),
]);

function created(stats: typeof LACKING | null): Extract<ReplicaMessage, { kind: 'indexCreated' }> {
  return { kind: 'indexCreated', answer: { replyTo: 9, written: WRITTEN }, stats };
}

test('the answer to an index creation waits until every sealed segment has the index', () => {
  const held = stepReplica(servingReplica(CONFIG), created(LACKING));
  assert.deepEqual(held.effects, []);
  const first = sampleStats([indexedSegment({ id: 4 }), indexedSegment({ id: 5, missingFields: ['color'] })]);
  const waiting = stepReplica(held.state, { kind: 'stats', stats: first });
  assert.equal(kinds(waiting.effects), 'considerStats');
  const second = sampleStats([indexedSegment({ id: 4 }), indexedSegment({ id: 5 })]);
  const answered = stepReplica(waiting.state, { kind: 'stats', stats: second });
  assert.deepEqual(answered.state, servingReplica(CONFIG));
  assert.deepEqual(answered.effects, [
    { kind: 'answer', answer: { replyTo: 9, written: WRITTEN } },
    { kind: 'considerStats', stats: second },
  ]);
});

test('a segment that a build replaced holds up no answer', () => {
  const held = stepReplica(servingReplica(CONFIG), created(LACKING));
  const answered = stepReplica(held.state, { kind: 'stats', stats: sampleStats([indexedSegment({ id: 6 })]) });
  assert.equal(kinds(answered.effects), 'answer considerStats');
});

test('an index creation with nothing missing is answered at once', () => {
  const { state, effects } = stepReplica(servingReplica(CONFIG), created(sampleStats()));
  assert.deepEqual(state, servingReplica(CONFIG));
  assert.deepEqual(effects, [{ kind: 'answer', answer: { replyTo: 9, written: WRITTEN } }]);
});

test('answers that wait for an index end with the reason when the replica fails', () => {
  const held = stepReplica(servingReplica(CONFIG), created(LACKING));
  const { effects } = stepReplica(held.state, { kind: 'failed', error: BROKEN });
  assert.deepEqual(
    effects.filter((effect) => effect.kind === 'refuse'),
    [{ kind: 'refuse', replyTo: 9, error: DEAD }],
  );
});

test('an optimizer that crashed too often leaves its replica Serving', () => {
  const state = servingReplica(CONFIG);
  const step = stepReplica(state, { kind: 'optimizerStopped', error: BROKEN });
  assert.equal(step.state, state);
  assert.deepEqual(step.effects, [{ kind: 'showStoppedOptimizer', error: BROKEN }]);
});

test('closing stops the optimizer before the files, and ends when they are closed', () => {
  const step = stepReplica(servingReplica(CONFIG), { kind: 'close' });
  assert.deepEqual(step.state, closingReplica());
  assert.equal(kinds(step.effects), 'announce stopOptimizer close');
  assert.equal(kinds(stepReplica(step.state, { kind: 'closed' }).effects), 'tellClosedAndStop');
});

test('a replica that closes while it is being opened takes no notice of the opening', () => {
  const closed = stepReplica(openingReplica(CONFIG, 0, null), { kind: 'close' });
  const late = stepReplica(closed.state, { kind: 'opened', stats: sampleStats() });
  assert.equal(late.state, closed.state);
  assert.deepEqual(late.effects, []);
});

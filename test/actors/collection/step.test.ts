import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CollectionEffect, CollectionMessage, UpdateMessage } from '../../../actors/collection/messages.js';
import {
  type CollectionState,
  closingCollection,
  damagedCollection,
  deletingCollection,
  failedCollection,
  loadingCollection,
  openingCollection,
  servingCollection,
} from '../../../actors/collection/state.js';
import { startCollection, stepCollection } from '../../../actors/collection/step.js';
import { type ErrorFacts, TroupeError } from '../../../protocols/errors.js';
import { sampleConfig } from '../samples.js';

const CONFIG = sampleConfig();
const BROKEN: ErrorFacts = { code: 'storage', detail: 'config.json is damaged' };

function kinds(effects: readonly CollectionEffect[]): string {
  return effects.map((effect) => effect.kind).join(' ');
}

/** The state and effects after several messages. */
function play(state: CollectionState, ...messages: CollectionMessage[]): { state: CollectionState; effects: CollectionEffect[] } {
  const effects: CollectionEffect[] = [];
  let current = state;
  for (const message of messages) {
    const step = stepCollection(current, message);
    current = step.state;
    effects.push(...step.effects);
  }
  return { state: current, effects };
}

function activeCollection() {
  return servingCollection({ config: CONFIG, belonging: null, open: new Set([0]), updates: [], reshaping: null });
}

function threshold(value: number, replyTo: number): UpdateMessage {
  const change: UpdateMessage['change'] = (config) => ({
    ...config,
    optimizer_config: { ...config.optimizer_config, indexing_threshold: value },
  });
  return { kind: 'update', change, replyTo };
}

test('an existing collection is loaded, a new one created, then its shards are opened', () => {
  assert.deepEqual(startCollection(null).effects, [{ kind: 'load' }]);
  assert.deepEqual(startCollection({ config: CONFIG, belonging: null }).effects, [
    { kind: 'create', create: { config: CONFIG, belonging: null } },
  ]);
  for (const create of [null, { config: CONFIG, belonging: null }]) {
    const { state, effects } = stepCollection(startCollection(create).state, { kind: 'loaded', config: CONFIG, belonging: null });
    assert.deepEqual(state, openingCollection(CONFIG));
    assert.deepEqual(effects, [
      { kind: 'announce', config: CONFIG, belonging: null, error: null },
      { kind: 'startShards', shardIds: [0] },
    ]);
  }
});

test('a collection becomes Serving when its shards are open', () => {
  const { state, effects } = stepCollection(openingCollection(CONFIG), { kind: 'shardOpened', shardId: 0 });
  assert.deepEqual(state, activeCollection());
  assert.equal(kinds(effects), 'announce tellOpened');
});

test('a damaged configuration makes the collection Damaged: listed with its error, only deletable', () => {
  const { state, effects } = stepCollection(loadingCollection(), { kind: 'loadFailed', error: BROKEN });
  assert.deepEqual(state, damagedCollection(BROKEN));
  assert.deepEqual(effects, [
    { kind: 'announce', config: null, belonging: null, error: BROKEN },
    { kind: 'tellFailed', error: BROKEN, shards: null },
  ]);
  assert.deepEqual(stepCollection(state, threshold(1, 5)).effects, [{ kind: 'refuse', replyTo: 5, error: BROKEN }]);
  assert.deepEqual(stepCollection(state, { kind: 'delete', replyTo: 6 }).effects, [{ kind: 'remove' }]);
});

test('a collection that cannot be created tells its parent and stops', () => {
  const { effects } = stepCollection(startCollection({ config: CONFIG, belonging: null }).state, { kind: 'createFailed', error: BROKEN });
  assert.deepEqual(effects, [{ kind: 'tellCreateFailedAndStop', error: BROKEN }]);
});

test('a collection with a shard that failed is Failed until the shard is open again', () => {
  const died = stepCollection(activeCollection(), { kind: 'shardFailed', shardId: 0, error: BROKEN });
  assert.deepEqual(
    died.state,
    failedCollection({ config: CONFIG, belonging: null, open: new Set(), updates: [], reshaping: null }, BROKEN),
  );
  assert.equal(kinds(died.effects), 'announce tellFailed');
  const opened = stepCollection(died.state, { kind: 'shardOpened', shardId: 0 });
  assert.deepEqual(opened.state, activeCollection());
});

test('a collection whose shards open and fail one after the other tells which of them do not serve', () => {
  const three = { clusterId: 'c', peerId: 7, uid: 1, revision: 1, shards: [0, 1, 2], index: 1 };
  const failed = (shardId: number): CollectionMessage => ({ kind: 'shardFailed', shardId, error: BROKEN });
  const opened = (shardId: number): CollectionMessage => ({ kind: 'shardOpened', shardId });
  const { effects } = play(openingCollection(CONFIG, three), opened(2), failed(1), opened(0), failed(2), opened(1), opened(2));
  const told = effects.filter(({ kind }) => kind.startsWith('tell')).map((effect) => ('shards' in effect ? effect.shards : effect.kind));
  assert.deepEqual(told, [[0, 1], [1], [1, 2], [2], 'tellOpened']);
});

test('an update is saved first, then taken; its replicas answer', () => {
  const saving = stepCollection(activeCollection(), threshold(5, 1));
  assert.equal(kinds(saving.effects), 'save');
  const changed = sampleConfig({ indexing_threshold: 5 });
  const saved = stepCollection(saving.state, { kind: 'saved', config: changed, replyTo: 1 });
  assert.deepEqual(saved.state, servingCollection({ config: changed, belonging: null, open: new Set([0]), updates: [], reshaping: null }));
  assert.deepEqual(saved.effects, [
    { kind: 'announce', config: changed, belonging: null, error: null },
    { kind: 'configureShards', config: changed, replyTo: 1 },
  ]);
});

test('updates are saved one after the other, each on top of the one before', () => {
  const first = sampleConfig({ indexing_threshold: 5 });
  const second = sampleConfig({ indexing_threshold: 5, deleted_threshold: 0.5 });
  const deletedThreshold: UpdateMessage = {
    kind: 'update',
    change: (config) => ({ ...config, optimizer_config: { ...config.optimizer_config, deleted_threshold: 0.5 } }),
    replyTo: 2,
  };
  const waiting = play(activeCollection(), threshold(5, 1), deletedThreshold);
  assert.equal(kinds(waiting.effects), 'save');
  const { effects } = stepCollection(waiting.state, { kind: 'saved', config: first, replyTo: 1 });
  assert.deepEqual(effects.at(-1), { kind: 'save', config: second, belonging: null, replyTo: 2 });
});

test('an update whose change is refused is answered, and the next one goes on', () => {
  const refusing: UpdateMessage = {
    kind: 'update',
    change: () => {
      throw new TroupeError('wrongInput', 'no such vector');
    },
    replyTo: 2,
  };
  const alone = stepCollection(activeCollection(), refusing);
  assert.deepEqual(alone.state, activeCollection());
  assert.deepEqual(alone.effects, [{ kind: 'refuse', replyTo: 2, error: { code: 'wrongInput', detail: 'no such vector' } }]);
  const queue = play(activeCollection(), threshold(5, 1), refusing, threshold(6, 3));
  const { effects } = stepCollection(queue.state, { kind: 'saved', config: sampleConfig({ indexing_threshold: 5 }), replyTo: 1 });
  assert.equal(kinds(effects), 'announce configureShards refuse save');
});

test('an update that cannot be saved changes nothing', () => {
  const saving = stepCollection(activeCollection(), threshold(5, 1));
  const { state, effects } = stepCollection(saving.state, { kind: 'saveFailed', error: BROKEN, replyTo: 1 });
  assert.deepEqual(state, activeCollection());
  assert.deepEqual(effects, [{ kind: 'refuse', replyTo: 1, error: BROKEN }]);
});

test('deleting closes the shards, removes the files, and answers after the parent knows', () => {
  const begun = stepCollection(activeCollection(), { kind: 'delete', replyTo: 4 });
  assert.deepEqual(begun.state, deletingCollection(4, [0]));
  assert.equal(kinds(begun.effects), 'closeShards');
  const closed = stepCollection(begun.state, { kind: 'shardClosed', shardId: 0 });
  assert.equal(kinds(closed.effects), 'remove');
  const removed = stepCollection(closed.state, { kind: 'removed' });
  assert.deepEqual(removed.effects, [{ kind: 'tellDeletedAndStop' }, { kind: 'reply', replyTo: 4, answer: true }]);
});

test('a deletion that fails is answered with the error and can be tried again', () => {
  const { state, effects } = stepCollection(deletingCollection(4, []), { kind: 'removeFailed', error: BROKEN });
  assert.deepEqual(state, damagedCollection(BROKEN));
  assert.equal(kinds(effects), 'announce tellFailed refuse');
});

test('deleting refuses the updates that wait, and lets the one being saved have its answer', () => {
  const waiting = play(activeCollection(), threshold(5, 1), threshold(6, 2));
  const begun = stepCollection(waiting.state, { kind: 'delete', replyTo: 4 });
  assert.equal(kinds(begun.effects), 'refuse closeShards');
  const { effects } = stepCollection(begun.state, { kind: 'saved', config: CONFIG, replyTo: 1 });
  assert.deepEqual(effects, [{ kind: 'reply', replyTo: 1, answer: true }]);
});

test('a shard that crashed too often during a deletion holds it up no longer', () => {
  const { effects } = stepCollection(deletingCollection(4, [0]), { kind: 'shardStopped', shardId: 0, error: BROKEN });
  assert.equal(kinds(effects), 'remove');
});

test('a node that stops closes the shards, then the collection', () => {
  const begun = stepCollection(activeCollection(), { kind: 'close' });
  assert.deepEqual(begun.state, closingCollection([0]));
  assert.equal(kinds(begun.effects), 'closeShards');
  assert.equal(kinds(stepCollection(begun.state, { kind: 'shardClosed', shardId: 0 }).effects), 'tellClosedAndStop');
  assert.equal(kinds(stepCollection(loadingCollection(), { kind: 'close' }).effects), 'tellClosedAndStop');
});

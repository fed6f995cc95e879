import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CollectionEffect, CollectionMessage, ReshapeMessage } from '../../../actors/collection/messages.js';
import { type CollectionState, damagedCollection, loadingCollection, servingCollection } from '../../../actors/collection/state.js';
import { stepCollection } from '../../../actors/collection/step.js';
import type { Belonging } from '../../../actors/context/desired.js';
import type { ErrorFacts } from '../../../protocols/errors.js';
import { sampleConfig } from '../samples.js';

const CONFIG = sampleConfig();
const CHANGED = sampleConfig({ indexing_threshold: 5 });
const FULL: ErrorFacts = { code: 'storage', detail: 'the disk is full' };

function belonging(...shards: number[]): Belonging {
  return { clusterId: 'ours', peerId: 7, uid: 1, revision: 1, shards, index: 1 };
}

/** A collection whose shards all serve. */
function serving(...shards: number[]): CollectionState {
  return servingCollection({ config: CONFIG, belonging: belonging(...shards), open: new Set(shards), updates: [], reshaping: null });
}

function reshape(replyTo: number, ...shards: number[]): ReshapeMessage {
  return { kind: 'reshape', config: CHANGED, belonging: belonging(...shards), replyTo };
}

function inWords(effect: CollectionEffect): string {
  if ('shardIds' in effect) return `${effect.kind} ${effect.shardIds.join()}`;
  if (effect.kind === 'refuse') return `refuse ${effect.replyTo}: ${effect.error.detail}`;
  if (effect.kind === 'saveReshape') return `saveReshape ${effect.belonging.shards.join()}`;
  return 'replyTo' in effect && effect.replyTo !== null ? `${effect.kind} ${effect.replyTo}` : effect.kind;
}

/** What each message leads to: `message: state, effects`. */
function play(state: CollectionState, ...messages: CollectionMessage[]): string[] {
  let current = state;
  return messages.map((message) => {
    const { state: next, effects } = stepCollection(current, message);
    current = next;
    return [`${message.kind}: ${next.kind}`, ...effects.map(inWords)].join(', ');
  });
}

const closed = (shardId: number): CollectionMessage => ({ kind: 'shardClosed', shardId });
const opened = (shardId: number): CollectionMessage => ({ kind: 'shardOpened', shardId });
const REMOVED: CollectionMessage = { kind: 'shardsRemoved' };
const SAVED: CollectionMessage = { kind: 'reshapeSaved' };

test('shards that are not wanted close and go before the file says so, new ones are opened after it, and the caller waits for them', () => {
  assert.deepEqual(play(serving(0, 1, 2), reshape(4, 2, 3), closed(0), closed(1), REMOVED, SAVED, opened(3)), [
    'reshape: Serving, closeShards 0,1',
    'shardClosed: Serving',
    'shardClosed: Serving, removeShards 0,1',
    'shardsRemoved: Serving, saveReshape 2,3',
    'reshapeSaved: Opening, announce, configureShards, startShards 3',
    'shardOpened: Serving, announce, tellOpened, reply 4',
  ]);
});

test('where the shards stay, the replicas answer', () => {
  assert.deepEqual(play(serving(0), reshape(4, 0), SAVED), [
    'reshape: Serving, saveReshape 0',
    'reshapeSaved: Serving, announce, configureShards 4',
  ]);
});

test('a collection loses its last shard here and is Active without', () => {
  assert.deepEqual(play(serving(0), reshape(4), closed(0), REMOVED, SAVED).slice(-1), [
    'reshapeSaved: Serving, announce, configureShards 4',
  ]);
});

test('shards whose files could not be removed, or whose end could not be saved, are opened again until the next try', () => {
  const failed: CollectionMessage = { kind: 'reshapeFailed', error: FULL };
  assert.deepEqual(play(serving(0, 1), reshape(4, 0), closed(1), failed, opened(1), reshape(5, 0), closed(1), REMOVED, failed).slice(2), [
    'reshapeFailed: Opening, refuse 4: the disk is full, startShards 1',
    'shardOpened: Serving, announce, tellOpened',
    'reshape: Serving, closeShards 1',
    'shardClosed: Serving, removeShards 1',
    'shardsRemoved: Serving, saveReshape 0',
    'reshapeFailed: Opening, refuse 5: the disk is full, startShards 1',
  ]);
});

test('a new shard that dies leaves the change as it is on disk, and tries again by itself', () => {
  assert.deepEqual(play(serving(0), reshape(4, 0, 1), SAVED, { kind: 'shardFailed', shardId: 1, error: FULL }, opened(1)).slice(2), [
    'shardFailed: Failed, announce, tellFailed, reply 4',
    'shardOpened: Serving, announce, tellOpened',
  ]);
});

test('a shard that gave up holds up neither its end nor the change', () => {
  const gaveUp: CollectionMessage = { kind: 'shardStopped', shardId: 1, error: FULL };
  assert.deepEqual(play(serving(0, 1), reshape(4, 0), gaveUp), [
    'reshape: Serving, closeShards 1',
    'shardStopped: Serving, removeShards 1',
  ]);
});

test('a change that comes while the collection is loaded is made when it is, and refused when it cannot be', () => {
  const loaded: CollectionMessage = { kind: 'loaded', config: CONFIG, belonging: belonging(0) };
  assert.deepEqual(play(loadingCollection(), reshape(4, 0), loaded), [
    'reshape: Loading',
    'loaded: Opening, announce, startShards 0, saveReshape 0',
  ]);
  assert.deepEqual(play(loadingCollection(), reshape(4, 0), { kind: 'loadFailed', error: FULL }).slice(1), [
    'loadFailed: Damaged, announce, tellFailed, refuse 4: the disk is full',
  ]);
  assert.deepEqual(play(damagedCollection(FULL), reshape(4, 0)), ['reshape: Damaged, refuse 4: the disk is full']);
});

test('one change at a time', () => {
  assert.deepEqual(play(serving(0), reshape(4, 0), reshape(5, 0)).slice(1), [
    'reshape: Serving, refuse 5: the collection is being changed',
  ]);
});

test('a collection that is deleted or closed amid a change closes all shards, those on their way too', () => {
  for (const [end, done] of [
    [{ kind: 'delete', replyTo: 9 }, 'remove'],
    [{ kind: 'close' }, 'tellClosedAndStop'],
  ] as const) {
    const steps = play(serving(0), reshape(4, 0, 1), SAVED, end, closed(0), closed(1)).slice(2);
    assert.match(steps[0] ?? '', /refuse 4: the collection is being closed or deleted, closeShards 0,1$/);
    assert.match(steps[2] ?? '', new RegExp(`${done}$`));
  }
});

test('files of an earlier replica of a wanted shard go before the new one is made, and those that name no replica stay', () => {
  const of = (since?: readonly number[]) => ({ ...belonging(0, 1), ...(since === undefined ? {} : { since }) });
  const here = (since?: readonly number[]): CollectionState =>
    servingCollection({ config: CONFIG, belonging: of(since), open: new Set([0, 1]), updates: [], reshaping: null });
  const wanted: CollectionMessage = { kind: 'reshape', config: CHANGED, belonging: of([3, 8]), replyTo: 4 };
  assert.deepEqual(play(here([3, 5]), wanted, closed(1), REMOVED, SAVED, opened(1)), [
    'reshape: Serving, closeShards 1',
    'shardClosed: Serving, removeShards 1',
    'shardsRemoved: Serving, saveReshape 0,1',
    'reshapeSaved: Opening, announce, configureShards, startShards 1',
    'shardOpened: Serving, announce, tellOpened, reply 4',
  ]);
  assert.deepEqual(play(here(), wanted, SAVED), [
    'reshape: Serving, saveReshape 0,1',
    'reshapeSaved: Serving, announce, configureShards 4',
  ]);
});

test('what a peer takes over from another cluster, or from who it was before, keeps its points', () => {
  const former: Belonging = { ...belonging(0, 1), clusterId: 'theirs', since: [30, 50] };
  const here = servingCollection({ config: CONFIG, belonging: former, open: new Set([0, 1]), updates: [], reshaping: null });
  const adopted: CollectionMessage = { kind: 'reshape', config: CONFIG, belonging: { ...belonging(0, 1), since: [1, 1] }, replyTo: 4 };
  assert.deepEqual(play(here, adopted, SAVED), ['reshape: Serving, saveReshape 0,1', 'reshapeSaved: Serving, announce, configureShards 4']);
});

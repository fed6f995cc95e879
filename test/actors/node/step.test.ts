import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NodeEffect, NodeMessage } from '../../../actors/node/messages.js';
import { activeNode, type CollectionPhase, type NodeState, scanning, startingNode, stopping } from '../../../actors/node/state.js';
import { startNodeActor, stepNode } from '../../../actors/node/step.js';
import type { ErrorFacts } from '../../../protocols/errors.js';
import { sampleConfig } from '../samples.js';

const CONFIG = sampleConfig();
const BROKEN: ErrorFacts = { code: 'storage', detail: 'config.json is damaged' };

function phases(entries: Record<string, CollectionPhase['kind']>): Map<string, CollectionPhase> {
  const phaseOf = (kind: CollectionPhase['kind']): CollectionPhase => {
    if (kind === 'Creating') return { kind, replyTo: 1 };
    return kind === 'Dead' ? { kind, error: BROKEN, shards: null } : { kind };
  };
  return new Map(Object.entries(entries).map(([folder, kind]) => [folder, phaseOf(kind)]));
}

function kinds(effects: readonly NodeEffect[]): string {
  return effects.map((effect) => effect.kind).join(' ');
}

function phaseOf(state: NodeState, folder: string): string | undefined {
  return 'collections' in state ? state.collections.get(folder)?.kind : undefined;
}

function create(replyTo: number): NodeMessage {
  return { kind: 'create', name: 'a', folder: 'a', config: CONFIG, replyTo };
}

test('a node scans, opens what it finds, and is ready when each collection is open or Dead', () => {
  const started = startNodeActor();
  assert.deepEqual(started, { state: scanning(), effects: [{ kind: 'scan' }] });
  const waiting = stepNode(started.state, { kind: 'awaitReady', replyTo: 8 });
  const opening = stepNode(waiting.state, { kind: 'scanned', folders: ['a', 'b'], holdings: null, aliases: new Map() });
  assert.deepEqual(opening.effects, [
    { kind: 'announceAliases', aliases: new Map() },
    { kind: 'loadCollection', folder: 'a' },
    { kind: 'loadCollection', folder: 'b' },
  ]);
  const one = stepNode(opening.state, { kind: 'collectionOpened', folder: 'a' });
  assert.equal(one.state.kind, 'Starting');
  const both = stepNode(one.state, { kind: 'collectionDied', folder: 'b', error: BROKEN, shards: null });
  assert.equal(both.state.kind, 'Active');
  assert.deepEqual(both.effects, [
    { kind: 'list', folder: 'b' },
    { kind: 'reply', replyTo: 8, answer: true },
  ]);
});

test('a node without collections is ready at once', () => {
  const { state, effects } = stepNode(scanning([8]), { kind: 'scanned', folders: [], holdings: null, aliases: new Map() });
  assert.deepEqual(state, activeNode(new Map()));
  assert.equal(kinds(effects), 'announceAliases reply');
});

test('a storage folder that cannot be used fails the node, with the reason for whoever waits', () => {
  const { state, effects } = stepNode(scanning([8]), { kind: 'scanFailed', error: BROKEN });
  assert.equal(state.kind, 'Failed');
  assert.deepEqual(effects, [{ kind: 'refuse', replyTo: 8, error: BROKEN }]);
  assert.deepEqual(stepNode(state, { kind: 'awaitReady', replyTo: 9 }).effects, [{ kind: 'refuse', replyTo: 9, error: BROKEN }]);
});

test('a creation is answered when the collection is open', () => {
  const begun = stepNode(activeNode(new Map()), create(1));
  assert.equal(phaseOf(begun.state, 'a'), 'Creating');
  assert.deepEqual(begun.effects, [{ kind: 'createCollection', name: 'a', folder: 'a', create: { config: CONFIG, belonging: null } }]);
  const opened = stepNode(begun.state, { kind: 'collectionOpened', folder: 'a' });
  assert.deepEqual(opened.effects, [
    { kind: 'list', folder: 'a' },
    { kind: 'reply', replyTo: 1, answer: true },
  ]);
});

test('a name that is taken, being made or being deleted is a conflict', () => {
  const messages = (['Active', 'Dead', 'Creating', 'Deleting'] as const).map((kind) => {
    const effect = stepNode(activeNode(phases({ a: kind })), create(2)).effects[0];
    return effect?.kind === 'refuse' ? `${effect.error.code}: ${effect.error.detail}` : 'not refused';
  });
  assert.deepEqual(messages, [
    'conflict: Collection `a` already exists!',
    'conflict: Collection `a` already exists!',
    'conflict: Collection `a` is being created',
    'conflict: Collection `a` is being deleted',
  ]);
});

test('a new collection that does not open is answered with the reason and leaves nothing behind', () => {
  const { state, effects } = stepNode(activeNode(phases({ a: 'Creating' })), {
    kind: 'collectionDied',
    folder: 'a',
    error: BROKEN,
    shards: null,
  });
  assert.equal(phaseOf(state, 'a'), 'Deleting');
  assert.deepEqual(effects, [
    { kind: 'refuse', replyTo: 1, error: BROKEN },
    { kind: 'deleteCollection', folder: 'a', replyTo: null },
  ]);
  const failed = stepNode(activeNode(phases({ a: 'Creating' })), { kind: 'createFailed', folder: 'a', error: BROKEN });
  assert.equal(phaseOf(failed.state, 'a'), undefined);
  assert.deepEqual(failed.effects, [{ kind: 'refuse', replyTo: 1, error: BROKEN }]);
});

test('deleting what is not there answers false, also while it goes', () => {
  for (const collections of [new Map(), phases({ a: 'Deleting' })]) {
    const { effects } = stepNode(activeNode(collections), { kind: 'delete', folder: 'a', replyTo: 3 });
    assert.deepEqual(effects, [{ kind: 'reply', replyTo: 3, answer: false }]);
  }
});

test('a deleted collection frees its name when its files are gone', () => {
  const begun = stepNode(activeNode(phases({ a: 'Active' })), { kind: 'delete', folder: 'a', replyTo: 3 });
  assert.deepEqual(begun.effects, [{ kind: 'deleteCollection', folder: 'a', replyTo: 3 }]);
  const gone = stepNode(begun.state, { kind: 'collectionDeleted', folder: 'a' });
  assert.equal(kinds(stepNode(gone.state, create(4)).effects), 'createCollection');
});

test('a collection that opens while it is being deleted is not listed again', () => {
  const { effects } = stepNode(activeNode(phases({ a: 'Deleting' })), { kind: 'collectionOpened', folder: 'a' });
  assert.deepEqual(effects, []);
});

test('a collection that gave up stays with its files, and its deletion removes them', () => {
  const { state, effects } = stepNode(activeNode(phases({ a: 'Active' })), { kind: 'collectionGaveUp', folder: 'a', error: BROKEN });
  assert.deepEqual(effects, [{ kind: 'abandonCollection', folder: 'a', error: BROKEN }]);
  assert.equal(kinds(stepNode(state, { kind: 'delete', folder: 'a', replyTo: 3 }).effects), 'removeFiles');
});

test('a node stops when each collection has closed or finished its deletion', () => {
  const begun = stepNode(startingNode(phases({ a: 'Active', b: 'Deleting', c: 'Abandoned' }), [8]), { kind: 'close', replyTo: 5 });
  assert.equal(kinds(begun.effects), 'refuse closeCollection closeCollection');
  const one = stepNode(begun.state, { kind: 'collectionClosed', folder: 'a' });
  assert.deepEqual(one.effects, []);
  const both = stepNode(one.state, { kind: 'collectionDeleted', folder: 'b' });
  assert.deepEqual(both.effects, [{ kind: 'reply', replyTo: 5, answer: true }]);
});

test('a node that stops takes no more requests', () => {
  const state = stopping(phases({ a: 'Active' }), 5);
  assert.equal(kinds(stepNode(state, create(6)).effects), 'refuse');
  assert.equal(kinds(stepNode(state, { kind: 'delete', folder: 'a', replyTo: 6 }).effects), 'refuse');
});

test('a deletion that fails while the node stops does not keep it from its end: what is left is closed', () => {
  const deleting = stopping(phases({ a: 'Deleting', b: 'Active' }), 5);
  const failed = stepNode(deleting, { kind: 'collectionDied', folder: 'a', error: BROKEN, shards: null });
  assert.deepEqual(failed.effects, [{ kind: 'closeCollection', folder: 'a' }]);
  const restarted = stepNode(deleting, { kind: 'collectionOpened', folder: 'a' });
  assert.deepEqual(restarted.effects, [{ kind: 'closeCollection', folder: 'a' }]);
  // It has heard of the end already.
  assert.deepEqual(stepNode(deleting, { kind: 'collectionDied', folder: 'b', error: BROKEN, shards: null }).effects, []);
  const closed = stepNode(failed.state, { kind: 'collectionClosed', folder: 'a' });
  assert.equal(kinds(stepNode(closed.state, { kind: 'collectionClosed', folder: 'b' }).effects), 'reply');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NO_ALIASES } from '../../../actors/node/aliases.js';
import type { NodeEffect, NodeMessage } from '../../../actors/node/messages.js';
import { type ActiveNode, activeNode, type CollectionPhase, type NodeState, stopping } from '../../../actors/node/state.js';
import { stepNode } from '../../../actors/node/step.js';
import type { ErrorFacts } from '../../../protocols/errors.js';
import type { AliasAction } from '../../../protocols/model/alias.js';
import { sampleConfig } from '../samples.js';

const FULL: ErrorFacts = { code: 'storage', detail: 'the disk is full' };
const POINT_AT_A: AliasAction = { kind: 'create', alias: 'x', collection: 'a' };

/** A node with collections `a` and `b`, and these aliases. */
function node(known: Record<string, string> = {}): ActiveNode {
  const phases = new Map<string, CollectionPhase>([
    ['a', { kind: 'Active' }],
    ['b', { kind: 'Dead', error: FULL, shards: null }],
  ]);
  return activeNode(phases, { ...NO_ALIASES, known: new Map(Object.entries(known)) });
}

function change(replyTo: number, ...actions: AliasAction[]): NodeMessage {
  return { kind: 'changeAliases', actions, replyTo };
}

/** Steps through all messages; the effects of the last one in short words. */
function run(state: NodeState, ...messages: NodeMessage[]): { state: NodeState; effects: string[] } {
  let effects: readonly NodeEffect[] = [];
  for (const message of messages) ({ state, effects } = stepNode(state, message));
  return { state, effects: effects.map(inWords) };
}

function inWords(effect: NodeEffect): string {
  switch (effect.kind) {
    case 'saveAliases':
    case 'announceAliases':
      return `${effect.kind} ${[...effect.aliases].map(([alias, collection]) => `${alias}→${collection}`).join(' ')}`.trim();
    case 'reply':
      return `reply ${effect.replyTo} ${effect.answer}`;
    case 'refuse':
      return `refuse ${effect.replyTo} ${effect.error.code}: ${effect.error.detail}`;
    default:
      return effect.kind;
  }
}

test('a change is saved first, then shown, then answered', () => {
  const begun = run(node(), change(1, POINT_AT_A));
  assert.deepEqual(begun.effects, ['saveAliases x→a']);
  assert.deepEqual(run(begun.state, { kind: 'aliasesSaved' }).effects, ['announceAliases x→a', 'reply 1 true']);
});

test('the actions of a change work on each other, in their order', () => {
  const moved = run(
    node({ x: 'a' }),
    change(1, { kind: 'delete', alias: 'x' }, { kind: 'create', alias: 'y', collection: 'a' }, { kind: 'rename', from: 'y', to: 'z' }),
  );
  assert.deepEqual(moved.effects, ['saveAliases z→a']);
});

test('an alias that is there is pointed at another collection', () => {
  assert.deepEqual(run(node({ x: 'a' }), change(1, { kind: 'create', alias: 'x', collection: 'b' })).effects, ['saveAliases x→b']);
});

test('a change that changes nothing is answered without a save', () => {
  for (const actions of [[], [POINT_AT_A], [{ kind: 'delete', alias: 'nope' } as const]])
    assert.deepEqual(run(node({ x: 'a' }), change(1, ...actions)).effects, ['reply 1 true']);
});

test('one action that cannot be done refuses the whole change', () => {
  const refused = (action: AliasAction) => run(node({ x: 'a' }), change(1, { kind: 'delete', alias: 'x' }, action));
  const missing = refused({ kind: 'create', alias: 'y', collection: 'nope' });
  assert.deepEqual(missing.effects, ["refuse 1 notFound: Collection `nope` doesn't exist!"]);
  assert.deepEqual(missing.state, node({ x: 'a' }));
  assert.deepEqual(refused({ kind: 'rename', from: 'x', to: 'y' }).effects, ['refuse 1 notFound: Alias x does not exists!']);
  assert.deepEqual(refused({ kind: 'create', alias: 'b', collection: 'a' }).effects, ['refuse 1 conflict: Collection `b` already exists!']);
  assert.deepEqual(refused({ kind: 'create', alias: 'y', collection: 'x' }).effects, ["refuse 1 notFound: Collection `x` doesn't exist!"]);
});

test('a change waits for the one before it and builds on it', () => {
  const both = run(node(), change(1, POINT_AT_A), change(2, { kind: 'rename', from: 'x', to: 'y' }));
  assert.deepEqual(both.effects, []);
  const first = run(both.state, { kind: 'aliasesSaved' });
  assert.deepEqual(first.effects, ['announceAliases x→a', 'reply 1 true', 'saveAliases y→a']);
  assert.deepEqual(run(first.state, { kind: 'aliasesSaved' }).effects, ['announceAliases y→a', 'reply 2 true']);
});

test('a change that could not be saved is refused, and the next one builds on what was before', () => {
  const failed = run(node(), change(1, POINT_AT_A), change(2, { kind: 'rename', from: 'x', to: 'y' }), {
    kind: 'aliasesNotSaved',
    error: FULL,
  });
  assert.deepEqual(failed.effects, ['refuse 1 storage: the disk is full', 'refuse 2 notFound: Alias x does not exists!']);
  assert.deepEqual(failed.state, node());
});

test('a collection cannot take the name of an alias, saved or being saved', () => {
  const create: NodeMessage = { kind: 'create', name: 'x', folder: 'x', config: sampleConfig(), replyTo: 2 };
  const refusal = ["refuse 2 wrongInput: Can't create collection with name x. Alias with the same name already exists"];
  assert.deepEqual(run(node({ x: 'a' }), create).effects, refusal);
  assert.deepEqual(run(node(), change(1, POINT_AT_A), create).effects, refusal);
});

test('the aliases of a collection go before it does', () => {
  const begun = run(node({ x: 'a', y: 'b' }), { kind: 'delete', folder: 'a', replyTo: 3 });
  assert.deepEqual(begun.effects, ['saveAliases y→b']);
  assert.deepEqual(run(begun.state, { kind: 'aliasesSaved' }).effects, ['announceAliases y→b', 'deleteCollection']);
  assert.deepEqual(run(begun.state, { kind: 'aliasesNotSaved', error: FULL }).effects, ['refuse 3 storage: the disk is full']);
});

test('an alias that is made while its collection waits to be deleted is refused', () => {
  const begun = run(node({ x: 'a' }), { kind: 'delete', folder: 'a', replyTo: 3 }, change(4, { ...POINT_AT_A, alias: 'late' }), {
    kind: 'aliasesSaved',
  });
  assert.deepEqual(begun.effects, ['announceAliases', 'deleteCollection', "refuse 4 notFound: Collection `a` doesn't exist!"]);
});

test('a deletion behind a change of aliases takes the new alias along', () => {
  const made = run(node(), change(1, POINT_AT_A), { kind: 'delete', folder: 'a', replyTo: 3 }, { kind: 'aliasesSaved' });
  assert.deepEqual(made.effects, ['announceAliases x→a', 'reply 1 true', 'saveAliases']);
});

test('a node stops when the aliases that are being saved are, and refuses what waits behind them', () => {
  const empty = activeNode(new Map(), { ...NO_ALIASES, known: new Map([['x', 'a']]) });
  const begun = run(empty, change(1, { kind: 'delete', alias: 'x' }), change(2), { kind: 'close', replyTo: 9 });
  assert.deepEqual(begun.effects, ['refuse 2 unavailable: the node is shutting down']);
  assert.deepEqual(run(begun.state, { kind: 'aliasesSaved' }).effects, ['reply 1 true', 'reply 9 true']);
  assert.deepEqual(run(stopping(new Map([['a', { kind: 'Active' }]]), 9), change(4, POINT_AT_A)).effects, [
    'refuse 4 unavailable: the node is shutting down',
  ]);
});

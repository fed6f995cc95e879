/** One collection, its aliases and shard keys as clients should see them. */

import type { Model } from './linearizable.js';

export type Operation =
  | { readonly kind: 'create'; readonly value: string }
  | { readonly kind: 'update'; readonly value: string }
  | { readonly kind: 'delete' }
  | { readonly kind: 'addAlias' | 'removeAlias'; readonly alias: string }
  | { readonly kind: 'addKey' | 'dropKey'; readonly key: string }
  /** The agreed state of one node, after a barrier. */
  | { readonly kind: 'read' }
  /** What the doors of one node show, after a barrier: the collection alone. */
  | { readonly kind: 'look' };

export type Answer =
  | { readonly kind: 'done' }
  /** There was none. */
  | { readonly kind: 'none' }
  | { readonly kind: 'refused' }
  /** The cluster could not do it now; nothing has changed. */
  | { readonly kind: 'failed' }
  | { readonly kind: 'seen'; readonly seen: Group };

/** value: null where there is no collection. */
export interface Group {
  readonly value: string | null;
  readonly aliases: readonly string[];
  readonly keys: readonly string[];
}

export const NO_COLLECTION: Group = { value: null, aliases: [], keys: [] };

export const groupModel: Model<Group, Operation, Answer> = {
  start: NO_COLLECTION,
  step(state, operation, answer) {
    if (operation.kind === 'read' || operation.kind === 'look') return isSeen(state, operation.kind, answer) ? state : null;
    if (answer?.kind === 'failed') return state;
    const { next, expected } = carryOut(state, operation);
    return answer === null || answer.kind === expected ? next : null;
  },
  key: (state) => `${state.value} ${state.aliases.join()} ${state.keys.join()}`,
};

function isSeen(state: Group, kind: 'read' | 'look', answer: Answer | null): boolean {
  if (answer === null || answer.kind === 'failed') return true;
  if (answer.kind !== 'seen' || answer.seen.value !== state.value) return false;
  return kind === 'look' || groupModel.key(state) === groupModel.key(answer.seen);
}

function carryOut(state: Group, operation: Exclude<Operation, { kind: 'read' | 'look' }>): { next: Group; expected: Answer['kind'] } {
  const exists = state.value !== null;
  const refused = { next: state, expected: 'refused' } as const;
  switch (operation.kind) {
    case 'create':
      return exists ? refused : { next: { ...NO_COLLECTION, value: operation.value }, expected: 'done' };
    case 'update':
      return exists ? { next: { ...state, value: operation.value }, expected: 'done' } : refused;
    case 'delete':
      return exists ? { next: NO_COLLECTION, expected: 'done' } : { next: state, expected: 'none' };
    case 'addAlias':
      return exists ? { next: { ...state, aliases: withText(state.aliases, operation.alias) }, expected: 'done' } : refused;
    case 'removeAlias':
      return { next: { ...state, aliases: state.aliases.filter((alias) => alias !== operation.alias) }, expected: 'done' };
    case 'addKey':
      return exists && !state.keys.includes(operation.key)
        ? { next: { ...state, keys: withText(state.keys, operation.key) }, expected: 'done' }
        : refused;
    case 'dropKey':
      return exists && state.keys.includes(operation.key)
        ? { next: { ...state, keys: state.keys.filter((key) => key !== operation.key) }, expected: 'done' }
        : refused;
    default:
      return operation satisfies never;
  }
}

function withText(texts: readonly string[], text: string): string[] {
  return [...new Set([...texts, text])].sort();
}

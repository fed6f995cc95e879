/** What a collection does about each message in each state. */

import { type ErrorFacts, errorFacts } from '../../protocols/errors.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import { become, type Step, unreachable } from '../runtime/behaviour.js';
import type { CollectionEffect, CollectionMessage, UpdateMessage } from './messages.js';
import {
  type ActiveCollection,
  active,
  type ClosingCollection,
  type CollectionState,
  closing,
  type DamagedCollection,
  type DeadCollection,
  type DeletingCollection,
  damaged,
  dead,
  deleting,
  LOCAL_SHARDS,
  type OpeningCollection,
  opening,
  type Running,
} from './state.js';

type CollectionStep = Step<CollectionState, CollectionEffect>;
type WithShards = OpeningCollection | ActiveCollection | DeadCollection;
type MessageOf<Kind extends CollectionMessage['kind']> = Extract<CollectionMessage, { kind: Kind }>;

export type CollectionMove =
  | 'ignore'
  | 'open'
  | 'becomeDamaged'
  | 'giveUpCreating'
  | 'noteOpened'
  | 'becomeDead'
  | 'noteClosed'
  | 'update'
  | 'takeSaved'
  | 'failSaved'
  | 'answerSaved'
  | 'refuse'
  | 'delete'
  | 'deleteFiles'
  | 'close'
  | 'closeNow'
  | 'finishDeleting';

/** States × messages. */
export const COLLECTION_MOVES: Readonly<Record<CollectionState['kind'], Readonly<Record<CollectionMessage['kind'], CollectionMove>>>> = {
  Loading: {
    loaded: 'open',
    loadFailed: 'becomeDamaged',
    createFailed: 'ignore',
    shardOpened: 'ignore',
    shardDied: 'ignore',
    shardClosed: 'ignore',
    shardGaveUp: 'ignore',
    update: 'refuse',
    saved: 'answerSaved',
    saveFailed: 'failSaved',
    delete: 'deleteFiles',
    removed: 'ignore',
    removeFailed: 'ignore',
    close: 'closeNow',
  },
  Creating: {
    loaded: 'open',
    loadFailed: 'giveUpCreating',
    createFailed: 'giveUpCreating',
    shardOpened: 'ignore',
    shardDied: 'ignore',
    shardClosed: 'ignore',
    shardGaveUp: 'ignore',
    update: 'refuse',
    saved: 'answerSaved',
    saveFailed: 'failSaved',
    // Its files are being made at this moment.
    delete: 'refuse',
    removed: 'ignore',
    removeFailed: 'ignore',
    close: 'closeNow',
  },
  Opening: {
    loaded: 'ignore',
    loadFailed: 'ignore',
    createFailed: 'ignore',
    shardOpened: 'noteOpened',
    shardDied: 'becomeDead',
    shardClosed: 'ignore',
    shardGaveUp: 'becomeDead',
    update: 'update',
    saved: 'takeSaved',
    saveFailed: 'failSaved',
    delete: 'delete',
    removed: 'ignore',
    removeFailed: 'ignore',
    close: 'close',
  },
  Active: {
    loaded: 'ignore',
    loadFailed: 'ignore',
    createFailed: 'ignore',
    shardOpened: 'noteOpened',
    shardDied: 'becomeDead',
    shardClosed: 'ignore',
    shardGaveUp: 'becomeDead',
    update: 'update',
    saved: 'takeSaved',
    saveFailed: 'failSaved',
    delete: 'delete',
    removed: 'ignore',
    removeFailed: 'ignore',
    close: 'close',
  },
  Dead: {
    loaded: 'ignore',
    loadFailed: 'ignore',
    createFailed: 'ignore',
    shardOpened: 'noteOpened',
    shardDied: 'becomeDead',
    shardClosed: 'ignore',
    shardGaveUp: 'becomeDead',
    update: 'update',
    saved: 'takeSaved',
    saveFailed: 'failSaved',
    delete: 'delete',
    removed: 'ignore',
    removeFailed: 'ignore',
    close: 'close',
  },
  Damaged: {
    loaded: 'ignore',
    loadFailed: 'ignore',
    createFailed: 'ignore',
    shardOpened: 'ignore',
    shardDied: 'ignore',
    shardClosed: 'ignore',
    shardGaveUp: 'ignore',
    update: 'refuse',
    saved: 'answerSaved',
    saveFailed: 'failSaved',
    delete: 'deleteFiles',
    removed: 'ignore',
    removeFailed: 'ignore',
    close: 'closeNow',
  },
  Deleting: {
    loaded: 'ignore',
    loadFailed: 'ignore',
    createFailed: 'ignore',
    shardOpened: 'ignore',
    shardDied: 'ignore',
    shardClosed: 'noteClosed',
    shardGaveUp: 'noteClosed',
    update: 'refuse',
    saved: 'answerSaved',
    saveFailed: 'failSaved',
    delete: 'refuse',
    removed: 'finishDeleting',
    removeFailed: 'becomeDamaged',
    // The node waits for the end of the deletion.
    close: 'ignore',
  },
  Closing: {
    loaded: 'ignore',
    loadFailed: 'ignore',
    createFailed: 'ignore',
    shardOpened: 'ignore',
    shardDied: 'ignore',
    shardClosed: 'noteClosed',
    shardGaveUp: 'noteClosed',
    update: 'refuse',
    saved: 'answerSaved',
    saveFailed: 'failSaved',
    delete: 'refuse',
    removed: 'ignore',
    removeFailed: 'ignore',
    close: 'ignore',
  },
};

/** create: the configuration of a new collection, null to load an existing one. */
export function startCollection(create: CollectionConfig | null): CollectionStep {
  if (create === null) return become<CollectionState, CollectionEffect>({ kind: 'Loading' }, { kind: 'load' });
  return become<CollectionState, CollectionEffect>({ kind: 'Creating' }, { kind: 'create', config: create });
}

export function stepCollection(state: CollectionState, message: CollectionMessage): CollectionStep {
  const move = COLLECTION_MOVES[state.kind][message.kind];
  // The table says which states and messages reach a move, so the casts below only repeat it.
  switch (move) {
    case 'ignore':
      return become(state);
    case 'open':
      return open((message as MessageOf<'loaded'>).config);
    case 'becomeDamaged':
      return becomeDamaged(state, (message as MessageOf<'loadFailed' | 'removeFailed'>).error);
    case 'giveUpCreating':
      return become<CollectionState, CollectionEffect>(state, {
        kind: 'tellCreateFailedAndStop',
        error: (message as MessageOf<'createFailed' | 'loadFailed'>).error,
      });
    case 'noteOpened':
      return noteOpened(state as WithShards, (message as MessageOf<'shardOpened'>).shardId);
    case 'becomeDead':
      return becomeDead(state as WithShards, message as MessageOf<'shardDied' | 'shardGaveUp'>);
    case 'noteClosed':
      return noteClosed(state as DeletingCollection | ClosingCollection, (message as MessageOf<'shardClosed' | 'shardGaveUp'>).shardId);
    case 'update':
      return update(state as WithShards, message as UpdateMessage);
    case 'takeSaved':
      return takeSaved(state as WithShards, message as MessageOf<'saved'>);
    case 'failSaved':
      return failSaved(state, message as MessageOf<'saveFailed'>);
    case 'answerSaved':
      return become<CollectionState, CollectionEffect>(state, {
        kind: 'reply',
        replyTo: (message as MessageOf<'saved'>).replyTo,
        answer: true,
      });
    case 'refuse':
      return become<CollectionState, CollectionEffect>(state, {
        kind: 'refuse',
        replyTo: (message as MessageOf<'update' | 'delete'>).replyTo,
        error: refusal(state),
      });
    case 'delete':
      return beginDeleting(state as WithShards, (message as MessageOf<'delete'>).replyTo);
    case 'deleteFiles':
      return become<CollectionState, CollectionEffect>(deleting((message as MessageOf<'delete'>).replyTo, []), { kind: 'remove' });
    case 'close':
      return beginClosing(state as WithShards);
    case 'closeNow':
      return become<CollectionState, CollectionEffect>(closing([]), { kind: 'tellClosedAndStop' });
    case 'finishDeleting':
      // The parent hears first: when the caller has its answer, the name is free.
      return become<CollectionState, CollectionEffect>(
        state,
        { kind: 'tellDeletedAndStop' },
        { kind: 'reply', replyTo: (state as DeletingCollection).replyTo, answer: true },
      );
    default:
      return unreachable(move);
  }
}

function open(config: CollectionConfig): CollectionStep {
  return become<CollectionState, CollectionEffect>(
    opening(config),
    { kind: 'announce', config, error: null },
    { kind: 'startShards', shardIds: LOCAL_SHARDS },
  );
}

function becomeDamaged(state: CollectionState, error: ErrorFacts): CollectionStep {
  const refused: CollectionEffect[] = state.kind === 'Deleting' ? [{ kind: 'refuse', replyTo: state.replyTo, error }] : [];
  return become<CollectionState, CollectionEffect>(
    damaged(error),
    { kind: 'announce', config: null, error },
    { kind: 'tellDied', error },
    ...refused,
  );
}

function noteOpened(state: WithShards, shardId: number): CollectionStep {
  const running: Running = { ...state.running, open: new Set([...state.running.open, shardId]) };
  if (!LOCAL_SHARDS.every((id) => running.open.has(id))) return become<CollectionState, CollectionEffect>({ ...state, running });
  return become<CollectionState, CollectionEffect>(
    active(running),
    { kind: 'announce', config: running.config, error: null },
    { kind: 'tellOpened' },
  );
}

function becomeDead(state: WithShards, message: MessageOf<'shardDied' | 'shardGaveUp'>): CollectionStep {
  const running: Running = { ...state.running, open: new Set([...state.running.open].filter((id) => id !== message.shardId)) };
  return become<CollectionState, CollectionEffect>(
    dead(running, message.error),
    { kind: 'announce', config: running.config, error: message.error },
    { kind: 'tellDied', error: message.error },
  );
}

function noteClosed(state: DeletingCollection | ClosingCollection, shardId: number): CollectionStep {
  const left = new Set([...state.closing].filter((id) => id !== shardId));
  const next = { ...state, closing: left };
  if (left.size > 0) return become<CollectionState, CollectionEffect>(next);
  return become<CollectionState, CollectionEffect>(next, state.kind === 'Deleting' ? { kind: 'remove' } : { kind: 'tellClosedAndStop' });
}

/** Changes are saved one after the other, each made from the one before. */
function update(state: WithShards, message: UpdateMessage): CollectionStep {
  const waits = state.running.updates.length > 0;
  const next = withRunning(state, { ...state.running, updates: [...state.running.updates, message] });
  return waits ? become(next) : saveNext(next);
}

/** Saves the first change that can be made; callers whose change throws get their answer. */
function saveNext(state: WithShards): CollectionStep {
  const refused: CollectionEffect[] = [];
  let { updates } = state.running;
  for (const message of updates) {
    const changed = changedConfig(message, state.running.config);
    if (changed.kind === 'config') {
      const next = withRunning(state, { ...state.running, updates });
      return become<CollectionState, CollectionEffect>(next, ...refused, {
        kind: 'save',
        config: changed.config,
        replyTo: message.replyTo,
      });
    }
    refused.push({ kind: 'refuse', replyTo: message.replyTo, error: changed.error });
    updates = updates.slice(1);
  }
  return become(withRunning(state, { ...state.running, updates }), ...refused);
}

function takeSaved(state: WithShards, message: MessageOf<'saved'>): CollectionStep {
  const saved = withRunning(state, { ...state.running, config: message.config, updates: state.running.updates.slice(1) });
  const next = saveNext(saved);
  const error = state.kind === 'Dead' ? state.error : null;
  return become<CollectionState, CollectionEffect>(
    next.state,
    { kind: 'announce', config: message.config, error },
    { kind: 'configureShards', config: message.config, replyTo: message.replyTo },
    ...next.effects,
  );
}

function failSaved(state: CollectionState, message: MessageOf<'saveFailed'>): CollectionStep {
  const refused: CollectionEffect = { kind: 'refuse', replyTo: message.replyTo, error: message.error };
  if (!hasShards(state)) return become<CollectionState, CollectionEffect>(state, refused);
  const next = saveNext(withRunning(state, { ...state.running, updates: state.running.updates.slice(1) }));
  return become(next.state, refused, ...next.effects);
}

function beginDeleting(state: WithShards, replyTo: MessageOf<'delete'>['replyTo']): CollectionStep {
  return become<CollectionState, CollectionEffect>(deleting(replyTo, LOCAL_SHARDS), ...refuseWaiting(state), { kind: 'closeShards' });
}

function beginClosing(state: WithShards): CollectionStep {
  return become<CollectionState, CollectionEffect>(closing(LOCAL_SHARDS), ...refuseWaiting(state), { kind: 'closeShards' });
}

/** Changes behind the one that is being saved will not be made. */
function refuseWaiting(state: WithShards): CollectionEffect[] {
  return state.running.updates.slice(1).map((message) => ({ kind: 'refuse', replyTo: message.replyTo, error: going() }));
}

function changedConfig(
  message: UpdateMessage,
  config: CollectionConfig,
): { kind: 'config'; config: CollectionConfig } | { kind: 'error'; error: ErrorFacts } {
  try {
    return { kind: 'config', config: message.change(config) };
  } catch (error) {
    return { kind: 'error', error: errorFacts(error) };
  }
}

function refusal(state: CollectionState): ErrorFacts {
  switch (state.kind) {
    case 'Damaged':
      return (state as DamagedCollection).error;
    case 'Loading':
      return { code: 'unavailable', detail: 'the collection is being loaded', retryAfterMs: 1000 };
    case 'Creating':
      return { code: 'unavailable', detail: 'the collection is being created', retryAfterMs: 1000 };
    case 'Opening':
    case 'Active':
    case 'Dead':
    case 'Deleting':
    case 'Closing':
      return going();
    default:
      return unreachable(state);
  }
}

function going(): ErrorFacts {
  return { code: 'unavailable', detail: 'the collection is being closed or deleted' };
}

function hasShards(state: CollectionState): state is WithShards {
  return state.kind === 'Opening' || state.kind === 'Active' || state.kind === 'Dead';
}

function withRunning<State extends WithShards>(state: State, running: Running): State {
  return { ...state, running };
}

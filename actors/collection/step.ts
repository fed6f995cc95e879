/** What a collection does about each message in each state. */

import { type ErrorFacts, errorFacts } from '../../protocols/errors.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import { become, type ReplyTo, type Step, unreachable } from '../runtime/behaviour.js';
import type { CollectionEffect, CollectionMessage, NewCollection, ReshapeMessage, UpdateMessage } from './messages.js';
import { COLLECTION_MOVES } from './moves.js';
import {
  allShards,
  failReshape,
  neededShards,
  noteDropped,
  noteNewShard,
  reshape,
  saveReshape,
  takeReshape,
  type WithShards,
  withRunning,
} from './reshape.js';
import {
  active,
  type ClosingCollection,
  type CollectionState,
  closing,
  type DamagedCollection,
  type DeletingCollection,
  damaged,
  dead,
  deleting,
  type LoadingCollection,
  loading,
  localShards,
  opening,
} from './state.js';

type CollectionStep = Step<CollectionState, CollectionEffect>;
type MessageOf<Kind extends CollectionMessage['kind']> = Extract<CollectionMessage, { kind: Kind }>;

/** create: a new collection, null to load an existing one. */
export function startCollection(create: NewCollection | null): CollectionStep {
  if (create === null) return become<CollectionState, CollectionEffect>(loading(), { kind: 'load' });
  return become<CollectionState, CollectionEffect>({ kind: 'Creating' }, { kind: 'create', create });
}

export function stepCollection(state: CollectionState, message: CollectionMessage): CollectionStep {
  const move = COLLECTION_MOVES[state.kind][message.kind];
  // The table says which states and messages reach a move, so the casts below only repeat it.
  switch (move) {
    case 'ignore':
      return become(state);
    case 'open':
      return openLoaded(state, message as MessageOf<'loaded'>);
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
      return becomeDead(state as WithShards, message as MessageOf<'shardFailed' | 'shardStopped'>);
    case 'noteGivenUp': {
      const givenUp = message as MessageOf<'shardStopped'>;
      return closingShard(state as WithShards, givenUp.shardId) ?? becomeDead(state as WithShards, givenUp);
    }
    case 'noteDropped':
      return closingShard(state as WithShards, (message as MessageOf<'shardClosed'>).shardId) ?? become(state);
    case 'reshape':
      return reshape(state as WithShards, message as ReshapeMessage);
    case 'keepReshape':
      return keepReshape(state as LoadingCollection, message as ReshapeMessage);
    case 'saveReshape':
      return saveReshape(state as WithShards);
    case 'takeReshape':
      return takeReshape(state as WithShards);
    case 'failReshape':
      return failReshape(state as WithShards, (message as MessageOf<'reshapeFailed'>).error);
    case 'noteClosed':
      return noteClosed(state as DeletingCollection | ClosingCollection, (message as MessageOf<'shardClosed' | 'shardStopped'>).shardId);
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
        replyTo: (message as MessageOf<'update' | 'reshape' | 'delete'>).replyTo,
        error: refusal(state),
      });
    case 'delete':
      return beginDeleting(state as WithShards, (message as MessageOf<'delete'>).replyTo);
    case 'deleteFiles':
      return become<CollectionState, CollectionEffect>(
        deleting((message as MessageOf<'delete'>).replyTo, []),
        ...refuseKept(state, going()),
        { kind: 'remove' },
      );
    case 'close':
      return beginClosing(state as WithShards);
    case 'closeNow':
      return become<CollectionState, CollectionEffect>(closing([]), ...refuseKept(state, going()), { kind: 'tellClosedAndStop' });
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

function openLoaded(state: CollectionState, message: MessageOf<'loaded'>): CollectionStep {
  const opened = open(message);
  if (state.kind !== 'Loading' || state.waiting === null) return opened;
  const reshaped = reshape(opened.state as WithShards, state.waiting);
  return become(reshaped.state, ...opened.effects, ...reshaped.effects);
}

/** One at a time: who asks again finds the collection loaded. */
function keepReshape(state: LoadingCollection, message: ReshapeMessage): CollectionStep {
  if (state.waiting === null) return become<CollectionState, CollectionEffect>(loading(message));
  return become<CollectionState, CollectionEffect>(state, refuse(message.replyTo, refusal(state)));
}

function refuseKept(state: CollectionState, error: ErrorFacts): CollectionEffect[] {
  return state.kind === 'Loading' && state.waiting !== null ? [refuse(state.waiting.replyTo, error)] : [];
}

function refuse(replyTo: ReplyTo<boolean>, error: ErrorFacts): CollectionEffect {
  return { kind: 'refuse', replyTo, error };
}

function open({ config, belonging }: MessageOf<'loaded'>): CollectionStep {
  const shardIds = localShards({ belonging, config });
  const state = opening(config, belonging);
  const announce: CollectionEffect = { kind: 'announce', config, belonging, error: null };
  if (shardIds.length > 0) return become<CollectionState, CollectionEffect>(state, announce, { kind: 'startShards', shardIds });
  return become<CollectionState, CollectionEffect>(active(state.running), announce, { kind: 'tellOpened' });
}

/** What the end of a shard that a change drops leads to; null when it is not one. */
function closingShard(state: WithShards, shardId: number): CollectionStep | null {
  const { reshaping } = state.running;
  return reshaping?.stage === 'closing' && reshaping.left.has(shardId) ? noteDropped(state, reshaping, shardId) : null;
}

function becomeDamaged(state: CollectionState, error: ErrorFacts): CollectionStep {
  const refused = state.kind === 'Deleting' ? [refuse(state.replyTo, error)] : refuseKept(state, error);
  return become<CollectionState, CollectionEffect>(
    damaged(error),
    { kind: 'announce', config: null, belonging: null, error },
    { kind: 'tellDied', error },
    ...refused,
  );
}

function noteOpened(state: WithShards, shardId: number): CollectionStep {
  const needed = neededShards(state.running);
  if (!needed.includes(shardId)) return become(state);
  const { running, effects } = noteNewShard({ ...state.running, open: new Set([...state.running.open, shardId]) }, shardId);
  if (!needed.every((id) => running.open.has(id))) return become<CollectionState, CollectionEffect>({ ...state, running }, ...effects);
  return become<CollectionState, CollectionEffect>(
    active(running),
    { kind: 'announce', config: running.config, belonging: running.belonging, error: null },
    { kind: 'tellOpened' },
    ...effects,
  );
}

function becomeDead(state: WithShards, message: MessageOf<'shardFailed' | 'shardStopped'>): CollectionStep {
  const open = new Set([...state.running.open].filter((id) => id !== message.shardId));
  const { running, effects } = noteNewShard({ ...state.running, open }, message.shardId);
  return become<CollectionState, CollectionEffect>(
    dead(running, message.error),
    { kind: 'announce', config: running.config, belonging: running.belonging, error: message.error },
    { kind: 'tellDied', error: message.error },
    ...effects,
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
  if (state.running.reshaping !== null) {
    const error: ErrorFacts = { code: 'busy', detail: 'the collection is being changed', retryAfterMs: 1000 };
    return become<CollectionState, CollectionEffect>(state, { kind: 'refuse', replyTo: message.replyTo, error });
  }
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
        belonging: state.running.belonging,
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
    { kind: 'announce', config: message.config, belonging: state.running.belonging, error },
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
  const shardIds = allShards(state.running);
  return become<CollectionState, CollectionEffect>(
    deleting(replyTo, shardIds),
    ...refuseWaiting(state),
    ...closeAll(shardIds, { kind: 'remove' }),
  );
}

function beginClosing(state: WithShards): CollectionStep {
  const shardIds = allShards(state.running);
  return become<CollectionState, CollectionEffect>(
    closing(shardIds),
    ...refuseWaiting(state),
    ...closeAll(shardIds, { kind: 'tellClosedAndStop' }),
  );
}

function closeAll(shardIds: readonly number[], whenNone: CollectionEffect): CollectionEffect[] {
  return [shardIds.length === 0 ? whenNone : { kind: 'closeShards', shardIds }];
}

/** Changes behind the one that is being saved will not be made. */
function refuseWaiting({ running }: WithShards): CollectionEffect[] {
  const waiting = [...running.updates.slice(1), ...(running.reshaping === null ? [] : [running.reshaping.wanted])];
  return waiting.map((message) => ({ kind: 'refuse', replyTo: message.replyTo, error: going() }));
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

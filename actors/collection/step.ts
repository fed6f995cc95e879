/** The step of a collection. */

import { type ErrorFacts, errorFacts } from '../../protocols/errors.js';
import { decide, ignore, type Of, type Row, type Table } from '../../protocols/machine.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import { become, type Step } from '../runtime/behaviour.js';
import type { CollectionEffect, CollectionMessage, NewCollection, UpdateMessage } from './messages.js';
import {
  allOpen,
  allShards,
  closedShards,
  dropShard,
  failReshape,
  neededShards,
  noteNewShard,
  reshape,
  saveReshape,
  takeReshape,
  withRunning,
} from './reshape.js';
import {
  type ClosingCollection,
  type CollectionState,
  type CreatingCollection,
  closingCollection,
  type DamagedCollection,
  type DeletingCollection,
  damagedCollection,
  deletingCollection,
  failedCollection,
  type LoadingCollection,
  loadingCollection,
  localShards,
  openingCollection,
  servingCollection,
  type WithShards,
} from './state.js';

type CollectionStep = Step<CollectionState, CollectionEffect>;
type Message<Kind extends CollectionMessage['kind']> = Of<CollectionMessage, Kind>;

/** Refuses every request and ignores all other messages. */
const REFUSE_ALL: Row<CollectionMessage, CollectionState, CollectionStep> = {
  loaded: ignore,
  loadFailed: ignore,
  createFailed: ignore,
  shardOpened: ignore,
  shardFailed: ignore,
  shardClosed: ignore,
  shardStopped: ignore,
  update: refuse,
  saved: answerSaved,
  saveFailed: refuseSaved,
  reshape: refuse,
  shardsRemoved: ignore,
  reshapeSaved: ignore,
  reshapeFailed: ignore,
  delete: refuse,
  removed: ignore,
  removeFailed: ignore,
  close: ignore,
};

const WITH_SHARDS: Row<CollectionMessage, WithShards, CollectionStep> = {
  ...REFUSE_ALL,
  shardOpened: noteOpened,
  shardFailed: becomeFailed,
  shardClosed: noteDropped,
  shardStopped: noteStopped,
  update,
  saved: takeSaved,
  saveFailed: dropUpdate,
  reshape,
  shardsRemoved: saveReshape,
  reshapeSaved: takeReshape,
  reshapeFailed: failReshape,
  delete: beginDeleting,
  close: beginClosing,
};

/** The transition table, states × messages. */
export const COLLECTION_TABLE: Table<CollectionState, CollectionMessage, CollectionStep> = {
  Loading: {
    ...REFUSE_ALL,
    loaded: openLoaded,
    loadFailed: damageLoading,
    reshape: keepReshape,
    delete: deleteLoading,
    close: closeLoading,
  },
  // A deletion is refused, as the files are being made at this moment.
  Creating: { ...REFUSE_ALL, loaded: openCreated, loadFailed: failCreating, createFailed: failCreating, close: closeNow },
  Opening: WITH_SHARDS,
  Serving: WITH_SHARDS,
  Failed: WITH_SHARDS,
  Damaged: { ...REFUSE_ALL, delete: deleteFiles, close: closeNow },
  // It does not close: the node waits for the end of the deletion.
  Deleting: { ...REFUSE_ALL, shardClosed: noteClosed, shardStopped: noteClosed, removed: finishDeleting, removeFailed: damageDeleting },
  Closing: { ...REFUSE_ALL, shardClosed: noteClosed, shardStopped: noteClosed },
};

/** The first state. create: the collection to create; null to load an existing one. */
export function startCollection(create: NewCollection | null): CollectionStep {
  if (create === null) return become<CollectionState, CollectionEffect>(loadingCollection(), { kind: 'load' });
  return become<CollectionState, CollectionEffect>({ kind: 'Creating' }, { kind: 'create', create });
}

export function stepCollection(state: CollectionState, message: CollectionMessage): CollectionStep {
  return decide(COLLECTION_TABLE, state, message);
}

function openLoaded(state: LoadingCollection, message: Message<'loaded'>): CollectionStep {
  const opened = open(message);
  if (state.waiting === null) return opened;
  const reshaped = reshape(opened.state, state.waiting);
  return become(reshaped.state, ...opened.effects, ...reshaped.effects);
}

function openCreated(_: CreatingCollection, message: Message<'loaded'>): CollectionStep {
  return open(message);
}

function open({ config, belonging }: Message<'loaded'>): Step<WithShards, CollectionEffect> {
  const shardIds = localShards({ belonging, config });
  const state = openingCollection(config, belonging);
  const announce: CollectionEffect = { kind: 'announce', config, belonging, error: null };
  if (shardIds.length > 0) return become<WithShards, CollectionEffect>(state, announce, { kind: 'startShards', shardIds });
  return become<WithShards, CollectionEffect>(servingCollection(state.running), announce, { kind: 'tellOpened' });
}

/** Keeps one change until the collection is loaded. A second one is refused; its caller asks again later. */
function keepReshape(state: LoadingCollection, message: Message<'reshape'>): CollectionStep {
  if (state.waiting === null) return become<CollectionState, CollectionEffect>(loadingCollection(message));
  return refuse(state, message);
}

function damageLoading(state: LoadingCollection, { error }: Message<'loadFailed'>): CollectionStep {
  return becomeDamaged(error, refuseKept(state, error));
}

function damageDeleting({ replyTo }: DeletingCollection, { error }: Message<'removeFailed'>): CollectionStep {
  return becomeDamaged(error, [{ kind: 'refuse', replyTo, error }]);
}

function becomeDamaged(error: ErrorFacts, refused: readonly CollectionEffect[]): CollectionStep {
  return become<CollectionState, CollectionEffect>(
    damagedCollection(error),
    { kind: 'announce', config: null, belonging: null, error },
    { kind: 'tellFailed', error, shards: null },
    ...refused,
  );
}

function failCreating(state: CreatingCollection, { error }: Message<'createFailed' | 'loadFailed'>): CollectionStep {
  return become<CollectionState, CollectionEffect>(state, { kind: 'tellCreateFailedAndStop', error });
}

function deleteLoading(state: LoadingCollection, { replyTo }: Message<'delete'>): CollectionStep {
  return become<CollectionState, CollectionEffect>(deletingCollection(replyTo, []), ...refuseKept(state, going()), { kind: 'remove' });
}

function deleteFiles(_: DamagedCollection, { replyTo }: Message<'delete'>): CollectionStep {
  return become<CollectionState, CollectionEffect>(deletingCollection(replyTo, []), { kind: 'remove' });
}

function closeLoading(state: LoadingCollection): CollectionStep {
  return become<CollectionState, CollectionEffect>(closingCollection([]), ...refuseKept(state, going()), { kind: 'tellClosedAndStop' });
}

function closeNow(): CollectionStep {
  return become<CollectionState, CollectionEffect>(closingCollection([]), { kind: 'tellClosedAndStop' });
}

function finishDeleting(state: DeletingCollection): CollectionStep {
  // The parent is told first, so that the name is free when the caller gets its answer.
  return become<CollectionState, CollectionEffect>(
    state,
    { kind: 'tellDeletedAndStop' },
    { kind: 'reply', replyTo: state.replyTo, answer: true },
  );
}

function refuse(state: CollectionState, { replyTo }: Message<'update' | 'reshape' | 'delete'>): CollectionStep {
  return become<CollectionState, CollectionEffect>(state, { kind: 'refuse', replyTo, error: refusal(state) });
}

function answerSaved(state: CollectionState, { replyTo }: Message<'saved'>): CollectionStep {
  return become<CollectionState, CollectionEffect>(state, { kind: 'reply', replyTo, answer: true });
}

function refuseSaved(state: CollectionState, { error, replyTo }: Message<'saveFailed'>): CollectionStep {
  return become<CollectionState, CollectionEffect>(state, { kind: 'refuse', replyTo, error });
}

function refuseKept({ waiting }: LoadingCollection, error: ErrorFacts): CollectionEffect[] {
  return waiting === null ? [] : [{ kind: 'refuse', replyTo: waiting.replyTo, error }];
}

function noteStopped(state: WithShards, message: Message<'shardStopped'>): CollectionStep {
  return closingShard(state, message.shardId) ?? becomeFailed(state, message);
}

function noteDropped(state: WithShards, { shardId }: Message<'shardClosed'>): CollectionStep {
  return closingShard(state, shardId) ?? become(state);
}

/** The step after the end of a shard that a change drops; null if no change drops this shard. */
function closingShard(state: WithShards, shardId: number): CollectionStep | null {
  const { reshaping } = state.running;
  return reshaping?.stage === 'closing' && reshaping.left.has(shardId) ? dropShard(state, reshaping, shardId) : null;
}

function noteOpened(state: WithShards, { shardId }: Message<'shardOpened'>): CollectionStep {
  if (!neededShards(state.running).includes(shardId)) return become(state);
  const { running, effects } = noteNewShard({ ...state.running, open: new Set([...state.running.open, shardId]) }, shardId);
  if (!allOpen(running)) {
    const told: CollectionEffect[] =
      state.kind === 'Failed' ? [{ kind: 'tellFailed', error: state.error, shards: closedShards(running) }] : [];
    return become<CollectionState, CollectionEffect>({ ...state, running }, ...told, ...effects);
  }
  return become<CollectionState, CollectionEffect>(
    servingCollection(running),
    { kind: 'announce', config: running.config, belonging: running.belonging, error: null },
    { kind: 'tellOpened' },
    ...effects,
  );
}

function becomeFailed(state: WithShards, message: Message<'shardFailed' | 'shardStopped'>): CollectionStep {
  const open = new Set([...state.running.open].filter((id) => id !== message.shardId));
  const { running, effects } = noteNewShard({ ...state.running, open }, message.shardId);
  return become<CollectionState, CollectionEffect>(
    failedCollection(running, message.error),
    { kind: 'announce', config: running.config, belonging: running.belonging, error: message.error },
    { kind: 'tellFailed', error: message.error, shards: closedShards(running) },
    ...effects,
  );
}

function noteClosed(state: DeletingCollection | ClosingCollection, { shardId }: Message<'shardClosed' | 'shardStopped'>): CollectionStep {
  const left = new Set([...state.closing].filter((id) => id !== shardId));
  const next = { ...state, closing: left };
  if (left.size > 0) return become<CollectionState, CollectionEffect>(next);
  return become<CollectionState, CollectionEffect>(next, state.kind === 'Deleting' ? { kind: 'remove' } : { kind: 'tellClosedAndStop' });
}

/** Queues a change of the configuration. Changes are saved one after the other, each based on the one before. */
function update(state: WithShards, message: UpdateMessage): CollectionStep {
  if (state.running.reshaping !== null) {
    const error: ErrorFacts = { code: 'busy', detail: 'the collection is being changed', retryAfterMs: 1000 };
    return become<CollectionState, CollectionEffect>(state, { kind: 'refuse', replyTo: message.replyTo, error });
  }
  const waits = state.running.updates.length > 0;
  const next = withRunning(state, { ...state.running, updates: [...state.running.updates, message] });
  return waits ? become(next) : saveNext(next);
}

/** Saves the first queued change that does not throw, and refuses the callers of those that throw. */
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

function takeSaved(state: WithShards, message: Message<'saved'>): CollectionStep {
  const saved = withRunning(state, { ...state.running, config: message.config, updates: state.running.updates.slice(1) });
  const next = saveNext(saved);
  const error = state.kind === 'Failed' ? state.error : null;
  return become<CollectionState, CollectionEffect>(
    next.state,
    { kind: 'announce', config: message.config, belonging: state.running.belonging, error },
    { kind: 'configureShards', config: message.config, replyTo: message.replyTo },
    ...next.effects,
  );
}

function dropUpdate(state: WithShards, { error, replyTo }: Message<'saveFailed'>): CollectionStep {
  const next = saveNext(withRunning(state, { ...state.running, updates: state.running.updates.slice(1) }));
  return become<CollectionState, CollectionEffect>(next.state, { kind: 'refuse', replyTo, error }, ...next.effects);
}

function beginDeleting(state: WithShards, { replyTo }: Message<'delete'>): CollectionStep {
  const shardIds = allShards(state.running);
  return become<CollectionState, CollectionEffect>(
    deletingCollection(replyTo, shardIds),
    ...refuseWaiting(state),
    ...closeAll(shardIds, { kind: 'remove' }),
  );
}

function beginClosing(state: WithShards): CollectionStep {
  const shardIds = allShards(state.running);
  return become<CollectionState, CollectionEffect>(
    closingCollection(shardIds),
    ...refuseWaiting(state),
    ...closeAll(shardIds, { kind: 'tellClosedAndStop' }),
  );
}

function closeAll(shardIds: readonly number[], whenNone: CollectionEffect): CollectionEffect[] {
  return [shardIds.length === 0 ? whenNone : { kind: 'closeShards', shardIds }];
}

/** Refuses the changes that wait behind the one that is being saved. */
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
  if (state.kind === 'Damaged') return state.error;
  if (state.kind === 'Loading') return { code: 'unavailable', detail: 'the collection is being loaded', retryAfterMs: 1000 };
  if (state.kind === 'Creating') return { code: 'unavailable', detail: 'the collection is being created', retryAfterMs: 1000 };
  return going();
}

function going(): ErrorFacts {
  return { code: 'unavailable', detail: 'the collection is being closed or deleted' };
}

/** Changes a collection to the desired one: see `Reshaping`. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { Of } from '../../protocols/machine.js';
import { type Belonging, isSameLife } from '../context/desired.js';
import { become, type Step } from '../runtime/behaviour.js';
import type { CollectionEffect, CollectionMessage, ReshapeMessage } from './messages.js';
import { type CollectionState, localShards, type Reshaping, type Running, servingCollection, type WithShards } from './state.js';

type CollectionStep = Step<CollectionState, CollectionEffect>;

/** Begins a change. While another change or an update is under way, it is refused and can be tried again. */
export function reshape(state: WithShards, wanted: ReshapeMessage): CollectionStep {
  if (state.running.reshaping !== null || state.running.updates.length > 0) {
    const error: ErrorFacts = { code: 'busy', detail: 'the collection is being changed', retryAfterMs: 1000 };
    return become<CollectionState, CollectionEffect>(state, { kind: 'refuse', replyTo: wanted.replyTo, error });
  }
  const dropped = droppedShards(state.running, wanted);
  if (dropped.length === 0) return save(state, wanted);
  const open = new Set([...state.running.open].filter((id) => !dropped.includes(id)));
  return become<CollectionState, CollectionEffect>(
    withRunning(state, { ...state.running, open, reshaping: { stage: 'closing', wanted, left: new Set(dropped) } }),
    { kind: 'closeShards', shardIds: dropped },
  );
}

/** Notes that a shard to drop has closed, or has failed. */
export function dropShard(state: WithShards, reshaping: Reshaping, shardId: number): CollectionStep {
  const left = without(reshaping.left, shardId);
  const next = withRunning(state, { ...state.running, reshaping: { ...reshaping, stage: left.size > 0 ? 'closing' : 'removing', left } });
  if (left.size > 0) return become<CollectionState, CollectionEffect>(next);
  return become<CollectionState, CollectionEffect>(next, {
    kind: 'removeShards',
    shardIds: droppedShards(state.running, reshaping.wanted),
  });
}

/** Saves the new `config.json`, once the dropped shards' files are removed. */
export function saveReshape(state: WithShards): CollectionStep {
  const { reshaping } = state.running;
  return reshaping === null ? become(state) : save(state, reshaping.wanted);
}

/** Takes over the change once it is on disk: from now on the collection is the desired one. */
export function takeReshape(state: WithShards): CollectionStep {
  const { reshaping } = state.running;
  if (reshaping === null) return become(state);
  const { wanted } = reshaping;
  const kept = keptShards(state.running, wanted);
  const added = wanted.belonging.shards.filter((id) => !kept.includes(id));
  const running: Running = {
    ...state.running,
    config: wanted.config,
    belonging: wanted.belonging,
    reshaping: added.length === 0 ? null : { stage: 'opening', wanted, left: new Set(added) },
  };
  const settled = settle(withRunning(state, running));
  const error = settled.kind === 'Failed' ? settled.error : null;
  // New shards find the configuration in the announcement; the caller waits for them instead.
  const started: CollectionEffect[] = added.length === 0 ? [] : [{ kind: 'startShards', shardIds: added }];
  const isOpen = settled.kind === 'Serving' && state.kind !== 'Serving';
  return become<CollectionState, CollectionEffect>(
    settled,
    { kind: 'announce', config: wanted.config, belonging: wanted.belonging, error },
    { kind: 'configureShards', config: wanted.config, replyTo: added.length === 0 ? wanted.replyTo : null },
    ...started,
    ...(isOpen ? [{ kind: 'tellOpened' } as const] : []),
  );
}

/** Ends a failed change. Only shards that are not wanted were closed; they are opened again until the next try. */
export function failReshape(state: WithShards, { error }: Of<CollectionMessage, 'reshapeFailed'>): CollectionStep {
  const { reshaping, belonging } = state.running;
  if (reshaping === null) return become(state);
  const closed = droppedShards(state.running, reshaping.wanted);
  const next: WithShards = { kind: 'Opening', running: { ...state.running, belonging, reshaping: null } };
  return become<CollectionState, CollectionEffect>(
    closed.length === 0 ? withRunning(state, next.running) : next,
    { kind: 'refuse', replyTo: reshaping.wanted.replyTo, error },
    ...(closed.length === 0 ? [] : [{ kind: 'startShards', shardIds: closed } as const]),
  );
}

/**
 * Takes a new shard that is open, or has failed, off the list of those that a change waits for; the caller is answered after the last one.
 * A failed shard does not undo the change: the change is on disk, and the shard tries again by itself.
 */
export function noteNewShard(running: Running, shardId: number): { running: Running; effects: CollectionEffect[] } {
  const { reshaping } = running;
  if (reshaping?.stage !== 'opening' || !reshaping.left.has(shardId)) return { running, effects: [] };
  const { replyTo } = reshaping.wanted;
  const left = without(reshaping.left, shardId);
  if (left.size > 0) return { running: { ...running, reshaping: { ...reshaping, left } }, effects: [] };
  return { running: { ...running, reshaping: null }, effects: [{ kind: 'reply', replyTo, answer: true }] };
}

/** The shards that a closing collection has to close: also those that are being added or removed. */
export function allShards(running: Running): number[] {
  return [...new Set([...localShards(running), ...(running.reshaping?.wanted.belonging.shards ?? [])])];
}

/** The shards that have to be open before the collection is Serving. */
export function neededShards(running: Running): readonly number[] {
  const { reshaping } = running;
  if (reshaping === null || reshaping.stage === 'opening') return localShards(running);
  return keptShards(running, reshaping.wanted);
}

export function allOpen(running: Running): boolean {
  return neededShards(running).every((id) => running.open.has(id));
}

/** The shards that should serve and do not. */
export function closedShards(running: Running): number[] {
  return neededShards(running).filter((id) => !running.open.has(id));
}

/** The state by the open shards: Serving once all needed ones are open; a failed shard keeps the collection Failed. */
function settle(state: WithShards): WithShards {
  if (allOpen(state.running)) return servingCollection(state.running);
  return state.kind === 'Failed' ? state : { kind: 'Opening', running: state.running };
}

function save(state: WithShards, wanted: ReshapeMessage): CollectionStep {
  return become<CollectionState, CollectionEffect>(
    withRunning(state, { ...state.running, reshaping: { stage: 'saving', wanted, left: new Set() } }),
    { kind: 'saveReshape', config: wanted.config, belonging: wanted.belonging },
  );
}

function droppedShards(running: Running, wanted: ReshapeMessage): number[] {
  const kept = keptShards(running, wanted);
  return localShards(running).filter((id) => !kept.includes(id));
}

/**
 * The shards that stay with their points. A shard that was removed and added again in between does not count: it missed the writes of that
 * time.
 */
function keptShards(running: Running, { belonging: wanted }: ReshapeMessage): number[] {
  const { belonging } = running;
  return localShards(running).filter((id) => {
    if (!wanted.shards.includes(id)) return false;
    const { since } = wanted;
    // A collection taken over from a node without a cluster, or from another cluster, keeps its indexes from there.
    if (belonging === null || since === undefined || !isSamePeer(belonging, wanted)) return true;
    return isSameLife(belonging, { ...wanted, since }, id);
  });
}

function isSamePeer(one: Belonging, other: Belonging): boolean {
  return one.clusterId === other.clusterId && one.peerId === other.peerId;
}

function without(ids: ReadonlySet<number>, gone: number): ReadonlySet<number> {
  return new Set([...ids].filter((id) => id !== gone));
}

export function withRunning<State extends WithShards>(state: State, running: Running): State {
  return { ...state, running };
}

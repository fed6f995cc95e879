/** The collection actor: keeps the configuration on disk and supervises the shards. */

import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { Belonging } from '../context/desired.js';
import type { NodeServices } from '../context/services.js';
import type { CollectionEntry } from '../context/view.js';
import type { NodeMessage } from '../node/messages.js';
import { type ActorContext, type ActorRef, type Behaviour, unreachable } from '../runtime/behaviour.js';
import type { ShardMessage } from '../shard/messages.js';
import { shardBehaviour } from '../shard/shell.js';
import type { StoredCollection } from './config-file.js';
import type { CollectionEffect, CollectionMessage, NewCollection } from './messages.js';
import type { CollectionState } from './state.js';
import { startCollection, stepCollection } from './step.js';

export interface CollectionProps {
  /** As far as it is known: a shortened folder name does not tell it, the configuration does. */
  readonly name: string;
  /** Name of its folder and of its actor. */
  readonly folder: string;
  /** A new collection; null to load an existing one. */
  readonly create: NewCollection | null;
  readonly services: NodeServices;
  readonly parent: ActorRef<NodeMessage>;
  /** Takes what the doors will see of the collection; its parent decides when they do. */
  readonly present: (entry: CollectionEntry) => void;
}

/** Longest time replicas may take to take a configuration over. */
const CONFIGURE_MS = 600_000;

type CollectionContext = ActorContext<CollectionProps, CollectionMessage>;

export function collectionBehaviour(): Behaviour<CollectionProps, CollectionState, CollectionMessage, CollectionEffect> {
  const shards = new Map<number, ActorRef<ShardMessage>>();
  let entry: CollectionEntry | null = null;
  let name = '';

  function perform(effect: CollectionEffect, context: CollectionContext): void {
    const { folder, parent } = context.props;
    switch (effect.kind) {
      case 'load':
        load(context, (stored) => {
          name = stored;
        });
        break;
      case 'create':
        create(effect.create, context);
        break;
      case 'save':
        save(effect, name, context);
        break;
      case 'saveReshape':
        saveReshape(effect, name, context);
        break;
      case 'remove':
        remove(context);
        break;
      case 'announce':
        entry ??= newEntry(name, folder, context.self);
        entry.config = effect.config;
        entry.belonging = effect.belonging;
        entry.error = effect.error;
        context.props.present(entry);
        if (effect.config === null && effect.error !== null) context.log.error(`collection ${name} is not usable: ${effect.error.detail}`);
        break;
      case 'startShards':
        for (const shardId of effect.shardIds) shards.set(shardId, startShard(shardId, entry as CollectionEntry, context));
        break;
      case 'configureShards':
        configureShards([...shards.values()], effect, context);
        break;
      case 'closeShards':
        for (const shardId of effect.shardIds)
          if (shards.get(shardId)?.report({ kind: 'close' }) !== 'sent') context.report({ kind: 'shardClosed', shardId });
        break;
      case 'removeShards':
        for (const shardId of effect.shardIds) {
          shards.delete(shardId);
          forgetReplica(entry as CollectionEntry, shardId);
        }
        removeShards(effect.shardIds, context);
        break;
      case 'reply':
        context.reply(effect.replyTo, effect.answer);
        break;
      case 'refuse':
        context.fail(effect.replyTo, effect.error);
        break;
      case 'tellOpened':
        parent.report({ kind: 'collectionOpened', folder });
        break;
      case 'tellDied':
        parent.report({ kind: 'collectionDied', folder, error: effect.error });
        break;
      case 'tellCreateFailedAndStop':
        parent.report({ kind: 'createFailed', folder, error: effect.error });
        context.stop();
        break;
      case 'tellDeletedAndStop':
        parent.report({ kind: 'collectionDeleted', folder });
        context.stop();
        break;
      case 'tellClosedAndStop':
        parent.report({ kind: 'collectionClosed', folder });
        context.stop();
        break;
      default:
        unreachable(effect);
    }
  }

  return {
    kind: 'collection',
    start: (props) => {
      // A new life makes its shards and its entry anew.
      shards.clear();
      entry = null;
      name = props.name;
      return startCollection(props.create);
    },
    step: stepCollection,
    perform,
    summarize,
    childFailed: (actor, error) => ({ kind: 'shardStopped', shardId: shardIdOf(actor), error }),
  };
}

/** The caller has its answer when every shard has taken the configuration over. */
function configureShards(
  shards: readonly ActorRef<ShardMessage>[],
  { config, replyTo }: Extract<CollectionEffect, { kind: 'configureShards' }>,
  context: CollectionContext,
): void {
  const configured = shards.map((shard) =>
    shard.ask<boolean>((answerTo) => ({ kind: 'configure', config, replyTo: answerTo }), CONFIGURE_MS),
  );
  Promise.all(configured).then(
    () => replyTo !== null && context.reply(replyTo, true),
    (error: unknown) => {
      if (replyTo !== null) context.fail(replyTo, error);
      else context.log.warn(`${context.path}: a shard goes on with its earlier configuration: ${String(error)}`);
    },
  );
}

function newEntry(name: string, folder: string, actor: ActorRef<CollectionMessage>): CollectionEntry {
  return {
    name,
    folder,
    actor,
    config: null,
    belonging: null,
    error: null,
    replicas: new Map(),
    replications: new Map(),
    optimizers: new Map(),
  };
}

function forgetReplica(entry: CollectionEntry, shardId: number): void {
  const replica = entry.replicas.get(shardId);
  if (replica !== undefined) entry.optimizers.delete(replica.key);
  entry.replicas.delete(shardId);
  entry.replications.delete(shardId);
}

function removeShards(shardIds: readonly number[], context: CollectionContext): void {
  const { folder, services } = context.props;
  context.settle(
    Promise.all(shardIds.map((shardId) => services.store.removeShard(folder, shardId))),
    () => ({ kind: 'shardsRemoved' }),
    (error) => ({ kind: 'reshapeFailed', error }),
  );
}

function load(context: CollectionContext, onName: (name: string) => void): void {
  const { folder, services } = context.props;
  context.settle(
    services.store.load(folder),
    ({ name, config, belonging }) => {
      onName(name);
      return { kind: 'loaded', config, belonging: belonging ?? null };
    },
    (error) => ({ kind: 'loadFailed', error }),
  );
}

/** A collection that exists is loaded: this may be a restart after a crash. */
function create({ config, belonging }: NewCollection, context: CollectionContext): void {
  const { name, services } = context.props;
  context.settle(
    services.store.create(storedAs(name, config, belonging)),
    (stored) => ({ kind: 'loaded', config: stored.config, belonging: stored.belonging ?? null }),
    (error) => ({ kind: 'createFailed', error }),
  );
}

function storedAs(name: string, config: CollectionConfig, belonging: Belonging | null): StoredCollection {
  return belonging === null ? { name, config } : { name, config, belonging };
}

function saveReshape(effect: Extract<CollectionEffect, { kind: 'saveReshape' }>, name: string, context: CollectionContext): void {
  const { services } = context.props;
  context.settle(
    services.store.save(storedAs(name, effect.config, effect.belonging)),
    () => ({ kind: 'reshapeSaved' }),
    (error) => ({ kind: 'reshapeFailed', error }),
  );
}

function save(effect: Extract<CollectionEffect, { kind: 'save' }>, name: string, context: CollectionContext): void {
  const { config, belonging, replyTo } = effect;
  const { services } = context.props;
  context.settle(
    services.store.save(storedAs(name, config, belonging)),
    () => ({ kind: 'saved', config, replyTo }),
    (error) => ({ kind: 'saveFailed', error, replyTo }),
  );
}

function remove(context: CollectionContext): void {
  const { folder, name, services } = context.props;
  context.settle(
    services.store.remove(folder),
    () => ({ kind: 'removed' }),
    (error) => ({ kind: 'removeFailed', error: { code: 'storage', detail: `collection ${name} could not be deleted: ${error.detail}` } }),
  );
}

function startShard(shardId: number, entry: CollectionEntry, context: CollectionContext): ActorRef<ShardMessage> {
  const { folder, services } = context.props;
  return context.spawn(shardBehaviour(), `shard-${shardId}`, {
    shardId,
    folder: services.store.path(folder),
    entry,
    services,
    parent: context.self,
  });
}

function shardIdOf(actorName: string): number {
  return Number(actorName.slice('shard-'.length));
}

function summarize(message: CollectionMessage): string {
  if ('error' in message) return message.error.detail;
  return 'shardId' in message ? `shard ${message.shardId}` : '';
}

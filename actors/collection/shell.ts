/** The collection actor: keeps the configuration on disk and supervises the shards. */

import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { NodeMessage } from '../node/messages.js';
import type { NodeServices } from '../node/services.js';
import type { CollectionEntry } from '../node/view.js';
import { type ActorContext, type ActorRef, type Behaviour, type ReplyTo, unreachable } from '../runtime/behaviour.js';
import type { ShardMessage } from '../shard/messages.js';
import { shardBehaviour } from '../shard/shell.js';
import type { CollectionEffect, CollectionMessage } from './messages.js';
import type { CollectionState } from './state.js';
import { startCollection, stepCollection } from './step.js';

export interface CollectionProps {
  /** As far as it is known: a shortened folder name does not tell it, the configuration does. */
  readonly name: string;
  /** Name of its folder and of its actor. */
  readonly folder: string;
  /** Configuration of a new collection; null to load an existing one. */
  readonly create: CollectionConfig | null;
  readonly services: NodeServices;
  readonly parent: ActorRef<NodeMessage>;
  /** Takes what the doors will see of the collection; its parent decides when they do. */
  readonly present: (entry: CollectionEntry) => void;
}

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
        create(effect.config, context);
        break;
      case 'save':
        save(effect.config, effect.replyTo, name, context);
        break;
      case 'remove':
        remove(context);
        break;
      case 'announce':
        entry ??= { name, folder, actor: context.self, config: null, error: null, replicas: new Map(), optimizers: new Map() };
        entry.config = effect.config;
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
        for (const [shardId, shard] of shards)
          if (shard.report({ kind: 'close' }) !== 'sent') context.report({ kind: 'shardClosed', shardId });
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
    childFailed: (actor, error) => ({ kind: 'shardGaveUp', shardId: shardIdOf(actor), error }),
  };
}

/** The one local shard answers. */
function configureShards(
  shards: readonly ActorRef<ShardMessage>[],
  { config, replyTo }: Extract<CollectionEffect, { kind: 'configureShards' }>,
  context: CollectionContext,
): void {
  const [shard] = shards;
  if (shard === undefined) context.reply(replyTo, true);
  else context.forward(shard, { kind: 'configure', config, replyTo }, replyTo);
}

function load(context: CollectionContext, onName: (name: string) => void): void {
  const { folder, services } = context.props;
  context.settle(
    services.store.load(folder),
    ({ name, config }) => {
      onName(name);
      return { kind: 'loaded', config };
    },
    (error) => ({ kind: 'loadFailed', error }),
  );
}

/** A collection that exists is loaded: this may be a restart after a crash. */
function create(config: CollectionConfig, context: CollectionContext): void {
  const { name, services } = context.props;
  context.settle(
    services.store.create({ name, config }),
    (stored) => ({ kind: 'loaded', config: stored.config }),
    (error) => ({ kind: 'createFailed', error }),
  );
}

function save(config: CollectionConfig, replyTo: ReplyTo<boolean>, name: string, context: CollectionContext): void {
  const { services } = context.props;
  context.settle(
    services.store.save({ name, config }),
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

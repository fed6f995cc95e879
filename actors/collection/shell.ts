/** The collection actor: keeps the configuration on disk and supervises the shards. */

import { decideInRow, type Of, type Row } from '../../protocols/machine.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import type { Belonging } from '../context/desired.js';
import { ownConfig } from '../context/own-config.js';
import type { NodeServices } from '../context/services.js';
import type { CollectionEntry } from '../context/view.js';
import type { NodeMessage } from '../node/messages.js';
import type { ActorContext, ActorRef, Behaviour } from '../runtime/behaviour.js';
import type { ShardMessage } from '../shard/messages.js';
import { shardBehaviour } from '../shard/shell.js';
import type { StoredCollection } from './config-file.js';
import type { CollectionEffect, CollectionMessage, NewCollection } from './messages.js';
import type { CollectionState } from './state.js';
import { startCollection, stepCollection } from './step.js';

export interface CollectionProps {
  /** The collection's name as far as it is known: a shortened folder name does not tell it, the configuration does. */
  readonly name: string;
  /** Name of its folder and of its actor. */
  readonly folder: string;
  /** The collection to create; null to load an existing one. */
  readonly create: NewCollection | null;
  readonly services: NodeServices;
  readonly parent: ActorRef<NodeMessage>;
  /** Takes the collection's view; the parent decides when requests see it. */
  readonly present: (entry: CollectionEntry) => void;
}

/** Longest time for replicas to take over a configuration, in milliseconds. */
const CONFIGURE_MS = 600_000;

type CollectionContext = ActorContext<CollectionProps, CollectionMessage>;

export function collectionBehaviour(): Behaviour<CollectionProps, CollectionState, CollectionMessage, CollectionEffect> {
  const parts: CollectionParts = { name: '', entry: null, shards: new Map() };
  return {
    kind: 'collection',
    start: (props) => {
      // A restarted actor starts new shards and shows a new entry.
      parts.shards.clear();
      parts.entry = null;
      parts.name = props.name;
      return startCollection(props.create);
    },
    step: stepCollection,
    perform: (effect, context) => decideInRow(PERFORM, { parts, context }, effect),
    summarize,
    childFailed: (actor, error) => ({ kind: 'shardStopped', shardId: shardIdOf(actor), error }),
  };
}

/** References that live as long as the actor, until its restart, and are not part of its state. */
interface CollectionParts {
  /** As `CollectionProps.name` until the configuration is read. */
  name: string;
  /** The view of the collection; null until it is announced. */
  entry: CollectionEntry | null;
  readonly shards: Map<number, ActorRef<ShardMessage>>;
}

interface Performing {
  readonly parts: CollectionParts;
  readonly context: CollectionContext;
}

const PERFORM: Row<CollectionEffect, Performing, void> = {
  load: ({ parts, context }) =>
    load(context, (stored) => {
      parts.name = stored;
    }),
  create: ({ context }, effect) => create(effect.create, context),
  save: ({ parts, context }, effect) => save(effect, parts.name, context),
  saveReshape: ({ parts, context }, effect) => saveReshape(effect, parts.name, context),
  remove: ({ context }) => remove(context),
  announce: (performing, effect) => announce(performing, effect),
  startShards: ({ parts, context }, { shardIds }) => {
    for (const shardId of shardIds) parts.shards.set(shardId, startShard(shardId, parts.entry as CollectionEntry, context));
  },
  configureShards: ({ parts, context }, effect) => configureShards([...parts.shards.values()], effect, context),
  closeShards: ({ parts, context }, { shardIds }) => {
    for (const shardId of shardIds)
      if (parts.shards.get(shardId)?.report({ kind: 'close' }) !== 'sent') context.report({ kind: 'shardClosed', shardId });
  },
  removeShards: ({ parts, context }, { shardIds }) => {
    for (const shardId of shardIds) {
      parts.shards.delete(shardId);
      forgetReplica(parts.entry as CollectionEntry, shardId);
    }
    removeShards(shardIds, context);
  },
  reply: ({ context }, { replyTo, answer }) => context.reply(replyTo, answer),
  refuse: ({ context }, { replyTo, error }) => context.fail(replyTo, error),
  tellOpened: ({ context }) => tell(context, (folder) => ({ kind: 'collectionOpened', folder })),
  tellFailed: ({ context }, { error, shards }) => tell(context, (folder) => ({ kind: 'collectionDied', folder, error, shards })),
  tellCreateFailedAndStop: ({ context }, { error }) => {
    tell(context, (folder) => ({ kind: 'createFailed', folder, error }));
    context.stop();
  },
  tellDeletedAndStop: ({ context }) => {
    tell(context, (folder) => ({ kind: 'collectionDeleted', folder }));
    context.stop();
  },
  tellClosedAndStop: ({ context }) => {
    tell(context, (folder) => ({ kind: 'collectionClosed', folder }));
    context.stop();
  },
};

function tell({ props }: CollectionContext, message: (folder: string) => NodeMessage): void {
  props.parent.report(message(props.folder));
}

/** Shows the collection's present configuration and error to requests. */
function announce({ parts, context }: Performing, { belonging, config, error }: Of<CollectionEffect, 'announce'>): void {
  parts.entry ??= newEntry(parts.name, context.props.folder, context.self);
  parts.entry.config = config;
  parts.entry.belonging = belonging;
  parts.entry.error = error;
  context.props.present(parts.entry);
  parts.entry.onChange?.();
  if (config === null && error !== null) context.log.error(`collection ${parts.name} is not usable: ${error.detail}`);
}

/** Gives every shard the configuration; the caller is answered when all have taken it over. */
function configureShards(
  shards: readonly ActorRef<ShardMessage>[],
  { config, replyTo }: Of<CollectionEffect, 'configureShards'>,
  context: CollectionContext,
): void {
  const own = ownConfig(config, context.props.services.optimizersOverwrite);
  const configured = shards.map((shard) =>
    shard.ask<boolean>((answerTo) => ({ kind: 'configure', config: own, replyTo: answerTo }), CONFIGURE_MS),
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
  entry.onChange?.();
}

function removeShards(shardIds: readonly number[], context: CollectionContext): void {
  const { folder, name, services } = context.props;
  context.settle(
    Promise.all(shardIds.map((shardId) => services.store.removeShard(folder, shardId))),
    () => {
      for (const shardId of shardIds) services.files.forget(name, shardId);
      return { kind: 'shardsRemoved' };
    },
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

/** Creates the collection, or loads it if it exists, as after a restart. */
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

function saveReshape(effect: Of<CollectionEffect, 'saveReshape'>, name: string, context: CollectionContext): void {
  const { services } = context.props;
  context.settle(
    services.store.save(storedAs(name, effect.config, effect.belonging)),
    () => ({ kind: 'reshapeSaved' }),
    (error) => ({ kind: 'reshapeFailed', error }),
  );
}

function save(effect: Of<CollectionEffect, 'save'>, name: string, context: CollectionContext): void {
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
    () => {
      services.files.forget(name, null);
      return { kind: 'removed' };
    },
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

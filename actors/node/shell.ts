/** The node actor: finds the collections on disk at start and supervises them. */

import type { ErrorFacts } from '../../protocols/errors.js';
import type { CollectionConfig } from '../../protocols/model/collection.js';
import { collectionNameOf } from '../collection/folder-name.js';
import type { CollectionMessage } from '../collection/messages.js';
import { collectionBehaviour } from '../collection/shell.js';
import { LOCAL_SHARDS } from '../collection/state.js';
import { type ActorContext, type ActorRef, type Behaviour, unreachable } from '../runtime/behaviour.js';
import { replicaFolder } from '../shard/shell.js';
import type { LocalData, NodeNews } from './desired.js';
import type { NodeEffect, NodeMessage } from './messages.js';
import type { NodeServices } from './services.js';
import type { NodeState } from './state.js';
import { startNode, stepNode } from './step.js';
import { type CollectionEntry, type NodeView, showAbandoned } from './view.js';

export interface NodeProps {
  readonly services: NodeServices;
  readonly view: NodeView;
  /** Starts consensus as a child of the node actor, once it is known what is on disk. Null: a node of its own. */
  readonly startConsensus: StartConsensus | null;
}

export type StartConsensus = (context: ActorContext<unknown, NodeMessage>, local: LocalData) => ActorRef<NodeNews>;

type NodeContext = ActorContext<NodeProps, NodeMessage>;

export function nodeBehaviour(): Behaviour<NodeProps, NodeState, NodeMessage, NodeEffect> {
  const collections = new Map<string, ActorRef<CollectionMessage>>();
  /** What each collection shows of itself. */
  const entries = new Map<string, CollectionEntry>();

  function perform(effect: NodeEffect, context: NodeContext): void {
    switch (effect.kind) {
      case 'scan':
        scan(context);
        break;
      case 'loadCollection':
        startCollection(collectionNameOf(effect.folder), effect.folder, null, context);
        break;
      case 'createCollection':
        startCollection(effect.name, effect.folder, effect.config, context);
        break;
      case 'list':
        list(effect.folder, context);
        break;
      case 'deleteCollection':
        deleteCollection(effect, context);
        break;
      case 'saveAliases':
        context.settle(
          context.props.services.aliases.save(effect.aliases),
          () => ({ kind: 'aliasesSaved' }),
          (error) => ({ kind: 'aliasesNotSaved', error: { code: 'storage', detail: `the aliases could not be saved: ${error.detail}` } }),
        );
        break;
      case 'announceAliases':
        context.props.view.setAliases(effect.aliases);
        context.props.services.engine.setAliases(effect.aliases);
        break;
      case 'closeCollection':
        if (collections.get(effect.folder)?.report({ kind: 'close' }) !== 'sent')
          context.report({ kind: 'collectionClosed', folder: effect.folder });
        break;
      case 'abandonCollection':
        collections.delete(effect.folder);
        abandonCollection(entries.get(effect.folder), effect.error, context);
        break;
      case 'removeFiles':
        unlist(effect.folder, context);
        removeFiles(effect, context);
        break;
      case 'reply':
        context.reply(effect.replyTo, effect.answer);
        break;
      case 'refuse':
        context.fail(effect.replyTo, effect.error);
        break;
      default:
        unreachable(effect);
    }
  }

  function startCollection(name: string, folder: string, create: CollectionConfig | null, context: NodeContext): void {
    const { services } = context.props;
    const present = (entry: CollectionEntry) => entries.set(folder, entry);
    collections.set(
      folder,
      context.spawn(collectionBehaviour(), folder, { name, folder, create, services, parent: context.self, present }),
    );
  }

  function list(folder: string, context: NodeContext): void {
    const entry = entries.get(folder);
    if (entry !== undefined) context.props.view.list(entry);
  }

  function unlist(folder: string, context: NodeContext): void {
    const entry = entries.get(folder);
    if (entry !== undefined) context.props.view.unlist(entry.name);
    entries.delete(folder);
  }

  function deleteCollection(effect: Extract<NodeEffect, { kind: 'deleteCollection' }>, context: NodeContext): void {
    const actor = collections.get(effect.folder);
    unlist(effect.folder, context);
    if (actor === undefined) return;
    if (effect.replyTo === null) actor.report({ kind: 'delete', replyTo: NOBODY });
    else context.forward(actor, { kind: 'delete', replyTo: effect.replyTo }, effect.replyTo);
  }

  return {
    kind: 'node',
    start: () => {
      collections.clear();
      entries.clear();
      return startNode();
    },
    step: stepNode,
    perform,
    summarize: (message) => ('error' in message ? message.error.detail : 'folder' in message ? message.folder : ''),
    childFailed: (folder, error) => ({ kind: 'collectionGaveUp', folder, error }),
  };
}

/** Nobody waits for this answer. */
const NOBODY = 0;

/** Collections on disk, with the databases of their replicas looked at all at once, and aliases. */
function scan(context: NodeContext): void {
  const { aliases, store, verified } = context.props.services;
  const scanned = store.scan().then(async (folders) => {
    const replicas = folders.flatMap((folder) => LOCAL_SHARDS.map((shardId) => replicaFolder(store.path(folder), shardId)));
    await verified.prepare(replicas);
    return { folders, aliases: await aliases.load() };
  });
  context.settle(
    scanned,
    (found) => ({ kind: 'scanned', ...found }),
    (error) => ({ kind: 'scanFailed', error }),
  );
}

function abandonCollection(entry: CollectionEntry | undefined, error: ErrorFacts, context: NodeContext): void {
  const { services } = context.props;
  if (entry === undefined) return;
  entry.error = error;
  for (const [shardId, { key }] of entry.replicas) {
    showAbandoned(entry, shardId, error);
    services.files.close(key).catch((failure: unknown) => context.log.warn(`${key} could not be closed: ${String(failure)}`));
  }
}

function removeFiles(effect: Extract<NodeEffect, { kind: 'removeFiles' }>, context: NodeContext): void {
  context.props.services.store.remove(effect.folder).then(
    () => context.reply(effect.replyTo, true),
    (error: unknown) => context.fail(effect.replyTo, error),
  );
}

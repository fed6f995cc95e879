/** The node actor: finds the collections on disk at start and supervises them. */

import { type ErrorFacts, TroupeError } from '../../protocols/errors.js';
import type { CollectionMessage, NewCollection } from '../collection/messages.js';
import { collectionBehaviour } from '../collection/shell.js';
import { localShards } from '../collection/state.js';
import type { CollectionStore } from '../collection/store.js';
import type { LocalData, NodeNews } from '../context/desired.js';
import { collectionNameOf } from '../context/folder-name.js';
import type { NodeServices } from '../context/services.js';
import { type CollectionEntry, type NodeView, showFailed } from '../context/view.js';
import { type ActorContext, type ActorRef, type Behaviour, unreachable } from '../runtime/behaviour.js';
import { jittered, restartDelayMs } from '../runtime/restart.js';
import { replicaFolder } from '../shard/shell.js';
import type { NodeEffect, NodeMessage } from './messages.js';
import type { Holding } from './reconcile.js';
import { NOBODY, type NodeState } from './state.js';
import { startNode, stepNode } from './step.js';

export interface NodeProps {
  readonly services: NodeServices;
  readonly view: NodeView;
  /** Starts consensus, and what goes with it, as children of the node actor, once it is known what is on disk. Null: a node of its own. */
  readonly startConsensus: StartConsensus | null;
}

export type StartConsensus = (context: ActorContext<unknown, NodeMessage>, local: LocalData) => ActorRef<NodeNews>;

/** Name of the actor that `startConsensus` starts. No folder has a `$`, so no collection's actor is called so. */
export const CONSENSUS = '$consensus';
/** Beside it, the supervisor of transfers. */
export const TRANSFERS = '$transfers';

/** Tries of what failed come further and further apart. */
const RETRY = { delayMinMs: 1000, delayMaxMs: 60_000 };
/** Failures that come and go are told of together. */
const TELL_MS = 100;
/** Longest time a change of a collection may take: its new shards are opened within it. */
const RESHAPE_MS = 600_000;
/** Configurations that are read at the same time. */
const LOADED_AT_ONCE = 64;

type NodeContext = ActorContext<NodeProps, NodeMessage>;

export function nodeBehaviour(): Behaviour<NodeProps, NodeState, NodeMessage, NodeEffect> {
  const collections = new Map<string, ActorRef<CollectionMessage>>();
  /** What each collection shows of itself. */
  const entries = new Map<string, CollectionEntry>();
  let consensus: ActorRef<NodeNews> | null = null;

  function perform(effect: NodeEffect, context: NodeContext): void {
    switch (effect.kind) {
      case 'scan':
        scan(context);
        break;
      case 'loadCollection':
        startCollection(collectionNameOf(effect.folder), effect.folder, null, context);
        break;
      case 'createCollection':
        startCollection(effect.name, effect.folder, effect.create, context);
        break;
      case 'list':
        list(effect.folder, context);
        break;
      case 'deleteCollection':
        deleteCollection(effect, context);
        break;
      case 'reshapeCollection':
        reshapeCollection(effect, collections.get(effect.folder), context);
        break;
      case 'retireCollection':
        unlist(effect.folder, context);
        closeCollection(effect.folder, context);
        break;
      case 'takeAway':
        collections.delete(effect.folder);
        unlist(effect.folder, context);
        takeAway(effect, context);
        break;
      case 'retryLater':
        context.after(jittered(restartDelayMs(effect.attempt, RETRY), context.random.next()), { kind: 'retry', folder: effect.folder });
        break;
      case 'startConsensus':
        consensus = context.props.startConsensus?.(context, effect.local) ?? null;
        break;
      case 'tellLater':
        context.after(TELL_MS, { kind: 'tellNow' });
        break;
      case 'tellCarriedOut':
        consensus?.report({ kind: 'carriedOut', ...effect.carriedOut });
        break;
      case 'loseConsensus':
        consensus = null;
        context.log.error(`the node goes on without consensus, until it starts again: ${effect.error.detail}`);
        break;
      case 'loseTransfers':
        context.log.error(`the node carries out no transfers, until it starts again: ${effect.error.detail}`);
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
        closeCollection(effect.folder, context);
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

  function startCollection(name: string, folder: string, create: NewCollection | null, context: NodeContext): void {
    const { services } = context.props;
    const present = (entry: CollectionEntry) => entries.set(folder, entry);
    collections.set(
      folder,
      context.spawn(collectionBehaviour(), folder, { name, folder, create, services, parent: context.self, present }),
    );
  }

  function closeCollection(folder: string, context: NodeContext): void {
    if (collections.get(folder)?.report({ kind: 'close' }) !== 'sent') context.report({ kind: 'collectionClosed', folder });
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
      consensus = null;
      collections.clear();
      entries.clear();
      return startNode();
    },
    step: stepNode,
    perform,
    summarize,
    childFailed: (name, error) => {
      if (name === CONSENSUS) return { kind: 'consensusGaveUp', error };
      return name === TRANSFERS ? { kind: 'transfersGaveUp', error } : { kind: 'collectionGaveUp', folder: name, error };
    },
  };
}

function summarize(message: NodeMessage): string {
  if ('error' in message) return message.error.detail;
  if (message.kind === 'desire') return `${message.desired.collections.size} collections, index ${message.desired.index}`;
  return 'folder' in message ? message.folder : '';
}

/** Collections on disk, with the databases of their replicas looked at all at once, and aliases. */
function scan(context: NodeContext): void {
  const { services, startConsensus } = context.props;
  const { aliases, store, verified } = services;
  const scanned = store.scan().then(async (folders) => {
    const holdings = await loadHoldings(folders, store);
    const replicas = [...holdings].flatMap(([folder, holding]) =>
      localShards(holding).map((shardId) => replicaFolder(store.path(folder), shardId)),
    );
    await verified.prepare(replicas);
    return { folders, holdings: startConsensus === null ? null : holdings, aliases: await aliases.load() };
  });
  context.settle(
    scanned,
    (found) => ({ kind: 'scanned', ...found }),
    (error) => ({ kind: 'scanFailed', error }),
  );
}

/** Configurations that can be read; each collection tells what is wrong with its own. */
async function loadHoldings(folders: readonly string[], store: CollectionStore): Promise<Map<string, Holding>> {
  const holdings = new Map<string, Holding>();
  for (let at = 0; at < folders.length; at += LOADED_AT_ONCE) {
    await Promise.all(
      folders.slice(at, at + LOADED_AT_ONCE).map(async (folder) => {
        const stored = await store.load(folder).catch(() => null);
        if (stored !== null) holdings.set(folder, { name: stored.name, config: stored.config, belonging: stored.belonging ?? null });
      }),
    );
  }
  return holdings;
}

function reshapeCollection(
  { belonging, config, folder }: Extract<NodeEffect, { kind: 'reshapeCollection' }>,
  actor: ActorRef<CollectionMessage> | undefined,
  context: NodeContext,
): void {
  const gone = Promise.reject(new TroupeError('unavailable', 'the collection is stopped'));
  gone.catch(() => {});
  context.settle(
    actor?.ask<boolean>((replyTo) => ({ kind: 'reshape', config, belonging, replyTo }), RESHAPE_MS) ?? gone,
    () => ({ kind: 'reshaped', folder }),
    (error) => ({ kind: 'reshapeFailed', folder, error }),
  );
}

function takeAway({ folder, keep, reason }: Extract<NodeEffect, { kind: 'takeAway' }>, context: NodeContext): void {
  const { store } = context.props.services;
  const taken = keep
    ? store
        .setAside(folder)
        .then((kept) => context.log.warn(`the collection in ${folder} is not used: ${reason}; its files are kept as ${kept}`))
    : store.remove(folder);
  context.settle(
    taken,
    () => ({ kind: 'takenAway', folder }),
    (error) => ({ kind: 'takeAwayFailed', folder, error }),
  );
}

function abandonCollection(entry: CollectionEntry | undefined, error: ErrorFacts, context: NodeContext): void {
  const { services } = context.props;
  if (entry === undefined) return;
  entry.error = error;
  for (const [shardId, { key }] of entry.replicas) {
    showFailed(entry, shardId, error);
    services.files.close(key).catch((failure: unknown) => context.log.warn(`${key} could not be closed: ${String(failure)}`));
  }
}

function removeFiles(effect: Extract<NodeEffect, { kind: 'removeFiles' }>, context: NodeContext): void {
  context.props.services.store.remove(effect.folder).then(
    () => context.reply(effect.replyTo, true),
    (error: unknown) => context.fail(effect.replyTo, error),
  );
}

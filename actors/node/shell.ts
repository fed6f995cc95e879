/** The node actor: finds the collections on disk at start and supervises them. */

import { TroupeError } from '../../protocols/errors.js';
import { decideInRow, type Of, type Row } from '../../protocols/machine.js';
import { collectionNameOf } from '../../storage/disk/folder-name.js';
import type { CollectionMessage, NewCollection } from '../collection/messages.js';
import { collectionBehaviour } from '../collection/shell.js';
import type { CollectionStore } from '../collection/store.js';
import type { LocalData, NodeNews } from '../context/desired.js';
import type { NodeServices } from '../context/services.js';
import { type CollectionEntry, type NodeView, showFailed } from '../context/view.js';
import type { ActorContext, ActorRef, Behaviour } from '../runtime/behaviour.js';
import { jittered, restartDelayMs } from '../runtime/restart.js';
import type { NodeEffect, NodeMessage } from './messages.js';
import type { Holding } from './reconcile.js';
import { NO_CALLER, type NodeState } from './state.js';
import { startNodeActor, stepNode } from './step.js';

export interface NodeProps {
  readonly services: NodeServices;
  readonly view: NodeView;
  /**
   * Starts consensus and its companions as children of the node actor, once the collections on disk are known. Null on a node without a
   * cluster.
   */
  readonly startConsensus: StartConsensus | null;
}

export type StartConsensus = (context: ActorContext<unknown, NodeMessage>, local: LocalData) => ActorRef<NodeNews>;

/** Name of the consensus actor. No folder has a `$`, so no collection's actor has this name. */
export const CONSENSUS = '$consensus';
/** Name of the supervisor of transfers. */
export const TRANSFERS = '$transfers';

/** Pauses between tries, which grow with each failure. */
const RETRY = { delayMinMs: 1000, delayMaxMs: 60_000 };
/** Delay in which changes of failures are collected into one report, in milliseconds. */
const TELL_MS = 100;
/** Longest time for a change of a collection, in milliseconds: it includes opening new shards. */
const RESHAPE_MS = 600_000;
/** Configurations that are read at the same time. */
const LOADED_AT_ONCE = 64;

type NodeContext = ActorContext<NodeProps, NodeMessage>;
type EffectOf<Kind extends NodeEffect['kind']> = Of<NodeEffect, Kind>;

/** The actors since the last restart of the node actor, and each collection's view; by folder. */
interface NodeRefs {
  readonly collections: Map<string, ActorRef<CollectionMessage>>;
  readonly entries: Map<string, CollectionEntry>;
  consensus: ActorRef<NodeNews> | null;
}

interface NodeShell {
  readonly context: NodeContext;
  readonly refs: NodeRefs;
}

export function nodeBehaviour(): Behaviour<NodeProps, NodeState, NodeMessage, NodeEffect> {
  const refs: NodeRefs = { collections: new Map(), entries: new Map(), consensus: null };
  return {
    kind: 'node',
    start: () => {
      refs.consensus = null;
      refs.collections.clear();
      refs.entries.clear();
      return startNodeActor();
    },
    step: stepNode,
    perform: (effect, context) => decideInRow(EFFECTS, { context, refs }, effect),
    summarize,
    childFailed: (name, error) => {
      if (name === CONSENSUS) return { kind: 'consensusGaveUp', error };
      return name === TRANSFERS ? { kind: 'transfersGaveUp', error } : { kind: 'collectionGaveUp', folder: name, error };
    },
  };
}

const EFFECTS: Row<NodeEffect, NodeShell, void> = {
  scan,
  loadCollection: (shell, { folder }) => startCollection(shell, collectionNameOf(folder), folder, null),
  createCollection: (shell, { create, folder, name }) => startCollection(shell, name, folder, create),
  list: ({ context, refs }, { folder }) => {
    const entry = refs.entries.get(folder);
    if (entry !== undefined) context.props.view.list(entry);
  },
  deleteCollection,
  reshapeCollection,
  retireCollection: (shell, { folder }) => {
    unlist(shell, folder);
    closeCollection(shell, folder);
  },
  takeAway,
  retryLater: ({ context }, { attempt, folder }) => {
    context.after(jittered(restartDelayMs(attempt, RETRY), context.random.next()), { kind: 'retry', folder });
  },
  startConsensus: ({ context, refs }, { local }) => {
    refs.consensus = context.props.startConsensus?.(context, local) ?? null;
  },
  tellLater: ({ context }) => context.after(TELL_MS, { kind: 'tellNow' }),
  tellCarriedOut: ({ refs }, { carriedOut }) => refs.consensus?.report({ kind: 'carriedOut', ...carriedOut }),
  loseConsensus: ({ context, refs }, { error }) => {
    refs.consensus = null;
    context.log.error(`the node goes on without consensus, until it starts again: ${error.detail}`);
  },
  loseTransfers: ({ context }, { error }) => {
    context.log.error(`the node carries out no transfers, until it starts again: ${error.detail}`);
  },
  saveAliases: ({ context }, { aliases }) => {
    context.settle(
      context.props.services.aliases.save(aliases),
      () => ({ kind: 'aliasesSaved' }),
      (error) => ({ kind: 'aliasesNotSaved', error: { code: 'storage', detail: `the aliases could not be saved: ${error.detail}` } }),
    );
  },
  announceAliases: ({ context: { props } }, { aliases }) => {
    props.view.setAliases(aliases);
    props.services.engine.setAliases(aliases);
  },
  closeCollection: (shell, { folder }) => closeCollection(shell, folder),
  abandonCollection,
  removeFiles,
  reply: ({ context }, { answer, replyTo }) => context.reply(replyTo, answer),
  refuse: ({ context }, { error, replyTo }) => context.fail(replyTo, error),
};

function startCollection({ context, refs }: NodeShell, name: string, folder: string, create: NewCollection | null): void {
  const { services } = context.props;
  const present = (entry: CollectionEntry) => refs.entries.set(folder, entry);
  const props = { name, folder, create, services, parent: context.self, present };
  refs.collections.set(folder, context.spawn(collectionBehaviour(), folder, props));
}

function closeCollection({ context, refs }: NodeShell, folder: string): void {
  if (refs.collections.get(folder)?.report({ kind: 'close' }) !== 'sent') context.report({ kind: 'collectionClosed', folder });
}

function unlist({ context, refs }: NodeShell, folder: string): void {
  const entry = refs.entries.get(folder);
  if (entry !== undefined) context.props.view.unlist(entry.name);
  refs.entries.delete(folder);
}

function deleteCollection(shell: NodeShell, { folder, replyTo }: EffectOf<'deleteCollection'>): void {
  const actor = shell.refs.collections.get(folder);
  unlist(shell, folder);
  if (actor === undefined) return;
  if (replyTo === null) actor.report({ kind: 'delete', replyTo: NO_CALLER });
  else shell.context.forward(actor, { kind: 'delete', replyTo }, replyTo);
}

/** Finds the collections and aliases on disk. Each replica is checked as it is opened, beside those that serve already. */
function scan({ context }: NodeShell): void {
  const { services, startConsensus } = context.props;
  const { aliases, store } = services;
  const scanned = store.scan().then(async (folders) => {
    const holdings = startConsensus === null ? null : await loadHoldings(folders, store);
    return { folders, holdings, aliases: await aliases.load() };
  });
  context.settle(
    scanned,
    (found) => ({ kind: 'scanned', ...found }),
    (error) => ({ kind: 'scanFailed', error }),
  );
}

/** The readable configurations, by folder; each collection itself reports why its own cannot be read. */
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

function reshapeCollection({ context, refs }: NodeShell, { belonging, config, folder }: EffectOf<'reshapeCollection'>): void {
  const gone = Promise.reject(new TroupeError('unavailable', 'the collection is stopped'));
  gone.catch(() => {});
  context.settle(
    refs.collections.get(folder)?.ask<boolean>((replyTo) => ({ kind: 'reshape', config, belonging, replyTo }), RESHAPE_MS) ?? gone,
    () => ({ kind: 'reshaped', folder }),
    (error) => ({ kind: 'reshapeFailed', folder, error }),
  );
}

function takeAway(shell: NodeShell, { folder, keep, reason }: EffectOf<'takeAway'>): void {
  const { context, refs } = shell;
  refs.collections.delete(folder);
  unlist(shell, folder);
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

function abandonCollection({ context, refs }: NodeShell, { error, folder }: EffectOf<'abandonCollection'>): void {
  refs.collections.delete(folder);
  const entry = refs.entries.get(folder);
  if (entry === undefined) return;
  const { services } = context.props;
  entry.error = error;
  for (const [shardId, { key }] of entry.replicas) {
    showFailed(entry, shardId, error);
    services.files.close(key).catch((failure: unknown) => context.log.warn(`${key} could not be closed: ${String(failure)}`));
  }
}

function removeFiles(shell: NodeShell, { folder, replyTo }: EffectOf<'removeFiles'>): void {
  const { context } = shell;
  unlist(shell, folder);
  context.props.services.store.remove(folder).then(
    () => context.reply(replyTo, true),
    (error: unknown) => context.fail(replyTo, error),
  );
}

function summarize(message: NodeMessage): string {
  if ('error' in message) return message.error.detail;
  if (message.kind === 'desire') return `${message.desired.collections.size} collections, index ${message.desired.index}`;
  return 'folder' in message ? message.folder : '';
}
